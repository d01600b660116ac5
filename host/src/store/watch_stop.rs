//! The stop watcher's look: which attempts were asked to stop. It only makes a stop fast; cutoff 2 makes it certain.

use uuid::Uuid;

use super::error::StoreError;
use super::pools::Pool;

/// Those of the attempts that run and were asked to stop.
pub async fn watch_stop(pool: &Pool, attempts: &[Uuid]) -> Result<Vec<Uuid>, StoreError> {
    const ACT: &str = "watch_stop";
    if attempts.is_empty() {
        return Ok(Vec::new());
    }
    let mut connection = pool.acquire(ACT).await?;
    sqlx::query_scalar!(
        r#"-- store::watch_stop
           SELECT attempt_id AS "attempt_id!" FROM export_jobs
           WHERE attempt_id = ANY($1) AND status = 'Running' AND stop_request_id IS NOT NULL"#,
        attempts
    )
    .fetch_all(&mut *connection)
    .await
    .map_err(|error| StoreError::sort(ACT, error))
}
