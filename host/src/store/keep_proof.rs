//! What a partner's server was shown to do on scratch names is kept for the next attempts.

use uuid::Uuid;

use super::error::StoreError;
use super::keep_check::{CheckedServer, FinishedCheck, keep_check};
use super::pools::Pool;

/// Who asked for a check that an attempt made by itself.
const BY_AN_ATTEMPT: &str = "worker";

/// Keeps a proof, with the server that gave it, as a finished check of the destination.
pub async fn keep_proof(
    pool: &Pool,
    destination: Uuid,
    fingerprint: &str,
    server: serde_json::Value,
    proof: serde_json::Value,
) -> Result<(), StoreError> {
    let check = FinishedCheck {
        destination,
        requested_by: BY_AN_ATTEMPT.to_owned(),
        server: Some(CheckedServer { facts: server, fingerprint: fingerprint.to_owned() }),
        result: Ok(proof),
        seen: None,
    };
    keep_check(pool, check).await?;
    Ok(())
}
