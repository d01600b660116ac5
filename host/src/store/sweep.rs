//! The sweeper's write: a fresh wake-up for jobs that are queued longer than any wake-up takes. It backs up outbox,
//! dispatcher and broker, and asks none of them whether an older wake-up still lives: a second one does no harm.

use std::time::Duration;

use uuid::Uuid;

use super::error::StoreError;
use super::pools::Pool;

const ACT: &str = "sweep";

/// A job that was woken again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Swept {
    pub job: Uuid,
    /// How often by now. A count that keeps rising needs a look.
    pub sweep_count: i32,
}

/// Wakes at most `most` jobs whose last wake-up is older than this, the oldest first; rows that another writer holds
/// are left to the next sweep, and jobs scheduled for later to their time. Fewer than `most`: nothing more is due.
///
/// A lost answer needs no settling: what was swept is not due again, and what was not is found by the next sweep.
pub async fn sweep(pool: &Pool, older_than: Duration, most: u16) -> Result<Vec<Swept>, StoreError> {
    let mut connection = pool.acquire(ACT).await?;
    sqlx::query_file_as!(Swept, "src/store/sweep.sql", older_than.as_secs_f64(), i64::from(most))
        .fetch_all(&mut *connection)
        .await
        .map_err(|error| StoreError::sort(ACT, error))
}
