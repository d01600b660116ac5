//! What a check of a partner's server showed is kept: for the next attempts, for people, and for whoever enables the
//! destination.

use sqlx::Connection;
use uuid::Uuid;

use super::error::StoreError;
use super::pools::Pool;

/// A check that is over.
#[derive(Debug, Clone, PartialEq)]
pub struct FinishedCheck {
    pub destination: Uuid,
    /// Digest of what was checked: the check counts as long as the destination has the same.
    pub checked: String,
    /// The person or host that asked for it.
    pub requested_by: String,
    /// Banner and extensions of the server, with its fingerprint; `None` if there was no session.
    pub server: Option<CheckedServer>,
    /// What it showed, or why nothing could be proven, in a sentence.
    pub result: Result<Showed, String>,
}

/// What a server showed.
#[derive(Debug, Clone, PartialEq)]
pub struct Showed {
    /// How it publishes.
    pub proof: serde_json::Value,
    /// What it lets us see.
    pub seen: serde_json::Value,
}

/// The server that a check met.
#[derive(Debug, Clone, PartialEq)]
pub struct CheckedServer {
    pub facts: serde_json::Value,
    pub fingerprint: String,
}

/// Keeps a check. False: there is no such destination, and nothing was written. Kept twice after a lost answer it stands
/// there twice, and says the same.
pub async fn keep_check(pool: &Pool, check: FinishedCheck) -> Result<bool, StoreError> {
    const ACT: &str = "keep_check";
    let FinishedCheck { destination, checked, requested_by, server, result } = check;
    let (facts, fingerprint) = server.map(|server| (server.facts, server.fingerprint)).unzip();
    let (proof, seen, problem) = match result {
        Ok(Showed { proof, seen }) => (Some(proof), Some(seen), None),
        Err(problem) => (None, None, Some(problem)),
    };
    let mut connection = pool.acquire(ACT).await?;
    let sort = |error| StoreError::sort(ACT, error);
    // A row is asked for first and finished then, as every check is: the login may not insert a finished one.
    let mut transaction = connection.begin().await.map_err(sort)?;
    let id = Uuid::new_v4();
    let asked = sqlx::query!(
        "-- store::keep_check
         INSERT INTO destination_checks (id, tenant_id, destination_id, requested_by)
         SELECT $2, tenant_id, id, $3 FROM destinations WHERE id = $1",
        destination,
        id,
        requested_by
    )
    .execute(&mut *transaction)
    .await
    .map_err(sort)?;
    sqlx::query!(
        "-- store::keep_check, its result
         UPDATE destination_checks
         SET finished_at = clock_timestamp(), server = $2, server_fingerprint = $3, proof = $4, problem = $5, seen = $6,
             checked = $7
         WHERE id = $1",
        id,
        facts,
        fingerprint,
        proof,
        problem,
        seen,
        checked
    )
    .execute(&mut *transaction)
    .await
    .map_err(sort)?;
    transaction.commit().await.map_err(sort)?;
    Ok(asked.rows_affected() == 1)
}
