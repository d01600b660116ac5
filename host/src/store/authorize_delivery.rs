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
    /// The final name's directory, as the server resolves it.
    pub directory: String,
    /// The last part of the final name.
    pub last_part: String,
    /// The contract that this attempt works with lets a settled holder hand the name on. The destination's row must
    /// still say so too.
    pub reused: bool,
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
    /// A replacement whose original was corrected or reconciled to Completed. End it `Failed/OriginalDelivered`.
    OriginalCompleted,
    /// Another delivery key holds the final name: which one, if it is the same tenant's. End the job
    /// `Failed/FinalNameOccupied`.
    NameTaken { holder: Option<String> },
    /// A replacement whose destination or final name differs from what an earlier attempt of its key recorded. End it
    /// `Failed/BuildFailed`.
    DiffersFromEarlier { destination: Uuid, name: Option<String> },
    /// There is no such job.
    Absent,
}

/// Authorizes delivery for an attempt. Nothing was written unless it answers `Authorized`.
pub async fn authorize_delivery(pool: &Pool, delivery: Delivery) -> Result<Authorization, StoreError> {
    let bytes = i64::try_from(delivery.expected.bytes).map_err(|error| StoreError::unreadable(ACT, error))?;
    let place = Place::of(&delivery);
    let detail = serde_json::json!({
        "expected": delivery.expected, "endpoint": delivery.endpoint, "directory": delivery.directory,
    });
    let Delivery { job, attempt, ref expected, reused, .. } = delivery;
    let boundary = Boundary {
        act: ACT,
        job,
        tenant: None,
        ask: AskTheRow::Always,
        landed: landed_if(move |found| found.is(Status::Delivering, attempt).then_some(())),
    };
    let (name, sha256, Place { endpoint, directory, folded_name }) =
        (expected.name.clone(), expected.sha256, place.clone());
    let answer = boundary
        .run(pool, async move |mut connection| {
            let row = sqlx::query_file!(
                "src/store/authorize_delivery.sql",
                job,
                attempt,
                name,
                bytes,
                sha256.0.as_slice(),
                endpoint,
                directory,
                folded_name,
                reused,
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
        Ok(Write::Refused(found)) => refusal(pool, &delivery, found).await,
        Err(error) if error.code() == Some(sqlstate::FINAL_NAME_HELD) => {
            Ok(Authorization::NameTaken { holder: holder(pool, job, &place).await? })
        }
        Err(error) => Err(error),
    }
}

/// A final name in the form in which names are compared.
#[derive(Clone)]
struct Place {
    endpoint: String,
    directory: String,
    folded_name: String,
}

impl Place {
    fn of(delivery: &Delivery) -> Self {
        Self {
            endpoint: delivery.endpoint.to_lowercase(),
            directory: fold_name(delivery.directory.trim_end_matches('/')),
            folded_name: fold_name(&delivery.last_part),
        }
    }
}

async fn refusal(pool: &Pool, delivery: &Delivery, found: Found) -> Result<Authorization, StoreError> {
    if !found.is(Status::Running, delivery.attempt) {
        return Ok(Authorization::NotOwner(found));
    }
    if found.stop_request.is_some() {
        return Ok(Authorization::StopRecorded);
    }
    if found.original == Some(Status::Completed) {
        return Ok(Authorization::OriginalCompleted);
    }
    if found.original.is_some()
        && let Some((destination, name)) = differing(pool, delivery.job, &delivery.expected.name).await?
    {
        return Ok(Authorization::DiffersFromEarlier { destination, name });
    }
    // Also when a renewal landed between the refusal and this look: its one retry will get through.
    Ok(Authorization::LeaseLapsed)
}

/// Destination and final name of an earlier job of the key that this one differs from.
async fn differing(pool: &Pool, job: Uuid, name: &str) -> Result<Option<(Uuid, Option<String>)>, StoreError> {
    let mut connection = pool.acquire(ACT).await?;
    let row = sqlx::query!(
        "-- store::authorize_delivery, after a refusal
         SELECT earlier.destination_id, earlier.expected_file_name
         FROM export_jobs AS job
         JOIN export_jobs AS earlier ON earlier.tenant_id = job.tenant_id AND earlier.delivery_key = job.delivery_key
         WHERE job.id = $1
           AND (earlier.destination_id <> job.destination_id OR earlier.expected_file_name <> $2)
         LIMIT 1",
        job,
        name
    )
    .fetch_optional(&mut *connection)
    .await
    .map_err(|error| StoreError::sort(ACT, error))?;
    Ok(row.map(|row| (row.destination_id, row.expected_file_name)))
}

/// The delivery key that holds the name. Another tenant's is not told.
async fn holder(pool: &Pool, job: Uuid, place: &Place) -> Result<Option<String>, StoreError> {
    let mut connection = pool.acquire(ACT).await?;
    sqlx::query_scalar!(
        "-- store::authorize_delivery, after a name was held
         SELECT held.delivery_key
         FROM final_names AS held
         JOIN export_jobs AS job ON job.tenant_id = held.tenant_id
         WHERE job.id = $1 AND held.endpoint = $2 AND held.directory = $3 AND held.folded_name = $4",
        job,
        place.endpoint,
        place.directory,
        place.folded_name
    )
    .fetch_optional(&mut *connection)
    .await
    .map_err(|error| StoreError::sort(ACT, error))
}
