//! What was agreed for a destination, as it is in force in the database.

use uuid::Uuid;

use super::error::StoreError;
use super::pools::Pool;

/// The joined manifest, and its contract as decisions compare it.
#[derive(Debug, Clone, PartialEq)]
pub struct AgreementInForce {
    pub manifest: serde_json::Value,
    pub contract: serde_json::Value,
    /// What a check of the destination as it is now is kept with; `None` until a host of this version has joined it.
    pub checked: Option<String>,
}

/// Reads it; `None` if the tenant has no such destination.
pub async fn agreement_in_force(
    pool: &Pool,
    tenant: Uuid,
    destination: Uuid,
) -> Result<Option<AgreementInForce>, StoreError> {
    const ACT: &str = "agreement_in_force";
    let mut connection = pool.acquire(ACT).await?;
    sqlx::query_as!(
        AgreementInForce,
        "-- store::agreement_in_force
         SELECT manifest, contract, digests ->> 'checked' AS checked FROM destinations WHERE tenant_id = $1 AND id = $2",
        tenant,
        destination
    )
    .fetch_optional(&mut *connection)
    .await
    .map_err(|error| StoreError::sort(ACT, error))
}
