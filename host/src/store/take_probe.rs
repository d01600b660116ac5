//! One job at a time tries a paused partner again.

use std::time::Duration;

use uuid::Uuid;

use super::error::StoreError;
use super::pools::Pool;

/// Takes the probe's place for a job, before it is claimed. False: the destination is not paused, its delay is not over,
/// or another job is trying.
///
/// The place is kept for `hold`, which must last until the claim, and after that while the job runs with a current
/// lease. It ends with [`pause_destination`](super::pause_destination) or [`clear_pause`](super::clear_pause); if the
/// attempt ends otherwise, or its worker dies, another job may take it.
pub async fn take_probe(pool: &Pool, destination: Uuid, job: Uuid, hold: Duration) -> Result<bool, StoreError> {
    const ACT: &str = "take_probe";
    let mut connection = pool.acquire(ACT).await?;
    let taken = sqlx::query!(
        "-- store::take_probe
         UPDATE destinations AS destination
         SET probe_job_id = $2, probe_until = clock_timestamp() + make_interval(secs => $3)
         WHERE destination.id = $1
           AND destination.paused_until <= clock_timestamp()
           AND (destination.probe_job_id IS NULL
                OR destination.probe_job_id = $2
                OR (destination.probe_until <= clock_timestamp()
                    AND NOT EXISTS (SELECT FROM export_jobs AS probing
                                    WHERE probing.id = destination.probe_job_id AND probing.status = 'Running'
                                      AND probing.lease_expires_at > clock_timestamp())))",
        destination,
        job,
        hold.as_secs_f64()
    )
    .execute(&mut *connection)
    .await
    .map_err(|error| StoreError::sort(ACT, error))?;
    Ok(taken.rows_affected() == 1)
}
