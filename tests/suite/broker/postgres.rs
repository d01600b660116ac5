use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::Context;
use serde_json::json;
use uuid::Uuid;
use waybill::broker::{Published, Wakeup};
use waybill::job::status::Role;
use waybill_tests::wait;

use super::{pass, publish, publisher, receiver};
use crate::store::world::World;

async fn one(world: &World, worker: &str) -> anyhow::Result<Wakeup> {
    let mut received = receiver(world, worker).receive(&[world.destination], 10).await?;
    anyhow::ensure!(received.len() == 1, "{received:?}");
    received.pop().context("one")
}

#[tokio::test]
async fn clm_06_a_wakeup_that_is_handed_back_comes_back_after_its_delay_however_often() -> anyhow::Result<()> {
    let world = World::new().await?;
    let job = world.queued().await?;
    publish(&publisher(&world).await?, job).await?;
    let receiver = receiver(&world, "worker-1");
    for time in 1..=7 {
        let wakeup = one(&world, "worker-1").await?;
        assert_eq!((wakeup.job, wakeup.deliveries), (job, time));
        assert!(receiver.hand_back(&wakeup, Duration::from_hours(1)).await?);
        pass(&world, "59 minutes").await?;
        assert_eq!(receiver.receive(&[world.destination], 10).await?, [], "it came too early");
        pass(&world, "1 minute").await?;
    }
    assert_eq!(world.found(job).await?.attempt_count, 0);
    Ok(())
}

#[tokio::test]
async fn brk_03_a_wakeup_is_received_only_where_its_destination_is_served() -> anyhow::Result<()> {
    let world = World::new().await?;
    let other = world.destination(world.tenant, json!({})).await?;
    publish(&publisher(&world).await?, world.queued().await?).await?;
    let receiver = receiver(&world, "worker-1");
    assert_eq!(receiver.receive(&[other], 10).await?, []);
    assert_eq!(receiver.receive(&[], 10).await?, []);
    assert_eq!(receiver.receive(&[other, world.destination], 10).await?.len(), 1);
    Ok(())
}

#[tokio::test]
async fn brk_01_a_wakeup_whose_consumer_died_comes_again_when_its_hold_ends() -> anyhow::Result<()> {
    let world = World::new().await?;
    publish(&publisher(&world).await?, world.queued().await?).await?;
    let (dead, living) = (receiver(&world, "worker-1"), receiver(&world, "worker-2"));
    let lost = one(&world, "worker-1").await?;
    pass(&world, "50 seconds").await?;
    assert!(dead.extend(&lost).await?);
    pass(&world, "59 seconds").await?;
    assert_eq!(living.receive(&[world.destination], 10).await?, [], "it is still held");
    pass(&world, "1 second").await?;
    let again = one(&world, "worker-2").await?;
    assert_eq!((again.message, again.deliveries), (lost.message, 2));

    assert!(!dead.extend(&lost).await?);
    assert!(!dead.hand_back(&lost, Duration::ZERO).await?);
    assert!(!dead.settle(&lost).await?, "the late consumer settled what another holds");
    assert!(living.settle(&again).await?);
    pass(&world, "1 day").await?;
    assert_eq!(living.receive(&[world.destination], 10).await?, []);
    Ok(())
}

#[tokio::test]
async fn cre_04_priority_orders_wakeups_across_destinations_and_then_the_time_they_wait() -> anyhow::Result<()> {
    let world = World::new().await?;
    let other = world.destination(world.tenant, json!({})).await?;
    let publisher = publisher(&world).await?;
    let mut jobs = Vec::new();
    for (destination, priority) in [(world.destination, 0), (other, 5), (world.destination, 5), (other, -1)] {
        let mut job = world.new_job();
        (job.destination, job.priority) = (destination, priority);
        world.create(&job).await?;
        publish(&publisher, job.id).await?;
        jobs.push(job.id);
    }
    let receiver = receiver(&world, "worker-1");
    let mut received = Vec::new();
    for _ in 0..2 {
        let two = receiver.receive(&[world.destination, other], 2).await?;
        assert_eq!(two.len(), 2);
        received.extend(two.iter().map(|wakeup| wakeup.job));
    }
    assert_eq!(received, [jobs[1], jobs[2], jobs[0], jobs[3]]);
    Ok(())
}

#[tokio::test]
async fn out_07_a_message_that_is_published_twice_is_one_wakeup() -> anyhow::Result<()> {
    let world = World::new().await?;
    let (publisher, job, message) = (publisher(&world).await?, world.queued().await?, Uuid::new_v4());
    assert_eq!(publisher.publish(message, job).await?, Published::Accepted);
    assert_eq!(publisher.publish(message, job).await?, Published::Duplicate);
    assert_eq!(one(&world, "worker-1").await?.message, message);
    // While it is held, too.
    assert_eq!(publisher.publish(message, job).await?, Published::Duplicate);
    assert_eq!(receiver(&world, "worker-2").receive(&[world.destination], 10).await?, []);
    Ok(())
}

#[tokio::test]
async fn out_07_a_job_that_is_gone_or_not_queued_has_nothing_to_be_woken_for() -> anyhow::Result<()> {
    let world = World::new().await?;
    let publisher = publisher(&world).await?;
    assert_eq!(publisher.publish(Uuid::new_v4(), world.running().await?.job).await?, Published::NothingToWake);
    assert_eq!(publisher.publish(Uuid::new_v4(), Uuid::new_v4()).await?, Published::NothingToWake);
    assert_eq!(world.count("SELECT count(*) FROM wakeups").await?, 0);
    Ok(())
}

#[tokio::test]
async fn brk_01_two_workers_at_once_never_hold_the_same_wakeup_and_leave_none() -> anyhow::Result<()> {
    let world = World::new().await?;
    let publisher = publisher(&world).await?;
    let mut published = BTreeSet::new();
    for _ in 0..30 {
        published.insert(publish(&publisher, world.queued().await?).await?);
    }
    let drain = async |worker| -> anyhow::Result<Vec<Uuid>> {
        let (receiver, mut messages) = (receiver(&world, worker), Vec::new());
        loop {
            let received = receiver.receive(&[world.destination], 3).await?;
            if received.is_empty() {
                return Ok(messages);
            }
            messages.extend(received.iter().map(|wakeup| wakeup.message));
        }
    };
    let (mut messages, more) = tokio::try_join!(drain("worker-1"), drain("worker-2"))?;
    messages.extend(more);
    assert_eq!(messages.len(), published.len());
    assert_eq!(messages.into_iter().collect::<BTreeSet<_>>(), published);
    Ok(())
}

#[tokio::test]
async fn brk_01_a_wakeup_that_another_statement_locks_holds_nobody_up() -> anyhow::Result<()> {
    let world = World::new().await?;
    let publisher = publisher(&world).await?;
    let (first, second) = (world.queued().await?, world.queued().await?);
    for job in [first, second] {
        publish(&publisher, job).await?;
    }
    let lock = format!("SELECT FROM wakeups WHERE job_id = '{first}' FOR UPDATE");
    let held = world.hold(Role::Worker, &lock).await?;
    let received = receiver(&world, "worker-1").receive(&[world.destination], 1).await?;
    assert_eq!(received.iter().map(|wakeup| wakeup.job).collect::<Vec<_>>(), [second]);
    held.roll_back().await?;
    assert_eq!(one(&world, "worker-1").await?.job, first);
    Ok(())
}

#[tokio::test]
async fn brk_01_a_publish_wakes_a_worker_that_waits() -> anyhow::Result<()> {
    let world = World::new().await?;
    let (publisher, job) = (publisher(&world).await?, world.queued().await?);
    let waiting = tokio::spawn({
        let (receiver, destination) = (receiver(&world, "worker-1"), world.destination);
        // So long a poll that only the notification can end the wait.
        async move { receiver.subscribe(Duration::from_hours(1)).next(|| vec![destination], 1).await }
    });
    let mut watching = world.database.admin().await?.acquire().await?.detach();
    wait::until("a worker that listens", async || {
        Ok(sqlx::query_scalar::<_, i32>(
            "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'LISTEN%' AND state = 'idle'",
        )
        .fetch_optional(&mut watching)
        .await?)
    })
    .await?;
    publish(&publisher, job).await?;
    let received = tokio::time::timeout(wait::BOUND, waiting).await.context("nothing woke the worker")???;
    assert_eq!(received.first().map(|wakeup| wakeup.job), Some(job));
    Ok(())
}
