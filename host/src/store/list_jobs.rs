//! A tenant's jobs, newest first, paged by key: a page neither skips nor repeats a job while others are created.

use time::OffsetDateTime;
use uuid::Uuid;

use super::error::StoreError;
use super::pools::Pool;
use super::rows::JobRow;
use crate::job::model::Job;
use crate::job::status::Status;

const ACT: &str = "list_jobs";

/// Most jobs on a page.
pub const LARGEST_PAGE: u16 = 500;

/// Which jobs to list. What is absent does not restrict.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct JobFilter {
    /// Empty: every status.
    pub statuses: Vec<Status>,
    pub destination: Option<Uuid>,
    pub delivery_key: Option<String>,
    pub created_by: Option<String>,
}

/// The key of the last job of a page; the next page begins after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JobCursor {
    pub created_at: OffsetDateTime,
    pub job: Uuid,
}

/// One page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobPage {
    pub jobs: Vec<Job>,
    /// Where the next page begins; `None` after the last.
    pub next: Option<JobCursor>,
}

/// Lists at most `most` jobs (and at most [`LARGEST_PAGE`]) of a tenant.
pub async fn list_jobs(
    pool: &Pool,
    tenant: Uuid,
    filter: &JobFilter,
    after: Option<JobCursor>,
    most: u16,
) -> Result<JobPage, StoreError> {
    let most = most.clamp(1, LARGEST_PAGE);
    let statuses: Vec<String> = filter.statuses.iter().map(|status| status.as_str().to_owned()).collect();
    let mut connection = pool.acquire(ACT).await?;
    let mut jobs = sqlx::query_file_as!(
        JobRow,
        "src/store/list_jobs.sql",
        tenant,
        &statuses,
        filter.destination,
        filter.delivery_key,
        filter.created_by,
        after.map(|cursor| cursor.created_at),
        after.map(|cursor| cursor.job),
        // One more than asked for tells whether another page follows.
        i64::from(most) + 1
    )
    .fetch_all(&mut *connection)
    .await
    .map_err(|error| StoreError::sort(ACT, error))?
    .into_iter()
    .map(|row| row.into_job(ACT))
    .collect::<Result<Vec<Job>, StoreError>>()?;
    let more = jobs.len() > usize::from(most);
    jobs.truncate(usize::from(most));
    let next = jobs.last().filter(|_| more).map(|job| JobCursor { created_at: job.created_at, job: job.id });
    Ok(JobPage { jobs, next })
}
