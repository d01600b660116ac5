//! Everything that is on record about one attempt, for a look at its end by somebody else: recovery before a takeover,
//! the reconciler after it.

use std::time::Duration;

use time::OffsetDateTime;
use uuid::Uuid;

use super::error::{StoreError, stored};
use super::events_of::events_of;
use super::pools::Pool;
use super::rows::file_facts;
use crate::job::evidence::Evidence;
use crate::job::model::{ClaimedJob, Replacement};
use crate::job::on_record::AttemptOnRecord;
use crate::job::status::{EventKind, Status};

const ACT: &str = "attempt_on_record";

/// Reads it; `None` if the job has no such attempt as its current or last one.
pub async fn attempt_on_record(pool: &Pool, job: Uuid, attempt: Uuid) -> Result<Option<AttemptOnRecord>, StoreError> {
    // The times are read first, so that they never outlast what the events show.
    let Some(row) = read(pool, job, attempt).await? else { return Ok(None) };
    let mut evidence = Vec::new();
    let (mut publish_intended, mut digests, mut unreadable) = (None, None, 0);
    for event in events_of(pool, job).await?.into_iter().filter(|event| event.attempt == attempt) {
        let Some(detail) = event.detail else { continue };
        match event.kind {
            EventKind::DeliveryEvidence => match serde_json::from_value::<Evidence>(detail) {
                Ok(one) => evidence.push(one),
                Err(_) => unreadable += 1,
            },
            EventKind::PublishIntended => {
                publish_intended = detail.get("form").and_then(|form| serde_json::from_value(form.clone()).ok());
            }
            EventKind::Claimed => digests = serde_json::from_value(detail).ok(),
            EventKind::DeliveryAuthorized
            | EventKind::Stopped
            | EventKind::Failed
            | EventKind::Finished
            | EventKind::ReleasedByWorker
            | EventKind::RequeuedByRecovery
            | EventKind::StoppedByRecovery
            | EventKind::AttemptsExhausted
            | EventKind::ResolvedByRecovery
            | EventKind::Reconciled
            | EventKind::Corrected => {}
        }
    }
    let status: Status = stored(ACT, &row.status)?;
    let since = |seconds: Option<f64>| seconds.map(|seconds| Duration::from_secs_f64(seconds.max(0.0)));
    Ok(Some(AttemptOnRecord {
        expected: file_facts(ACT, row.expected_file_name, row.expected_file_bytes, row.expected_file_sha256)?,
        job: ClaimedJob {
            id: job,
            tenant: row.tenant_id,
            attempt,
            attempt_count: row.attempt_count,
            destination: row.destination_id,
            delivery_key: row.delivery_key,
            created_at: row.created_at,
            version: row.version,
            scope: row.scope,
            replacement: match row.replaces_job_id {
                None => None,
                Some(original) => Some(Replacement {
                    original,
                    overwrite_agreed: row.overwrite_agreed,
                    original_expected: file_facts(ACT, row.original_name, row.original_bytes, row.original_sha256)?,
                }),
            },
        },
        status,
        publish_intended,
        fenced: row.fenced,
        fences_known: row.fences_known,
        digests,
        evidence,
        unreadable,
        since_intended: since(row.since_intended),
        since_settled: if status == Status::Delivering {
            Duration::ZERO
        } else {
            since(row.since_settled).unwrap_or_default()
        },
    }))
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
    status: String,
    expected_file_name: Option<String>,
    expected_file_bytes: Option<i64>,
    expected_file_sha256: Option<Vec<u8>>,
    fenced: bool,
    fences_known: bool,
    since_intended: Option<f64>,
    since_settled: Option<f64>,
}

async fn read(pool: &Pool, job: Uuid, attempt: Uuid) -> Result<Option<Row>, StoreError> {
    let mut connection = pool.acquire(ACT).await?;
    sqlx::query_file_as!(Row, "src/store/attempt_on_record.sql", job, attempt)
        .fetch_optional(&mut *connection)
        .await
        .map_err(|error| StoreError::sort(ACT, error))
}
