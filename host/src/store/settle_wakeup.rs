//! A wake-up has done its work: the row carries the job from here, or there was nothing to do.

use uuid::Uuid;

use super::error::StoreError;
use super::pools::Pool;

/// Settles a wake-up that this worker holds. False: it was received again by another worker, or is settled; since a hint
/// more or less changes nothing, the caller need not care.
pub async fn settle_wakeup(pool: &Pool, message: Uuid, token: Uuid) -> Result<bool, StoreError> {
    const ACT: &str = "settle_wakeup";
    let mut connection = pool.acquire(ACT).await?;
    let settled = sqlx::query!(
        "-- store::settle_wakeup
         DELETE FROM wakeups WHERE message_id = $1 AND taken_token = $2",
        message,
        token
    )
    .execute(&mut *connection)
    .await
    .map_err(|error| StoreError::sort(ACT, error))?;
    Ok(settled.rows_affected() == 1)
}
