use anyhow::Context;
use waybill::job::evidence::Evidence;
use waybill::job::facts::{Found, Listing};
use waybill::job::status::{EventKind, Role, Status};
use waybill::store::{self, DeliveryOutcome, Write};

use super::world::World;

#[tokio::test]
async fn fen_02_a_fence_commits_with_its_form_once() -> anyhow::Result<()> {
    let world = World::new().await?;
    let of = world.delivering().await?;
    assert!(world.intend(of).await?.is_written());
    assert!(
        matches!(world.intend(of).await?, Write::Refused(found) if found.publish_intended),
        "a second call gets no second leave to publish"
    );
    let events = store::events_of(&world.worker, of.job).await?;
    let event = events.last().context("the fence's event")?;
    assert_eq!(event.kind, EventKind::PublishIntended);
    assert_eq!(event.detail, Some(serde_json::json!({ "form": "rename" })));
    Ok(())
}

#[tokio::test]
async fn fen_02_without_cutoff_two_there_is_no_fence() -> anyhow::Result<()> {
    let world = World::new().await?;
    let of = world.running().await?;
    assert!(matches!(world.intend(of).await?, Write::Refused(found) if found.status == Status::Running));
    Ok(())
}

#[tokio::test]
async fn fen_01_fen_02_a_fence_waits_for_a_takeover_and_writes_nothing() -> anyhow::Result<()> {
    let world = World::new().await?;
    let of = world.delivering().await?;
    world.expire(of).await?;
    let takeover = world.hold(Role::Recovery, &World::takeover(of)).await?;
    let fence = tokio::spawn({
        let pool = world.worker.clone();
        async move { store::intend_publish(&pool, of.job, of.attempt, waybill::job::evidence::PublishForm::Link).await }
    });
    world.blocked_by(takeover.pid).await?;
    takeover.commit().await?;
    assert!(
        matches!(fence.await??, Write::Refused(found) if found.status == Status::OutcomeUnknown && !found.publish_intended)
    );
    assert!(!world.kinds(of.job).await?.contains(&EventKind::PublishIntended), "so nothing will be published");
    Ok(())
}

#[tokio::test]
async fn fen_02_a_takeover_waits_for_a_fence_and_has_it_in_view() -> anyhow::Result<()> {
    let world = World::new().await?;
    let of = world.delivering().await?;
    world.expire(of).await?;
    let held = world.hold_event(of, EventKind::PublishIntended).await?;
    let fence = tokio::spawn({
        let pool = world.worker.clone();
        async move { store::intend_publish(&pool, of.job, of.attempt, waybill::job::evidence::PublishForm::Link).await }
    });
    let fencing = world.blocked_by(held.pid).await?;
    let mut recovery = world.login(Role::Recovery).await?;
    let takeover = tokio::spawn(async move {
        let seen: Option<bool> = sqlx::query_scalar(sqlx::AssertSqlSafe(format!(
            "{} RETURNING publish_intended_at IS NOT NULL",
            World::takeover(of)
        )))
        .fetch_optional(&mut recovery)
        .await?;
        anyhow::Ok(seen)
    });
    world.blocked_by(fencing).await?;
    held.roll_back().await?;
    assert!(fence.await??.is_written());
    assert_eq!(takeover.await??, Some(true), "NotDelivered can no longer be concluded from an absent fence");
    assert_eq!(world.status(of.job).await?, Status::OutcomeUnknown);
    Ok(())
}

#[tokio::test]
async fn fen_03_completed_by_the_worker_demands_the_fence() -> anyhow::Result<()> {
    let world = World::new().await?;
    let of = world.delivering().await?;
    assert!(
        matches!(world.finish(of, DeliveryOutcome::Completed).await?, Write::Refused(found) if !found.publish_intended)
    );
    assert_eq!(world.status(of.job).await?, Status::Delivering);
    Ok(())
}

#[tokio::test]
async fn fen_10_the_temporary_name_is_on_record_before_the_fence_and_no_attempt_id_is_used_twice() -> anyhow::Result<()>
{
    let world = World::new().await?;
    let of = world.delivering().await?;
    let temporary = format!(".{}.part", of.attempt);
    let at = World::delivery(of).expected.name;
    let baseline = Evidence::Baseline {
        look: Listing { at, found: Found::Absent, sha256: None, hashed_by: None },
        temporary: Some(temporary.clone()),
        acknowledgments: None,
        reported: None,
        contract: None,
    };
    assert!(store::append_evidence(&world.worker, of.job, of.attempt, "worker-1", &baseline).await?.is_written());
    world.intend(of).await?.written().context("the fence")?;
    let events = store::events_of(&world.worker, of.job).await?;
    let place = |kind| events.iter().position(|event| event.kind == kind);
    assert!(place(EventKind::DeliveryEvidence) < place(EventKind::PublishIntended));
    let recorded = events.iter().find(|event| event.kind == EventKind::DeliveryEvidence).context("the baseline")?;
    assert_eq!(recorded.detail.as_ref().and_then(|detail| detail.get("temporary")), Some(&temporary.into()));

    let mut claim = World::claim(world.queued().await?, 1);
    claim.attempt = of.attempt;
    let refused = store::claim(&world.worker, claim).await.unwrap_err();
    assert_eq!(refused.constraint(), Some("uq_attempt_claimed"));
    Ok(())
}
