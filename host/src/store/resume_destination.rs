//! A person says that a destination is mended: its jobs are tried again. Recorded with what was found, in one statement.

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
}

/// Ends attention and pause of a tenant's destination. `None`: the tenant has no such destination, and nothing was written.
pub async fn resume_destination(
    pool: &Pool,
    tenant: Uuid,
    destination: Uuid,
    resumed_by: &str,
) -> Result<Option<Resumed>, StoreError> {
    const ACT: &str = "resume_destination";
    let mut connection = pool.acquire(ACT).await?;
    sqlx::query_file_as!(Resumed, "src/store/resume_destination.sql", tenant, destination, resumed_by)
        .fetch_optional(&mut *connection)
        .await
        .map_err(|error| StoreError::sort(ACT, error))
}
