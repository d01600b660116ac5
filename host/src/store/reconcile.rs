//! `OutcomeUnknown` → Completed or `Failed/NotDelivered` by the reconciler, once an attempt, from evidence.
//!
//! The statement is conditional on status and attempt, and asks by itself for what its conclusion rests on. An absent
//! publish fence proves `NotDelivered` only in the database in which the attempt was claimed, or where a person said
//! that no fence was lost; as long as it is such a proof, nothing is recorded as Completed against it.
//!
//! The look for the outcome ends in the statement, or becomes the look for a late acknowledgment.

use std::time::Duration;

use uuid::Uuid;

use super::boundary::{AskTheRow, Boundary};
use super::error::StoreError;
use super::ground::Ground;
use super::pools::Pool;
use super::recorded::OwnEvent;
use super::write::Write;
use crate::job::status::{EventKind, FailureReason, Status};

const ACT: &str = "reconcile";

/// What the reconciler concluded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Conclusion {
    /// The evidence met the condition agreed with the partner.
    Completed(Ground),
    /// The evidence proves that nothing was published and nothing will be: this attempt's temporary file was removed,
    /// or never left its place, with all that the verdict asks beside it.
    NotDelivered,
    /// The attempt lost the job without the publish fence, so it never published and never will. The statement reads
    /// that by itself.
    NeverFenced,
}

impl Conclusion {
    /// The state that the row gets.
    pub const fn status(self) -> Status {
        match self {
            Self::Completed(_) => Status::Completed,
            Self::NotDelivered | Self::NeverFenced => Status::Failed,
        }
    }

    const fn failure_reason(self) -> Option<FailureReason> {
        match self {
            Self::Completed(_) => None,
            Self::NotDelivered | Self::NeverFenced => Some(FailureReason::NotDelivered),
        }
    }

    /// The name under which the statement knows what it has to ask for.
    const fn rests_on(self) -> &'static str {
        match self {
            Self::Completed(ground) => ground.as_str(),
            Self::NotDelivered => "evidence",
            Self::NeverFenced => "absent_fence",
        }
    }
}

/// A conclusion of the reconciler. Its pool logs in as `waybill_reconciler`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reconciliation {
    pub job: Uuid,
    pub attempt: Uuid,
    pub conclusion: Conclusion,
    /// What it rests on, for the event. A file that is somebody else's is named here.
    pub proof: serde_json::Value,
    /// The reconciler's run, for the event. Unique to a run, since it proves a write whose answer was lost.
    pub run: String,
    /// When to look again, where an acknowledgment may still come.
    pub look_after: Duration,
    /// How long it may still come, where the contract has one.
    pub acknowledgment_within: Option<Duration>,
}

/// Records what the reconciler concluded. Refused: somebody settled it first, or what it rests on does not hold; look
/// again before concluding anew.
pub async fn reconcile(pool: &Pool, reconciliation: Reconciliation) -> Result<Write<()>, StoreError> {
    let Reconciliation { job, attempt, conclusion, proof, run, look_after, acknowledgment_within } = reconciliation;
    let (status, rests_on) = (conclusion.status(), conclusion.rests_on());
    let detail = serde_json::json!({ "outcome": status, "rests_on": rests_on, "proof": proof });
    let own = OwnEvent {
        act: ACT,
        job,
        attempt,
        kind: EventKind::Reconciled,
        observed_by: run.clone(),
        detail: Some(detail.clone()),
    };
    let boundary = Boundary { act: ACT, job, tenant: None, ask: AskTheRow::AfterALostAnswer, landed: own.landed() };
    boundary
        .run(pool, async move |mut connection| {
            let row = sqlx::query_file!(
                "src/store/reconcile.sql",
                job,
                attempt,
                status.as_str(),
                conclusion.failure_reason().map(FailureReason::as_str),
                rests_on,
                run,
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
