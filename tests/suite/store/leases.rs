use anyhow::Context;
use uuid::Uuid;
use waybill::job::status::{EventKind, FailureReason, Role, Status};
use waybill::store::{self, DeliveryOutcome, Release, Released, Write};

use super::world::{Attempt, LEASE, MAX_ATTEMPTS, World};

#[tokio::test]
async fn lse_04_a_renewal_that_matches_nothing_says_so() -> anyhow::Result<()> {
    let world = World::new().await?;
    let of = world.running().await?;
    assert!(store::renew(&world.worker, of.job, of.attempt, LEASE).await?.is_written());
    assert!(
        matches!(store::renew(&world.worker, of.job, Uuid::new_v4(), LEASE).await?, Write::Refused(found) if found.is(Status::Running, of.attempt))
    );
    assert_eq!(store::renew(&world.worker, Uuid::new_v4(), of.attempt, LEASE).await?, Write::Absent);
    Ok(())
}

#[tokio::test]
async fn lse_04_a_renewal_without_a_database_is_an_error_and_no_loss() -> anyhow::Result<()> {
    let world = World::new().await?;
    let of = world.running().await?;
    world.worker.close().await;
    let error = store::renew(&world.worker, of.job, of.attempt, LEASE).await.unwrap_err();
    assert!(matches!(error, store::StoreError::NeverSent { .. }), "{error:?}");
    Ok(())
}

#[tokio::test]
async fn lse_06_an_expired_lease_is_renewed_until_a_takeover_commits() -> anyhow::Result<()> {
    let world = World::new().await?;
    for of in [world.running().await?, world.delivering().await?] {
        world.expire(of).await?;
        assert!(store::renew(&world.worker, of.job, of.attempt, LEASE).await?.is_written());
        assert!(world.found(of.job).await?.lease_current);

        world.expire(of).await?;
        let takeover = world.hold(Role::Recovery, &World::takeover(of)).await?;
        let renewed = tokio::spawn({
            let pool = world.worker.clone();
            async move { store::renew(&pool, of.job, of.attempt, LEASE).await }
        });
        world.blocked_by(takeover.pid).await?;
        takeover.commit().await?;
        assert!(!renewed.await??.is_written(), "a takeover ends it");
    }
    Ok(())
}

#[tokio::test]
async fn lse_07_a_renewal_after_the_scan_prevents_the_takeover() -> anyhow::Result<()> {
    let world = World::new().await?;
    let of = world.running().await?;
    world.expire(of).await?;
    assert!(store::renew(&world.worker, of.job, of.attempt, LEASE).await?.is_written());
    assert_eq!(world.run(Role::Recovery, &World::takeover(of)).await?, 0);
    Ok(())
}

#[tokio::test]
async fn lse_08_released_work_is_queued_with_its_event_and_a_later_wake_up() -> anyhow::Result<()> {
    let world = World::new().await?;
    let of = world.running().await?;
    assert_eq!(store::release(&world.worker, World::release(of)).await?, Write::Written(Released::Queued));
    let found = world.found(of.job).await?;
    assert_eq!((found.status, found.attempt, found.attempt_count), (Status::Queued, None, 1), "the attempt counts");
    assert_eq!(world.kinds(of.job).await?, [EventKind::Claimed, EventKind::ReleasedByWorker]);
    assert_eq!(world.wakeups(of.job).await?, 2);
    let later = "SELECT count(*) FROM outbox_claims WHERE ready_at BETWEEN clock_timestamp() + interval '4 minutes'
                 AND clock_timestamp() + interval '5 minutes'";
    assert_eq!(world.count(later).await?, 1, "ready after the backoff");
    assert!(!store::release(&world.worker, World::release(of)).await?.is_written(), "once");
    Ok(())
}

#[tokio::test]
async fn lse_08_at_the_cap_a_release_ends_attempts_exhausted() -> anyhow::Result<()> {
    let world = World::new().await?;
    let job = world.queued().await?;
    for turn in 1..=MAX_ATTEMPTS {
        let attempt = world.claimed(job).await?.attempt;
        let released = store::release(&world.worker, World::release(Attempt { job, attempt })).await?.written();
        let expected = if turn < MAX_ATTEMPTS { Released::Queued } else { Released::AttemptsExhausted };
        assert_eq!(released, Some(expected), "turn {turn}");
    }
    let found = world.found(job).await?;
    assert_eq!((found.status, found.failure_reason), (Status::Failed, Some(FailureReason::AttemptsExhausted)));
    assert!(found.attempt.is_some(), "a terminal state keeps the attempt for audit");
    assert_eq!(world.kinds(job).await?.last(), Some(&EventKind::AttemptsExhausted));
    assert_eq!(world.wakeups(job).await?, i64::from(MAX_ATTEMPTS), "the last release wakes nobody");
    Ok(())
}

#[tokio::test]
async fn lse_08_with_a_stop_request_a_release_ends_stopped() -> anyhow::Result<()> {
    let world = World::new().await?;
    let of = world.running().await?;
    world.cancel(of.job).await?;
    assert_eq!(store::release(&world.worker, World::release(of)).await?, Write::Written(Released::Stopped));
    assert_eq!(world.kinds(of.job).await?, [EventKind::Claimed, EventKind::Stopped]);

    let capped = world.running().await?;
    world.cancel(capped.job).await?;
    let at_cap = Release { max_attempts: 1, ..World::release(capped) };
    assert_eq!(store::release(&world.worker, at_cap).await?, Write::Written(Released::Stopped), "also at the cap");
    Ok(())
}

#[tokio::test]
async fn lse_08_past_cutoff_two_nothing_is_released() -> anyhow::Result<()> {
    let world = World::new().await?;
    let of = world.delivering().await?;
    assert!(
        matches!(store::release(&world.worker, World::release(of)).await?, Write::Refused(found) if found.status == Status::Delivering)
    );
    Ok(())
}

#[tokio::test]
async fn lse_05_after_the_terminal_write_a_renewal_matches_nothing() -> anyhow::Result<()> {
    let world = World::new().await?;
    let of = world.ended(DeliveryOutcome::Completed).await?;
    assert!(
        matches!(store::renew(&world.worker, of.job, of.attempt, LEASE).await?, Write::Refused(found) if found.is(Status::Completed, of.attempt))
    );
    Ok(())
}

#[tokio::test]
async fn lst_04_a_write_whose_line_is_cut_before_it_committed_is_settled_by_the_row() -> anyhow::Result<()> {
    let world = World::new().await?;
    let job = world.queued().await?;
    let claim = World::claim(job, 1);
    let held = world.hold_event(Attempt { job, attempt: claim.attempt }, EventKind::Claimed).await?;
    let claimed = tokio::spawn({
        let pool = world.worker.clone();
        async move { store::claim(&pool, claim).await }
    });
    let claiming = world.blocked_by(held.pid).await?;
    sqlx::query("SELECT pg_terminate_backend($1)").bind(claiming).execute(&world.database.admin().await?).await?;
    let answer = claimed.await??;
    assert!(matches!(&answer, Write::Refused(found) if found.status == Status::Queued), "{answer:?}");
    held.roll_back().await?;
    world.claimed(job).await.context("the pool goes on")?;
    Ok(())
}

#[tokio::test]
async fn ops_02_a_caller_that_gives_up_does_not_take_the_write_with_it() -> anyhow::Result<()> {
    let world = World::new().await?;
    let of = world.running().await?;
    let held = world.hold_event(of, EventKind::ReleasedByWorker).await?;
    let released = tokio::spawn({
        let (pool, release) = (world.worker.clone(), World::release(of));
        async move { store::release(&pool, release).await }
    });
    world.blocked_by(held.pid).await?;
    released.abort();
    assert!(released.await.unwrap_err().is_cancelled());
    assert!(world.worker.is_writing());
    held.roll_back().await?;
    world.worker.close().await;
    let found = store::found(&world.api, of.job).await?.context("the job")?;
    assert_eq!(found.status, Status::Queued, "closing the pool waited for it");
    Ok(())
}
