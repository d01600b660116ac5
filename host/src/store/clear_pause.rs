//! The partner was reached: the pause of its destination is over.

use uuid::Uuid;

use super::error::StoreError;
use super::pools::Pool;

/// Ends a pause and forgets its failures. False: the destination was not paused, and nothing was written.
pub async fn clear_pause(pool: &Pool, destination: Uuid) -> Result<bool, StoreError> {
    const ACT: &str = "clear_pause";
    let mut connection = pool.acquire(ACT).await?;
    let cleared = sqlx::query!(
        "-- store::clear_pause
         UPDATE destinations
         SET pause_failures = 0, paused_at = NULL, paused_until = NULL, probe_job_id = NULL, probe_until = NULL
         WHERE id = $1 AND pause_failures > 0",
        destination
    )
    .execute(&mut *connection)
    .await
    .map_err(|error| StoreError::sort(ACT, error))?;
    Ok(cleared.rows_affected() == 1)
}
