//! Jobs for later, and which wake-ups come first.

use std::time::Duration;

use anyhow::Context;
use time::OffsetDateTime;
use uuid::Uuid;
use waybill::job::status::Role;
use waybill::store::{self, Edit, NewJob, TermsEdit, Write};

use super::world::World;

const PAGE: u32 = 100;
const LEASE: Duration = Duration::from_secs(30);

async fn now(world: &World) -> anyhow::Result<OffsetDateTime> {
    Ok(sqlx::query_scalar("SELECT clock_timestamp()").fetch_one(&world.database.admin().await?).await?)
}

fn edit(world: &World, job: Uuid, expected_version: i32, not_before: Option<OffsetDateTime>) -> TermsEdit {
    TermsEdit {
        tenant: world.tenant,
        job,
        expected_version,
        destination: world.destination,
        scope: serde_json::json!({ "list": "spring" }),
        not_before,
        edited_by: "olga".to_owned(),
    }
}

/// The jobs whose wake-ups a dispatcher gets now, in its order.
async fn dispatched(world: &World, most: u32) -> anyhow::Result<Vec<Uuid>> {
    let pool = world.pool(Role::Dispatcher).await?;
    let entries = store::claim_outbox(&pool, "dispatcher-1", Uuid::new_v4(), most, LEASE).await?;
    Ok(entries.into_iter().map(|entry| entry.job).collect())
}

#[tokio::test]
async fn cre_04_a_job_for_later_is_neither_claimed_nor_woken_nor_swept_before_its_time() -> anyhow::Result<()> {
    let world = World::new().await?;
    let later = now(&world).await? + Duration::from_secs(3_600);
    let job = world.create(&NewJob { not_before: Some(later), ..world.new_job() }).await?;
    let recovery = world.pool(Role::Recovery).await?;

    let refused = store::claim(&world.worker, World::claim(job, 1)).await?;
    assert!(matches!(refused, Write::Refused(found) if !found.due && found.history_known && found.destination_enabled));
    assert_eq!(dispatched(&world, PAGE).await?, Vec::<Uuid>::new());
    assert_eq!(store::sweep(&recovery, Duration::from_secs(1), 500).await?, []);

    // Its time, not its age, keeps the sweeper away: woken long ago, it is still left alone.
    world
        .run(
            Role::Api,
            &format!("UPDATE export_jobs SET woken_at = clock_timestamp() - interval '1 day' WHERE id = '{job}'"),
        )
        .await?;
    assert_eq!(store::sweep(&recovery, Duration::from_secs(1), 500).await?, []);
    assert_eq!(world.wakeups(job).await?, 1);
    Ok(())
}

#[tokio::test]
async fn cre_04_the_time_is_a_term_and_brought_forward_the_job_is_woken_and_claimed() -> anyhow::Result<()> {
    let world = World::new().await?;
    let start = now(&world).await?;
    let job = world.create(&NewJob { not_before: Some(start + Duration::from_secs(3_600)), ..world.new_job() }).await?;
    let edited = store::edit_terms(&world.api, edit(&world, job, 1, Some(start))).await?;
    assert_eq!(edited, Edit::Answered(Write::Written(2)), "another time is another version");
    assert!(!store::claim(&world.worker, World::claim(job, 1)).await?.is_written(), "the old version claims nothing");
    assert_eq!(dispatched(&world, PAGE).await?, [job]);
    world.claimed(job).await?;
    Ok(())
}

#[tokio::test]
async fn cre_04_put_off_the_job_is_woken_again_at_the_new_time() -> anyhow::Result<()> {
    let world = World::new().await?;
    let job = world.queued().await?;
    assert_eq!(dispatched(&world, PAGE).await?, [job]);
    let later = now(&world).await? + Duration::from_secs(3_600);
    assert_eq!(
        store::edit_terms(&world.api, edit(&world, job, 1, Some(later))).await?,
        Edit::Answered(Write::Written(2))
    );
    let refused = store::claim(&world.worker, World::claim(job, 2)).await?;
    assert!(matches!(refused, Write::Refused(found) if !found.due));
    let stored = store::find_job(&world.worker, job).await?.context("the job")?.not_before.context("its time")?;
    let ready: OffsetDateTime = sqlx::query_scalar(
        "SELECT max(ready_at) FROM outbox_claims JOIN outbox USING (message_id) WHERE job_id = $1 AND owner IS NULL",
    )
    .bind(job)
    .fetch_one(&world.database.admin().await?)
    .await?;
    assert_eq!(ready, stored, "a wake-up of its own, at that very time");
    Ok(())
}

#[tokio::test]
async fn cre_04_a_wake_up_comes_when_the_time_has_come_and_not_a_moment_before() -> anyhow::Result<()> {
    let world = World::new().await?;
    let soon = now(&world).await? + Duration::from_millis(700);
    let job = world.create(&NewJob { not_before: Some(soon), ..world.new_job() }).await?;
    let pool = world.pool(Role::Dispatcher).await?;
    let seen = waybill_tests::wait::until("the wake-up of a job for later", async || {
        let entries = store::claim_outbox(&pool, "dispatcher-1", Uuid::new_v4(), PAGE, LEASE).await?;
        Ok((!entries.is_empty()).then_some(entries))
    })
    .await?;
    assert_eq!(seen.iter().map(|entry| entry.job).collect::<Vec<_>>(), [job]);
    let early: bool = sqlx::query_scalar("SELECT claimed_at < $1 FROM outbox_claims")
        .bind(soon)
        .fetch_one(&world.database.admin().await?)
        .await?;
    assert!(!early);
    world.claimed(job).await?;
    Ok(())
}

#[tokio::test]
async fn cre_04_priority_orders_wake_ups() -> anyhow::Result<()> {
    let world = World::new().await?;
    let mut jobs = Vec::new();
    for priority in [0, 7, -3, 7] {
        jobs.push(world.create(&NewJob { priority, ..world.new_job() }).await?);
    }
    let expected = [jobs[1], jobs[3], jobs[0], jobs[2]];
    let pool = world.pool(Role::Dispatcher).await?;
    let mut order = Vec::new();
    for _ in &jobs {
        let page = store::claim_outbox(&pool, "dispatcher-1", Uuid::new_v4(), 1, LEASE).await?;
        order.extend(page.into_iter().map(|entry| (entry.job, entry.message)));
    }
    assert_eq!(order.iter().map(|(job, _)| *job).collect::<Vec<_>>(), expected, "out of the outbox");
    // Published the other way round, they still come to a worker in that order.
    for (job, message) in order.into_iter().rev() {
        let _ = store::publish_wakeup(&pool, message, job).await?;
    }
    let received =
        store::receive_wakeups(&world.worker, "worker-1", Uuid::new_v4(), &[world.destination], 4, LEASE).await?;
    let received: Vec<Uuid> = received.into_iter().map(|wakeup| wakeup.job).collect();
    assert_eq!(received, [jobs[3], jobs[1], jobs[0], jobs[2]], "to the worker; among equals, the longest ready first");
    Ok(())
}
