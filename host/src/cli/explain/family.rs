//! The jobs of one delivery key: an original and its replacements. What one of them knows, the partner may ask of all.

use uuid::Uuid;

use crate::job::model::Job;
use crate::job::status::{FailureReason, Status};
use crate::store::{self, JobFilter, LARGEST_PAGE, Pool, StoreError};

/// An original and its replacements, newest first.
#[derive(Debug, Default)]
pub(in crate::cli) struct Family {
    jobs: Vec<Job>,
}

/// What the other jobs of a key say, by the one that says most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Beside {
    /// None of them sent anything, or there is none.
    Nothing,
    /// One is still to send it.
    ToCome,
    /// One may have delivered it.
    MayHave,
    /// One delivered it.
    Delivered,
}

impl Family {
    /// Reads the jobs of this one's key. A page is enough: each replacement but the last has ended without a delivery.
    pub async fn read(pool: &Pool, job: &Job) -> Result<Self, StoreError> {
        let filter = JobFilter { delivery_key: Some(job.delivery_key.clone()), ..JobFilter::default() };
        Ok(Self { jobs: store::list_jobs(pool, job.tenant, &filter, None, LARGEST_PAGE).await?.jobs })
    }

    #[cfg(test)]
    pub(super) fn of(jobs: Vec<Job>) -> Self {
        Self { jobs }
    }

    /// The original: this job, or the one that it replaces.
    pub fn original<'a>(&'a self, job: &'a Job) -> &'a Job {
        let id = job.replaces.unwrap_or(job.id);
        self.jobs.iter().find(|other| other.id == id).unwrap_or(job)
    }

    /// The replacement that keeps others from being created.
    pub fn holder(&self, original: Uuid) -> Option<&Job> {
        self.jobs.iter().find(|job| job.replaces == Some(original) && holds_slot(job.status, job.failure_reason))
    }

    /// What the others say.
    pub(super) fn beside(&self, job: &Job) -> Beside {
        let others = self.jobs.iter().filter(|other| other.id != job.id);
        let says = others.map(|other| beside(other.status, other.failure_reason));
        says.max_by_key(|says| *says as u8).unwrap_or(Beside::Nothing)
    }
}

/// The condition of the index `uq_export_jobs_one_replacement`.
const fn holds_slot(status: Status, reason: Option<FailureReason>) -> bool {
    match status {
        Status::Queued | Status::Running | Status::Delivering | Status::Completed | Status::OutcomeUnknown => true,
        Status::Canceled | Status::Rejected | Status::Stopped => false,
        Status::Failed => match reason {
            Some(FailureReason::OriginalDelivered) => true,
            Some(
                FailureReason::BuildFailed
                | FailureReason::AttemptsExhausted
                | FailureReason::NotDelivered
                | FailureReason::FinalNameOccupied,
            )
            | None => false,
        },
    }
}

const fn beside(status: Status, reason: Option<FailureReason>) -> Beside {
    match status {
        Status::Completed => Beside::Delivered,
        Status::Delivering | Status::OutcomeUnknown => Beside::MayHave,
        Status::Queued | Status::Running => Beside::ToCome,
        Status::Canceled | Status::Rejected | Status::Stopped => Beside::Nothing,
        Status::Failed => match reason {
            // It found the original's file at the partner.
            Some(FailureReason::OriginalDelivered) => Beside::Delivered,
            Some(
                FailureReason::BuildFailed
                | FailureReason::AttemptsExhausted
                | FailureReason::NotDelivered
                | FailureReason::FinalNameOccupied,
            )
            | None => Beside::Nothing,
        },
    }
}
