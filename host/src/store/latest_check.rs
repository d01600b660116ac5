//! What the latest check of a destination's server showed, of those that were made of the destination as it is.

use time::OffsetDateTime;
use uuid::Uuid;

use super::error::StoreError;
use super::pools::Pool;

/// A finished check, as it stands on record.
#[derive(Debug, Clone, PartialEq)]
pub struct RecordedCheck {
    pub id: Uuid,
    pub requested_by: String,
    pub finished_at: OffsetDateTime,
    /// Banner and extensions.
    pub server: Option<serde_json::Value>,
    pub proof: Option<serde_json::Value>,
    pub seen: Option<serde_json::Value>,
    pub problem: Option<String>,
}

/// The check that finished last, whatever came of it, of those that were made of what this digest stands for.
pub async fn latest_check(pool: &Pool, destination: Uuid, checked: &str) -> Result<Option<RecordedCheck>, StoreError> {
    const ACT: &str = "latest_check";
    let mut connection = pool.acquire(ACT).await?;
    sqlx::query_as!(
        RecordedCheck,
        r#"-- store::latest_check
           SELECT id, requested_by, finished_at AS "finished_at!", server, proof, seen, problem
           FROM destination_checks
           WHERE destination_id = $1 AND checked = $2 AND finished_at IS NOT NULL
           ORDER BY finished_at DESC LIMIT 1"#,
        destination,
        checked
    )
    .fetch_optional(&mut *connection)
    .await
    .map_err(|error| StoreError::sort(ACT, error))
}
