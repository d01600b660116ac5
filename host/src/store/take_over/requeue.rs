//! Running → Queued: the attempt was not authorized, nobody asked to stop it, and the cap leaves another one. It gets a
//! wake-up with a message id of its own, since the one that led to the attempt was settled at its claim.

use super::TakeOver;
use crate::job::status::EventKind;
use crate::store::error::StoreError;
use crate::store::pools::Pool;
use crate::store::write::Write;

/// Takes the job back into the queue. A late authorization of the silent attempt and this write cannot both commit.
pub async fn requeue(pool: &Pool, take_over: TakeOver, max_attempts: i32) -> Result<Write<()>, StoreError> {
    let boundary = take_over.boundary("take_over::requeue", EventKind::RequeuedByRecovery, None);
    let TakeOver { job, attempt, run } = take_over;
    boundary
        .run(pool, async move |mut connection| {
            let row = sqlx::query_file!("src/store/take_over/requeue.sql", job, attempt, max_attempts, run)
                .fetch_optional(&mut *connection)
                .await?;
            Ok(row.map(|_| ()))
        })
        .await
}
