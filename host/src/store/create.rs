//! Creation: the job, its delivery key and its first wake-up, in one statement.

use sqlx::PgConnection;
use time::OffsetDateTime;
use uuid::Uuid;

use super::boundary::{AskTheRow, Boundary, landed_if};
use super::error::{StoreError, sqlstate};
use super::pools::Pool;
use super::write::Write;

/// An original job. A replacement has its own creation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewJob {
    pub id: Uuid,
    pub tenant: Uuid,
    pub destination: Uuid,
    pub scope: serde_json::Value,
    /// Not claimed before this time of the database's clock, and woken at it.
    pub not_before: Option<OffsetDateTime>,
    /// Higher is woken earlier.
    pub priority: i16,
    /// Minted by the caller; it never changes, and the final name is built from it.
    pub delivery_key: String,
    pub created_by: String,
}

/// What came of a creation.
#[must_use = "a refused creation made no job"]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Creation {
    /// Job, key, outbox row and its claims row are there.
    Created,
    /// The tenant has a delivery of this key already. Nothing was written.
    KeyTaken,
    /// The tenant has no such destination. Nothing was written.
    NoSuchDestination,
}

/// Creates a job. Sent again after a lost answer, with the same id, it says `Created` and makes no second one only if
/// the row shows it; a caller that retries on its own sees `KeyTaken`.
pub async fn create(pool: &Pool, job: NewJob) -> Result<Creation, StoreError> {
    let boundary = Boundary {
        act: "create",
        job: job.id,
        tenant: Some(job.tenant),
        ask: AskTheRow::AfterALostAnswer,
        landed: landed_if(|_| Some(())),
    };
    let answer = boundary.run(pool, async move |mut connection| insert(&mut connection, &job).await.map(Some)).await;
    match answer {
        Ok(Write::Written(())) => Ok(Creation::Created),
        // The statement inserts or fails, so it is only after a lost answer that the row can be missing; the insert
        // may still be on its way.
        Ok(Write::Refused(_) | Write::Absent) => {
            Err(StoreError::MaybeCommitted { act: "create", source: "the row is not there (yet)".into() })
        }
        Err(error) => refusal(error),
    }
}

/// The statement itself: job, key and first wake-up are there, or it failed.
pub(super) async fn insert(connection: &mut PgConnection, job: &NewJob) -> Result<(), sqlx::Error> {
    sqlx::query_file!(
        "src/store/create.sql",
        job.id,
        job.tenant,
        job.destination,
        job.scope,
        job.not_before,
        job.priority,
        job.delivery_key,
        job.created_by
    )
    .fetch_one(connection)
    .await
    .map(drop)
}

/// What an error of the statement says about the request, if it is the request that was at fault.
pub(super) fn refusal(error: StoreError) -> Result<Creation, StoreError> {
    match (error.code(), error.constraint()) {
        (Some(sqlstate::UNIQUE_VIOLATION), Some("pk_deliveries" | "uq_export_jobs_original_key")) => {
            Ok(Creation::KeyTaken)
        }
        (Some(sqlstate::FOREIGN_KEY_VIOLATION), Some("fk_export_jobs_destination")) => Ok(Creation::NoSuchDestination),
        _ => Err(error),
    }
}
