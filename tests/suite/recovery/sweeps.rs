use std::time::Duration;

use uuid::Uuid;
use waybill::job::status::{Role, Status};
use waybill::store::{self, Swept};

use super::actors::Actors;
use crate::store::world::World;

const THRESHOLD: Duration = Duration::from_secs(30 * 60);

/// A queued job whose last wake-up was written this many minutes ago.
async fn waiting(world: &World, minutes: u32) -> anyhow::Result<Uuid> {
    let job = world.queued().await?;
    woken(world, job, minutes).await?;
    Ok(job)
}

async fn woken(world: &World, job: Uuid, minutes: u32) -> anyhow::Result<()> {
    let statement = format!(
        "UPDATE export_jobs SET woken_at = clock_timestamp() - interval '{minutes} minutes' WHERE id = '{job}'"
    );
    anyhow::ensure!(world.run(Role::Recovery, &statement).await? == 1);
    Ok(())
}

#[tokio::test]
async fn swp_01_past_the_threshold_a_job_is_woken_again_and_before_it_not() -> anyhow::Result<()> {
    let actors = Actors::new().await?;
    let (past, before) = (waiting(&actors, 31).await?, waiting(&actors, 29).await?);
    assert_eq!(store::sweep(&actors.recovery, THRESHOLD, 500).await?, [Swept { job: past, sweep_count: 1 }]);
    assert_eq!((actors.wakeups(past).await?, actors.wakeups(before).await?), (2, 1));
    let ready = format!(
        "SELECT count(DISTINCT message_id) FROM outbox JOIN outbox_claims USING (message_id)
         WHERE job_id = '{past}' AND ready_at <= clock_timestamp()"
    );
    assert_eq!(actors.count(&ready).await?, 2, "a message id of its own, ready at once");

    assert_eq!(store::sweep(&actors.recovery, THRESHOLD, 500).await?, [], "it was woken just now");
    woken(&actors, past, 31).await?;
    assert_eq!(store::sweep(&actors.recovery, THRESHOLD, 500).await?, [Swept { job: past, sweep_count: 2 }]);
    Ok(())
}

#[tokio::test]
async fn swp_01_only_queued_jobs_are_swept() -> anyhow::Result<()> {
    let actors = Actors::new().await?;
    let canceled = waiting(&actors, 31).await?;
    actors.cancel(canceled).await?;
    let running = waiting(&actors, 31).await?;
    actors.claimed(running).await?;
    assert_eq!(store::sweep(&actors.recovery, THRESHOLD, 500).await?, []);
    Ok(())
}

#[tokio::test]
async fn swp_01_cre_04_a_job_scheduled_for_later_is_left_to_its_time() -> anyhow::Result<()> {
    let actors = Actors::new().await?;
    let job = waiting(&actors, 31).await?;
    let schedule = |when: &str| {
        format!(
            "UPDATE export_jobs SET not_before = clock_timestamp() + interval '{when}', version = version + 1 WHERE id = '{job}'"
        )
    };
    actors.run(Role::Api, &schedule("1 hour")).await?;
    assert_eq!(store::sweep(&actors.recovery, THRESHOLD, 500).await?, []);
    actors.run(Role::Api, &schedule("-1 hour")).await?;
    assert_eq!(store::sweep(&actors.recovery, THRESHOLD, 500).await?, [Swept { job, sweep_count: 1 }]);
    Ok(())
}

#[tokio::test]
async fn swp_01_a_locked_row_is_left_to_the_next_sweep() -> anyhow::Result<()> {
    let actors = Actors::new().await?;
    let (locked, free) = (waiting(&actors, 40).await?, waiting(&actors, 31).await?);
    let held = actors
        .hold_statement(Role::Api, &format!("SELECT 1 FROM export_jobs WHERE id = '{locked}' FOR UPDATE"))
        .await?;
    assert_eq!(store::sweep(&actors.recovery, THRESHOLD, 500).await?, [Swept { job: free, sweep_count: 1 }]);
    held.roll_back().await?;
    assert_eq!(store::sweep(&actors.recovery, THRESHOLD, 500).await?, [Swept { job: locked, sweep_count: 1 }]);
    Ok(())
}

#[tokio::test]
async fn swp_01_a_job_that_leaves_the_queue_meanwhile_gets_no_wake_up() -> anyhow::Result<()> {
    let actors = Actors::new().await?;
    let job = waiting(&actors, 31).await?;
    let claim = format!(
        "UPDATE export_jobs SET status = 'Running', attempt_id = gen_random_uuid(), attempt_count = 1, claimed_by = 'worker-1',
                lease_expires_at = clock_timestamp() + interval '1 minute'
         WHERE id = '{job}'"
    );
    let claiming = actors.hold_statement(Role::Worker, &claim).await?;
    assert_eq!(store::sweep(&actors.recovery, THRESHOLD, 500).await?, [], "while the claim is open");
    claiming.commit().await?;
    assert_eq!(store::sweep(&actors.recovery, THRESHOLD, 500).await?, [], "and after it");
    assert_eq!((actors.status(job).await?, actors.wakeups(job).await?), (Status::Running, 1));
    Ok(())
}

#[tokio::test]
async fn swp_01_a_batch_is_bounded_and_takes_the_oldest_first() -> anyhow::Result<()> {
    let actors = Actors::new().await?;
    let mut jobs = Vec::new();
    for minutes in [35, 33, 34, 32, 31] {
        jobs.push((minutes, waiting(&actors, minutes).await?));
    }
    jobs.sort_by_key(|(minutes, _)| std::cmp::Reverse(*minutes));
    for batch in jobs.chunks(2) {
        let mut swept: Vec<Uuid> =
            store::sweep(&actors.recovery, THRESHOLD, 2).await?.into_iter().map(|swept| swept.job).collect();
        let mut expected: Vec<Uuid> = batch.iter().map(|(_, job)| *job).collect();
        swept.sort();
        expected.sort();
        assert_eq!(swept, expected);
    }
    assert_eq!(store::sweep(&actors.recovery, THRESHOLD, 2).await?, []);
    Ok(())
}

#[tokio::test]
async fn swp_01_a_sweep_keeps_the_jobs_priority() -> anyhow::Result<()> {
    let actors = Actors::new().await?;
    let job = actors.create(&store::NewJob { priority: 7, ..actors.new_job() }).await?;
    woken(&actors, job, 31).await?;
    assert_eq!(store::sweep(&actors.recovery, THRESHOLD, 500).await?.len(), 1);
    assert_eq!(actors.count("SELECT count(*) FROM outbox_claims WHERE priority = 7").await?, 2);
    Ok(())
}
