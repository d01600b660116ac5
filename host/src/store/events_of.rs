//! A job's history: the events of its attempts, the cancellations that were asked for, and the edits of its terms.

use time::OffsetDateTime;
use uuid::Uuid;

use super::error::{StoreError, stored};
use super::pools::Pool;
use crate::job::status::{CancellationOutcome, EventKind, Status};

/// One event of an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttemptEvent {
    pub id: i64,
    pub attempt: Uuid,
    pub kind: EventKind,
    pub version: Option<i32>,
    pub worker: Option<String>,
    pub observed_by: Option<String>,
    pub detail: Option<serde_json::Value>,
    pub recorded_at: OffsetDateTime,
}

/// The events of a job in order of insertion. The caller has looked the job up in its tenant before.
pub async fn events_of(pool: &Pool, job: Uuid) -> Result<Vec<AttemptEvent>, StoreError> {
    const ACT: &str = "events_of";
    let mut connection = pool.acquire(ACT).await?;
    sqlx::query!(
        "-- store::events_of
         SELECT id, attempt_id, kind, version, worker_id, observed_by, detail, recorded_at
         FROM export_attempt_events WHERE job_id = $1 ORDER BY id",
        job
    )
    .fetch_all(&mut *connection)
    .await
    .map_err(|error| StoreError::sort(ACT, error))?
    .into_iter()
    .map(|row| {
        Ok(AttemptEvent {
            id: row.id,
            attempt: row.attempt_id,
            kind: stored(ACT, &row.kind)?,
            version: row.version,
            worker: row.worker_id,
            observed_by: row.observed_by,
            detail: row.detail,
            recorded_at: row.recorded_at,
        })
    })
    .collect()
}

/// A cancellation request as it was recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordedCancellation {
    pub id: Uuid,
    pub job: Uuid,
    pub requested_by: String,
    pub reason: Option<String>,
    pub outcome: CancellationOutcome,
    pub found_status: Status,
    pub found_attempt: Option<Uuid>,
    pub found_attempt_count: i32,
    pub found_delivery_authorized_at: Option<OffsetDateTime>,
    pub recorded_at: OffsetDateTime,
}

/// A row of `cancellation_requests` under the database's names.
pub(super) struct CancellationRow {
    pub id: Uuid,
    pub job_id: Uuid,
    pub requested_by: String,
    pub reason: Option<String>,
    pub outcome: String,
    pub found_status: String,
    pub found_attempt_id: Option<Uuid>,
    pub found_attempt_count: i32,
    pub found_delivery_authorized_at: Option<OffsetDateTime>,
    pub recorded_at: OffsetDateTime,
}

impl CancellationRow {
    pub fn into_recorded(self, act: &'static str) -> Result<RecordedCancellation, StoreError> {
        Ok(RecordedCancellation {
            id: self.id,
            job: self.job_id,
            requested_by: self.requested_by,
            reason: self.reason,
            outcome: stored(act, &self.outcome)?,
            found_status: stored(act, &self.found_status)?,
            found_attempt: self.found_attempt_id,
            found_attempt_count: self.found_attempt_count,
            found_delivery_authorized_at: self.found_delivery_authorized_at,
            recorded_at: self.recorded_at,
        })
    }
}

/// The cancellation requests for a tenant's job, oldest first.
pub async fn cancellations_of(pool: &Pool, tenant: Uuid, job: Uuid) -> Result<Vec<RecordedCancellation>, StoreError> {
    const ACT: &str = "cancellations_of";
    let mut connection = pool.acquire(ACT).await?;
    sqlx::query_as!(
        CancellationRow,
        "-- store::cancellations_of
         SELECT id, job_id, requested_by, reason, outcome, found_status, found_attempt_id, found_attempt_count,
                found_delivery_authorized_at, recorded_at
         FROM cancellation_requests WHERE tenant_id = $1 AND job_id = $2 ORDER BY recorded_at, id",
        tenant,
        job
    )
    .fetch_all(&mut *connection)
    .await
    .map_err(|error| StoreError::sort(ACT, error))?
    .into_iter()
    .map(|row| row.into_recorded(ACT))
    .collect()
}

/// An edit of a job's terms.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordedEdit {
    pub id: i64,
    pub edited_by: String,
    /// What changed: the version that it made, the destination, the schedule.
    pub detail: serde_json::Value,
    pub recorded_at: OffsetDateTime,
}

/// The edits of a tenant's job, oldest first.
pub async fn edits_of(pool: &Pool, tenant: Uuid, job: Uuid) -> Result<Vec<RecordedEdit>, StoreError> {
    const ACT: &str = "edits_of";
    let mut connection = pool.acquire(ACT).await?;
    sqlx::query_as!(
        RecordedEdit,
        "-- store::edits_of
         SELECT id, actor AS edited_by, detail, recorded_at
         FROM audit WHERE tenant_id = $1 AND target = $2 AND action = 'edit' ORDER BY id",
        tenant,
        job.to_string()
    )
    .fetch_all(&mut *connection)
    .await
    .map_err(|error| StoreError::sort(ACT, error))
}
