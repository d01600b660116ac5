//! A dispatcher claims a page of the outbox under one lease.
//!
//! Entries that another dispatcher is claiming at this moment are passed over; entries whose lease ran out are taken
//! over. Ended entries cost nothing, since the index does not hold them.

use std::time::Duration;

use uuid::Uuid;

use super::error::StoreError;
use super::pools::Pool;

/// An entry that this dispatcher holds until the lease ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimedEntry {
    /// The message's id at the broker: one an entry, the same for each of its retries.
    pub message: Uuid,
    pub job: Uuid,
    /// Completing, failing and releasing ask for it.
    pub token: Uuid,
    /// Claims so far, this one included. It also rises when a dispatcher dies, and so tells what retries cannot.
    pub claims: i32,
    /// Publishes that failed so far.
    pub failures: i32,
}

/// Claims up to `page` ready entries, the highest priority first. `token` is new for each call.
///
/// After a lost answer the entries come again when the lease ends; nothing needs settling.
pub async fn claim_outbox(
    pool: &Pool,
    owner: &str,
    token: Uuid,
    page: u32,
    lease: Duration,
) -> Result<Vec<ClaimedEntry>, StoreError> {
    const ACT: &str = "claim_outbox";
    let mut connection = pool.acquire(ACT).await?;
    let rows = sqlx::query_file!("src/store/claim_outbox.sql", owner, token, i64::from(page), lease.as_secs_f64())
        .fetch_all(&mut *connection)
        .await
        .map_err(|error| StoreError::sort(ACT, error))?;
    let entries = rows.into_iter().map(|row| ClaimedEntry {
        message: row.message_id,
        job: row.job_id,
        token,
        claims: row.claims,
        failures: row.failures,
    });
    Ok(entries.collect())
}
