//! What a replacement must close, or have words about, before it may publish.

use uuid::Uuid;

use super::error::StoreError;
use super::pools::Pool;

/// The earlier attempts of a replacement's key that are still open, by job. None where words on its row say that they
/// cannot upload. The attempt is `None` for a job that waits.
pub async fn open_earlier_attempts(pool: &Pool, job: Uuid) -> Result<Vec<(Uuid, Option<Uuid>)>, StoreError> {
    const ACT: &str = "open_earlier_attempts";
    let mut connection = pool.acquire(ACT).await?;
    let rows = sqlx::query!(
        r#"-- store::open_earlier_attempts
           SELECT earlier.job_id AS "job!", earlier.attempt_id AS attempt
           FROM export_jobs AS job, open_attempts(job.tenant_id, job.delivery_key) AS earlier
           WHERE job.id = $1 AND job.cannot_upload_statement IS NULL AND earlier.job_id <> job.id
           ORDER BY earlier.job_id"#,
        job
    )
    .fetch_all(&mut *connection)
    .await
    .map_err(|error| StoreError::sort(ACT, error))?;
    Ok(rows.into_iter().map(|row| (row.job, row.attempt)).collect())
}
