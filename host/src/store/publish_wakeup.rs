//! A message reaches the PostgreSQL broker: a row of `wakeups`, under the outbox row's id.
//!
//! Destination and priority are the job's at this moment. A job that is gone or no longer queued has nothing to be woken
//! for, and that is as good as published: whatever queues it again writes an outbox row of its own.

use uuid::Uuid;

use super::error::StoreError;
use super::pools::Pool;

/// What became of a publish. In each case the outbox entry is done.
#[must_use]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PublishedWakeup {
    /// It can be received by hosts that serve this destination.
    Published { destination: Uuid },
    /// This message id is there already.
    Duplicate,
    /// The job is gone, or not queued.
    NothingToWake,
}

/// Publishes a wake-up. Repeating it after a lost answer is safe: the id makes it one wake-up while it is unsettled, and a
/// second hint afterwards changes nothing.
pub async fn publish_wakeup(pool: &Pool, message: Uuid, job: Uuid) -> Result<PublishedWakeup, StoreError> {
    const ACT: &str = "publish_wakeup";
    let mut connection = pool.acquire(ACT).await?;
    let row = sqlx::query!(
        r#"-- store::publish_wakeup
           WITH queued AS (
               SELECT id, destination_id, priority FROM export_jobs WHERE id = $2 AND status = 'Queued'),
           published AS (
               INSERT INTO wakeups (message_id, job_id, destination_id, priority, ready_at)
               SELECT $1, id, destination_id, priority, clock_timestamp() FROM queued
               ON CONFLICT (message_id) DO NOTHING
               RETURNING message_id)
           SELECT queued.destination_id AS "destination_id!",
                  EXISTS (SELECT FROM published) AS "published!"
           FROM queued"#,
        message,
        job
    )
    .fetch_optional(&mut *connection)
    .await
    .map_err(|error| StoreError::sort(ACT, error))?;
    Ok(match row {
        None => PublishedWakeup::NothingToWake,
        Some(row) if row.published => PublishedWakeup::Published { destination: row.destination_id },
        Some(_) => PublishedWakeup::Duplicate,
    })
}
