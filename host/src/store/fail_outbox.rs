//! A publish failed, or was not tried: the entry is let go of and comes again.

use std::time::Duration;

use uuid::Uuid;

use super::error::StoreError;
use super::outbox_answer::{OutboxAnswer, refused};
use super::pools::Pool;

/// Counts a failed publish of an entry that this dispatcher holds, and lets go of it until the backoff has passed.
/// `error_code` is a stable code, not a text.
pub async fn fail_outbox(
    pool: &Pool,
    message: Uuid,
    token: Uuid,
    error_code: &str,
    backoff: Duration,
) -> Result<OutboxAnswer, StoreError> {
    const ACT: &str = "fail_outbox";
    let mut connection = pool.acquire(ACT).await?;
    let failed = sqlx::query!(
        "-- store::fail_outbox
         -- What has ended has no token: ck_outbox_claims_released.
         UPDATE outbox_claims
         SET failures = failures + 1,
             last_error_code = $3,
             ready_at = clock_timestamp() + make_interval(secs => $4),
             owner = NULL, token = NULL, claimed_at = NULL, expires_at = NULL
         WHERE message_id = $1 AND token = $2",
        message,
        token,
        error_code,
        backoff.as_secs_f64()
    )
    .execute(&mut *connection)
    .await
    .map_err(|error| StoreError::sort(ACT, error))?
    .rows_affected();
    if failed == 1 {
        return Ok(OutboxAnswer::Applied);
    }
    refused(ACT, &mut connection, message, token).await
}

/// Lets go of what is left of a page, so that nobody has to wait for its lease. Nothing of it was emitted, so these
/// claims are not counted. Answers how many entries it let go of.
pub async fn release_outbox(pool: &Pool, token: Uuid, untouched: &[Uuid]) -> Result<u64, StoreError> {
    const ACT: &str = "release_outbox";
    if untouched.is_empty() {
        return Ok(0);
    }
    let mut connection = pool.acquire(ACT).await?;
    let released = sqlx::query!(
        "-- store::release_outbox
         -- What has ended has no token: ck_outbox_claims_released.
         UPDATE outbox_claims
         SET claims = claims - 1, owner = NULL, token = NULL, claimed_at = NULL, expires_at = NULL
         WHERE message_id = ANY($2) AND token = $1",
        token,
        untouched
    )
    .execute(&mut *connection)
    .await
    .map_err(|error| StoreError::sort(ACT, error))?;
    Ok(released.rows_affected())
}
