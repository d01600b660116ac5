use std::time::Duration;

use anyhow::Context;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;
use waybill::broker::{Published, Publisher};
use waybill::job::status::Role;
use waybill::store::{self, OutboxAnswer, Pool};
use waybill::upkeep::{Dispatcher, DispatcherError, DispatcherSettings, Drained};

use super::{claim, pass_outbox};
use crate::store::world::World;

fn dispatcher(pool: &Pool) -> Result<Dispatcher, DispatcherError> {
    let settings = DispatcherSettings::new("dispatcher-1");
    Dispatcher::new(pool.clone(), Publisher::new(pool.clone()), settings, CancellationToken::new())
}

fn accepted(drained: &Drained) -> u32 {
    drained.completed.get(&Published::Accepted).copied().unwrap_or(0)
}

#[tokio::test]
async fn out_01_out_03_two_dispatchers_emit_each_entry_once_a_page_at_a_time() -> anyhow::Result<()> {
    let world = World::new().await?;
    for _ in 0..25 {
        world.queued().await?;
    }
    let (one, other) = (world.pool(Role::Dispatcher).await?, world.pool(Role::Dispatcher).await?);
    let (first, second) = (dispatcher(&one)?, dispatcher(&other)?);
    let (first, second) = tokio::try_join!(first.run_once(), second.run_once())?;
    assert_eq!(accepted(&first) + accepted(&second), 25, "{first:?} {second:?}");
    assert!(first.not_ours.is_empty() && second.not_ours.is_empty(), "{first:?} {second:?}");
    assert!(first.pages + second.pages >= 3, "a page has at most ten: {first:?} {second:?}");
    assert_eq!(world.count("SELECT count(*) FROM wakeups").await?, 25);
    assert_eq!(world.count("SELECT count(*) FROM outbox WHERE published_at IS NOT NULL").await?, 25);
    assert_eq!(world.count("SELECT sum(claims)::bigint FROM outbox_claims WHERE finished_at IS NOT NULL").await?, 25);
    Ok(())
}

#[tokio::test]
async fn out_04_out_09_a_dead_owners_page_is_taken_over_and_its_late_completion_matches_nothing() -> anyhow::Result<()>
{
    let world = World::new().await?;
    world.queued().await?;
    let pool = world.pool(Role::Dispatcher).await?;
    let dead = claim(&pool, 10).await?.pop().context("an entry")?;
    assert_eq!(claim(&pool, 10).await?, [], "a leased entry was claimed");
    pass_outbox(&world, "61 seconds").await?;
    let taken = claim(&pool, 10).await?.pop().context("an expired entry")?;
    assert_eq!((taken.message, taken.claims), (dead.message, 2));

    assert_eq!(store::complete_outbox(&pool, dead.message, dead.token).await?, OutboxAnswer::StaleClaim);
    let late = store::fail_outbox(&pool, dead.message, dead.token, "broker_refused", Duration::ZERO).await?;
    assert_eq!(late, OutboxAnswer::StaleClaim);
    assert_eq!(world.count("SELECT count(*) FROM outbox WHERE published_at IS NULL").await?, 1);

    assert_eq!(store::complete_outbox(&pool, taken.message, taken.token).await?, OutboxAnswer::Applied);
    assert_eq!(store::complete_outbox(&pool, dead.message, dead.token).await?, OutboxAnswer::Terminal);
    assert_eq!(store::complete_outbox(&pool, Uuid::new_v4(), dead.token).await?, OutboxAnswer::Missing);
    pass_outbox(&world, "1 day").await?;
    assert_eq!(claim(&pool, 10).await?, [], "a published entry was claimed again");
    Ok(())
}

#[tokio::test]
async fn out_04_an_expired_lease_that_nobody_took_over_still_completes() -> anyhow::Result<()> {
    let world = World::new().await?;
    world.queued().await?;
    let pool = world.pool(Role::Dispatcher).await?;
    let entry = claim(&pool, 10).await?.pop().context("an entry")?;
    pass_outbox(&world, "1 day").await?;
    assert_eq!(store::complete_outbox(&pool, entry.message, entry.token).await?, OutboxAnswer::Applied);
    Ok(())
}

#[tokio::test]
async fn out_06_a_broker_that_fails_loses_nothing_and_is_tried_again_after_a_backoff() -> anyhow::Result<()> {
    let world = World::new().await?;
    world.queued().await?;
    let pool = world.pool(Role::Dispatcher).await?;
    // The worker's login may not publish, so this broker refuses everything.
    let failing = Dispatcher::new(
        pool.clone(),
        Publisher::new(world.worker.clone()),
        DispatcherSettings::new("dispatcher-1"),
        CancellationToken::new(),
    )?;
    let drained = failing.run_once().await?;
    assert_eq!(drained.failed.get("broker_refused"), Some(&1), "{drained:?}");
    assert!(drained.completed.is_empty(), "{drained:?}");
    let left = "SELECT count(*) FROM outbox JOIN outbox_claims USING (message_id)
                WHERE published_at IS NULL AND token IS NULL AND failures = 1 AND last_error_code = 'broker_refused'
                  AND ready_at > clock_timestamp()";
    assert_eq!(world.count(left).await?, 1);

    let mending = dispatcher(&pool)?;
    assert_eq!(mending.run_once().await?, Drained::default(), "it did not wait for the backoff");
    pass_outbox(&world, "1 minute").await?;
    assert_eq!(accepted(&mending.run_once().await?), 1);
    Ok(())
}

#[tokio::test]
async fn out_05_what_is_let_go_of_untouched_is_ready_at_once_and_not_counted() -> anyhow::Result<()> {
    let world = World::new().await?;
    for _ in 0..3 {
        world.queued().await?;
    }
    let pool = world.pool(Role::Dispatcher).await?;
    let entries = claim(&pool, 10).await?;
    let rest: Vec<Uuid> = entries.iter().skip(1).map(|entry| entry.message).collect();
    assert_eq!(store::release_outbox(&pool, Uuid::new_v4(), &rest).await?, 0, "another claim's entries went");
    assert_eq!(store::release_outbox(&pool, entries[0].token, &rest).await?, 2);
    let again = claim(&pool, 10).await?;
    assert_eq!(
        again.iter().map(|entry| (entry.message, entry.claims)).collect::<Vec<_>>(),
        [(rest[0], 1), (rest[1], 1)]
    );
    Ok(())
}

#[tokio::test]
async fn out_03_a_lease_that_does_not_outlast_a_page_is_refused() -> anyhow::Result<()> {
    let world = World::new().await?;
    let pool = world.pool(Role::Dispatcher).await?;
    let with = |settings| {
        Dispatcher::new(pool.clone(), Publisher::new(pool.clone()), settings, CancellationToken::new()).err()
    };
    let settings = DispatcherSettings::new("dispatcher-1");
    let exactly = settings.publish_timeout * settings.page;
    let refused = with(DispatcherSettings { lease: exactly, ..settings.clone() });
    assert!(matches!(refused, Some(DispatcherError::LeaseTooShort { .. })), "{refused:?}");
    assert!(matches!(with(DispatcherSettings { page: 0, ..settings.clone() }), Some(DispatcherError::EmptyPage)));
    assert!(with(settings).is_none());
    Ok(())
}

#[tokio::test]
async fn out_03_told_to_stop_a_dispatcher_claims_nothing() -> anyhow::Result<()> {
    let world = World::new().await?;
    world.queued().await?;
    let (pool, stop) = (world.pool(Role::Dispatcher).await?, CancellationToken::new());
    let settings = DispatcherSettings::new("dispatcher-1");
    let dispatcher = Dispatcher::new(pool.clone(), Publisher::new(pool.clone()), settings, stop.clone())?;
    stop.cancel();
    assert_eq!(dispatcher.run_once().await?, Drained::default());
    assert_eq!(claim(&pool, 10).await?.len(), 1);
    Ok(())
}
