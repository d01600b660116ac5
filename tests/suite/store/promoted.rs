//! A copy of the database that was really promoted, after its primary had gone on: what waits there for a person's words.

use std::time::Duration;

use uuid::Uuid;
use waybill::job::status::{Role, Status};
use waybill::store::take_over::{self, Resolution, Resolve, TakeOver};
use waybill::store::{self, Acceptance, Accepted, DeliveryOutcome, HeldBack, LossOf, Write};
use waybill_tests::failover::Server;

use super::world::{Attempt, World};

fn by(of: Attempt) -> TakeOver {
    TakeOver { job: of.job, attempt: of.attempt, run: Uuid::new_v4().to_string() }
}

fn resolve(of: Attempt) -> Resolve {
    Resolve {
        take_over: by(of),
        resolution: Resolution::OutcomeUnknown,
        proof: serde_json::json!({}),
        look_after: Duration::from_secs(60),
        acknowledgment_within: None,
    }
}

fn never_fenced(of: Attempt) -> store::Reconciliation {
    store::Reconciliation {
        job: of.job,
        attempt: of.attempt,
        conclusion: store::Conclusion::NeverFenced,
        proof: serde_json::json!({}),
        run: Uuid::new_v4().to_string(),
        look_after: Duration::from_secs(60),
        acknowledgment_within: None,
    }
}

async fn says(world: &World, of: LossOf, fences_intact: bool) -> anyhow::Result<()> {
    let corrector = world.pool(Role::Corrector).await?;
    let words =
        Acceptance { of, fences_intact, statement: "the last minute".to_owned(), accepted_by: "ines".to_owned() };
    let accepted = store::accept_loss(&corrector, words).await?;
    anyhow::ensure!(matches!(accepted, Accepted::Recorded { .. }), "{accepted:?}");
    Ok(())
}

#[tokio::test]
async fn ops_04_on_a_promoted_copy_nothing_moves_until_a_person_said_what_was_lost() -> anyhow::Result<()> {
    let primary = Server::primary().await?;
    let before = World::on(primary.database()).await?;
    let queued = before.queued().await?;
    let (silent, delivering, unfenced) =
        (before.running().await?, before.delivering().await?, before.delivering().await?);
    before.expire(unfenced).await?;
    let recovery = before.pool(Role::Recovery).await?;
    assert!(take_over::resolve(&recovery, resolve(unfenced)).await?.is_written());
    let copy = primary.copy().await?;

    // The primary goes on: what the copy shows as queued is claimed and delivered, and what it shows without a fence is
    // fenced and delivered too.
    let claimed = before.claimed(queued).await?;
    let delivered = Attempt { job: claimed.id, attempt: claimed.attempt };
    assert_eq!(before.authorize(delivered).await?, store::Authorization::Authorized);
    for of in [delivered, delivering] {
        assert!(before.intend(of).await?.is_written());
        assert!(before.finish(of, DeliveryOutcome::Completed).await?.is_written());
    }
    assert_eq!((primary.timeline().await?, before.found(queued).await?.status), (1, Status::Completed));
    let state = store::database_state(&before.pool(Role::Reader).await?).await?;
    primary.stop().await?;

    let promoted = copy.promote().await?;
    let after = World::on(promoted.database()).await?;
    let reader = after.pool(Role::Reader).await?;
    let there = store::database_state(&reader).await?;
    assert_eq!((there.system, there.timeline), (state.system, promoted.timeline().await?));
    assert!(there.timeline > state.timeline, "{there:?}");
    assert_eq!(there.held_back, HeldBack { queued: 1, owned: 2, unproven: 1 });

    let (recovery, reconciler) = (after.pool(Role::Recovery).await?, after.pool(Role::Reconciler).await?);
    let refused = store::claim(&after.worker, World::claim(queued, 1)).await?;
    assert!(matches!(&refused, Write::Refused(found) if !found.history_known), "{refused:?}");
    after.expire(silent).await?;
    after.expire(delivering).await?;
    assert!(!take_over::requeue(&recovery, by(silent), 5).await?.is_written());
    assert!(!take_over::resolve(&recovery, resolve(delivering)).await?.is_written());
    assert!(!store::reconcile(&reconciler, never_fenced(unfenced)).await?.is_written());
    assert_eq!(store::database_state(&reader).await?.held_back, there.held_back);
    // What is created there is not held back.
    after.running().await?;

    says(&after, LossOf::All { standing: false }, false).await?;
    assert_eq!(store::database_state(&reader).await?.held_back, HeldBack { queued: 0, owned: 0, unproven: 1 });
    assert!(store::claim(&after.worker, World::claim(queued, 1)).await?.is_written());
    assert!(take_over::requeue(&recovery, by(silent), 5).await?.is_written());
    assert!(take_over::resolve(&recovery, resolve(delivering)).await?.is_written());
    // Its fence was among what was lost, so nothing may conclude from its absence.
    for of in [delivering, unfenced] {
        assert!(!store::reconcile(&reconciler, never_fenced(of)).await?.is_written());
    }
    says(&after, LossOf::Job(unfenced.job), true).await?;
    assert!(store::reconcile(&reconciler, never_fenced(unfenced)).await?.is_written());
    assert_eq!(after.found(delivering.job).await?.status, Status::OutcomeUnknown);
    promoted.stop().await
}
