//! Running → Failed: the attempt ended before cutoff 2 for a reason that trying again would not change. Nothing was sent.

use uuid::Uuid;

use super::boundary::{AskTheRow, Boundary, landed_if};
use super::error::StoreError;
use super::pools::Pool;
use super::write::Write;
use crate::job::status::{FailureReason, Status};

/// Ends an attempt as Failed with its code. The cause goes into the event; it is for operators and holds no personal data.
pub async fn finish_failed(
    pool: &Pool,
    job: Uuid,
    attempt: Uuid,
    reason: FailureReason,
    cause: &str,
) -> Result<Write<()>, StoreError> {
    let detail = serde_json::json!({ "reason": reason, "cause": cause });
    let boundary = Boundary {
        act: "finish_failed",
        job,
        tenant: None,
        ask: AskTheRow::AfterALostAnswer,
        landed: landed_if(move |found| {
            (found.is(Status::Failed, attempt) && found.failure_reason == Some(reason)).then_some(())
        }),
    };
    boundary
        .run(pool, async move |mut connection| {
            let written = sqlx::query!(
                "-- store::finish_failed
                 WITH failed AS (
                     UPDATE export_jobs
                     SET status = 'Failed', failure_reason = $3, lease_expires_at = NULL
                     WHERE id = $1 AND attempt_id = $2 AND status = 'Running'
                     RETURNING id, attempt_id, claimed_by)
                 INSERT INTO export_attempt_events (job_id, attempt_id, kind, worker_id, detail, recorded_at)
                 SELECT id, attempt_id, 'Failed', claimed_by, $4, clock_timestamp() FROM failed",
                job,
                attempt,
                reason.as_str(),
                detail
            )
            .execute(&mut *connection)
            .await?;
            Ok((written.rows_affected() == 1).then_some(()))
        })
        .await
}
