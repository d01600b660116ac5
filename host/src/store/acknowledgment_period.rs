//! How long a destination's partner may still acknowledge a delivery, by the contract in force.
//!
//! For a person's reconciliation, which has no bundle at hand: a host keeps the contract with its destination.

use std::time::Duration;

use uuid::Uuid;

use super::error::StoreError;
use super::pools::Pool;
use crate::job::contract::Contract;

const ACT: &str = "acknowledgment_period";

/// The period; `None` if no acknowledgment is agreed, or if there is no such destination.
pub async fn acknowledgment_period(pool: &Pool, destination: Uuid) -> Result<Option<Duration>, StoreError> {
    let mut connection = pool.acquire(ACT).await?;
    let contract = sqlx::query_scalar!(
        "-- store::acknowledgment_period
         SELECT contract FROM destinations WHERE id = $1",
        destination
    )
    .fetch_optional(&mut *connection)
    .await
    .map_err(|error| StoreError::sort(ACT, error))?;
    let Some(contract) = contract else { return Ok(None) };
    let contract: Contract = serde_json::from_value(contract).map_err(|error| StoreError::unreadable(ACT, error))?;
    Ok(contract.acknowledgment.map(|acknowledgment| acknowledgment.period))
}
