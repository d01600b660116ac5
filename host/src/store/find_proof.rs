//! How a partner's server was shown to publish, if it was.

use uuid::Uuid;

use super::error::StoreError;
use super::pools::Pool;

/// The proof of the latest check of this destination that met a server of this fingerprint. `None` if there is none, or
/// if the latest one could prove nothing: then the server has to be tried again.
pub async fn find_proof(
    pool: &Pool,
    destination: Uuid,
    fingerprint: &str,
) -> Result<Option<serde_json::Value>, StoreError> {
    const ACT: &str = "find_proof";
    let mut connection = pool.acquire(ACT).await?;
    let latest = sqlx::query_scalar!(
        "-- store::find_proof
         SELECT proof FROM destination_checks
         WHERE destination_id = $1 AND server_fingerprint = $2 AND finished_at IS NOT NULL
         ORDER BY finished_at DESC LIMIT 1",
        destination,
        fingerprint
    )
    .fetch_optional(&mut *connection)
    .await
    .map_err(|error| StoreError::sort(ACT, error))?;
    Ok(latest.flatten())
}
