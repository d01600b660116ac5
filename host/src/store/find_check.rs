//! What a destination's server was shown to do, if it was.

use uuid::Uuid;

use super::error::StoreError;
use super::keep_check::Showed;
use super::pools::Pool;

/// What the latest check showed that met a server of this fingerprint, for the destination as this digest has it. `None` if
/// there is none, or if the latest one could prove nothing: then the server has to be tried again.
pub async fn find_check(
    pool: &Pool,
    destination: Uuid,
    checked: &str,
    fingerprint: &str,
) -> Result<Option<Showed>, StoreError> {
    const ACT: &str = "find_check";
    let mut connection = pool.acquire(ACT).await?;
    let latest = sqlx::query!(
        "-- store::find_check
         SELECT proof, seen FROM destination_checks
         WHERE destination_id = $1 AND checked = $2 AND server_fingerprint = $3 AND finished_at IS NOT NULL
         ORDER BY finished_at DESC LIMIT 1",
        destination,
        checked,
        fingerprint
    )
    .fetch_optional(&mut *connection)
    .await
    .map_err(|error| StoreError::sort(ACT, error))?;
    Ok(latest.and_then(|latest| Some(Showed { proof: latest.proof?, seen: latest.seen? })))
}
