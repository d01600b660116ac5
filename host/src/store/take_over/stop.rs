//! Running → Stopped: a stop request is recorded, so the silent attempt can no longer be authorized, and nothing was
//! sent.

use super::TakeOver;
use crate::job::status::EventKind;
use crate::store::error::StoreError;
use crate::store::pools::Pool;
use crate::store::write::Write;

/// Ends the job as its recorded stop request asked. The attempt's id stays on the row.
pub async fn stop(pool: &Pool, take_over: TakeOver) -> Result<Write<()>, StoreError> {
    let boundary = take_over.boundary("take_over::stop", EventKind::StoppedByRecovery, None);
    let TakeOver { job, attempt, run } = take_over;
    boundary
        .run(pool, async move |mut connection| {
            let events = sqlx::query!(
                "-- store::take_over::stop
                 WITH stopped AS (
                     UPDATE export_jobs AS job
                     SET status = 'Stopped', lease_expires_at = NULL
                     WHERE job.id = $1 AND job.attempt_id = $2 AND job.status = 'Running'
                       AND job.stop_request_id IS NOT NULL
                       AND job.lease_expires_at < clock_timestamp()
                       AND history_is_known(job.id, job.known_system, job.known_timeline, false)
                     RETURNING job.id, job.attempt_id)
                 INSERT INTO export_attempt_events (job_id, attempt_id, kind, observed_by, recorded_at)
                 SELECT id, attempt_id, 'StoppedByRecovery', $3, clock_timestamp() FROM stopped",
                job,
                attempt,
                run
            )
            .execute(&mut *connection)
            .await?
            .rows_affected();
            Ok((events == 1).then_some(()))
        })
        .await
}
