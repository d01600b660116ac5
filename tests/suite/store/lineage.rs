//! A database that may have lost commits: what waits, and what a person's words set free.

use uuid::Uuid;
use waybill::job::status::Role;
use waybill::store::{self, Acceptance, Accepted, HeldBack, LossOf, Write};

use super::world::World;

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
