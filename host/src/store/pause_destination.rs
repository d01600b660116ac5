//! A partner that cannot be reached: its destination is paused, and the pause grows with each failure in a row.
//!
//! Once the delay is over one job at a time may try ([`take_probe`](super::take_probe)); the pause itself ends only when
//! a job reaches the partner ([`clear_pause`](super::clear_pause)).

use std::time::Duration;

use uuid::Uuid;

use super::destination_state::seconds;
use super::error::StoreError;
use super::pools::Pool;

/// The pause after the first failure; each further one doubles it. Policy reckons with the same figures.
pub const PAUSE_FIRST: Duration = Duration::from_secs(15);
/// The longest pause.
pub const PAUSE_CAP: Duration = Duration::from_mins(15);

/// What a failure to reach the partner meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pausing {
    /// The destination is paused from now on.
    Paused { failures: i32, delay: Duration },
    /// It was paused already, and this job was not the one that probes it: attempts that were under way when the partner
    /// went away count as one failure.
    AlreadyPaused,
    /// There is no such destination.
    Absent,
}

/// Records that this job could not reach the partner.
pub async fn pause_destination(pool: &Pool, destination: Uuid, job: Uuid) -> Result<Pausing, StoreError> {
    const ACT: &str = "pause_destination";
    let mut connection = pool.acquire(ACT).await?;
    let row = sqlx::query!(
        r#"-- store::pause_destination
           WITH here AS MATERIALIZED (SELECT clock_timestamp() AS now)
           UPDATE destinations AS destination
           SET pause_failures = destination.pause_failures + 1,
               paused_at = here.now,
               paused_until = here.now + make_interval(secs => least($4, $3 * 2 ^ least(destination.pause_failures, 30))),
               probe_job_id = NULL,
               probe_until = NULL
           FROM here
           WHERE destination.id = $1
             AND (destination.paused_until IS NULL OR destination.paused_until <= here.now OR destination.probe_job_id = $2)
           RETURNING destination.pause_failures,
                     extract(epoch FROM destination.paused_until - destination.paused_at)::float8 AS "delay!""#,
        destination,
        job,
        PAUSE_FIRST.as_secs_f64(),
        PAUSE_CAP.as_secs_f64()
    )
    .fetch_optional(&mut *connection)
    .await
    .map_err(|error| StoreError::sort(ACT, error))?;
    if let Some(row) = row {
        return Ok(Pausing::Paused { failures: row.pause_failures, delay: seconds(row.delay) });
    }
    let known = sqlx::query_scalar!(
        r#"-- store::pause_destination, after a refusal
           SELECT EXISTS (SELECT FROM destinations WHERE id = $1) AS "known!""#,
        destination
    )
    .fetch_one(&mut *connection)
    .await
    .map_err(|error| StoreError::sort(ACT, error))?;
    Ok(if known { Pausing::AlreadyPaused } else { Pausing::Absent })
}
