use std::time::Duration;

use waybill::job::facts::Sha256;
use waybill::job::status::{EventKind, FailureReason, Role, Status};
use waybill::store::take_over::{self, Resolution, Resolve};
use waybill::store::{self, Case, Conclusion, Ground, Write};

use super::actors::{self, Actors, COMPLETED, resolving};

const SAME: Sha256 = Sha256([7; 32]);
const OTHER: Sha256 = Sha256([8; 32]);

#[tokio::test]
async fn rcv_04_an_expired_delivery_is_completed_only_past_the_fence_else_unknown() -> anyhow::Result<()> {
    let actors = Actors::new().await?;
    let unfenced = actors.delivering().await?;
    actors.expire(unfenced).await?;
    for ground in [Ground::Attempt, Ground::Content, Ground::Listing] {
        let refused = actors.resolve(unfenced, Resolution::Completed(ground)).await?;
        assert!(matches!(&refused, Write::Refused(found) if !found.publish_intended), "{ground:?}: {refused:?}");
    }
    assert!(actors.resolve(unfenced, Resolution::OutcomeUnknown).await?.is_written());
    assert!(actors.found(unfenced.job).await?.is(Status::OutcomeUnknown, unfenced.attempt));

    let fenced = actors.intended().await?;
    actors.expire(fenced).await?;
    assert!(actors.resolve(fenced, Resolution::Completed(Ground::Listing)).await?.is_written());
    assert!(actors.found(fenced.job).await?.is(Status::Completed, fenced.attempt));
    let (run, detail) = actors.detail(fenced.job, EventKind::ResolvedByRecovery).await?;
    assert_eq!(run.as_deref(), Some("run-1"));
    assert_eq!(detail["outcome"], "Completed");
    assert_eq!(detail["ground"], "listing");
    assert_eq!(detail["proof"]["look"], "absent");
    Ok(())
}

/// The types cannot say it; the statement cannot either.
#[tokio::test]
async fn rcv_04_recovery_never_fails_a_delivery() -> anyhow::Result<()> {
    let actors = Actors::new().await?;
    let of = actors.silent(Case::Resolve).await?;
    let mut recovery = actors.login(Role::Recovery).await?;
    for outcome in ["Failed", "Queued", "Delivering", "Stopped"] {
        let rows = sqlx::query(include_str!("../../../host/src/store/take_over/resolve.sql"))
            .bind(of.job)
            .bind(of.attempt)
            .bind(outcome)
            .bind("attempt")
            .bind("run-1")
            .bind(serde_json::json!({}))
            .bind(1.0_f64)
            .bind(None::<f64>)
            .fetch_all(&mut recovery)
            .await?;
        assert!(rows.is_empty(), "{outcome}");
    }
    assert!(actors.found(of.job).await?.is(Status::Delivering, of.attempt));
    let forced =
        format!("UPDATE export_jobs SET status = 'Failed', failure_reason = 'NotDelivered' WHERE id = '{}'", of.job);
    assert_eq!(actors.refused(Role::Recovery, &forced).await?, "WB001");
    Ok(())
}

#[tokio::test]
async fn rcv_04_what_stays_unknown_is_looked_for_again_and_a_late_acknowledgment_too() -> anyhow::Result<()> {
    let actors = Actors::new().await?;
    let unknown = actors.silent(Case::Resolve).await?;
    assert!(actors.resolve(unknown, Resolution::OutcomeUnknown).await?.is_written());
    let completed = actors.silent(Case::Resolve).await?;
    assert!(actors.resolve(completed, COMPLETED).await?.is_written());
    let acknowledged = actors.silent(Case::Resolve).await?;
    let with_period = Resolve {
        acknowledgment_within: Some(Duration::from_secs(3600)),
        ..resolving(acknowledged, COMPLETED, "run-1")
    };
    assert!(take_over::resolve(&actors.recovery, with_period).await?.is_written());

    for (of, purpose, rows) in
        [(unknown, "outcome", 1), (completed, "acknowledgment", 0), (acknowledged, "acknowledgment", 1)]
    {
        let looks = format!(
            "SELECT count(*) FROM looks WHERE job_id = '{}' AND attempt_id = '{}' AND purpose = '{purpose}'
             AND next_at > clock_timestamp() AND ended_at IS NULL",
            of.job, of.attempt
        );
        assert_eq!(actors.count(&looks).await?, rows, "{purpose}");
    }
    Ok(())
}

#[tokio::test]
async fn rec_05_recovery_takes_no_listing_once_another_attempt_of_the_key_was_authorized() -> anyhow::Result<()> {
    let actors = Actors::new().await?;
    let original = actors.unknown(true).await?;
    let replacement = actors.replacement_under_way(original.job, SAME).await?;
    actors.expire(replacement).await?;
    for ground in [Ground::Listing, Ground::Content] {
        assert!(
            matches!(actors.resolve(replacement, Resolution::Completed(ground)).await?, Write::Refused(_)),
            "{ground:?}"
        );
    }
    assert!(actors.resolve(replacement, COMPLETED).await?.is_written());

    let original = actors.unknown(true).await?;
    let replacement = actors.replacement_under_way(original.job, OTHER).await?;
    actors.expire(replacement).await?;
    assert!(!actors.resolve(replacement, Resolution::Completed(Ground::Listing)).await?.is_written());
    assert!(actors.resolve(replacement, Resolution::Completed(Ground::Content)).await?.is_written(), "its own content");
    Ok(())
}

#[tokio::test]
async fn rec_05_an_attempt_that_was_never_authorized_takes_no_listing_from_the_next_one() -> anyhow::Result<()> {
    let actors = Actors::new().await?;
    let original = actors.running().await?;
    let failed =
        store::finish_failed(&actors.worker, original.job, original.attempt, FailureReason::BuildFailed, "no rows");
    assert!(failed.await?.is_written());
    let replacement = actors.replacement_under_way(original.job, SAME).await?;
    actors.expire(replacement).await?;
    assert!(actors.resolve(replacement, Resolution::Completed(Ground::Listing)).await?.is_written());
    Ok(())
}

#[tokio::test]
async fn fen_02_a_takeover_waits_for_an_open_fence_and_never_becomes_not_delivered() -> anyhow::Result<()> {
    let actors = Actors::new().await?;
    let of = actors.delivering().await?;
    actors.expire(of).await?;
    let held = actors.hold(Role::Worker, of, EventKind::PublishIntended).await?;
    let intended = tokio::spawn({
        let pool = actors.worker.clone();
        async move { store::intend_publish(&pool, of.job, of.attempt, waybill::job::evidence::PublishForm::Rename).await }
    });
    let intending = actors.blocked_by(held.pid).await?;
    let taken = tokio::spawn({
        let pool = actors.recovery.clone();
        async move { actors::take_over(&pool, Case::Resolve, of, "run-1").await }
    });
    actors.blocked_by(intending).await?;
    held.roll_back().await?;
    assert!(intended.await??.is_written());
    assert!(taken.await??.is_written());
    assert!(actors.found(of.job).await?.publish_intended);

    let refused = actors.reconcile(of, Conclusion::NeverFenced).await?;
    assert!(matches!(&refused, Write::Refused(found) if found.publish_intended), "{refused:?}");
    assert_eq!(actors.status(of.job).await?, Status::OutcomeUnknown, "until evidence settles it");
    Ok(())
}

#[tokio::test]
async fn fen_01_fen_02_a_fence_waits_for_an_open_takeover_and_gives_no_leave() -> anyhow::Result<()> {
    let actors = Actors::new().await?;
    let of = actors.delivering().await?;
    actors.expire(of).await?;
    let held = actors.hold(Role::Recovery, of, EventKind::ResolvedByRecovery).await?;
    let taken = tokio::spawn({
        let pool = actors.recovery.clone();
        async move { actors::take_over(&pool, Case::Resolve, of, "run-1").await }
    });
    let taking = actors.blocked_by(held.pid).await?;
    let intended = tokio::spawn({
        let pool = actors.worker.clone();
        async move { store::intend_publish(&pool, of.job, of.attempt, waybill::job::evidence::PublishForm::Rename).await }
    });
    actors.blocked_by(taking).await?;
    held.roll_back().await?;
    assert!(taken.await??.is_written());
    assert!(matches!(intended.await??, Write::Refused(found) if found.is(Status::OutcomeUnknown, of.attempt)));
    assert!(actors.reconcile(of, Conclusion::NeverFenced).await?.is_written());
    assert!(!actors.kinds(of.job).await?.contains(&EventKind::PublishIntended));
    Ok(())
}
