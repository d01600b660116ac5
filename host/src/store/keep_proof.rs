//! What a partner's server was shown to do on scratch names is kept for the next attempts.

use sqlx::Connection;
use uuid::Uuid;

use super::error::StoreError;
use super::pools::Pool;

const ACT: &str = "keep_proof";
/// Who asked for a check that an attempt made by itself.
const BY_AN_ATTEMPT: &str = "worker";

/// Keeps a proof, with the server that gave it, as a finished check of the destination. Kept twice after a lost answer
/// it stands there twice, and says the same.
pub async fn keep_proof(
    pool: &Pool,
    destination: Uuid,
    fingerprint: &str,
    server: serde_json::Value,
    proof: serde_json::Value,
) -> Result<(), StoreError> {
    let mut connection = pool.acquire(ACT).await?;
    let sort = |error| StoreError::sort(ACT, error);
    // A row is asked for first and finished then, as every check is: the login may not insert a finished one.
    let mut transaction = connection.begin().await.map_err(sort)?;
    let check = Uuid::new_v4();
    sqlx::query!(
        "-- store::keep_proof
         INSERT INTO destination_checks (id, tenant_id, destination_id, requested_by)
         SELECT $2, tenant_id, id, $3 FROM destinations WHERE id = $1",
        destination,
        check,
        BY_AN_ATTEMPT
    )
    .execute(&mut *transaction)
    .await
    .map_err(sort)?;
    sqlx::query!(
        "-- store::keep_proof, its result
         UPDATE destination_checks
         SET finished_at = clock_timestamp(), server = $2, server_fingerprint = $3, proof = $4
         WHERE id = $1 AND finished_at IS NULL",
        check,
        server,
        fingerprint,
        proof
    )
    .execute(&mut *transaction)
    .await
    .map_err(sort)?;
    transaction.commit().await.map_err(sort)
}
