//! What is known of a destination: the operator's switch, and what deliveries found of it lately.

use std::time::Duration;

use time::OffsetDateTime;
use uuid::Uuid;

use super::error::StoreError;
use super::pools::Pool;

const ACT: &str = "destination_state";

/// One destination, with times as the database's clock has them at this moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DestinationState {
    pub id: Uuid,
    pub tenant: Uuid,
    pub name: String,
    pub partner: String,
    /// Revision of the manifest in force.
    pub revision: i32,
    /// Of what is in force: manifest, components, settings, contract.
    pub digests: serde_json::Value,
    /// The operator's switch.
    pub enabled: bool,
    /// Set while a person has to mend something.
    pub attention: Option<Attention>,
    /// Set while the partner could not be reached.
    pub pause: Option<DestinationPause>,
}

/// What a person has to mend.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attention {
    pub since: OffsetDateTime,
    pub why: String,
}

/// A partner that did not answer. The pause goes on until a job reaches it again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DestinationPause {
    /// Failures to reach it in a row.
    pub failures: u32,
    /// Since the latest of them.
    pub since: Duration,
    /// What is left until a job may try again; zero once one may.
    pub left: Duration,
    /// The job that is trying now.
    pub probing: Option<Uuid>,
}

/// Reads a destination; `None` if there is no such one.
pub async fn destination_state(pool: &Pool, destination: Uuid) -> Result<Option<DestinationState>, StoreError> {
    Ok(read(pool, Some(destination), None).await?.pop())
}

/// Reads the destinations of a tenant, by partner and name.
pub async fn destinations_of(pool: &Pool, tenant: Uuid) -> Result<Vec<DestinationState>, StoreError> {
    read(pool, None, Some(tenant)).await
}

/// Reads all destinations, by partner and name.
pub async fn all_destinations(pool: &Pool) -> Result<Vec<DestinationState>, StoreError> {
    read(pool, None, None).await
}

async fn read(
    pool: &Pool,
    destination: Option<Uuid>,
    tenant: Option<Uuid>,
) -> Result<Vec<DestinationState>, StoreError> {
    let mut connection = pool.acquire(ACT).await?;
    let rows = sqlx::query_file_as!(StateRow, "src/store/destination_state.sql", destination, tenant)
        .fetch_all(&mut *connection)
        .await
        .map_err(|error| StoreError::sort(ACT, error))?;
    Ok(rows.into_iter().map(Into::into).collect())
}

struct StateRow {
    id: Uuid,
    tenant_id: Uuid,
    name: String,
    partner: String,
    revision: i32,
    digests: serde_json::Value,
    enabled: bool,
    attention_since: Option<OffsetDateTime>,
    attention_why: Option<String>,
    pause_failures: i32,
    paused_since: f64,
    paused_left: f64,
    probing: Option<Uuid>,
}

impl From<StateRow> for DestinationState {
    fn from(row: StateRow) -> Self {
        let attention = row.attention_since.zip(row.attention_why).map(|(since, why)| Attention { since, why });
        Self {
            id: row.id,
            tenant: row.tenant_id,
            name: row.name,
            partner: row.partner,
            revision: row.revision,
            digests: row.digests,
            enabled: row.enabled,
            attention,
            pause: pause(row.pause_failures, row.paused_since, row.paused_left, row.probing),
        }
    }
}

pub(super) fn pause(failures: i32, since: f64, left: f64, probing: Option<Uuid>) -> Option<DestinationPause> {
    let failures = u32::try_from(failures).ok().filter(|failures| *failures > 0)?;
    Some(DestinationPause { failures, since: seconds(since), left: seconds(left), probing })
}

/// An interval of the database. One that lies behind, or that no duration holds, is none.
pub(super) fn seconds(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds.max(0.0)).unwrap_or(Duration::ZERO)
}
