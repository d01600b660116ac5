//! Evidence of what was done and seen at the partner. It never touches the job's state, and it may be appended by an
//! attempt that has lost the job.

use std::future::ready;

use uuid::Uuid;

use super::boundary::{AskTheRow, Boundary};
use super::error::StoreError;
use super::pools::Pool;
use super::write::Write;
use crate::job::evidence::Evidence;

const ACT: &str = "append_evidence";

/// Appends evidence to an attempt that was claimed. `Written` with the event's id; `Refused` if this job never had such
/// an attempt. Appended again after a lost answer it may stand there twice, which changes no verdict.
pub async fn append_evidence(
    pool: &Pool,
    job: Uuid,
    attempt: Uuid,
    observed_by: &str,
    evidence: &Evidence,
) -> Result<Write<i64>, StoreError> {
    let detail = serde_json::to_value(evidence).map_err(|error| StoreError::unreadable(ACT, error))?;
    let observed_by = observed_by.to_owned();
    let boundary = Boundary {
        act: ACT,
        job,
        tenant: None,
        ask: AskTheRow::AfterALostAnswer,
        // The job's row cannot tell whether evidence was appended, so a lost answer stays one.
        landed: Box::new(|_, _| {
            let source = "the job's row does not tell".into();
            Box::pin(ready(Err(StoreError::MaybeCommitted { act: ACT, source })))
        }),
    };
    boundary
        .run(pool, async move |mut connection| {
            sqlx::query_scalar!(
                "-- store::append_evidence
                 INSERT INTO export_attempt_events (job_id, attempt_id, kind, observed_by, detail, recorded_at)
                 SELECT claimed.job_id, claimed.attempt_id, 'DeliveryEvidence', $3, $4, clock_timestamp()
                 FROM export_attempt_events AS claimed
                 WHERE claimed.job_id = $1 AND claimed.attempt_id = $2 AND claimed.kind = 'Claimed'
                 RETURNING id",
                job,
                attempt,
                observed_by,
                detail
            )
            .fetch_optional(&mut *connection)
            .await
        })
        .await
}
