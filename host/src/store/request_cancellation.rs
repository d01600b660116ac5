//! A cancellation: what was found under the lock of the job's row, what was done, and the record of both, in one short
//! transaction.
//!
//! The lock makes the classification true; the conditions of the updates are defence in depth. Nothing else belongs
//! between the locking read and the commit, since every claim of the job waits that long.

use std::time::Duration;

use sqlx::{Connection, PgConnection};
use time::OffsetDateTime;
use uuid::Uuid;

use super::boundary::{AskTheRow, Boundary};
use super::error::{StoreError, sqlstate};
use super::events_of::{CancellationRow, RecordedCancellation};
use super::pools::Pool;
use super::write::Write;
use crate::job::status::{CancellationOutcome, Status};

const ACT: &str = "request_cancellation";

/// What an operator asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CancellationRequest {
    pub tenant: Uuid,
    pub job: Uuid,
    /// Minted by the client, once a click; the same after `Busy`.
    pub id: Uuid,
    pub requested_by: String,
    pub reason: Option<String>,
    /// Longest wait for the row's lock.
    pub lock_timeout: Duration,
}

/// The answer to a cancellation.
#[must_use = "only the recorded outcome tells whether anything was canceled"]
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cancellation {
    /// Recorded now, or by an earlier submission of the same click.
    Recorded(RecordedCancellation),
    /// The request's id was used for another job or by another operator. Nothing was recorded.
    RequestIdReused,
    /// There is no such job in this tenant. Nothing was recorded.
    NotFound,
    /// It could not be told in time. This submission recorded nothing that is known of; try again with the same id.
    Busy,
}

/// Cancels a queued job, asks a running one to stop, or records why neither is possible.
pub async fn request_cancellation(pool: &Pool, request: CancellationRequest) -> Result<Cancellation, StoreError> {
    let asked = request.clone();
    let (tenant, id) = (request.tenant, request.id);
    let boundary = Boundary {
        act: ACT,
        job: request.job,
        tenant: Some(tenant),
        ask: AskTheRow::AfterALostAnswer,
        landed: Box::new(move |connection, _| {
            Box::pin(async move {
                let row = recorded(connection, tenant, id).await.map_err(|error| StoreError::sort(ACT, error))?;
                Ok(row.map(Decided::Row))
            })
        }),
    };
    let answer = boundary
        .run(pool, async move |mut connection| {
            let mut transaction = connection.begin().await?;
            let decided = decide(&mut transaction, &request).await?;
            match decided {
                Decided::Row(_) => transaction.commit().await?,
                Decided::Nothing | Decided::Impossible => transaction.rollback().await?,
            }
            Ok(Some(decided))
        })
        .await;
    match answer {
        Ok(Write::Written(Decided::Row(row))) => bound(row, &asked),
        Ok(Write::Written(Decided::Nothing) | Write::Absent) => Ok(Cancellation::NotFound),
        // After a lost answer there is no record (yet), or the row changed under its lock.
        Ok(Write::Written(Decided::Impossible) | Write::Refused(_)) => Ok(Cancellation::Busy),
        Err(error) => match (error.code(), error.constraint()) {
            (Some(sqlstate::LOCK_NOT_AVAILABLE), _) => Ok(Cancellation::Busy),
            // The same id was recorded meanwhile under another job's lock.
            (Some(sqlstate::UNIQUE_VIOLATION), Some("pk_cancellation_requests")) => {
                let mut connection = pool.acquire(ACT).await?;
                let row = recorded(&mut connection, tenant, id).await.map_err(|error| StoreError::sort(ACT, error))?;
                row.map_or(Ok(Cancellation::Busy), |row| bound(row, &asked))
            }
            _ => Err(error),
        },
    }
}

/// What a transaction came to.
enum Decided {
    /// The record, new or old.
    Row(CancellationRow),
    /// No such job in this tenant.
    Nothing,
    /// The row changed although it was locked. Nothing is recorded, since no outcome would be true.
    Impossible,
}

/// A recorded request answers only for the job and the operator that it is bound to.
fn bound(row: CancellationRow, asked: &CancellationRequest) -> Result<Cancellation, StoreError> {
    if row.job_id != asked.job || row.requested_by != asked.requested_by {
        return Ok(Cancellation::RequestIdReused);
    }
    Ok(Cancellation::Recorded(row.into_recorded(ACT)?))
}

async fn recorded(
    connection: &mut PgConnection,
    tenant: Uuid,
    id: Uuid,
) -> Result<Option<CancellationRow>, sqlx::Error> {
    sqlx::query_as!(
        CancellationRow,
        "-- store::request_cancellation, an earlier submission
         SELECT id, job_id, requested_by, reason, outcome, found_status, found_attempt_id, found_attempt_count,
                found_delivery_authorized_at, recorded_at
         FROM cancellation_requests WHERE tenant_id = $1 AND id = $2",
        tenant,
        id
    )
    .fetch_optional(connection)
    .await
}

struct Locked {
    status: String,
    attempt_id: Option<Uuid>,
    attempt_count: i32,
    stop_request_id: Option<Uuid>,
    delivery_authorized_at: Option<OffsetDateTime>,
}

async fn decide(connection: &mut PgConnection, request: &CancellationRequest) -> Result<Decided, sqlx::Error> {
    sqlx::query!(
        "-- store::request_cancellation, the longest wait for a lock
         SELECT set_config('lock_timeout', $1, true)",
        request.lock_timeout.as_millis().max(1).to_string()
    )
    .fetch_one(&mut *connection)
    .await?;
    let found = sqlx::query_as!(
        Locked,
        "-- store::request_cancellation
         SELECT status, attempt_id, attempt_count, stop_request_id, delivery_authorized_at
         FROM export_jobs WHERE id = $1 AND tenant_id = $2 FOR UPDATE",
        request.job,
        request.tenant
    )
    .fetch_optional(&mut *connection)
    .await?;
    let Some(found) = found else { return Ok(Decided::Nothing) };
    if let Some(row) = recorded(connection, request.tenant, request.id).await? {
        return Ok(Decided::Row(row));
    }
    let status = found.status.parse::<Status>().map_err(|error| sqlx::Error::Decode(error.into()))?;
    let outcome = outcome(status, found.stop_request_id.is_some());
    let changed = match outcome {
        CancellationOutcome::CanceledWhileQueued => cancel(connection, request).await?,
        CancellationOutcome::StopRequested => ask_to_stop(connection, request).await?,
        CancellationOutcome::StopAlreadyRequested
        | CancellationOutcome::AlreadyCanceled
        | CancellationOutcome::AlreadyEnded
        | CancellationOutcome::TooLate => 1,
    };
    if changed != 1 {
        tracing::error!(job = %request.job, %outcome, "the row changed under its lock; nothing is recorded");
        return Ok(Decided::Impossible);
    }
    let row = sqlx::query_as!(
        CancellationRow,
        "-- store::request_cancellation, the record
         INSERT INTO cancellation_requests (tenant_id, id, job_id, requested_by, reason, outcome, found_status,
                                            found_attempt_id, found_attempt_count, found_delivery_authorized_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
         RETURNING id, job_id, requested_by, reason, outcome, found_status, found_attempt_id, found_attempt_count,
                   found_delivery_authorized_at, recorded_at",
        request.tenant,
        request.id,
        request.job,
        request.requested_by,
        request.reason,
        outcome.as_str(),
        status.as_str(),
        found.attempt_id,
        found.attempt_count,
        found.delivery_authorized_at
    )
    .fetch_one(connection)
    .await?;
    Ok(Decided::Row(row))
}

/// What a cancellation comes to, by what was found under the lock.
const fn outcome(found: Status, stop_requested: bool) -> CancellationOutcome {
    match found {
        Status::Queued => CancellationOutcome::CanceledWhileQueued,
        Status::Running if stop_requested => CancellationOutcome::StopAlreadyRequested,
        Status::Running => CancellationOutcome::StopRequested,
        Status::Canceled => CancellationOutcome::AlreadyCanceled,
        Status::Rejected | Status::Stopped | Status::Failed => CancellationOutcome::AlreadyEnded,
        Status::Delivering | Status::Completed | Status::OutcomeUnknown => CancellationOutcome::TooLate,
    }
}

async fn cancel(connection: &mut PgConnection, request: &CancellationRequest) -> Result<u64, sqlx::Error> {
    let written = sqlx::query!(
        "-- store::request_cancellation, while queued
         UPDATE export_jobs SET status = 'Canceled', cancellation_request_id = $3
         WHERE id = $1 AND tenant_id = $2 AND status = 'Queued'",
        request.job,
        request.tenant,
        request.id
    )
    .execute(connection)
    .await?;
    Ok(written.rows_affected())
}

async fn ask_to_stop(connection: &mut PgConnection, request: &CancellationRequest) -> Result<u64, sqlx::Error> {
    let written = sqlx::query!(
        "-- store::request_cancellation, while running
         UPDATE export_jobs SET stop_request_id = $3
         WHERE id = $1 AND tenant_id = $2 AND status = 'Running' AND stop_request_id IS NULL",
        request.job,
        request.tenant,
        request.id
    )
    .execute(connection)
    .await?;
    Ok(written.rows_affected())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_status_has_one_outcome() {
        let told: Vec<_> = Status::ALL.iter().map(|status| outcome(*status, false).as_str()).collect();
        assert_eq!(
            told,
            [
                "CanceledWhileQueued",
                "StopRequested",
                "TooLate",
                "AlreadyCanceled",
                "AlreadyEnded",
                "AlreadyEnded",
                "AlreadyEnded",
                "TooLate",
                "TooLate"
            ]
        );
        assert_eq!(outcome(Status::Running, true), CancellationOutcome::StopAlreadyRequested);
    }
}
