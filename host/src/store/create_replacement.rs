//! Creation of a replacement: a named person's decision to deliver an original's key once more, by a job of its own.
//!
//! The statement locks the original, so a correction to Completed that is under way is waited for and then seen.
//! Original, tenant, key and destination are copied from it; the schema refuses a replacement of another key, of
//! another tenant or of a replacement, and a second one beside one that is live or has delivered.
//!
//! Not checked: whether a duplicate would harm the partner. That is the person's judgment, and stands in the reason.

use uuid::Uuid;

use super::boundary::{AskTheRow, Boundary, landed_if};
use super::error::{StoreError, sqlstate, stored};
use super::pools::Pool;
use super::write::Write;
use crate::job::status::{FailureReason, Status};

const ACT: &str = "create_replacement";

/// A replacement that a person asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewReplacement {
    pub id: Uuid,
    pub tenant: Uuid,
    /// The original. For a replacement's id nothing is created.
    pub original: Uuid,
    /// The person.
    pub created_by: String,
    /// Why, in their words.
    pub reason: String,
    /// Where the partner's agreement to an overwrite is recorded. Without it nothing is overwritten.
    pub overwrite_agreement_ref: Option<String>,
    /// The person's words that the earlier attempts which are still open can no longer upload. Demanded if one is open.
    pub cannot_upload: Option<String>,
}

/// Why no replacement was created.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReplacementRefused {
    #[error("there is no such job")]
    NotFound,
    #[error("a replacement needs its reason in words")]
    ReasonMissing,
    #[error("the job is itself a replacement of {original}; ask for a replacement of that one")]
    IsReplacement { original: Uuid },
    #[error(
        "the original is {status}{}, and only one that is OutcomeUnknown, or Failed with BuildFailed, AttemptsExhausted \
         or NotDelivered, can be replaced",
        .failure_reason.map(|reason| format!(" ({reason})")).unwrap_or_default()
    )]
    NotReplaceable { status: Status, failure_reason: Option<FailureReason> },
    #[error(
        "the original has a replacement that is live, has delivered, may have, or found the original's file; settle that one first"
    )]
    SlotTaken,
    /// Some may still bring the file.
    #[error(
        "{} earlier attempt(s) of this delivery can still upload; say in words why they cannot, or wait until they are \
         fenced",
        .0.len()
    )]
    EarlierAttemptsOpen(Vec<OpenAttempt>),
    #[error("the original moved while it was looked at, and nothing was created; ask again")]
    Moved,
}

/// An earlier attempt of a key that may still bring its file to the partner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenAttempt {
    pub job: Uuid,
    /// `None` on a job that is queued.
    pub attempt: Option<Uuid>,
    pub status: Status,
    /// True if it passed the publish fence; false if it has not ended, or if the database may have lost its fence.
    pub publish_intended: bool,
}

/// Creates a replacement with its first wake-up. Unless it answers `Ok`, nothing was written.
pub async fn create_replacement(
    pool: &Pool,
    new: NewReplacement,
) -> Result<Result<(), ReplacementRefused>, StoreError> {
    let reason = new.reason.trim().to_owned();
    if reason.is_empty() {
        return Ok(Err(ReplacementRefused::ReasonMissing));
    }
    let cannot_upload = new.cannot_upload.map(|words| words.trim().to_owned()).filter(|words| !words.is_empty());
    let NewReplacement { id, tenant, original, created_by, overwrite_agreement_ref, .. } = new;
    let boundary = Boundary {
        act: ACT,
        job: id,
        tenant: Some(tenant),
        ask: AskTheRow::AfterALostAnswer,
        landed: landed_if(|found| found.original.map(|_| ())),
    };
    let has_words = cannot_upload.is_some();
    let answer = boundary
        .run(pool, async move |mut connection| {
            let row = sqlx::query_file!(
                "src/store/create_replacement.sql",
                id,
                tenant,
                original,
                created_by,
                reason,
                overwrite_agreement_ref,
                cannot_upload
            )
            .fetch_optional(&mut *connection)
            .await?;
            Ok(row.map(|_| ()))
        })
        .await;
    match answer {
        Ok(Write::Written(())) => Ok(Ok(())),
        // The new row is absent, as it must be after a refusal: the original tells why.
        Ok(Write::Refused(_) | Write::Absent) => Ok(Err(refusal(pool, tenant, original, has_words).await?)),
        Err(error) if error.code() == Some(sqlstate::UNIQUE_VIOLATION) => match error.constraint() {
            Some("uq_export_jobs_one_replacement") => Ok(Err(ReplacementRefused::SlotTaken)),
            _ => Err(error),
        },
        Err(error) => Err(error),
    }
}

/// The earlier attempts of an original's key that may still bring its file: what a person has to answer for.
pub async fn open_attempts(pool: &Pool, tenant: Uuid, original: Uuid) -> Result<Vec<OpenAttempt>, StoreError> {
    let mut connection = pool.acquire(ACT).await?;
    let rows = sqlx::query!(
        r#"-- store::open_attempts
           SELECT earlier.job_id AS "job!",
                  earlier.attempt_id AS attempt,
                  earlier.status AS "status!",
                  earlier.publish_intended_at IS NOT NULL AS "publish_intended!"
           FROM deliveries AS delivery, open_attempts(delivery.tenant_id, delivery.delivery_key) AS earlier
           WHERE delivery.tenant_id = $1 AND delivery.original_job_id = $2
           ORDER BY earlier.job_id"#,
        tenant,
        original
    )
    .fetch_all(&mut *connection)
    .await
    .map_err(|error| StoreError::sort(ACT, error))?;
    rows.into_iter()
        .map(|row| {
            Ok(OpenAttempt {
                job: row.job,
                attempt: row.attempt,
                status: stored(ACT, &row.status)?,
                publish_intended: row.publish_intended,
            })
        })
        .collect()
}

async fn refusal(pool: &Pool, tenant: Uuid, job: Uuid, has_words: bool) -> Result<ReplacementRefused, StoreError> {
    let mut connection = pool.acquire(ACT).await?;
    let row = sqlx::query!(
        r#"-- store::create_replacement, after a refusal
           SELECT job.status,
                  job.failure_reason,
                  job.replaces_job_id,
                  EXISTS (SELECT FROM export_jobs AS replacement
                          WHERE replacement.replaces_job_id = job.id
                            AND (replacement.status NOT IN ('Canceled', 'Rejected', 'Stopped', 'Failed')
                                 OR replacement.failure_reason = 'OriginalDelivered')) AS "slot_taken!"
           FROM export_jobs AS job
           WHERE job.tenant_id = $1 AND job.id = $2"#,
        tenant,
        job
    )
    .fetch_optional(&mut *connection)
    .await
    .map_err(|error| StoreError::sort(ACT, error))?;
    drop(connection);
    let Some(row) = row else { return Ok(ReplacementRefused::NotFound) };
    if let Some(original) = row.replaces_job_id {
        return Ok(ReplacementRefused::IsReplacement { original });
    }
    let status = stored(ACT, &row.status)?;
    let failure_reason = row.failure_reason.as_deref().map(|code| stored(ACT, code)).transpose()?;
    if !replaceable(status, failure_reason) {
        return Ok(ReplacementRefused::NotReplaceable { status, failure_reason });
    }
    if row.slot_taken {
        return Ok(ReplacementRefused::SlotTaken);
    }
    let open = open_attempts(pool, tenant, job).await?;
    if !has_words && !open.is_empty() {
        return Ok(ReplacementRefused::EarlierAttemptsOpen(open));
    }
    Ok(ReplacementRefused::Moved)
}

/// The statement's own condition, for the report after it.
const fn replaceable(status: Status, failure_reason: Option<FailureReason>) -> bool {
    match status {
        Status::OutcomeUnknown => true,
        Status::Failed => match failure_reason {
            Some(FailureReason::BuildFailed | FailureReason::AttemptsExhausted | FailureReason::NotDelivered) => true,
            Some(FailureReason::FinalNameOccupied | FailureReason::OriginalDelivered) | None => false,
        },
        Status::Queued
        | Status::Running
        | Status::Delivering
        | Status::Canceled
        | Status::Rejected
        | Status::Stopped
        | Status::Completed => false,
    }
}
