//! Final names that are taken: before the attempt, and at the last moment.

use waybill::job::status::{EventKind, FailureReason, Status};
use waybill_tests::sftp_server::{Action, Behaviour, Fault, When};
use waybill_tests::{House, Plan, Reach, SftpServer, Sshd};

use super::kinds;

#[tokio::test]
async fn del_02_an_occupied_final_name_ends_the_original_and_nothing_is_uploaded() -> anyhow::Result<()> {
    let server = Sshd::start().await?;
    let house = House::before(&Reach::openssh(&server)?, Plan::default()).await?;
    let id = house.create().await?;
    let name = House::final_name(id);
    std::fs::write(server.files().join(&name), b"somebody else's")?;
    let (_worker, _dispatcher) = (house.worker().await?, house.dispatcher().await?);
    let job = house.until_ended(id).await?;
    assert_eq!((job.status, job.failure_reason), (Status::Failed, Some(FailureReason::FinalNameOccupied)));
    // It ended while a stop request could still have won.
    assert_eq!(kinds(&house.events(id).await?), [EventKind::Claimed, EventKind::Failed]);
    assert_eq!(server.fetch(&name).await?, b"somebody else's");
    let created: Vec<_> = server.operations()?.into_iter().filter(|done| done.operation.creates().is_some()).collect();
    assert_eq!(created, [], "something was uploaded");
    Ok(())
}

#[tokio::test]
async fn del_02_a_name_that_is_taken_after_cutoff_two_is_found_by_the_recorded_baseline() -> anyhow::Result<()> {
    let server = SftpServer::start(Behaviour::default()).await?;
    let directory = tempfile::tempdir()?;
    let house = House::before(&Reach::in_process(&server, directory.path())?, Plan::default()).await?;
    let (_worker, _dispatcher) = (house.worker().await?, house.dispatcher().await?);
    let id = house.create().await?;
    let name = House::final_name(id);
    // The first look at the final name finds nothing; the file is there from the second on.
    let looked = name.clone();
    let gate = waybill_tests::sftp_server::Gate::default();
    let (held, mut looks) = (gate.clone(), 0);
    server.hook(move |event| {
        if event.when == When::Before && event.action == Action::Stat && event.path.ends_with(&looked) {
            looks += 1;
        }
        (looks == 3 && event.action == Action::Stat && event.when == When::Before).then(|| Fault::Wait(held.clone()))
    });
    gate.reached().await?;
    house.until(id, Status::Delivering).await?;
    server.put(&name, b"faster".to_vec())?;
    gate.open();
    let job = house.until_ended(id).await?;
    assert_eq!((job.status, job.failure_reason), (Status::Failed, Some(FailureReason::FinalNameOccupied)));
    assert_eq!(
        kinds(&house.events(id).await?),
        [EventKind::Claimed, EventKind::DeliveryAuthorized, EventKind::Finished]
    );
    assert_eq!(server.read(&name).as_deref(), Some(b"faster".as_slice()));
    assert_eq!(server.times_created(&name), 0);
    Ok(())
}

#[tokio::test]
async fn del_04_a_file_that_appears_before_the_publish_is_not_replaced_and_the_outcome_is_unknown() -> anyhow::Result<()>
{
    let server = SftpServer::start(Behaviour::default()).await?;
    let directory = tempfile::tempdir()?;
    let house = House::before(&Reach::in_process(&server, directory.path())?, Plan::default()).await?;
    let (_worker, _dispatcher) = (house.worker().await?, house.dispatcher().await?);
    house.until(house.create().await?, Status::Completed).await?;
    let gate = server.hold(When::Before, Action::Link);
    let id = house.create().await?;
    gate.reached().await?;
    let name = House::final_name(id);
    server.put(&name, b"a paused upload that landed late".to_vec())?;
    gate.open();
    let job = house.until_ended(id).await?;
    assert_eq!((job.status, job.failure_reason), (Status::OutcomeUnknown, None));
    assert_eq!(server.read(&name).as_deref(), Some(b"a paused upload that landed late".as_slice()));
    assert_eq!(server.times_written(&name), 0);
    Ok(())
}
