//! A replacement's worker takes the look of an earlier attempt and says that it will remove its temporary file, in one
//! statement: in any status of the earlier job, as long as the attempt is open and passed its publish fence.
//!
//! Refused: a reconciler, or another replacement's worker, holds the look; the attempt is closed; or this
//! attempt no longer owns its own job. A look that had ended is held all the same, so that nobody else removes meanwhile.

use std::future::ready;
use std::time::Duration;

use uuid::Uuid;

use super::boundary::{AskTheRow, Boundary};
use super::error::StoreError;
use super::pools::Pool;
use super::write::Write;
use crate::job::evidence::Evidence;

const ACT: &str = "fence_earlier";

/// What is fenced, and by whom.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fencing {
    /// The replacement and the attempt that delivers it.
    pub job: Uuid,
    pub attempt: Uuid,
    /// The earlier ones.
    pub earlier_job: Uuid,
    pub earlier_attempt: Uuid,
    pub temporary: String,
    pub worker: String,
    /// How long the look is kept from others.
    pub lease: Duration,
    /// This lease's own.
    pub token: Uuid,
}

/// Records the intention. Without `Written` nothing may be removed.
pub async fn fence_earlier(pool: &Pool, fencing: Fencing) -> Result<Write<()>, StoreError> {
    let evidence = Evidence::RemovalIntended { temporary: fencing.temporary.clone() };
    let detail = serde_json::to_value(evidence).map_err(|error| StoreError::unreadable(ACT, error))?;
    let boundary = Boundary {
        act: ACT,
        job: fencing.job,
        tenant: None,
        ask: AskTheRow::AfterALostAnswer,
        // The row does not tell. Not removing after a lost answer is the safe side.
        landed: Box::new(|_, _| Box::pin(ready(Ok(None)))),
    };
    boundary
        .run(pool, async move |mut connection| {
            let Fencing { job, attempt, earlier_job, earlier_attempt, temporary: _, worker, lease, token } = fencing;
            let row = sqlx::query_file!(
                "src/store/fence_earlier.sql",
                job,
                attempt,
                earlier_job,
                earlier_attempt,
                worker,
                token,
                lease.as_secs_f64(),
                detail
            )
            .fetch_optional(&mut *connection)
            .await?;
            Ok(row.map(|_| ()))
        })
        .await
}

/// Gives the look of an earlier attempt back. False if the lease was another's by then.
pub async fn give_back_look(pool: &Pool, job: Uuid, attempt: Uuid, token: Uuid) -> Result<bool, StoreError> {
    const ACT: &str = "give_back_look";
    let mut connection = pool.acquire(ACT).await?;
    let written = sqlx::query!(
        "-- store::give_back_look
         UPDATE looks
         SET owner = NULL, token = NULL, expires_at = NULL
         WHERE job_id = $1 AND attempt_id = $2 AND token = $3",
        job,
        attempt,
        token
    )
    .execute(&mut *connection)
    .await
    .map_err(|error| StoreError::sort(ACT, error))?
    .rows_affected();
    Ok(written == 1)
}
