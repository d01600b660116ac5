//! The database's clock, for sentences about times on record. No statement is decided by what it says.

use time::OffsetDateTime;

use super::error::StoreError;
use super::pools::Pool;

/// The time of now.
pub async fn clock(pool: &Pool) -> Result<OffsetDateTime, StoreError> {
    const ACT: &str = "clock";
    let mut connection = pool.acquire(ACT).await?;
    sqlx::query_scalar!(
        r#"-- store::clock
         SELECT clock_timestamp() AS "now!""#
    )
    .fetch_one(&mut *connection)
    .await
    .map_err(|error| StoreError::sort(ACT, error))
}
