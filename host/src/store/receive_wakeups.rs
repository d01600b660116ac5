//! A worker receives wake-ups for the destinations that it serves, and holds each for a while.

use std::time::Duration;

use uuid::Uuid;

use super::error::StoreError;
use super::pools::Pool;

/// A wake-up that this worker holds. It says which job to look at, and nothing about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReceivedWakeup {
    pub message: Uuid,
    pub job: Uuid,
    /// The job's destination when the message was published.
    pub destination: Uuid,
    /// Settling, handing back and holding on ask for it.
    pub token: Uuid,
    /// Receipts so far, this one included.
    pub deliveries: i32,
}

/// Receives up to `most` wake-ups, the highest priority first and then the longest ready. What is not settled or handed
/// back within `hold` is received again, by anyone. `token` is new for each call.
///
/// After a lost answer, or if the future is dropped, what was taken comes again then.
pub async fn receive_wakeups(
    pool: &Pool,
    worker: &str,
    token: Uuid,
    destinations: &[Uuid],
    most: u32,
    hold: Duration,
) -> Result<Vec<ReceivedWakeup>, StoreError> {
    const ACT: &str = "receive_wakeups";
    if destinations.is_empty() || most == 0 {
        return Ok(Vec::new());
    }
    let mut connection = pool.acquire(ACT).await?;
    let rows = sqlx::query_file!(
        "src/store/receive_wakeups.sql",
        worker,
        token,
        destinations,
        i64::from(most),
        hold.as_secs_f64()
    )
    .fetch_all(&mut *connection)
    .await
    .map_err(|error| StoreError::sort(ACT, error))?;
    let received = rows.into_iter().map(|row| ReceivedWakeup {
        message: row.message_id,
        job: row.job_id,
        destination: row.destination_id,
        token,
        deliveries: row.deliveries,
    });
    Ok(received.collect())
}
