//! A worker hands work back before cutoff 2: the partner cannot be reached, or the process shuts down.
//!
//! One statement decides by the row where the job goes: back to the queue with a wake-up that is ready after the
//! backoff, to Stopped if a stop request is recorded, to Failed at the cap of attempts.

use std::time::Duration;

use uuid::Uuid;

use super::boundary::{AskTheRow, Boundary};
use super::error::{StoreError, stored};
use super::found::Found;
use super::pools::Pool;
use super::write::Write;
use crate::job::status::{FailureReason, Status};

const ACT: &str = "release";

/// What a worker hands back, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Release {
    pub job: Uuid,
    pub attempt: Uuid,
    pub worker: String,
    /// For operators, without personal data.
    pub why: String,
    /// When the job is woken again, from now on.
    pub backoff: Duration,
    /// The cap: a job claimed this often is not queued again.
    pub max_attempts: i32,
}

/// Where the job went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Released {
    Queued,
    /// A stop request had been recorded.
    Stopped,
    /// It had used up its attempts: `Failed/AttemptsExhausted`.
    AttemptsExhausted,
}

/// Releases a job that this attempt owns and has not authorized. Refused: it does not own it, or is past cutoff 2.
pub async fn release(pool: &Pool, release: Release) -> Result<Write<Released>, StoreError> {
    let Release { job, attempt, worker, why, backoff, max_attempts } = release;
    let detail = serde_json::json!({ "why": why, "backoff_seconds": backoff.as_secs() });
    let boundary = Boundary {
        act: ACT,
        job,
        tenant: None,
        ask: AskTheRow::AfterALostAnswer,
        landed: Box::new(move |connection, found| {
            let found = found.clone();
            Box::pin(async move { released_before(connection, job, attempt, &found).await })
        }),
    };
    let answer = boundary
        .run(pool, async move |mut connection| {
            let row = sqlx::query_file!(
                "src/store/release.sql",
                job,
                attempt,
                max_attempts,
                backoff.as_secs_f64(),
                worker,
                detail
            )
            .fetch_optional(&mut *connection)
            .await?;
            Ok(row.map(|row| row.status))
        })
        .await?;
    Ok(match answer {
        Write::Written(status) => match stored(ACT, &status)? {
            Status::Stopped => Write::Written(Released::Stopped),
            Status::Failed => Write::Written(Released::AttemptsExhausted),
            Status::Queued
            | Status::Running
            | Status::Delivering
            | Status::Canceled
            | Status::Rejected
            | Status::Completed
            | Status::OutcomeUnknown => Write::Written(Released::Queued),
        },
        Write::Refused(found) => Write::Refused(found),
        Write::Absent => Write::Absent,
    })
}

/// A queued row no longer names the attempt, so its event proves the release.
async fn released_before(
    connection: &mut sqlx::PgConnection,
    job: Uuid,
    attempt: Uuid,
    found: &Found,
) -> Result<Option<String>, StoreError> {
    let ended_here = found.is(Status::Stopped, attempt)
        || (found.is(Status::Failed, attempt) && found.failure_reason == Some(FailureReason::AttemptsExhausted));
    if ended_here {
        return Ok(Some(found.status.as_str().to_owned()));
    }
    let released = sqlx::query_scalar!(
        r#"-- store::release, after a lost answer
           SELECT EXISTS (SELECT FROM export_attempt_events
                          WHERE (job_id, attempt_id, kind) = ($1, $2, 'ReleasedByWorker')) AS "released!""#,
        job,
        attempt
    )
    .fetch_one(connection)
    .await
    .map_err(|error| StoreError::sort(ACT, error))?;
    Ok(released.then(|| Status::Queued.as_str().to_owned()))
}
