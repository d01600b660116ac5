//! A person says that a destination is mended: its jobs are woken. Recorded with what was found, in one statement.

use uuid::Uuid;

use super::error::StoreError;
use super::pools::Pool;

/// What was found when a destination was resumed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resumed {
    /// What had needed attention.
    pub attention_why: Option<String>,
    /// It had been paused, because the partner could not be reached.
    pub was_paused: bool,
    /// Jobs that are tried again now. Where more wait, they follow as their delays end.
    pub woken: i64,
}

/// Jobs that are woken at most: one statement must not write for a backlog of millions.
const MOST_WOKEN: i64 = 1000;

/// Ends attention and pause of a tenant's destination, and wakes its waiting jobs. `None`: the tenant has no such destination, and nothing was written.
pub async fn resume_destination(
    pool: &Pool,
    tenant: Uuid,
    destination: Uuid,
    resumed_by: &str,
) -> Result<Option<Resumed>, StoreError> {
    const ACT: &str = "resume_destination";
    let mut connection = pool.acquire(ACT).await?;
    sqlx::query_file_as!(Resumed, "src/store/resume_destination.sql", tenant, destination, resumed_by, MOST_WOKEN)
        .fetch_optional(&mut *connection)
        .await
        .map_err(|error| StoreError::sort(ACT, error))
}
