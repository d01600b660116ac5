//! What is on record of a job, and whether it went as its case says.

use super::jobs::{Case, Planned};
use super::verify::Row;
use super::watch;
use crate::job::model::Job;
use crate::job::status::{CancellationOutcome, EventKind, FailureReason, Status};
use crate::store::{AttemptEvent, RecordedCancellation};

/// What is on record of one job, and what the partner's server logged.
pub(super) struct Seen {
    pub final_name: String,
    pub events: Vec<AttemptEvent>,
    pub cancellations: Vec<RecordedCancellation>,
    pub log: String,
}

impl Seen {
    fn has(&self, kind: EventKind) -> bool {
        self.events.iter().any(|event| event.kind == kind)
    }

    pub fn publishes(&self, planned: &Planned) -> usize {
        publishes(&self.log, &planned.at_partner(&self.final_name))
    }

    fn answered(&self, outcome: CancellationOutcome) -> bool {
        matches!(self.cancellations.as_slice(), [one] if one.outcome == outcome)
    }
}

/// Requests in a server's log that could have given a file this name, which is told from where a session starts.
pub(super) fn publishes(log: &str, name: &str) -> usize {
    let name = format!("/{name}\"");
    let publishes = |line: &&str| {
        ["hardlink ", "rename ", "posix-rename "].iter().any(|verb| line.starts_with(verb)) && line.contains(&name)
    };
    log.lines().filter(publishes).count()
}

/// What a case says beyond the file.
pub(super) fn went_as_told(planned: &Planned, job: &Job, seen: &Seen, row: &mut Row) {
    let sent = seen.has(EventKind::DeliveryAuthorized);
    let cause = seen.events.iter().find_map(|event| event.detail.as_ref()?.get("cause")?.as_str()).unwrap_or_default();
    let rejected = job.rejection.as_ref().and_then(|rejection| rejection.get("code")?.as_str()).unwrap_or_default();
    let (holds, evidence) = match planned.case {
        Case::Plain => (job.attempt_count == 1, String::new()),
        Case::CanceledWhileQueued => (
            job.status == Status::Canceled
                && job.attempt_count == 0
                && seen.events.is_empty()
                && seen.answered(CancellationOutcome::CanceledWhileQueued),
            "CanceledWhileQueued; never claimed".to_owned(),
        ),
        Case::StoppedWhileBuilding => (
            job.status == Status::Stopped
                && !sent
                && seen.has(EventKind::Stopped)
                && seen.answered(CancellationOutcome::StopRequested),
            "StopRequested; never authorized".to_owned(),
        ),
        Case::TooLate => {
            let found_delivering = seen.cancellations.iter().any(|one| one.found_status == Status::Delivering);
            (seen.answered(CancellationOutcome::TooLate) && found_delivering, "TooLate".to_owned())
        }
        Case::NameOccupied => (
            job.failure_reason == Some(FailureReason::FinalNameOccupied) && !sent,
            "nothing sent; the other file is as it was".to_owned(),
        ),
        Case::Refused => (
            job.status == Status::Rejected && job.attempt_count == 0 && rejected == "scope_forbidden",
            format!("policy: {rejected}; never claimed"),
        ),
        Case::PartnerDown => {
            (job.attempt_count >= 2 && seen.has(EventKind::ReleasedByWorker), format!("attempt {}", job.attempt_count))
        }
        Case::NotEncodable => (
            job.failure_reason == Some(FailureReason::BuildFailed)
                && !sent
                && cause.contains("encoding without the character"),
            "not built; no letter was replaced in silence".to_owned(),
        ),
    };
    let told = &mut row.claims;
    told.claim(holds, || {
        let kinds: Vec<&str> = seen.events.iter().map(|event| event.kind.as_str()).collect();
        format!("the job {} was to be one that is {}; it is {} after {} attempts, with the events {kinds:?}, the cancellations {:?} and the cause {cause:?}",
            planned.key, planned.case, watch::state(job), job.attempt_count, seen.cancellations.iter().map(|one| one.outcome.as_str()).collect::<Vec<_>>())
    });
    if !evidence.is_empty() {
        row.evidence = if row.evidence.is_empty() { evidence } else { format!("{}, {evidence}", row.evidence) };
    }
    if !told.wrong.is_empty() {
        row.evidence = String::from("WRONG: see the end");
    }
}
