//! The terminal write of a delivery: Delivering → Completed, Failed or OutcomeUnknown, with its event and with the row
//! that makes the reconciler look again, in one statement.

use std::time::Duration;

use uuid::Uuid;

use super::boundary::{AskTheRow, Boundary, landed_if};
use super::error::StoreError;
use super::pools::Pool;
use super::write::Write;
use crate::job::status::{FailureReason, Status};

/// How a delivery ended, by the verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeliveryOutcome {
    /// Evidence met the condition agreed with the partner. The statement demands the publish fence.
    Completed,
    /// It is proven that this attempt did not write the final name.
    Failed(FailureReason),
    /// Evidence has to settle it.
    OutcomeUnknown,
}

impl DeliveryOutcome {
    /// The state that the row gets.
    pub const fn status(self) -> Status {
        match self {
            Self::Completed => Status::Completed,
            Self::Failed(_) => Status::Failed,
            Self::OutcomeUnknown => Status::OutcomeUnknown,
        }
    }

    /// The code that goes with it.
    pub const fn failure_reason(self) -> Option<FailureReason> {
        match self {
            Self::Failed(reason) => Some(reason),
            Self::Completed | Self::OutcomeUnknown => None,
        }
    }
}

/// The end of an authorized attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finish {
    pub job: Uuid,
    pub attempt: Uuid,
    pub outcome: DeliveryOutcome,
    /// What the verdict rests on, for the event.
    pub proof: serde_json::Value,
    /// When the reconciler looks for the first time.
    pub look_after: Duration,
    /// How long an acknowledgment may still come, where the contract has one. It is looked for in every state.
    pub acknowledgment_within: Option<Duration>,
}

/// Records a delivery's outcome. Refused: a takeover came first, and evidence is all that this attempt may still write.
pub async fn finish_delivery(pool: &Pool, finish: Finish) -> Result<Write<()>, StoreError> {
    let Finish { job, attempt, outcome, proof, look_after, acknowledgment_within } = finish;
    let (status, reason) = (outcome.status(), outcome.failure_reason());
    let detail = serde_json::json!({ "outcome": status, "reason": reason, "proof": proof });
    let boundary = Boundary {
        act: "finish_delivery",
        job,
        tenant: None,
        ask: AskTheRow::AfterALostAnswer,
        landed: landed_if(move |found| (found.is(status, attempt) && found.failure_reason == reason).then_some(())),
    };
    boundary
        .run(pool, async move |mut connection| {
            let row = sqlx::query_file!(
                "src/store/finish_delivery.sql",
                job,
                attempt,
                status.as_str(),
                reason.map(FailureReason::as_str),
                detail,
                look_after.as_secs_f64(),
                acknowledgment_within.map(|within| within.as_secs_f64())
            )
            .fetch_optional(&mut *connection)
            .await?;
            Ok(row.map(|_| ()))
        })
        .await
}
