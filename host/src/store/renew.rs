//! Renewal of a lease. Expiry is not asked about: a slow worker keeps its job until a takeover commits.

use std::time::Duration;

use uuid::Uuid;

use super::error::StoreError;
use super::found;
use super::pools::Pool;
use super::write::Write;

const ACT: &str = "renew";

/// Renews the lease of an attempt that still owns its job, from now on by the database's clock.
///
/// `Refused` or `Absent`: ownership is lost, or the attempt has ended. An error means neither; try again at the next
/// interval. A lost answer needs no settling, since renewing twice does no harm.
pub async fn renew(pool: &Pool, job: Uuid, attempt: Uuid, lease: Duration) -> Result<Write<()>, StoreError> {
    let mut connection = pool.acquire(ACT).await?;
    let renewed = sqlx::query!(
        "-- store::renew
         UPDATE export_jobs
         SET lease_expires_at = clock_timestamp() + make_interval(secs => $3)
         WHERE id = $1 AND attempt_id = $2 AND status IN ('Running', 'Delivering')",
        job,
        attempt,
        lease.as_secs_f64()
    )
    .execute(&mut *connection)
    .await
    .map_err(|error| StoreError::sort(ACT, error))?
    .rows_affected();
    if renewed == 1 {
        return Ok(Write::Written(()));
    }
    Ok(found::read(&mut connection, job, None).await?.map_or(Write::Absent, Write::Refused))
}
