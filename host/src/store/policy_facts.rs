//! Everything that policy decides on, in one read.

use std::time::Duration;

use uuid::Uuid;

use super::destination_state::{DestinationPause, pause, seconds};
use super::error::{StoreError, stored};
use super::pools::Pool;
use crate::job::status::Status;

const ACT: &str = "policy_facts";

/// A queued job's terms and the circumstances of its destination, as they were at one moment of the database's clock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyFacts {
    /// Only a queued job is decided on.
    pub status: Status,
    /// The version of the terms; the claim and the rejection ask for it.
    pub version: i32,
    pub tenant: Uuid,
    pub destination: Uuid,
    pub scope: serde_json::Value,
    /// What is left until `not_before`; zero if the job has none or is due.
    pub starts_in: Duration,
    pub destination_tenant: Uuid,
    pub destination_name: String,
    pub enabled: bool,
    /// What a person has to mend there.
    pub attention: Option<String>,
    /// `probing` names a job other than this one.
    pub pause: Option<DestinationPause>,
    /// Day of the week in UTC, from 0 for Monday to 6.
    pub weekday: u8,
    /// Second of the day in UTC.
    pub second_of_day: u32,
    /// Claims for this destination in the rate's period, whatever became of them.
    pub started: u32,
    /// How long ago the oldest of them was; zero if there is none.
    pub oldest_start: Duration,
}

/// Reads the facts; `None` if there is no such job. `rate_period`: that of the destination's rules; without one, starts
/// are not counted.
pub async fn policy_facts(
    pool: &Pool,
    job: Uuid,
    rate_period: Option<Duration>,
) -> Result<Option<PolicyFacts>, StoreError> {
    let mut connection = pool.acquire(ACT).await?;
    let row = sqlx::query_file!("src/store/policy_facts.sql", job, rate_period.map(|period| period.as_secs_f64()))
        .fetch_optional(&mut *connection)
        .await
        .map_err(|error| StoreError::sort(ACT, error))?;
    let Some(row) = row else { return Ok(None) };
    Ok(Some(PolicyFacts {
        status: stored(ACT, &row.status)?,
        version: row.version,
        tenant: row.tenant_id,
        destination: row.destination_id,
        scope: row.scope,
        starts_in: seconds(row.starts_in),
        destination_tenant: row.destination_tenant_id,
        destination_name: row.destination_name,
        enabled: row.enabled,
        attention: row.attention_why,
        pause: pause(row.pause_failures, row.paused_since, row.paused_left, row.probing),
        weekday: u8::try_from(row.weekday).map_err(|error| StoreError::unreadable(ACT, error))?,
        second_of_day: u32::try_from(row.second_of_day).map_err(|error| StoreError::unreadable(ACT, error))?,
        started: u32::try_from(row.started).unwrap_or(u32::MAX),
        oldest_start: seconds(row.oldest_start),
    }))
}
