//! Wake-ups from the outbox to a worker, and what a worker reads before and beside an attempt, against a real PostgreSQL
//! under the roles that do it. Times pass by moving the rows' own times, not by sleeping.

mod destinations;
mod dispatcher;
mod history;
mod postgres;

use std::time::Duration;

use uuid::Uuid;
use waybill::broker::{Published, Publisher, Receiver};
use waybill::job::status::Role;
use waybill::store::{self, ClaimedEntry, Pool};

use crate::store::world::World;

pub const HOLD: Duration = Duration::from_secs(60);

pub fn receiver(world: &World, worker: &str) -> Receiver {
    Receiver::new(world.worker.clone(), worker, HOLD)
}

pub async fn publisher(world: &World) -> anyhow::Result<Publisher> {
    Ok(Publisher::new(world.pool(Role::Dispatcher).await?))
}

/// Publishes a wake-up for a queued job, and returns its message id.
pub async fn publish(publisher: &Publisher, job: Uuid) -> anyhow::Result<Uuid> {
    let message = Uuid::new_v4();
    let published = publisher.publish(message, job).await?;
    anyhow::ensure!(published == Published::Accepted, "{published:?}");
    Ok(message)
}

/// Claims what the outbox holds, under a token of its own.
pub async fn claim(dispatcher: &Pool, page: u32) -> anyhow::Result<Vec<ClaimedEntry>> {
    Ok(store::claim_outbox(dispatcher, "dispatcher-1", Uuid::new_v4(), page, HOLD).await?)
}

/// Lets an interval pass for all wake-ups: what they wait for comes that much nearer.
pub async fn pass(world: &World, interval: &str) -> anyhow::Result<()> {
    let statement = format!(
        "UPDATE wakeups SET ready_at = ready_at - interval '{interval}', taken_until = taken_until - interval '{interval}'"
    );
    world.run(Role::Worker, &statement).await?;
    Ok(())
}

/// The same for the outbox.
pub async fn pass_outbox(world: &World, interval: &str) -> anyhow::Result<()> {
    let statement = format!(
        "UPDATE outbox_claims SET ready_at = ready_at - interval '{interval}', expires_at = expires_at - interval '{interval}'"
    );
    world.run(Role::Dispatcher, &statement).await?;
    Ok(())
}
