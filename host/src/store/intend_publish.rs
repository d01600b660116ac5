//! The publish fence: the last write before the first request that could create the final name.
//!
//! It is an update of the row, so that a takeover that waited for it looks again; a mere lock would let both commit.
//! `Written` is the leave to send one publish. Refused: a takeover came first, or the fence was passed already, and
//! nothing may be sent. It is never asked twice for one attempt.

use uuid::Uuid;

use super::boundary::{AskTheRow, Boundary, landed_if};
use super::error::StoreError;
use super::pools::Pool;
use super::write::Write;
use crate::job::evidence::PublishForm;
use crate::job::status::Status;

/// Commits that this attempt is about to publish in this form. After a lost answer the row tells: only this attempt could
/// have set it, and only once.
pub async fn intend_publish(pool: &Pool, job: Uuid, attempt: Uuid, form: PublishForm) -> Result<Write<()>, StoreError> {
    let detail = serde_json::json!({ "form": form });
    let boundary = Boundary {
        act: "intend_publish",
        job,
        tenant: None,
        // Not `Always`: a second call of the same attempt must not get a second leave.
        ask: AskTheRow::AfterALostAnswer,
        landed: landed_if(move |found| (found.is(Status::Delivering, attempt) && found.publish_intended).then_some(())),
    };
    boundary
        .run(pool, async move |mut connection| {
            let row = sqlx::query!(
                "-- store::intend_publish
                 WITH intended AS (
                     UPDATE export_jobs
                     SET publish_intended_at = clock_timestamp()
                     WHERE id = $1 AND attempt_id = $2 AND status = 'Delivering' AND publish_intended_at IS NULL
                     RETURNING id, attempt_id, claimed_by, publish_intended_at)
                 INSERT INTO export_attempt_events (job_id, attempt_id, kind, worker_id, detail, recorded_at)
                 SELECT id, attempt_id, 'PublishIntended', claimed_by, $3, publish_intended_at FROM intended",
                job,
                attempt,
                detail
            )
            .execute(&mut *connection)
            .await?;
            Ok((row.rows_affected() == 1).then_some(()))
        })
        .await
}
