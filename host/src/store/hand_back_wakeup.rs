//! A wake-up that came too early is handed back, and one whose work takes longer is held on to.

use std::time::Duration;

use uuid::Uuid;

use super::error::StoreError;
use super::pools::Pool;

/// Hands a wake-up back: it is received again, by anyone, after the delay, however often that happens. False: this
/// worker does not hold it any more.
pub async fn hand_back_wakeup(pool: &Pool, message: Uuid, token: Uuid, delay: Duration) -> Result<bool, StoreError> {
    const ACT: &str = "hand_back_wakeup";
    let mut connection = pool.acquire(ACT).await?;
    let handed_back = sqlx::query!(
        "-- store::hand_back_wakeup
         UPDATE wakeups
         SET ready_at = clock_timestamp() + make_interval(secs => $3), taken_by = NULL, taken_token = NULL, taken_until = NULL
         WHERE message_id = $1 AND taken_token = $2",
        message,
        token,
        delay.as_secs_f64()
    )
    .execute(&mut *connection)
    .await
    .map_err(|error| StoreError::sort(ACT, error))?;
    Ok(handed_back.rows_affected() == 1)
}

/// Holds a wake-up for longer, from now on. False: this worker does not hold it any more.
pub async fn hold_wakeup(pool: &Pool, message: Uuid, token: Uuid, hold: Duration) -> Result<bool, StoreError> {
    const ACT: &str = "hold_wakeup";
    let mut connection = pool.acquire(ACT).await?;
    let held = sqlx::query!(
        "-- store::hold_wakeup
         UPDATE wakeups SET taken_until = clock_timestamp() + make_interval(secs => $3)
         WHERE message_id = $1 AND taken_token = $2",
        message,
        token,
        hold.as_secs_f64()
    )
    .execute(&mut *connection)
    .await
    .map_err(|error| StoreError::sort(ACT, error))?;
    Ok(held.rows_affected() == 1)
}
