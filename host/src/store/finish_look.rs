//! The end of one look: what it found, and when to look again.

use std::time::Duration;

use super::claim_look::DueLook;
use super::error::StoreError;
use super::pools::Pool;

/// What comes after a look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NextLook {
    After(Duration),
    /// No look any more.
    Never,
}

/// Ends a look and its lease. False if the lease was another's by then, or the outcome was settled meanwhile.
pub async fn finish_look(
    pool: &Pool,
    look: &DueLook,
    found: Option<&serde_json::Value>,
    next: NextLook,
) -> Result<bool, StoreError> {
    const ACT: &str = "finish_look";
    let after = match next {
        NextLook::After(after) => Some(after.as_secs_f64()),
        NextLook::Never => None,
    };
    let mut connection = pool.acquire(ACT).await?;
    let written = sqlx::query!(
        "-- store::finish_look
         UPDATE looks
         SET looks = looks + 1,
             last_found = coalesce($4, last_found),
             next_at = CASE WHEN $5::float8 IS NULL THEN next_at ELSE clock_timestamp() + make_interval(secs => $5) END,
             ended_at = CASE WHEN $5::float8 IS NULL THEN clock_timestamp() END,
             owner = NULL, token = NULL, expires_at = NULL
         WHERE job_id = $1 AND attempt_id = $2 AND token = $3",
        look.job,
        look.attempt,
        look.token,
        found,
        after
    )
    .execute(&mut *connection)
    .await
    .map_err(|error| StoreError::sort(ACT, error))?
    .rows_affected();
    Ok(written == 1)
}
