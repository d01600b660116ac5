//! Cutoff 2: Running → Delivering, with the expected file, the final name's holder and the event, in one statement.
//!
//! A stop request that commits first makes it refuse; one that commits later is too late. It is the one write that also
//! asks for a current lease.

use uuid::Uuid;

use super::boundary::{AskTheRow, Boundary, landed_if};
use super::error::{StoreError, sqlstate};
use super::found::Found;
use super::pools::Pool;
use super::write::Write;
use crate::job::facts::FileFacts;
use crate::job::names::fold_name;
use crate::job::status::Status;

const ACT: &str = "authorize_delivery";

/// What a worker asks to deliver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery {
    pub job: Uuid,
    pub attempt: Uuid,
    /// The built file under its final name, relative to the destination's directory.
    pub expected: FileFacts,
    /// Host and port of the partner's server.
    pub endpoint: String,
    /// The destination's directory as the server resolves it.
    pub directory: String,
}

/// What came of cutoff 2.
#[must_use = "only `Authorized` lets anything leave for the partner"]
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Authorization {
    /// The job is Delivering, and this attempt owns it.
    Authorized,
    /// A stop request committed first. End the job Stopped.
    StopRecorded,
    /// The attempt owns the job, but its lease has expired. Renew, and try once more.
    LeaseLapsed,
    /// Another attempt, or a state that this attempt did not write, holds the row. Write nothing to it.
    NotOwner(Found),
    /// A replacement whose original was corrected or reconciled to Completed. End it Failed/OriginalDelivered.
    OriginalCompleted,
    /// Another delivery key holds the final name. End the job Failed/FinalNameOccupied.
    NameTaken,
    /// A replacement whose destination or final name differs from what an earlier attempt of its key recorded. End it
    /// Failed/BuildFailed.
    DiffersFromEarlier,
    /// There is no such job.
    Absent,
}

/// Authorizes delivery for an attempt. Nothing was written unless it answers `Authorized`.
pub async fn authorize_delivery(pool: &Pool, delivery: Delivery) -> Result<Authorization, StoreError> {
    let Delivery { job, attempt, expected, endpoint, directory } = delivery;
    let name = expected.name.clone();
    let bytes = i64::try_from(expected.bytes).map_err(|error| StoreError::unreadable(ACT, error))?;
    let (folded_directory, folded_name) = folded(&directory, &expected.name);
    let detail = serde_json::json!({
        "expected": expected, "endpoint": endpoint, "directory": directory,
    });
    let boundary = Boundary {
        act: ACT,
        job,
        tenant: None,
        ask: AskTheRow::Always,
        landed: landed_if(move |found| found.is(Status::Delivering, attempt).then_some(())),
    };
    let answer = boundary
        .run(pool, async move |mut connection| {
            let row = sqlx::query_file!(
                "src/store/authorize_delivery.sql",
                job,
                attempt,
                expected.name,
                bytes,
                expected.sha256.0.as_slice(),
                endpoint.to_lowercase(),
                folded_directory,
                folded_name,
                detail
            )
            .fetch_optional(&mut *connection)
            .await?;
            Ok(row.map(|_| ()))
        })
        .await;
    match answer {
        Ok(Write::Written(())) => Ok(Authorization::Authorized),
        Ok(Write::Absent) => Ok(Authorization::Absent),
        Ok(Write::Refused(found)) => refusal(pool, job, attempt, &name, found).await,
        Err(error) if error.code() == Some(sqlstate::FINAL_NAME_HELD) => Ok(Authorization::NameTaken),
        Err(error) => Err(error),
    }
}

async fn refusal(pool: &Pool, job: Uuid, attempt: Uuid, name: &str, found: Found) -> Result<Authorization, StoreError> {
    if !found.is(Status::Running, attempt) {
        return Ok(Authorization::NotOwner(found));
    }
    if found.stop_request.is_some() {
        return Ok(Authorization::StopRecorded);
    }
    if found.original == Some(Status::Completed) {
        return Ok(Authorization::OriginalCompleted);
    }
    if found.original.is_some() && differs_from_earlier(pool, job, name).await? {
        return Ok(Authorization::DiffersFromEarlier);
    }
    // Also when a renewal landed between the refusal and this look: its one retry will get through.
    Ok(Authorization::LeaseLapsed)
}

async fn differs_from_earlier(pool: &Pool, job: Uuid, name: &str) -> Result<bool, StoreError> {
    let mut connection = pool.acquire(ACT).await?;
    sqlx::query_scalar!(
        r#"-- store::authorize_delivery, after a refusal
           SELECT EXISTS (SELECT FROM export_jobs AS earlier
                          JOIN export_jobs AS job ON job.tenant_id = earlier.tenant_id AND job.delivery_key = earlier.delivery_key
                          WHERE job.id = $1 AND earlier.id <> job.id
                            AND (earlier.destination_id <> job.destination_id OR earlier.expected_file_name <> $2)) AS "differs!""#,
        job,
        name
    )
    .fetch_one(&mut *connection)
    .await
    .map_err(|error| StoreError::sort(ACT, error))
}

/// The directory joined with the name's own folders, and the name's last part, both in the form in which they are compared.
fn folded(directory: &str, name: &str) -> (String, String) {
    let (folders, last) = name.rsplit_once('/').map_or((None, name), |(folders, last)| (Some(folders), last));
    let directory = directory.trim_end_matches('/');
    let whole = folders.map_or_else(|| directory.to_owned(), |folders| format!("{directory}/{folders}"));
    (fold_name(&whole), fold_name(last))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_the_same_however_it_is_split_and_spelled() {
        assert_eq!(folded("/Upload", "in/A.csv"), folded("/upload/IN/", "a.CSV"));
        assert_eq!(folded("/", "a.csv"), (String::new(), "a.csv".to_owned()));
    }
}
