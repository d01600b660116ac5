//! State and ownership of a job, read together: after a refused write, and after a lost answer.

use sqlx::PgConnection;
use uuid::Uuid;

use super::error::{StoreError, stored};
use super::pools::Pool;
use crate::job::status::{FailureReason, Status};

const ACT: &str = "found";

/// What a row said at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts of one row, every combination of which occurs")]
pub struct Found {
    pub status: Status,
    pub version: i32,
    /// The attempt that owns the job, or that owned it last.
    pub attempt: Option<Uuid>,
    pub attempt_count: i32,
    pub stop_request: Option<Uuid>,
    /// True if the lease had not expired by the database's clock.
    pub lease_current: bool,
    /// True if cutoff 2 was crossed.
    pub authorized: bool,
    /// True if the publish fence was passed.
    pub publish_intended: bool,
    pub failure_reason: Option<FailureReason>,
    /// False while the job is scheduled for later.
    pub due: bool,
    /// False while its destination is switched off.
    pub destination_enabled: bool,
    /// False after a failover or restore that nobody accepted for this job.
    pub history_known: bool,
    /// On a replacement: its original's status.
    pub original: Option<Status>,
}

impl Found {
    /// State and ownership together: this status, and this attempt's.
    pub fn is(&self, status: Status, attempt: Uuid) -> bool {
        self.status == status && self.attempt == Some(attempt)
    }
}

/// Reads state and ownership of a job; `None` if there is no such job.
pub async fn found(pool: &Pool, job: Uuid) -> Result<Option<Found>, StoreError> {
    let mut connection = pool.acquire(ACT).await?;
    read(&mut connection, job, None).await
}

/// The same on a connection at hand, and, for a tenant's request, only if the job is that tenant's.
pub(super) async fn read(
    connection: &mut PgConnection,
    job: Uuid,
    tenant: Option<Uuid>,
) -> Result<Option<Found>, StoreError> {
    let row = sqlx::query_file!("src/store/found.sql", job, tenant)
        .fetch_optional(connection)
        .await
        .map_err(|error| StoreError::sort(ACT, error))?;
    let Some(row) = row else { return Ok(None) };
    Ok(Some(Found {
        status: stored(ACT, &row.status)?,
        version: row.version,
        attempt: row.attempt_id,
        attempt_count: row.attempt_count,
        stop_request: row.stop_request_id,
        lease_current: row.lease_current,
        authorized: row.authorized,
        publish_intended: row.publish_intended,
        failure_reason: row.failure_reason.as_deref().map(|code| stored(ACT, code)).transpose()?,
        due: row.due,
        destination_enabled: row.destination_enabled,
        history_known: row.history_known,
        original: row.original_status.as_deref().map(|status| stored(ACT, status)).transpose()?,
    }))
}
