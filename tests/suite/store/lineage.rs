//! A database that may have lost commits: what waits, and what a person's words set free.

use std::time::Duration;

use uuid::Uuid;
use waybill::job::status::Role;
use waybill::store::take_over::{self, Resolution, Resolve, TakeOver};
use waybill::store::{self, Acceptance, Accepted, HeldBack, LossOf, Write};

use super::world::{Attempt, World};

fn words(of: LossOf, fences_intact: bool) -> Acceptance {
    Acceptance { of, fences_intact, statement: "the last minute".to_owned(), accepted_by: "ines".to_owned() }
}

/// As if everything so far had been written on another timeline. Only the superuser can do that to rows.
async fn forget(world: &World) -> anyhow::Result<()> {
    let mut admin = world.database.admin().await?.acquire().await?.detach();
    sqlx::query("SET session_replication_role = replica").execute(&mut admin).await?;
    sqlx::query("UPDATE export_jobs SET known_timeline = known_timeline + 1").execute(&mut admin).await?;
    Ok(())
}

async fn is_claimed(world: &World, job: Uuid) -> anyhow::Result<bool> {
    match store::claim(&world.worker, World::claim(job, 1)).await? {
        Write::Written(_) => Ok(true),
        Write::Refused(found) => {
            assert!(!found.history_known, "refused for another reason");
            Ok(false)
        }
        Write::Absent => anyhow::bail!("no such job"),
    }
}

#[tokio::test]
async fn ops_04_words_about_one_job_free_that_one_and_words_about_all_the_rest() -> anyhow::Result<()> {
    let world = World::new().await?;
    let (corrector, reader) = (world.pool(Role::Corrector).await?, world.pool(Role::Reader).await?);
    let (one, other) = (world.queued().await?, world.queued().await?);
    world.running().await?;
    assert_eq!(store::database_state(&reader).await?.held_back, HeldBack::default());
    forget(&world).await?;
    let state = store::database_state(&reader).await?;
    assert_eq!(state.held_back, HeldBack { queued: 2, owned: 1, unproven: 0 });
    assert!(!is_claimed(&world, one).await? && !is_claimed(&world, other).await?);

    let (system, timeline) = (state.system, state.timeline);
    let recorded = Accepted::Recorded { system, timeline };
    assert_eq!(store::accept_loss(&corrector, words(LossOf::Job(one), false)).await?, recorded);
    assert!(is_claimed(&world, one).await? && !is_claimed(&world, other).await?);
    assert_eq!(store::accept_loss(&corrector, words(LossOf::All { standing: false }, false)).await?, recorded);
    assert!(is_claimed(&world, other).await?);
    assert_eq!(store::database_state(&reader).await?.held_back, HeldBack::default());
    Ok(())
}

#[tokio::test]
async fn ops_04_words_about_a_job_that_lost_nothing_are_not_needed_beside_one_that_did() -> anyhow::Result<()> {
    let world = World::new().await?;
    let corrector = world.pool(Role::Corrector).await?;
    let lost = world.queued().await?;
    forget(&world).await?;
    let kept = world.queued().await?;
    assert_eq!(store::accept_loss(&corrector, words(LossOf::Job(kept), true)).await?, Accepted::NothingLost);
    let nobody = Uuid::new_v4();
    assert_eq!(store::accept_loss(&corrector, words(LossOf::Job(nobody), true)).await?, Accepted::NoSuchJob);
    assert!(matches!(store::accept_loss(&corrector, words(LossOf::Job(lost), true)).await?, Accepted::Recorded { .. }));
    Ok(())
}

#[tokio::test]
async fn ops_04_words_without_need_or_without_words_are_not_recorded() -> anyhow::Result<()> {
    let world = World::new().await?;
    let corrector = world.pool(Role::Corrector).await?;
    let job = world.queued().await?;
    let all = LossOf::All { standing: false };
    assert_eq!(store::accept_loss(&corrector, words(all, true)).await?, Accepted::NothingLost);
    assert_eq!(store::accept_loss(&corrector, words(LossOf::Job(job), true)).await?, Accepted::NothingLost);
    assert_eq!(store::accept_loss(&corrector, words(LossOf::Job(Uuid::new_v4()), true)).await?, Accepted::NoSuchJob);
    let silent = Acceptance { statement: "  ".to_owned(), ..words(all, true) };
    assert_eq!(store::accept_loss(&corrector, silent).await?, Accepted::WordsMissing);
    assert_eq!(world.count("SELECT count(*) FROM accepted_losses").await?, 0);
    let standing = LossOf::All { standing: true };
    assert!(matches!(store::accept_loss(&corrector, words(standing, true)).await?, Accepted::Recorded { .. }));
    assert!(store::database_state(&world.pool(Role::Reader).await?).await?.standing, "said before a failover");
    Ok(())
}

#[tokio::test]
async fn ops_04_a_silent_attempt_and_an_absent_fence_wait_for_the_words_that_fit_them() -> anyhow::Result<()> {
    let world = World::new().await?;
    let (corrector, reader) = (world.pool(Role::Corrector).await?, world.pool(Role::Reader).await?);
    let (recovery, reconciler) = (world.pool(Role::Recovery).await?, world.pool(Role::Reconciler).await?);
    let (silent, unfenced) = (world.running().await?, world.delivering().await?);
    world.expire(silent).await?;
    world.expire(unfenced).await?;
    let by = |of: Attempt| TakeOver { job: of.job, attempt: of.attempt, run: Uuid::new_v4().to_string() };
    let resolve = Resolve {
        take_over: by(unfenced),
        resolution: Resolution::OutcomeUnknown,
        proof: serde_json::json!({}),
        look_after: Duration::from_secs(60),
        acknowledgment_within: None,
    };
    assert!(take_over::resolve(&recovery, resolve).await?.is_written());
    forget(&world).await?;
    let held_back = store::database_state(&reader).await?.held_back;
    assert_eq!(held_back, HeldBack { queued: 0, owned: 1, unproven: 1 });
    let never_fenced = || store::Reconciliation {
        job: unfenced.job,
        attempt: unfenced.attempt,
        conclusion: store::Conclusion::NeverFenced,
        proof: serde_json::json!({}),
        run: Uuid::new_v4().to_string(),
        look_after: Duration::from_secs(60),
        acknowledgment_within: None,
    };
    assert!(!take_over::requeue(&recovery, by(silent), 5).await?.is_written());
    assert!(!store::reconcile(&reconciler, never_fenced()).await?.is_written());

    let all = LossOf::All { standing: false };
    assert!(matches!(store::accept_loss(&corrector, words(all, false)).await?, Accepted::Recorded { .. }));
    assert!(take_over::requeue(&recovery, by(silent), 5).await?.is_written());
    assert!(!store::reconcile(&reconciler, never_fenced()).await?.is_written(), "a fence may be among what was lost");
    assert_eq!(store::database_state(&reader).await?.held_back.unproven, 1);
    assert!(matches!(
        store::accept_loss(&corrector, words(LossOf::Job(unfenced.job), true)).await?,
        Accepted::Recorded { .. }
    ));
    assert!(store::reconcile(&reconciler, never_fenced()).await?.is_written());
    Ok(())
}

#[tokio::test]
async fn ops_04_a_standing_acceptance_lets_jobs_move_after_the_next_failover() -> anyhow::Result<()> {
    let world = World::new().await?;
    let (corrector, reader) = (world.pool(Role::Corrector).await?, world.pool(Role::Reader).await?);
    let job = world.queued().await?;
    let standing = words(LossOf::All { standing: true }, true);
    assert!(matches!(store::accept_loss(&corrector, standing).await?, Accepted::Recorded { .. }));
    // The database is promoted: its acceptances and its jobs stand on the timeline before.
    let mut admin = world.database.admin().await?.acquire().await?.detach();
    for statement in [
        "SET session_replication_role = replica",
        "UPDATE export_jobs SET known_timeline = known_timeline - 1",
        "UPDATE accepted_losses SET timeline = timeline - 1",
    ] {
        sqlx::query(statement).execute(&mut admin).await?;
    }
    assert_eq!(store::database_state(&reader).await?.held_back, HeldBack::default());
    assert!(is_claimed(&world, job).await?);
    Ok(())
}
