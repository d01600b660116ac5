//! One job, as its row tells it.

use uuid::Uuid;

use super::error::StoreError;
use super::pools::Pool;
use super::rows::JobRow;
use crate::job::model::Job;

const ACT: &str = "find_job";

/// The job of a wake-up, whatever tenant it belongs to. For actors; a tenant's request uses [`find_tenant_job`].
pub async fn find_job(pool: &Pool, job: Uuid) -> Result<Option<Job>, StoreError> {
    read(pool, job, None).await
}

/// A tenant's job. Another tenant's looks exactly like a missing one.
pub async fn find_tenant_job(pool: &Pool, tenant: Uuid, job: Uuid) -> Result<Option<Job>, StoreError> {
    read(pool, job, Some(tenant)).await
}

async fn read(pool: &Pool, job: Uuid, tenant: Option<Uuid>) -> Result<Option<Job>, StoreError> {
    let mut connection = pool.acquire(ACT).await?;
    sqlx::query_file_as!(JobRow, "src/store/find_job.sql", job, tenant)
        .fetch_optional(&mut *connection)
        .await
        .map_err(|error| StoreError::sort(ACT, error))?
        .map(|row| row.into_job(ACT))
        .transpose()
}
