//! Queued → Rejected: policy said no, for the version of the terms that it evaluated.

use uuid::Uuid;

use super::boundary::{AskTheRow, Boundary, landed_if};
use super::error::StoreError;
use super::pools::Pool;
use super::write::Write;
use crate::job::status::Status;

/// Rejects a queued job. Refused: it was claimed, canceled or edited meanwhile; an edit wakes it for a new evaluation.
pub async fn reject(
    pool: &Pool,
    job: Uuid,
    version: i32,
    rejection: serde_json::Value,
) -> Result<Write<()>, StoreError> {
    let boundary = Boundary {
        act: "reject",
        job,
        tenant: None,
        ask: AskTheRow::AfterALostAnswer,
        landed: landed_if(move |found| (found.status == Status::Rejected && found.version == version).then_some(())),
    };
    boundary
        .run(pool, async move |mut connection| {
            let written = sqlx::query!(
                "-- store::reject
                 UPDATE export_jobs SET status = 'Rejected', rejection = $3
                 WHERE id = $1 AND version = $2 AND status = 'Queued'",
                job,
                version,
                rejection
            )
            .execute(&mut *connection)
            .await?;
            Ok((written.rows_affected() == 1).then_some(()))
        })
        .await
}
