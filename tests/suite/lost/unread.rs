//! The answer was lost and the row could not be read either: nobody guesses, and the wake-up or recovery brings the job on.

use waybill::job::status::{EventKind, Status};
use waybill_tests::House;
use waybill_tests::proxy::{Fault, Moment};

use super::{DELIVERED, OnTheLine};
use crate::delivery::kinds;

#[tokio::test]
async fn lst_02_a_claim_that_never_arrived_leaves_its_message_and_the_job_runs_once() -> anyhow::Result<()> {
    let on = OnTheLine::new().await?;
    let cut = on.line.at("claim", Fault::cut(Moment::Before).then_refusing());
    let job = on.house.create().await?;
    cut.happened().await?;
    let on = on.worker_ended_unread().await?;
    assert_eq!(on.house.job(job).await?.status, Status::Queued);
    assert_eq!(kinds(&on.house.events(job).await?), []);
    assert_eq!(on.wakeups(job).await?, 1, "unsettled");
    on.redeliver(job).await?;
    on.assert_delivered_once(job).await?;
    on.until_settled(job).await
}

#[tokio::test]
async fn lst_03_a_claim_that_committed_is_left_to_recovery_and_its_message_does_nothing() -> anyhow::Result<()> {
    let on = OnTheLine::new().await?;
    let cut = on.line.at("claim", Fault::cut(Moment::After).then_refusing());
    let job = on.house.create().await?;
    cut.happened().await?;
    let on = on.worker_ended_unread().await?;
    let claimed = on.house.job(job).await?;
    assert_eq!((claimed.status, claimed.attempt_count), (Status::Running, 1));
    assert_eq!(on.wakeups(job).await?, 1, "unsettled");
    let row = on.row(job).await?;

    // The message comes again, finds the job Running, and is settled without a write to the row.
    on.redeliver(job).await?;
    on.until_settled(job).await?;
    assert_eq!(on.row(job).await?, row);
    assert_eq!(kinds(&on.house.events(job).await?), [EventKind::Claimed]);
    assert_eq!(on.server.operations(), [], "nothing was asked of the partner");

    on.requeue(job).await?;
    let ended = on.house.until_ended(job).await?;
    assert_eq!((ended.status, ended.attempt_count), (Status::Completed, 2));
    assert_ne!(ended.attempt, claimed.attempt);
    let mut expected = vec![EventKind::Claimed, EventKind::RequeuedByRecovery];
    expected.extend(DELIVERED);
    assert_eq!(kinds(&on.house.events(job).await?), expected);
    assert_eq!(on.server.times_created(&House::final_name(job)), 1);
    Ok(())
}
