//! The operator's switch of a destination, recorded with who and why in the statement that sets it.
//!
//! Switching on asks again for what it was decided by: the contract in force, and the latest check of the destination as
//! it is joined now.

use uuid::Uuid;

use super::error::StoreError;
use super::pools::Pool;

/// Who switches, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Switch {
    pub tenant: Uuid,
    pub destination: Uuid,
    pub switched_by: String,
    pub reason: String,
}

/// What came of it.
#[must_use = "only `Switched` was written"]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Switched {
    /// Recorded; `before` is what it stood at.
    Switched { before: bool },
    /// The contract, or the latest check of the destination as it is, is not the one that was decided by. Nothing was written.
    Changed,
    /// The tenant has no such destination. Nothing was written.
    Absent,
}

/// Switches a destination on, if this is the contract in force and this the latest check of its server.
pub async fn enable_destination(
    pool: &Pool,
    switch: &Switch,
    contract: &serde_json::Value,
    check: Uuid,
) -> Result<Switched, StoreError> {
    const ACT: &str = "enable_destination";
    let mut connection = pool.acquire(ACT).await?;
    let before = sqlx::query_file_scalar!(
        "src/store/enable_destination.sql",
        switch.tenant,
        switch.destination,
        switch.switched_by,
        switch.reason,
        contract,
        check
    )
    .fetch_optional(&mut *connection)
    .await
    .map_err(|error| StoreError::sort(ACT, error))?;
    if let Some(before) = before {
        return Ok(Switched::Switched { before });
    }
    let exists = sqlx::query_scalar!(
        r#"-- store::enable_destination, after a refusal
           SELECT EXISTS (SELECT FROM destinations WHERE tenant_id = $1 AND id = $2) AS "exists!""#,
        switch.tenant,
        switch.destination
    )
    .fetch_one(&mut *connection)
    .await
    .map_err(|error| StoreError::sort(ACT, error))?;
    Ok(if exists { Switched::Changed } else { Switched::Absent })
}

/// Switches a destination off: its jobs wait in the queue, and what is under way is finished.
pub async fn disable_destination(pool: &Pool, switch: &Switch) -> Result<Switched, StoreError> {
    const ACT: &str = "disable_destination";
    let mut connection = pool.acquire(ACT).await?;
    let before = sqlx::query_file_scalar!(
        "src/store/disable_destination.sql",
        switch.tenant,
        switch.destination,
        switch.switched_by,
        switch.reason
    )
    .fetch_optional(&mut *connection)
    .await
    .map_err(|error| StoreError::sort(ACT, error))?;
    Ok(before.map_or(Switched::Absent, |before| Switched::Switched { before }))
}
