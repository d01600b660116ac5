use std::time::Duration;

use anyhow::Context;
use serde_json::json;
use uuid::Uuid;
use waybill::job::status::{CancellationOutcome as Outcome, FailureReason, Role, Status};
use waybill::store::{self, Cancellation, CancellationRequest, DeliveryOutcome, Write};

use super::world::World;

#[tokio::test]
async fn can_01_each_status_has_its_outcome_and_what_was_found_is_recorded() -> anyhow::Result<()> {
    let world = World::new().await?;
    let rejected = world.queued().await?;
    store::reject(&world.worker, rejected, 1, json!({})).await?.written().context("rejected")?;
    let canceled = world.queued().await?;
    world.cancel(canceled).await?;
    let stopping = world.running().await?.job;
    world.cancel(stopping).await?;
    let stopped = world.running().await?;
    world.cancel(stopped.job).await?;
    store::finish_stopped(&world.worker, stopped.job, stopped.attempt, "building")
        .await?
        .written()
        .context("stopped")?;

    let failed = world.ended(DeliveryOutcome::Failed(FailureReason::NotDelivered)).await?.job;
    for (job, found, outcome) in [
        (world.queued().await?, Status::Queued, Outcome::CanceledWhileQueued),
        (world.running().await?.job, Status::Running, Outcome::StopRequested),
        (stopping, Status::Running, Outcome::StopAlreadyRequested),
        (canceled, Status::Canceled, Outcome::AlreadyCanceled),
        (rejected, Status::Rejected, Outcome::AlreadyEnded),
        (stopped.job, Status::Stopped, Outcome::AlreadyEnded),
        (failed, Status::Failed, Outcome::AlreadyEnded),
        (world.delivering().await?.job, Status::Delivering, Outcome::TooLate),
        (world.ended(DeliveryOutcome::Completed).await?.job, Status::Completed, Outcome::TooLate),
        (world.ended(DeliveryOutcome::OutcomeUnknown).await?.job, Status::OutcomeUnknown, Outcome::TooLate),
    ] {
        let before = store::find_job(&world.worker, job).await?.context("the job")?;
        let answer = world.cancel(job).await?;
        assert_eq!((answer.found_status, answer.outcome), (found, outcome));
        assert_eq!(answer.found_attempt, before.attempt);
        assert_eq!(answer.found_attempt_count, before.attempt_count);
        assert_eq!(answer.found_delivery_authorized_at, before.delivery_authorized_at);
        let after = store::find_job(&world.worker, job).await?.context("the job")?;
        match outcome {
            Outcome::CanceledWhileQueued => {
                assert_eq!((after.status, after.cancellation_request), (Status::Canceled, Some(answer.id)));
            }
            Outcome::StopRequested => {
                assert_eq!((after.status, after.stop_request), (Status::Running, Some(answer.id)));
            }
            Outcome::StopAlreadyRequested | Outcome::AlreadyCanceled | Outcome::AlreadyEnded | Outcome::TooLate => {
                assert_eq!(after, before, "{outcome} changes nothing");
            }
        }
        let stored = store::cancellations_of(&world.api, world.tenant, job).await?;
        assert_eq!(stored.last(), Some(&answer));
    }
    Ok(())
}

#[tokio::test]
async fn can_02_one_click_sent_twice_has_one_record_and_one_answer() -> anyhow::Result<()> {
    let world = World::new().await?;
    let job = world.queued().await?;
    let request = world.cancellation(job);
    let again = CancellationRequest { reason: Some("other words".to_owned()), ..request.clone() };
    let (first, second) = tokio::join!(
        store::request_cancellation(&world.api, request.clone()),
        store::request_cancellation(&world.api, again)
    );
    let (first, second) = (first?, second?);
    assert_eq!(first, second, "also when they come at once");
    assert!(matches!(first, Cancellation::Recorded(ref recorded) if recorded.outcome == Outcome::CanceledWhileQueued));
    assert_eq!(world.count("SELECT count(*) FROM cancellation_requests").await?, 1);
    Ok(())
}

#[tokio::test]
async fn can_02_a_request_id_is_bound_to_its_job_and_operator() -> anyhow::Result<()> {
    let world = World::new().await?;
    let request = world.cancellation(world.queued().await?);
    assert!(matches!(store::request_cancellation(&world.api, request.clone()).await?, Cancellation::Recorded(_)));
    let other_job = CancellationRequest { job: world.queued().await?, ..request.clone() };
    assert_eq!(store::request_cancellation(&world.api, other_job.clone()).await?, Cancellation::RequestIdReused);
    assert_eq!(world.status(other_job.job).await?, Status::Queued);
    let other_person = CancellationRequest { requested_by: "paul".to_owned(), ..request.clone() };
    assert_eq!(store::request_cancellation(&world.api, other_person).await?, Cancellation::RequestIdReused);

    let tenant = Uuid::new_v4();
    let destination = world.destination(tenant, json!({})).await?;
    let job = world.create(&store::NewJob { tenant, destination, ..world.new_job() }).await?;
    let elsewhere = CancellationRequest { tenant, job, ..request };
    assert!(matches!(store::request_cancellation(&world.api, elsewhere).await?, Cancellation::Recorded(_)));
    Ok(())
}

#[tokio::test]
async fn can_02_an_id_used_at_the_same_moment_for_another_job_is_reused() -> anyhow::Result<()> {
    let world = World::new().await?;
    let (one, other) = (world.queued().await?, world.queued().await?);
    let request = world.cancellation(one);
    let held = world
        .hold(
            Role::Api,
            &format!(
                "INSERT INTO cancellation_requests (tenant_id, id, job_id, requested_by, outcome, found_status, found_attempt_count)
                 VALUES ('{}', '{}', '{other}', 'olga', 'CanceledWhileQueued', 'Queued', 0)",
                world.tenant, request.id
            ),
        )
        .await?;
    let answer = tokio::spawn({
        let pool = world.api.clone();
        async move { store::request_cancellation(&pool, request).await }
    });
    world.blocked_by(held.pid).await?;
    held.commit().await?;
    assert_eq!(answer.await??, Cancellation::RequestIdReused);
    assert_eq!(world.status(one).await?, Status::Queued, "its cancellation was rolled back");
    Ok(())
}

#[tokio::test]
async fn can_03_a_missing_job_and_another_tenants_look_the_same() -> anyhow::Result<()> {
    let world = World::new().await?;
    let job = world.queued().await?;
    let foreign = CancellationRequest { tenant: Uuid::new_v4(), ..world.cancellation(job) };
    assert_eq!(store::request_cancellation(&world.api, foreign).await?, Cancellation::NotFound);
    let missing = world.cancellation(Uuid::new_v4());
    assert_eq!(store::request_cancellation(&world.api, missing).await?, Cancellation::NotFound);
    assert_eq!(world.count("SELECT count(*) FROM cancellation_requests").await?, 0);
    assert_eq!(world.status(job).await?, Status::Queued);
    Ok(())
}

#[tokio::test]
async fn can_04_lock_wait_is_busy() -> anyhow::Result<()> {
    let world = World::new().await?;
    let job = world.queued().await?;
    let held = world.hold(Role::Worker, &format!("SELECT 1 FROM export_jobs WHERE id = '{job}' FOR UPDATE")).await?;
    let request = CancellationRequest { lock_timeout: Duration::from_millis(50), ..world.cancellation(job) };
    assert_eq!(store::request_cancellation(&world.api, request.clone()).await?, Cancellation::Busy);
    assert_eq!(world.count("SELECT count(*) FROM cancellation_requests").await?, 0);
    held.roll_back().await?;
    assert!(matches!(store::request_cancellation(&world.api, request).await?, Cancellation::Recorded(_)));
    Ok(())
}

#[tokio::test]
async fn can_05_the_lock_is_real() -> anyhow::Result<()> {
    let world = World::new().await?;
    let job = world.queued().await?;
    let request = world.cancellation(job);
    // An uncommitted request of the same id: the real one locks the row, then waits for the key.
    let held = world
        .hold(
            Role::Api,
            &format!(
                "INSERT INTO cancellation_requests (tenant_id, id, job_id, requested_by, outcome, found_status, found_attempt_count)
                 VALUES ('{}', '{}', '{job}', 'holder', 'TooLate', 'Completed', 0)",
                world.tenant, request.id
            ),
        )
        .await?;
    let cancellation = tokio::spawn({
        let pool = world.api.clone();
        async move { store::request_cancellation(&pool, request).await }
    });
    let canceling = world.blocked_by(held.pid).await?;
    let claim = tokio::spawn({
        let (pool, claim) = (world.worker.clone(), World::claim(job, 1));
        async move { store::claim(&pool, claim).await }
    });
    world.blocked_by(canceling).await?;
    held.roll_back().await?;
    assert!(matches!(cancellation.await??, Cancellation::Recorded(_)));
    assert!(matches!(claim.await??, Write::Refused(found) if found.status == Status::Canceled), "and sees its result");
    Ok(())
}

#[tokio::test]
async fn can_06_the_watcher_sees_a_stop_request_of_a_running_attempt() -> anyhow::Result<()> {
    let world = World::new().await?;
    let (stopping, other) = (world.running().await?, world.running().await?);
    let attempts = [stopping.attempt, other.attempt];
    assert!(store::watch_stop(&world.worker, &attempts).await?.is_empty());
    world.cancel(stopping.job).await?;
    assert_eq!(store::watch_stop(&world.worker, &attempts).await?, [stopping.attempt]);
    assert!(store::finish_stopped(&world.worker, stopping.job, stopping.attempt, "the build").await?.is_written());
    assert!(store::watch_stop(&world.worker, &attempts).await?.is_empty(), "it has stopped");
    Ok(())
}

#[tokio::test]
async fn rcv_09_a_cancellation_after_a_requeue_finds_the_attempts() -> anyhow::Result<()> {
    let world = World::new().await?;
    let of = world.running().await?;
    world.expire(of).await?;
    world.run(Role::Recovery, &World::takeover(of)).await?;
    let answer = world.cancel(of.job).await?;
    assert_eq!((answer.outcome, answer.found_attempt_count), (Outcome::CanceledWhileQueued, 1));
    assert_eq!(answer.found_attempt, None);
    Ok(())
}
