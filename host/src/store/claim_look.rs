//! Leases on `looks`: one reconciler at a time works on an attempt.

use std::time::Duration;

use uuid::Uuid;

use super::error::StoreError;
use super::pools::Pool;

/// What a look is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Purpose {
    /// Until the outcome is settled.
    Outcome,
    /// For an acknowledgment that may still come, until the contract's period ends.
    Acknowledgment,
}

#[derive(Debug, thiserror::Error)]
#[error("a look is for an outcome or for an acknowledgment")]
struct NoPurpose;

/// A look that is due, and this reconciler's until its lease ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DueLook {
    pub job: Uuid,
    pub attempt: Uuid,
    pub destination: Uuid,
    pub purpose: Purpose,
    /// Looks before this one.
    pub looks: u32,
    /// What the last look found.
    pub last_found: Option<serde_json::Value>,
    /// The time until which an acknowledgment is looked for has passed: this look is the last for it.
    pub last: bool,
    /// This lease's own; every write under it asks for it.
    pub token: Uuid,
}

/// Takes the look that is due longest at one of these destinations; `None` if there is none.
pub async fn claim_look(
    pool: &Pool,
    owner: &str,
    destinations: &[Uuid],
    lease: Duration,
) -> Result<Option<DueLook>, StoreError> {
    const ACT: &str = "claim_look";
    let token = Uuid::new_v4();
    let mut connection = pool.acquire(ACT).await?;
    let row = sqlx::query_file!("src/store/claim_look.sql", owner, token, lease.as_secs_f64(), destinations)
        .fetch_optional(&mut *connection)
        .await
        .map_err(|error| StoreError::sort(ACT, error))?;
    let Some(row) = row else { return Ok(None) };
    Ok(Some(DueLook {
        job: row.job_id,
        attempt: row.attempt_id,
        destination: row.destination_id,
        purpose: match row.purpose.as_str() {
            "outcome" => Purpose::Outcome,
            "acknowledgment" => Purpose::Acknowledgment,
            _ => return Err(StoreError::unreadable(ACT, NoPurpose)),
        },
        looks: u32::try_from(row.looks).map_err(|error| StoreError::unreadable(ACT, error))?,
        last_found: row.last_found,
        last: row.last,
        token,
    }))
}
