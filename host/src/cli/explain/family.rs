//! The jobs of one delivery key: an original and its replacements. What one of them knows, the partner may ask of all.

use std::collections::HashMap;

use time::OffsetDateTime;
use uuid::Uuid;

use super::theirs::{Lies, Word};
use crate::job::model::Job;
use crate::job::status::{EventKind, FailureReason, Status};
use crate::store::{self, AttemptEvent, JobFilter, LARGEST_PAGE, Pool, StoreError};

/// An original and its replacements, newest first, with what happened to each.
#[derive(Debug, Default)]
pub(in crate::cli) struct Family {
    jobs: Vec<Job>,
    events: HashMap<Uuid, Vec<AttemptEvent>>,
}

/// What the jobs of a key say together of one of them.
#[derive(Debug, Clone, Copy)]
pub(super) struct Key {
    pub beside: Beside,
    /// How many of them were to publish.
    pub publishes: usize,
    /// This job found the original's file, and a person said later that the partner does not have it.
    pub overtaken: bool,
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
    /// A replacement found it under its name, sent nothing, and nobody said anything else since.
    Found,
    /// One delivered it.
    Delivered,
}

impl Family {
    /// Reads the jobs of this one's key. A page is enough: each replacement but the last has ended without a delivery.
    pub async fn read(pool: &Pool, job: &Job) -> Result<Self, StoreError> {
        let filter = JobFilter { delivery_key: Some(job.delivery_key.clone()), ..JobFilter::default() };
        let jobs = store::list_jobs(pool, job.tenant, &filter, None, LARGEST_PAGE).await?.jobs;
        let mut events = HashMap::new();
        for job in &jobs {
            events.insert(job.id, store::events_of(pool, job.id).await?);
        }
        Ok(Self { jobs, events })
    }

    #[cfg(test)]
    pub(super) fn of(jobs: Vec<Job>) -> Self {
        Self { jobs, events: HashMap::new() }
    }

    /// What happened to one of them.
    pub fn events(&self, job: Uuid) -> &[AttemptEvent] {
        self.events.get(&job).map_or(&[], Vec::as_slice)
    }

    /// What the partner answered about a job, or about the original whose file it found.
    pub fn answer(&self, job: &Job) -> Option<Word> {
        let found = job.failure_reason == Some(FailureReason::OriginalDelivered);
        let about = if found { self.original(job) } else { job };
        Word::of(about, self.events(about.id))
    }

    /// What the newest look of any of them found under a job's final name.
    pub fn lies(&self, job: &Job) -> Option<Lies> {
        let mut events: Vec<&AttemptEvent> = self.events.values().flatten().collect();
        events.sort_by_key(|event| event.id);
        Lies::of(job.expected.as_ref().or(self.original(job).expected.as_ref())?, events)
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

    /// What they say together.
    pub(super) fn key(&self, job: &Job) -> Key {
        let others = || self.jobs.iter().filter(|other| other.id != job.id);
        let says = others().map(|other| if self.overtaken(other) { Beside::Nothing } else { beside(other) });
        Key {
            beside: says.max_by_key(|says| *says as u8).unwrap_or(Beside::Nothing),
            publishes: others().chain([job]).filter(|job| job.publish_intended_at.is_some()).count(),
            overtaken: self.overtaken(job),
        }
    }

    /// True of a replacement that found the original's file, where the original was recorded as failed after that.
    fn overtaken(&self, job: &Job) -> bool {
        let original = self.original(job);
        job.failure_reason == Some(FailureReason::OriginalDelivered)
            && original.status == Status::Failed
            && self.concluded(job.id) < self.concluded(original.id)
    }

    fn concluded(&self, job: Uuid) -> Option<OffsetDateTime> {
        self.events(job).iter().rev().find(|event| concludes(event.kind)).map(|event| event.recorded_at)
    }
}

/// True of the events that record how a job ended, or mend that.
pub(super) const fn concludes(kind: EventKind) -> bool {
    match kind {
        EventKind::Finished
        | EventKind::Failed
        | EventKind::Reconciled
        | EventKind::ResolvedByRecovery
        | EventKind::Corrected => true,
        EventKind::Claimed
        | EventKind::DeliveryAuthorized
        | EventKind::PublishIntended
        | EventKind::Stopped
        | EventKind::ReleasedByWorker
        | EventKind::RequeuedByRecovery
        | EventKind::StoppedByRecovery
        | EventKind::AttemptsExhausted
        | EventKind::DeliveryEvidence => false,
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

const fn beside(job: &Job) -> Beside {
    match job.status {
        Status::Completed => Beside::Delivered,
        Status::Delivering | Status::OutcomeUnknown => Beside::MayHave,
        Status::Queued | Status::Running => Beside::ToCome,
        Status::Canceled | Status::Rejected | Status::Stopped => Beside::Nothing,
        Status::Failed => match job.failure_reason {
            Some(FailureReason::OriginalDelivered) => Beside::Found,
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
