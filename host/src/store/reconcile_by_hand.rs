//! `OutcomeUnknown` → Completed or `Failed/NotDelivered` by a named person, once an attempt, with reason and evidence.
//!
//! The person weighs the evidence, so the statement asks for less than the reconciler's. Only one thing it does not
//! take from a person: Completed for an attempt that is proven never to have published. A file found then is somebody
//! else's.

use std::time::Duration;

use uuid::Uuid;

use super::boundary::{AskTheRow, Boundary};
use super::decision::Decision;
use super::error::StoreError;
use super::pools::Pool;
use super::recorded::OwnEvent;
use super::write::Write;
use crate::job::status::{EventKind, FailureReason, Status};

const ACT: &str = "reconcile_by_hand";

/// What a person found out. The pool logs in as `waybill_corrector`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReconciliationByHand {
    pub tenant: Uuid,
    pub job: Uuid,
    /// The attempt whose evidence the person weighed.
    pub attempt: Uuid,
    /// True: the partner has the file. False: it has not, and this attempt can no longer bring it.
    pub delivered: bool,
    pub decision: Decision,
    /// When to look again, where an acknowledgment may still come.
    pub look_after: Duration,
    /// How long it may still come, where the contract has one.
    pub acknowledgment_within: Option<Duration>,
}

/// Records what a person found out. Refused: somebody settled it first, the attempt is another one, or it never
/// published.
pub async fn reconcile_by_hand(pool: &Pool, by_hand: ReconciliationByHand) -> Result<Write<()>, StoreError> {
    let ReconciliationByHand { tenant, job, attempt, delivered, decision, look_after, acknowledgment_within } = by_hand;
    let (status, reason) =
        if delivered { (Status::Completed, None) } else { (Status::Failed, Some(FailureReason::NotDelivered)) };
    let detail = serde_json::json!({
        "outcome": status, "rests_on": "person", "reason": decision.reason(), "evidence_ref": decision.evidence_ref(),
    });
    let own = OwnEvent {
        act: ACT,
        job,
        attempt,
        kind: EventKind::Reconciled,
        observed_by: decision.by().to_owned(),
        detail: Some(detail.clone()),
    };
    let boundary =
        Boundary { act: ACT, job, tenant: Some(tenant), ask: AskTheRow::AfterALostAnswer, landed: own.landed() };
    boundary
        .run(pool, async move |mut connection| {
            let row = sqlx::query_file!(
                "src/store/reconcile_by_hand.sql",
                tenant,
                job,
                attempt,
                status.as_str(),
                reason.map(FailureReason::as_str),
                decision.by(),
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
