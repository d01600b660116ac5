//! Running → Stopped: a recorded stop request ended the attempt before cutoff 2, and nothing was sent.

use uuid::Uuid;

use super::boundary::{AskTheRow, Boundary, landed_if};
use super::error::StoreError;
use super::pools::Pool;
use super::write::Write;
use crate::job::status::Status;

/// Ends an attempt as Stopped. The statement itself demands the recorded request, so a lost lease, a shutdown or a
/// builder's error can never become an operator's stop.
pub async fn finish_stopped(pool: &Pool, job: Uuid, attempt: Uuid, during: &str) -> Result<Write<()>, StoreError> {
    let detail = serde_json::json!({ "during": during });
    let boundary = Boundary {
        act: "finish_stopped",
        job,
        tenant: None,
        ask: AskTheRow::AfterALostAnswer,
        landed: landed_if(move |found| found.is(Status::Stopped, attempt).then_some(())),
    };
    boundary
        .run(pool, async move |mut connection| {
            let written = sqlx::query!(
                "-- store::finish_stopped
                 WITH stopped AS (
                     UPDATE export_jobs
                     SET status = 'Stopped', lease_expires_at = NULL
                     WHERE id = $1 AND attempt_id = $2 AND status = 'Running' AND stop_request_id IS NOT NULL
                     RETURNING id, attempt_id, claimed_by)
                 INSERT INTO export_attempt_events (job_id, attempt_id, kind, worker_id, detail, recorded_at)
                 SELECT id, attempt_id, 'Stopped', claimed_by, $3, clock_timestamp() FROM stopped",
                job,
                attempt,
                detail
            )
            .execute(&mut *connection)
            .await?;
            Ok((written.rows_affected() == 1).then_some(()))
        })
        .await
}
