//! Running → `Failed/AttemptsExhausted`: the cap is reached. A job that ends every worker that claims it ends here
//! itself.

use super::TakeOver;
use crate::job::status::EventKind;
use crate::store::error::StoreError;
use crate::store::pools::Pool;
use crate::store::write::Write;

/// Ends a job that has used up its attempts. Nothing was sent: it had not been authorized.
pub async fn exhaust(pool: &Pool, take_over: TakeOver, max_attempts: i32) -> Result<Write<()>, StoreError> {
    let boundary = take_over.boundary("take_over::exhaust", EventKind::AttemptsExhausted, None);
    let TakeOver { job, attempt, run } = take_over;
    boundary
        .run(pool, async move |mut connection| {
            let events = sqlx::query!(
                "-- store::take_over::exhaust
                 WITH exhausted AS (
                     UPDATE export_jobs AS job
                     SET status = 'Failed', failure_reason = 'AttemptsExhausted', lease_expires_at = NULL
                     WHERE job.id = $1 AND job.attempt_id = $2 AND job.status = 'Running'
                       AND job.stop_request_id IS NULL
                       AND job.attempt_count >= $3
                       AND job.lease_expires_at < clock_timestamp()
                       AND history_is_known(job.id, job.known_system, job.known_timeline, false)
                     RETURNING job.id, job.attempt_id)
                 INSERT INTO export_attempt_events (job_id, attempt_id, kind, observed_by, recorded_at)
                 SELECT id, attempt_id, 'AttemptsExhausted', $4, clock_timestamp() FROM exhausted",
                job,
                attempt,
                max_attempts,
                run
            )
            .execute(&mut *connection)
            .await?
            .rows_affected();
            Ok((events == 1).then_some(()))
        })
        .await
}
