//! Stop requests against running attempts.

use waybill::job::status::{CancellationOutcome, EventKind, Status};
use waybill::store::Cancellation;
use waybill_tests::sftp_server::{Action, Behaviour, When};
use waybill_tests::{House, Plan, Reach, SftpServer, Sshd};

use super::{HeldBuilds, kinds};

fn outcome(cancellation: &Cancellation) -> Option<CancellationOutcome> {
    match cancellation {
        Cancellation::Recorded(recorded) => Some(recorded.outcome),
        Cancellation::RequestIdReused | Cancellation::NotFound | Cancellation::Busy => None,
    }
}

#[tokio::test]
async fn can_06_the_watcher_makes_a_stop_fast() -> anyhow::Result<()> {
    let server = Sshd::start().await?;
    let house = House::before(&Reach::openssh(&server)?, Plan::default()).await?;
    let (_worker, _dispatcher) = (house.worker().await?, house.dispatcher().await?);
    let held = HeldBuilds::hold(&house).await?;
    let id = house.create().await?;
    held.reached_by(1).await?;
    assert_eq!(outcome(&house.cancel(id).await?), Some(CancellationOutcome::StopRequested));
    // The table is still locked: only the watcher can have ended the build.
    house.until(id, Status::Stopped).await?;
    assert_eq!(kinds(&house.events(id).await?), [EventKind::Claimed, EventKind::Stopped]);
    assert_eq!(server.operations()?, [], "the partner's server heard of it");
    held.let_go().await
}

/// Without the watcher the build runs to its end, and cutoff 2 refuses.
async fn stopped_at_cutoff_two() -> anyhow::Result<()> {
    let server = Sshd::start().await?;
    let plan = Plan { watch_stop_every: None, ..Plan::default() };
    let house = House::before(&Reach::openssh(&server)?, plan).await?;
    let (_worker, _dispatcher) = (house.worker().await?, house.dispatcher().await?);
    // The server is known after this one: no check of it writes scratch files.
    house.until(house.create().await?, Status::Completed).await?;
    let created = || -> anyhow::Result<usize> {
        Ok(server.operations()?.into_iter().filter(|done| done.operation.creates().is_some()).count())
    };
    let before = created()?;
    let held = HeldBuilds::hold(&house).await?;
    let id = house.create().await?;
    held.reached_by(1).await?;
    assert_eq!(outcome(&house.cancel(id).await?), Some(CancellationOutcome::StopRequested));
    assert_eq!(outcome(&house.cancel(id).await?), Some(CancellationOutcome::StopAlreadyRequested));
    held.let_go().await?;
    house.until(id, Status::Stopped).await?;
    assert_eq!(kinds(&house.events(id).await?), [EventKind::Claimed, EventKind::Stopped]);
    assert_eq!(created()?, before, "something was sent to the partner");
    Ok(())
}

#[tokio::test]
async fn can_06_del_05_a_stop_during_the_check_of_a_server_authorizes_nothing_and_leaves_nothing() -> anyhow::Result<()>
{
    let (server, directory) = (SftpServer::start(Behaviour::default()).await?, tempfile::tempdir()?);
    let house = House::before(&Reach::in_process(&server, directory.path())?, Plan::default()).await?;
    let gate = server.hold(When::Before, Action::Write);
    let (_worker, _dispatcher) = (house.worker().await?, house.dispatcher().await?);
    let id = house.create().await?;
    gate.reached().await?;
    assert_eq!(house.job(id).await?.status, Status::Running, "the check comes before cutoff 2");
    assert_eq!(outcome(&house.cancel(id).await?), Some(CancellationOutcome::StopRequested));
    gate.open();
    house.until(id, Status::Stopped).await?;
    assert_eq!(kinds(&house.events(id).await?), [EventKind::Claimed, EventKind::Stopped]);
    assert_eq!(server.names_in("/"), [""; 0], "scratch files are left");
    Ok(())
}

#[tokio::test]
async fn can_06_without_the_watcher_cutoff_two_still_refuses() -> anyhow::Result<()> {
    stopped_at_cutoff_two().await
}

#[tokio::test]
async fn aut_01_a_stop_request_committed_first_makes_cutoff_two_refuse_and_nothing_is_sent() -> anyhow::Result<()> {
    stopped_at_cutoff_two().await
}

#[tokio::test]
async fn can_07_a_stopped_builds_partial_output_is_gone() -> anyhow::Result<()> {
    let server = Sshd::start().await?;
    let plan = Plan {
        builder: "misbehaving-builder",
        destination: "settings = { name = 'contacts-{key}.csv', behaviour = 'loop' }\n".to_owned(),
        ..Plan::default()
    };
    let house = House::before(&Reach::openssh(&server)?, plan).await?;
    let (_worker, _dispatcher) = (house.worker().await?, house.dispatcher().await?);
    let id = house.create().await?;
    house.until(id, Status::Running).await?;
    assert_eq!(outcome(&house.cancel(id).await?), Some(CancellationOutcome::StopRequested));
    house.until(id, Status::Stopped).await?;
    assert_eq!(house.spooled_bytes()?, 0, "the partial file is still there");
    Ok(())
}

#[tokio::test]
async fn can_09_a_shutdown_never_records_stopped() -> anyhow::Result<()> {
    let server = Sshd::start().await?;
    let house = House::before(&Reach::openssh(&server)?, Plan::default()).await?;
    let (worker, _dispatcher) = (house.worker().await?, house.dispatcher().await?);
    let held = HeldBuilds::hold(&house).await?;
    let id = house.create().await?;
    held.reached_by(1).await?;
    assert!(worker.stop().await?, "the work was handed back, so nothing is under way");
    let job = house.job(id).await?;
    assert_eq!((job.status, job.attempt_count), (Status::Queued, 1));
    assert_eq!(kinds(&house.events(id).await?), [EventKind::Claimed, EventKind::ReleasedByWorker]);
    held.let_go().await?;
    let _worker = house.worker().await?;
    house.until(id, Status::Completed).await?;
    Ok(())
}

#[tokio::test]
async fn can_01_past_cutoff_two_it_is_too_late_and_the_file_arrives() -> anyhow::Result<()> {
    let server = SftpServer::start(Behaviour::default()).await?;
    let directory = tempfile::tempdir()?;
    let house = House::before(&Reach::in_process(&server, directory.path())?, Plan::default()).await?;
    let (_worker, _dispatcher) = (house.worker().await?, house.dispatcher().await?);
    house.until(house.create().await?, Status::Completed).await?;
    let gate = server.hold(When::Before, Action::Write);
    let id = house.create().await?;
    gate.reached().await?;
    assert_eq!(outcome(&house.cancel(id).await?), Some(CancellationOutcome::TooLate));
    gate.open();
    let job = house.until_ended(id).await?;
    assert_eq!(job.status, Status::Completed);
    assert!(job.stop_request.is_none(), "a request that came too late changes nothing on the row");
    assert!(server.read(&House::final_name(id)).is_some());
    Ok(())
}
