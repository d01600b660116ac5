//! A person has to mend something at a destination, such as a key that the partner refuses. Its jobs wait, and spend no
//! attempts, until someone says that it is mended.

use uuid::Uuid;

use super::error::StoreError;
use super::pools::Pool;

/// Marks a destination. The first mark's time stays; the sentence is the latest. False: there is no such destination.
pub async fn mark_attention(pool: &Pool, destination: Uuid, why: &str) -> Result<bool, StoreError> {
    const ACT: &str = "mark_attention";
    let mut connection = pool.acquire(ACT).await?;
    let marked = sqlx::query!(
        "-- store::mark_attention
         UPDATE destinations SET attention_since = coalesce(attention_since, clock_timestamp()), attention_why = $2
         WHERE id = $1",
        destination,
        why
    )
    .execute(&mut *connection)
    .await
    .map_err(|error| StoreError::sort(ACT, error))?;
    Ok(marked.rows_affected() == 1)
}

/// Says that it is mended: by a person, or by a check that passed. False: it was not marked.
pub async fn clear_attention(pool: &Pool, destination: Uuid) -> Result<bool, StoreError> {
    const ACT: &str = "clear_attention";
    let mut connection = pool.acquire(ACT).await?;
    let cleared = sqlx::query!(
        "-- store::clear_attention
         UPDATE destinations SET attention_since = NULL, attention_why = NULL
         WHERE id = $1 AND attention_since IS NOT NULL",
        destination
    )
    .execute(&mut *connection)
    .await
    .map_err(|error| StoreError::sort(ACT, error))?;
    Ok(cleared.rows_affected() == 1)
}
