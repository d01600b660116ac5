//! A person says what a restored or failed-over database lost, so that jobs known from before may move again.
//!
//! The acceptance names the database's system identifier and timeline as the statement finds them: a later failover needs
//! a new one, unless it was given as a standing one. It is append-only, and takes nothing back.
//!
//! Not checked: whether the words are true. A person who says that no publish fence was lost, and errs, lets the host
//! record as not delivered what was delivered.

use uuid::Uuid;

use super::error::StoreError;
use super::pools::Pool;

/// What an acceptance is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LossOf {
    /// This job only.
    Job(Uuid),
    /// All jobs, and, if `standing`, later timelines of this system too: the standby is synchronous.
    All { standing: bool },
}

/// A person's words about a loss.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Acceptance {
    pub of: LossOf,
    /// No publish fence was lost, so that an absent fence proves again that nothing was published.
    pub fences_intact: bool,
    /// What was lost.
    pub statement: String,
    /// The person.
    pub accepted_by: String,
}

/// What came of an acceptance.
#[must_use = "only `Recorded` lets anything move"]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Accepted {
    /// It stands, for this database as it is now.
    Recorded { system: i64, timeline: i64 },
    /// There is no such job. Nothing was written.
    NoSuchJob,
    /// The job, or every job, was written in this database's own history: nothing waits for words. Nothing was written.
    NothingLost,
    /// Words or name are empty. Nothing was written.
    WordsMissing,
}

/// Records an acceptance. Repeating it after a lost answer is safe: a second row of the same words says no more.
pub async fn accept_loss(pool: &Pool, acceptance: Acceptance) -> Result<Accepted, StoreError> {
    const ACT: &str = "accept_loss";
    let (statement, accepted_by) = (acceptance.statement.trim(), acceptance.accepted_by.trim());
    if statement.is_empty() || accepted_by.is_empty() {
        return Ok(Accepted::WordsMissing);
    }
    let (job, standing) = match acceptance.of {
        LossOf::Job(job) => (Some(job), false),
        LossOf::All { standing } => (None, standing),
    };
    let mut connection = pool.acquire(ACT).await?;
    let recorded = sqlx::query!(
        "-- store::accept_loss
         INSERT INTO accepted_losses (job_id, system, timeline, standing, fences_intact, statement, accepted_by)
         SELECT $1, here.system, here.timeline, $2, $3, $4, $5
         FROM database_history() AS here
         WHERE $2 OR EXISTS (SELECT FROM export_jobs AS job
                             WHERE ($1::uuid IS NULL OR job.id = $1)
                               AND (job.known_system, job.known_timeline) IS DISTINCT FROM (here.system, here.timeline))
         RETURNING system, timeline",
        job,
        standing,
        acceptance.fences_intact,
        statement,
        accepted_by
    )
    .fetch_optional(&mut *connection)
    .await
    .map_err(|error| StoreError::sort(ACT, error))?;
    if let Some(row) = recorded {
        return Ok(Accepted::Recorded { system: row.system, timeline: row.timeline });
    }
    let Some(job) = job else { return Ok(Accepted::NothingLost) };
    let exists = sqlx::query_scalar!(
        r#"-- store::accept_loss, after a refusal
           SELECT EXISTS (SELECT FROM export_jobs WHERE id = $1) AS "exists!""#,
        job
    )
    .fetch_one(&mut *connection)
    .await
    .map_err(|error| StoreError::sort(ACT, error))?;
    Ok(if exists { Accepted::NothingLost } else { Accepted::NoSuchJob })
}
