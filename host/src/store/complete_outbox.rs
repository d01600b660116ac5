//! An entry is done: the broker acknowledged its message. The outbox row and its claim say so in one statement.

use uuid::Uuid;

use super::error::StoreError;
use super::outbox_answer::{OutboxAnswer, refused};
use super::pools::Pool;

/// Completes an entry that this dispatcher holds. A lease that ran out does not matter until another dispatcher takes the
/// entry over.
///
/// After a lost answer the entry is published again by whoever claims it next, under the same message id.
pub async fn complete_outbox(pool: &Pool, message: Uuid, token: Uuid) -> Result<OutboxAnswer, StoreError> {
    const ACT: &str = "complete_outbox";
    let mut connection = pool.acquire(ACT).await?;
    let completed = sqlx::query!(
        "-- store::complete_outbox
         -- What has ended has no token: ck_outbox_claims_released.
         WITH finished AS (
             UPDATE outbox_claims
             SET finished_at = clock_timestamp(), owner = NULL, token = NULL, claimed_at = NULL, expires_at = NULL
             WHERE message_id = $1 AND token = $2
             RETURNING message_id, finished_at)
         UPDATE outbox
         SET published_at = finished.finished_at
         FROM finished
         WHERE outbox.message_id = finished.message_id",
        message,
        token
    )
    .execute(&mut *connection)
    .await
    .map_err(|error| StoreError::sort(ACT, error))?
    .rows_affected();
    if completed == 1 {
        return Ok(OutboxAnswer::Applied);
    }
    refused(ACT, &mut connection, message, token).await
}
