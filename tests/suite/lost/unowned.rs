//! While the answer was on its way, somebody else moved the row on: the attempt sees its id in another state, or not at
//! all, and writes nothing to the row.

use uuid::Uuid;
use waybill::job::status::{EventKind, Status};
use waybill_tests::House;
use waybill_tests::proxy::{Fault, Moment};
use waybill_tests::sftp_server::Gate;

use super::OnTheLine;
use crate::delivery::kinds;

/// Holds a statement, lets recovery take the attempt over, and cuts. Returns the job once the worker has ended, with the
/// row as recovery left it compared to the row as it is.
async fn taken_over_while(statement: &str, moment: Moment) -> anyhow::Result<(OnTheLine, Uuid)> {
    let on = OnTheLine::new().await?.proven().await?;
    let gate = Gate::default();
    let cut = on.line.at(statement, Fault::cut(moment).held_by(&gate));
    let job = on.house.create().await?;
    gate.reached().await?;
    on.resolve(job).await?;
    let row = on.row(job).await?;
    gate.open();
    cut.happened().await?;
    let on = on.worker_ended().await?;
    assert_eq!(on.row(job).await?, row, "the worker wrote to the row");
    assert_eq!(on.house.job(job).await?.status, Status::OutcomeUnknown);
    Ok((on, job))
}

#[tokio::test]
async fn lst_04_after_cutoff_two_the_worker_finds_itself_taken_over_and_sends_nothing() -> anyhow::Result<()> {
    let (on, job) = taken_over_while("authorize_delivery", Moment::After).await?;
    let events = on.house.events(job).await?;
    assert_eq!(kinds(&events), [EventKind::Claimed, EventKind::DeliveryAuthorized, EventKind::ResolvedByRecovery]);
    assert_eq!(on.writes_about(job), [], "something was sent");
    Ok(())
}

#[tokio::test]
async fn lst_04_after_the_fence_the_worker_finds_itself_taken_over_and_publishes_nothing() -> anyhow::Result<()> {
    let (on, job) = taken_over_while("intend_publish", Moment::After).await?;
    let mut expected = vec![EventKind::Claimed, EventKind::DeliveryAuthorized, EventKind::PublishIntended];
    expected.push(EventKind::ResolvedByRecovery);
    assert_eq!(kinds(&on.house.events(job).await?), expected);
    assert_eq!(on.server.times_created(&House::final_name(job)), 0);
    Ok(())
}

#[tokio::test]
async fn lst_04_a_terminal_write_that_comes_too_late_changes_nothing() -> anyhow::Result<()> {
    let (on, job) = taken_over_while("finish_delivery", Moment::Before).await?;
    let events = on.house.events(job).await?;
    assert_eq!(kinds(&events).last(), Some(&EventKind::ResolvedByRecovery));
    assert!(!kinds(&events).contains(&EventKind::Finished));
    assert_eq!(on.server.times_created(&House::final_name(job)), 1, "what was done stays done");
    Ok(())
}

/// A claim that was taken over before its answer came: the requeued job is another attempt's.
#[tokio::test]
async fn lst_04_after_a_requeue_the_late_claimer_does_nothing() -> anyhow::Result<()> {
    let on = OnTheLine::new().await?.proven().await?;
    let gate = Gate::default();
    let cut = on.line.at("claim", Fault::cut(Moment::After).held_by(&gate));
    let job = on.house.create().await?;
    gate.reached().await?;
    let first = on.attempt(job).await?;
    on.requeue(job).await?;
    let other = on.house.worker().await?;
    let ended = on.house.until_ended(job).await?;
    assert_eq!((ended.status, ended.attempt_count), (Status::Completed, 2));
    let row = on.row(job).await?;
    gate.open();
    cut.happened().await?;
    let on = on.worker_ended().await?;
    assert!(other.stop().await?);
    assert_eq!(on.row(job).await?, row);
    let of_the_first = on.house.events(job).await?;
    let of_the_first: Vec<EventKind> =
        of_the_first.iter().filter(|event| event.attempt == first).map(|event| event.kind).collect();
    assert_eq!(of_the_first, [EventKind::Claimed, EventKind::RequeuedByRecovery]);
    assert_eq!(on.server.times_created(&House::final_name(job)), 1);
    Ok(())
}
