//! May a replacement publish? Only while nothing else of its key can still bring a file, or its creator said why.

use uuid::Uuid;

use super::error::StoreError;
use super::pools::Pool;

/// True if no earlier attempt of the replacement's key is open, or words on its row say that those cannot upload. False
/// for a job that is not there.
pub async fn earlier_attempts_closed(pool: &Pool, job: Uuid) -> Result<bool, StoreError> {
    const ACT: &str = "earlier_attempts_closed";
    let mut connection = pool.acquire(ACT).await?;
    let closed = sqlx::query_scalar!(
        r#"-- store::earlier_attempts_closed
           SELECT (job.cannot_upload_statement IS NOT NULL
                   OR NOT EXISTS (SELECT FROM open_attempts(job.tenant_id, job.delivery_key) AS open
                                  WHERE open.job_id <> job.id)) AS "closed!"
           FROM export_jobs AS job
           WHERE job.id = $1"#,
        job
    )
    .fetch_optional(&mut *connection)
    .await
    .map_err(|error| StoreError::sort(ACT, error))?;
    Ok(closed.unwrap_or(false))
}
