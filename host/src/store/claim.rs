//! Cutoff 1: Queued → Running, with the lease and the event, in one statement.
//!
//! Refused: another worker was faster, the job was canceled or edited, it is scheduled for later, its destination is
//! switched off, or the database lost commits and nobody accepted that. The wake-up is settled either way.

use std::time::Duration;

use time::OffsetDateTime;
use uuid::Uuid;

use super::boundary::{AskTheRow, Boundary};
use super::error::StoreError;
use super::pools::Pool;
use super::rows::file_facts;
use super::write::Write;
use crate::job::model::{ClaimedJob, Digests, Replacement};

const ACT: &str = "claim";

/// What a worker claims with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    pub job: Uuid,
    /// The version of the terms that policy evaluated.
    pub version: i32,
    /// Minted before the claim, so that the worker recognises it after a lost answer. Never reused.
    pub attempt: Uuid,
    pub worker: String,
    pub lease: Duration,
    /// What the attempt will work with.
    pub digests: Digests,
}

/// Claims a job. `Written` also after a lost answer, if the row is Running with this attempt.
pub async fn claim(pool: &Pool, claim: Claim) -> Result<Write<ClaimedJob>, StoreError> {
    let detail = serde_json::to_value(&claim.digests).map_err(|error| StoreError::unreadable(ACT, error))?;
    let Claim { job, version, attempt, worker, lease, digests: _ } = claim;
    let boundary = Boundary {
        act: ACT,
        job,
        tenant: None,
        // A statement that was thought lost may commit just before this one is sent again.
        ask: AskTheRow::Always,
        // State, ownership and terms together, by one statement.
        landed: Box::new(move |connection, _| {
            Box::pin(async move {
                let row = sqlx::query_file_as!(Row, "src/store/claimed.sql", job, attempt)
                    .fetch_optional(connection)
                    .await
                    .map_err(|error| StoreError::sort(ACT, error))?;
                Ok(row.map(|row| (job, attempt, row)))
            })
        }),
    };
    let answer = boundary
        .run(pool, async move |mut connection| {
            let row = sqlx::query_file_as!(
                Row,
                "src/store/claim.sql",
                job,
                attempt,
                version,
                worker,
                lease.as_secs_f64(),
                detail
            )
            .fetch_optional(&mut *connection)
            .await?;
            Ok(row.map(|row| (job, attempt, row)))
        })
        .await?;
    Ok(match answer {
        Write::Written((job, attempt, row)) => Write::Written(claimed(job, attempt, row)?),
        Write::Refused(found) => Write::Refused(found),
        Write::Absent => Write::Absent,
    })
}

struct Row {
    tenant_id: Uuid,
    attempt_count: i32,
    version: i32,
    destination_id: Uuid,
    delivery_key: String,
    scope: serde_json::Value,
    created_at: OffsetDateTime,
    replaces_job_id: Option<Uuid>,
    overwrite_agreed: bool,
    original_name: Option<String>,
    original_bytes: Option<i64>,
    original_sha256: Option<Vec<u8>>,
}

fn claimed(job: Uuid, attempt: Uuid, row: Row) -> Result<ClaimedJob, StoreError> {
    let original_expected = file_facts(ACT, row.original_name, row.original_bytes, row.original_sha256)?;
    Ok(ClaimedJob {
        id: job,
        tenant: row.tenant_id,
        attempt,
        attempt_count: row.attempt_count,
        destination: row.destination_id,
        delivery_key: row.delivery_key,
        created_at: row.created_at,
        version: row.version,
        scope: row.scope,
        replacement: row.replaces_job_id.map(|original| Replacement {
            original,
            overwrite_agreed: row.overwrite_agreed,
            original_expected,
        }),
    })
}
