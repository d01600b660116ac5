//! Slow servers: within its bound a delivery waits and ends well; at its bound it ends in the true state.

use std::time::Duration;

use tokio::net::TcpListener;
use waybill::job::status::{EventKind, FailureReason, Status};
use waybill::remote::SessionLimits;
use waybill_tests::sftp_server::{Action, Behaviour, Fault, Gate, When};
use waybill_tests::{House, Plan, Reach, SftpServer, wait};

use crate::settled::{NOT_DELIVERED, ONE_STEP, Silent, UNKNOWN, agreed, renames};

/// Long for a server on this machine, short for a test that waits until it is over.
const BOUND: Duration = Duration::from_secs(3);

#[tokio::test]
async fn del_07_a_server_that_never_greets_is_left_within_the_bound_and_nothing_is_authorized() -> anyhow::Result<()> {
    let silent = TcpListener::bind(("127.0.0.1", 0)).await?;
    let port = silent.local_addr()?.port();
    let greeting = tokio::spawn(async move {
        let mut lines = Vec::new();
        while let Ok(line) = silent.accept().await {
            lines.push(line);
        }
    });
    // A server that answers only lends its account and key.
    let (server, directory) = (SftpServer::start(Behaviour::default()).await?, tempfile::tempdir()?);
    let reach = Reach { port, ..Reach::in_process(&server, directory.path())? };
    let limits = SessionLimits { connect: BOUND, ..SessionLimits::default() };
    let house = House::before(&reach, Plan { limits, max_attempts: 1, ..Plan::default() }).await?;
    let (_worker, _dispatcher) = (house.worker().await?, house.dispatcher().await?);
    let job = house.until_ended(house.create().await?).await?;
    assert_eq!((job.status, job.failure_reason), (Status::Failed, Some(FailureReason::AttemptsExhausted)));
    assert_eq!(job.delivery_authorized_at, None);
    let told: String = house
        .events(job.id)
        .await?
        .into_iter()
        .filter_map(|event| event.detail)
        .map(|detail| detail.to_string())
        .collect();
    assert!(told.contains("cannot be reached") && told.contains("127.0.0.1"), "{told}");
    greeting.abort();
    Ok(())
}

/// Waits until the lease was renewed once more.
async fn renewed(house: &House, job: uuid::Uuid) -> anyhow::Result<()> {
    let before = house.job(job).await?.lease_expires_at;
    wait::until("another renewal of the lease", async || {
        Ok((house.job(job).await?.lease_expires_at > before).then_some(()))
    })
    .await
}

#[tokio::test]
async fn del_07_slow_answers_and_a_stalled_upload_are_waited_for_and_the_file_arrives_once() -> anyhow::Result<()> {
    let (server, directory) = (SftpServer::start(Behaviour::default()).await?, tempfile::tempdir()?);
    let plan = Plan { renew_every: Duration::from_millis(100), ..Plan::default() };
    let house = House::before(&Reach::in_process(&server, directory.path())?, plan).await?;
    let (_worker, _dispatcher) = (house.worker().await?, house.dispatcher().await?);
    house.until(house.create().await?, Status::Completed).await?;
    let slow = [
        (When::Before, Action::Open),
        (When::After, Action::Write),
        (When::Before, Action::Close),
        (When::After, Action::Link),
        (When::After, Action::Remove),
    ];
    let gates: Vec<Gate> = slow.into_iter().map(|(when, action)| server.hold(when, action)).collect();
    let id = house.create().await?;
    for (gate, (when, action)) in gates.iter().zip(slow) {
        gate.reached().await?;
        renewed(&house, id).await?;
        assert_eq!(house.job(id).await?.status, Status::Delivering, "{when:?} {action:?}");
        gate.open();
    }
    let job = house.until_ended(id).await?;
    assert_eq!((job.status, job.attempt_count), (Status::Completed, 1));
    assert_eq!(server.times_created(&House::final_name(id)), 1);
    Ok(())
}

fn bounded() -> Plan {
    let limits = SessionLimits { request: BOUND, stall: BOUND, ..SessionLimits::default() };
    Plan { limits, ..agreed(ONE_STEP) }
}

#[tokio::test]
async fn del_07_an_upload_that_stalls_past_its_bound_is_not_delivered() -> anyhow::Result<()> {
    let silent = Silent::ended(renames(), bounded(), |_, event| {
        (event.when == When::Before && event.action == Action::Write).then_some(Fault::Hang)
    })
    .await?;
    assert_eq!(silent.stands().await?, NOT_DELIVERED);
    assert_eq!(silent.server.times_created(&silent.name()), 0);
    let receipt = silent.until_receipt().await?;
    assert!(receipt.call.is_some_and(|call| call.contains("within")), "the bound is not named");
    Ok(())
}

#[tokio::test]
async fn del_07_a_publish_that_is_not_answered_within_its_bound_is_unknown_whether_or_not_it_happened()
-> anyhow::Result<()> {
    for (when, code) in [(When::Before, "unanswered_and_absent"), (When::After, "interrupted")] {
        let silent = Silent::ended(renames(), bounded(), move |name, event| {
            (event.when == when && event.action == Action::Rename && event.path.ends_with(name)).then_some(Fault::Hang)
        })
        .await?;
        assert_eq!(silent.stands().await?, UNKNOWN, "{when:?}");
        assert_eq!(silent.server.read(&silent.name()).is_some(), when == When::After);
        assert_eq!(silent.detail(EventKind::Finished).await?["proof"]["code"], code, "{when:?}");
    }
    Ok(())
}
