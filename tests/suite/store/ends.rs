use std::time::Duration;

use anyhow::Context;
use serde_json::json;
use waybill::job::status::{EventKind, FailureReason, Status};
use waybill::store::{self, DeliveryOutcome, Finish};

use super::world::World;

#[tokio::test]
async fn can_09_stopped_is_written_only_with_a_recorded_stop_request() -> anyhow::Result<()> {
    let world = World::new().await?;
    let of = world.running().await?;
    assert!(!store::finish_stopped(&world.worker, of.job, of.attempt, "building").await?.is_written());
    assert_eq!(world.status(of.job).await?, Status::Running);
    world.cancel(of.job).await?;
    assert!(store::finish_stopped(&world.worker, of.job, of.attempt, "building").await?.is_written());
    let events = store::events_of(&world.worker, of.job).await?;
    assert_eq!(events.last().context("the event")?.detail, Some(json!({ "during": "building" })));
    Ok(())
}

#[tokio::test]
async fn rec_03_a_build_that_failed_ends_with_its_code_and_cause() -> anyhow::Result<()> {
    let world = World::new().await?;
    let of = world.running().await?;
    let failed = store::finish_failed(&world.worker, of.job, of.attempt, FailureReason::BuildFailed, "out of memory");
    assert!(failed.await?.is_written());
    let found = world.found(of.job).await?;
    assert_eq!((found.status, found.failure_reason), (Status::Failed, Some(FailureReason::BuildFailed)));
    let events = store::events_of(&world.worker, of.job).await?;
    assert_eq!(
        events.last().context("the event")?.detail,
        Some(json!({ "reason": "BuildFailed", "cause": "out of memory" }))
    );
    Ok(())
}

#[tokio::test]
async fn rec_02_an_unknown_outcome_is_looked_at_again() -> anyhow::Result<()> {
    let world = World::new().await?;
    for outcome in [
        DeliveryOutcome::Completed,
        DeliveryOutcome::Failed(FailureReason::NotDelivered),
        DeliveryOutcome::OutcomeUnknown,
    ] {
        let of = world.ended(outcome).await?;
        let looks = format!("SELECT count(*) FROM looks WHERE job_id = '{}' AND purpose = 'outcome'", of.job);
        let expected = i64::from(outcome == DeliveryOutcome::OutcomeUnknown);
        assert_eq!(world.count(&looks).await?, expected, "{outcome:?}");
        assert_eq!(world.kinds(of.job).await?.last(), Some(&EventKind::Finished));
        assert_eq!(world.status(of.job).await?, outcome.status());
    }
    Ok(())
}

#[tokio::test]
async fn rec_04_an_acknowledgment_is_looked_for_also_after_completed() -> anyhow::Result<()> {
    let world = World::new().await?;
    let of = world.intended().await?;
    let finish = Finish {
        job: of.job,
        attempt: of.attempt,
        outcome: DeliveryOutcome::Completed,
        proof: json!({}),
        look_after: Duration::from_secs(60),
        acknowledgment_within: Some(Duration::from_secs(86_400)),
    };
    assert!(store::finish_delivery(&world.worker, finish).await?.is_written());
    let looks = "SELECT count(*) FROM looks WHERE purpose = 'acknowledgment' AND until > clock_timestamp() + interval '23 hours'";
    assert_eq!(world.count(looks).await?, 1);
    Ok(())
}
