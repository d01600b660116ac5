//! Completed ↔ Failed, once an attempt, by a named person. It mends a record that later evidence contradicts; it moves
//! no file and starts no work.
//!
//! It updates the row of a possible original, so a replacement's creation and its cutoff 2, which lock that row, wait
//! for it or make it wait; whichever is second looks again.

use uuid::Uuid;

use super::boundary::{AskTheRow, Boundary};
use super::decision::Decision;
use super::error::{StoreError, sqlstate};
use super::found::Found;
use super::pools::Pool;
use super::recorded::OwnEvent;
use super::write::Write;
use crate::job::status::{EventKind, FailureReason, Status};

const ACT: &str = "correct";

/// What should have been recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Corrected {
    /// Recorded as Failed, and the partner has the file.
    ToCompleted,
    /// Recorded as Completed, and the partner does not have the file.
    ToFailed(FailureReason),
}

impl Corrected {
    /// The state that the row must have.
    pub const fn recorded(self) -> Status {
        match self {
            Self::ToCompleted => Status::Failed,
            Self::ToFailed(_) => Status::Completed,
        }
    }

    /// The state that it gets.
    pub const fn status(self) -> Status {
        match self {
            Self::ToCompleted => Status::Completed,
            Self::ToFailed(_) => Status::Failed,
        }
    }

    const fn failure_reason(self) -> Option<FailureReason> {
        match self {
            Self::ToCompleted => None,
            Self::ToFailed(reason) => Some(reason),
        }
    }
}

/// A correction. The pool logs in as `waybill_corrector`; the database refuses every other login.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Correction {
    pub tenant: Uuid,
    pub job: Uuid,
    /// The attempt whose record is wrong.
    pub attempt: Uuid,
    pub corrected: Corrected,
    pub decision: Decision,
}

/// Why nothing was corrected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CorrectionRefused {
    #[error("there is no such job")]
    Absent,
    /// Another state, or another attempt.
    #[error(
        "the job is {} now, or another attempt's, and a correction asks for the record that it mends; read the job again",
        .0.status
    )]
    NotAsRecorded(Found),
    #[error("this attempt was never authorized to deliver, so a file at the partner is not its own; it stays Failed")]
    NeverAuthorized,
    #[error(
        "this attempt's record was corrected before, and only once can it be; what comes later is settled outside the job"
    )]
    AlreadyCorrected,
    #[error(
        "another replacement of the same original is live, has delivered, may have, or found the original's file; two cannot count as delivered"
    )]
    SlotTaken,
}

/// Corrects a recorded outcome. Unless it answers `Ok`, nothing was written.
pub async fn correct(pool: &Pool, correction: Correction) -> Result<Result<(), CorrectionRefused>, StoreError> {
    let Correction { tenant, job, attempt, corrected, decision } = correction;
    let (recorded, status, reason) = (corrected.recorded(), corrected.status(), corrected.failure_reason());
    let detail = serde_json::json!({
        "from": recorded,
        "to": status,
        "failure_reason": reason,
        "reason": decision.reason(),
        "evidence_ref": decision.evidence_ref(),
    });
    let own = OwnEvent {
        act: ACT,
        job,
        attempt,
        kind: EventKind::Corrected,
        observed_by: decision.by().to_owned(),
        detail: Some(detail.clone()),
    };
    let boundary =
        Boundary { act: ACT, job, tenant: Some(tenant), ask: AskTheRow::AfterALostAnswer, landed: own.landed() };
    let answer = boundary
        .run(pool, async move |mut connection| {
            let row = sqlx::query_file!(
                "src/store/correct.sql",
                tenant,
                job,
                attempt,
                recorded.as_str(),
                status.as_str(),
                reason.map(FailureReason::as_str),
                decision.by(),
                detail
            )
            .fetch_optional(&mut *connection)
            .await?;
            Ok(row.map(|_| ()))
        })
        .await;
    match answer {
        Ok(Write::Written(())) => Ok(Ok(())),
        Ok(Write::Absent) => Ok(Err(CorrectionRefused::Absent)),
        Ok(Write::Refused(found)) if found.is(recorded, attempt) && !found.authorized => {
            Ok(Err(CorrectionRefused::NeverAuthorized))
        }
        Ok(Write::Refused(found)) => Ok(Err(CorrectionRefused::NotAsRecorded(found))),
        Err(error) => match (error.code(), error.constraint()) {
            (Some(sqlstate::UNIQUE_VIOLATION), Some("uq_attempt_transition")) => {
                Ok(Err(CorrectionRefused::AlreadyCorrected))
            }
            (Some(sqlstate::UNIQUE_VIOLATION), Some("uq_export_jobs_one_replacement")) => {
                Ok(Err(CorrectionRefused::SlotTaken))
            }
            _ => Err(error),
        },
    }
}
