//! What is recorded about the other attempts that could have written the same final name.
//!
//! Cutoff 2 is crossed once a job: an attempt that recovery or its own worker sent back to the queue was never
//! authorized, and every authorized one has its expected file in its job's row. What a database lost, nobody can read:
//! a job whose history is not known counts as one that may have been authorized and may have passed the fence.

use uuid::Uuid;

use super::error::StoreError;
use super::pools::Pool;
use super::rows::file_facts;
use crate::job::facts::FileFacts;
use crate::job::names::fold_name;

const ACT: &str = "key_history";

/// The other attempts of a key, and of a final name that is used again.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct KeyHistory {
    /// What every other authorized attempt of the key, and under a reused name of the other keys that held it, was to
    /// deliver; `None` where that is not known.
    pub others: Vec<Option<FileFacts>>,
    /// Attempts of the key that passed the publish fence, this one included.
    pub past_fence: u32,
    /// Under a reused name: the file that was delivered there last.
    pub last: Option<FileFacts>,
}

/// A final name as cutoff 2 will compare it, for an attempt that has not crossed it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FinalPlace<'a> {
    /// Host and port of the partner's server.
    pub endpoint: &'a str,
    /// The final name's directory, as the server resolves it.
    pub directory: &'a str,
    /// The last part of the final name.
    pub last_part: &'a str,
}

/// Reads the history for a job's attempt. Under a reused name it needs cutoff 2, which records where the final name
/// lies; before it, [`key_history_at`] is told. Since a job is authorized once, its other attempts add nothing, whichever
/// of them asks.
pub async fn key_history(pool: &Pool, job: Uuid, attempt: Uuid) -> Result<KeyHistory, StoreError> {
    read(pool, job, attempt, None).await
}

/// The same for a final name that the attempt is about to ask for.
pub async fn key_history_at(
    pool: &Pool,
    job: Uuid,
    attempt: Uuid,
    place: FinalPlace<'_>,
) -> Result<KeyHistory, StoreError> {
    read(pool, job, attempt, Some(place)).await
}

async fn read(pool: &Pool, job: Uuid, attempt: Uuid, place: Option<FinalPlace<'_>>) -> Result<KeyHistory, StoreError> {
    let mut connection = pool.acquire(ACT).await?;
    let rows = sqlx::query_file!(
        "src/store/key_history.sql",
        job,
        attempt,
        place.map(|place| place.endpoint.to_lowercase()),
        place.map(|place| fold_name(place.directory.trim_end_matches('/'))),
        place.map(|place| fold_name(place.last_part))
    )
    .fetch_all(&mut *connection)
    .await
    .map_err(|error| StoreError::sort(ACT, error))?;
    let mut history = KeyHistory::default();
    // Newest authorization first, so the first one that delivered was the last to do so.
    for row in rows {
        let file = file_facts(ACT, row.expected_file_name, row.expected_file_bytes, row.expected_file_sha256)?;
        if row.same_key {
            history.past_fence += u32::from(row.past_fence) + u32::from(row.may_be_lost && !row.past_fence);
        }
        if row.other_name_user && row.completed && history.last.is_none() {
            history.last.clone_from(&file);
        }
        if row.other && (row.authorized || row.may_be_lost) {
            history.others.push(file);
        } else if !row.other && row.may_be_lost {
            // An earlier attempt of this very job may be among what was lost.
            history.others.push(None);
        }
    }
    Ok(history)
}
