//! A job's story in plain words, from its row, its events and its cancellation requests.
//!
//! Pure but for the reads. Every sentence says only what is on record: never "canceled" of a job that was asked to stop, never
//! "delivered" without the evidence that completed it, never "not delivered" without its proof.

use std::fmt;

use serde::Serialize;
use time::OffsetDateTime;

use crate::job::evidence::{Answer, Evidence, PublishForm, Receipt};
use crate::job::facts::{Found, Listing};
use crate::job::model::Job;
use crate::job::status::{CancellationOutcome, EventKind, FailureReason, Status};
use crate::store::{self, AttemptEvent, DestinationState, Pool, RecordedCancellation, StoreError};

/// A job's story.
#[derive(Debug, Serialize)]
pub(super) struct Story {
    job: String,
    state: String,
    told: Vec<Line>,
    /// Where it stands, and why that is so.
    stands: String,
    /// What may be said to the partner today.
    to_the_partner: String,
    /// What a person can do now, and what each step would mean.
    next: Vec<String>,
}

#[derive(Debug, Serialize)]
struct Line {
    at: String,
    text: String,
}

/// Reads what is on record about a job, and tells it.
pub(super) async fn read(pool: &Pool, job: &Job) -> Result<Story, StoreError> {
    let events = store::events_of(pool, job.id).await?;
    let cancellations = store::cancellations_of(pool, job.tenant, job.id).await?;
    let destination = store::destination_state(pool, job.destination).await?;
    Ok(story(job, &events, &cancellations, destination.as_ref()))
}

/// Tells the story.
fn story(
    job: &Job,
    events: &[AttemptEvent],
    cancellations: &[RecordedCancellation],
    destination: Option<&DestinationState>,
) -> Story {
    let mut told: Vec<(OffsetDateTime, String)> = vec![(job.created_at, created(job))];
    told.extend(events.iter().map(|event| (event.recorded_at, of_event(event))));
    told.extend(cancellations.iter().map(|request| (request.recorded_at, of_cancellation(request))));
    // Times of one database: stable, so that what was recorded together keeps its order.
    told.sort_by_key(|(at, _)| *at);
    let state = job.failure_reason.map_or_else(|| job.status.to_string(), |reason| format!("{}/{reason}", job.status));
    Story {
        job: job.id.to_string(),
        state,
        told: told.into_iter().map(|(recorded, text)| Line { at: at(recorded), text }).collect(),
        stands: stands(job, events, destination),
        to_the_partner: to_the_partner(job),
        next: next(job),
    }
}

impl fmt::Display for Story {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "Job {}: {}\n", self.job, self.state)?;
        for line in &self.told {
            writeln!(f, "  {}  {}", line.at, line.text)?;
        }
        writeln!(f, "\nWhere it stands: {}", self.stands)?;
        writeln!(f, "To the partner:  {}", self.to_the_partner)?;
        for (index, step) in self.next.iter().enumerate() {
            writeln!(f, "{} {step}", if index == 0 { "What you can do:" } else { "                " })?;
        }
        Ok(())
    }
}

/// A time of the database, in UTC to the second.
pub(super) fn at(time: OffsetDateTime) -> String {
    let time = time.to_offset(time::UtcOffset::UTC);
    format!(
        "{:04}-{:02}-{:02} {:02}:{:02}:{:02}Z",
        time.year(),
        u8::from(time.month()),
        time.day(),
        time.hour(),
        time.minute(),
        time.second()
    )
}

/// What is true to say of a cancellation's outcome.
pub(super) fn cancellation(outcome: CancellationOutcome, found: Status) -> String {
    match outcome {
        CancellationOutcome::CanceledWhileQueued => "The job was still queued and is canceled. Nothing was built or sent.".to_owned(),
        CancellationOutcome::StopRequested => {
            "The job is running and was asked to stop. It cannot be authorized to deliver any more; it ends Stopped once its worker, \
             or recovery, has seen the request."
                .to_owned()
        }
        CancellationOutcome::StopAlreadyRequested => "The job is running, and a stop had been requested before.".to_owned(),
        CancellationOutcome::AlreadyCanceled => "The job had been canceled before.".to_owned(),
        CancellationOutcome::AlreadyEnded => format!("The job had ended before, as {found}; nothing was changed."),
        CancellationOutcome::TooLate => match found {
            Status::Completed => "It is too late: the job is recorded as delivered.".to_owned(),
            Status::OutcomeUnknown => "It is too late: the delivery was authorized, and whether the file arrived is not known yet.".to_owned(),
            _ => "It is too late: the delivery was authorized, and the file may reach the partner.".to_owned(),
        },
    }
}

fn created(job: &Job) -> String {
    match (&job.replaces, &job.replacement_reason) {
        (Some(original), Some(reason)) => {
            format!(
                "{} created it to replace job {original}, with the same delivery key {}: {reason}",
                job.created_by, job.delivery_key
            )
        }
        _ => format!("{} created it with the delivery key {}.", job.created_by, job.delivery_key),
    }
}

fn of_cancellation(request: &RecordedCancellation) -> String {
    let why = request.reason.as_deref().map(|reason| format!(" ({reason})")).unwrap_or_default();
    format!(
        "{} asked for it to be canceled{why}. {}",
        request.requested_by,
        cancellation(request.outcome, request.found_status)
    )
}

fn of_event(event: &AttemptEvent) -> String {
    let detail = event.detail.as_ref();
    let text = |pointer: &str| {
        detail.and_then(|detail| detail.pointer(pointer)).and_then(|value| value.as_str()).unwrap_or_default()
    };
    let worker = event.worker.as_deref().unwrap_or("a worker");
    let observer = event.observed_by.as_deref().unwrap_or("somebody");
    match event.kind {
        EventKind::Claimed => format!("Worker {worker} claimed version {} of its terms.", event.version.unwrap_or_default()),
        EventKind::DeliveryAuthorized => {
            let bytes = detail.and_then(|detail| detail.pointer("/expected/bytes")).and_then(serde_json::Value::as_u64);
            format!(
                "Delivery was authorized: {} with {} bytes, SHA-256 {}. From here on a cancellation is too late.",
                text("/expected/name"),
                bytes.unwrap_or_default(),
                short(text("/expected/sha256"))
            )
        }
        EventKind::PublishIntended => format!("The worker recorded that it will publish now ({}).", form_in_words(text("/form"))),
        EventKind::Stopped => format!("It was stopped while {}, on the recorded request. Nothing was sent.", text("/during")),
        EventKind::Failed => format!("It failed before anything was sent ({}): {}", text("/reason"), text("/cause")),
        EventKind::Finished => {
            let reason = text("/reason");
            let outcome = if reason.is_empty() { text("/outcome").to_owned() } else { format!("{}/{reason}", text("/outcome")) };
            format!("It was recorded as {outcome}. {}", text("/proof/because"))
        }
        EventKind::ReleasedByWorker => format!("The worker handed it back, with nothing sent: {}", text("/why")),
        EventKind::RequeuedByRecovery => "Its worker's lease ran out before anything was authorized; recovery put it back into the queue.".to_owned(),
        EventKind::StoppedByRecovery => "Its worker's lease ran out with a stop request on record; recovery recorded it as stopped. Nothing was sent.".to_owned(),
        EventKind::AttemptsExhausted => "It had used up its attempts and was given up. Nothing was sent.".to_owned(),
        EventKind::ResolvedByRecovery => format!("Its worker's lease ran out during the delivery; recovery recorded {}.", text("/outcome")),
        EventKind::Reconciled => format!("{observer} settled the outcome: {}. {}", text("/outcome"), text("/proof/because")),
        EventKind::Corrected => format!("{observer} corrected the record: {}", text("/why")),
        EventKind::DeliveryEvidence => match detail.cloned().map(serde_json::from_value::<Evidence>) {
            Some(Ok(evidence)) => of_evidence(&evidence, observer),
            Some(Err(_)) | None => "Evidence was appended in a form that this version cannot read.".to_owned(),
        },
    }
}

fn of_evidence(evidence: &Evidence, observer: &str) -> String {
    match evidence {
        Evidence::Baseline { look, temporary, .. } => {
            let temporary =
                temporary.as_deref().map(|name| format!(" The file is sent as {name} first.")).unwrap_or_default();
            format!("Before sending, {}.{temporary}", seen(look))
        }
        Evidence::Publish { form, answer } => format!("The publish ({}) was {}.", form_name(*form), answered(answer)),
        Evidence::Receipt(receipt) => format!("After sending, {}", receipt_in_words(receipt)),
        Evidence::Observation(receipt) => format!("{observer} looked again: {}", receipt_in_words(receipt)),
        Evidence::RemovalIntended { temporary } => {
            format!(
                "{observer} is about to remove the temporary file {temporary}, so that it can no longer be published."
            )
        }
        Evidence::RemovalAnswered { temporary, answer } => {
            format!("The removal of the temporary file {temporary} was {}.", answered(answer))
        }
    }
}

fn receipt_in_words(receipt: &Receipt) -> String {
    let mut said = Vec::new();
    if let Some(look) = &receipt.look {
        said.push(seen(look));
    }
    for put in &receipt.auxiliary {
        said.push(format!("{} was {}", put.name, answered(&put.answer)));
    }
    if let Some(acknowledged) = &receipt.acknowledgment {
        said.push(format!("the partner's {} says {}", acknowledged.name, acknowledged.says));
    }
    match receipt.temporary_removed {
        Some(true) => said.push("our temporary file was removed".to_owned()),
        Some(false) => said.push("our temporary file was already gone".to_owned()),
        None => {}
    }
    if let Some(call) = &receipt.call {
        said.push(format!("the plugin's call ended early ({call})"));
    }
    said.extend(receipt.differences.iter().cloned());
    if said.is_empty() { "nothing was looked at.".to_owned() } else { format!("{}.", said.join("; ")) }
}

fn seen(look: &Listing) -> String {
    match &look.found {
        Found::Absent => format!("the host saw no file at {}", look.at),
        Found::Present(entry) => {
            let bytes = entry.bytes.map_or_else(|| "of unknown size".to_owned(), |bytes| format!("of {bytes} bytes"));
            let digest =
                look.sha256.map(|digest| format!(", SHA-256 {}", short(&digest.to_string()))).unwrap_or_default();
            format!("the host saw a file {bytes} at {}{digest}", look.at)
        }
        Found::NotVisible { why } => format!("the server does not let us see {} ({why})", look.at),
        Found::Unknown { why } => format!("the host could not look at {} ({why})", look.at),
    }
}

fn answered(answer: &Answer) -> String {
    match answer {
        Answer::Acknowledged => "acknowledged by the server".to_owned(),
        Answer::Refused { code: Some(code), text } => format!("refused by the server with status {code} ({text})"),
        Answer::Refused { code: None, text } => format!("refused ({text})"),
        Answer::Unanswered { why } => format!("not answered ({why})"),
    }
}

const fn form_name(form: PublishForm) -> &'static str {
    match form {
        PublishForm::Link => "a link to the final name",
        PublishForm::Rename => "a rename that refuses an existing name",
        PublishForm::ExclusiveCreate => "an exclusive create of the final name",
        PublishForm::PosixRename | PublishForm::RenameOver => "an agreed overwrite",
    }
}

fn form_in_words(stored: &str) -> &'static str {
    serde_json::from_value::<PublishForm>(stored.into()).map_or("in an unknown form", form_name)
}

fn short(digest: &str) -> String {
    digest.chars().take(12).collect::<String>() + "…"
}

fn stands(job: &Job, events: &[AttemptEvent], destination: Option<&DestinationState>) -> String {
    match job.status {
        Status::Queued => waits_for(job, destination),
        Status::Running if job.stop_request.is_some() => {
            "its file is being prepared, and a stop request is recorded: it will not be delivered.".to_owned()
        }
        Status::Running => "its file is being prepared; nothing has left the host.".to_owned(),
        Status::Delivering => {
            "delivery is authorized and under way; the file may reach the partner at any moment.".to_owned()
        }
        Status::Canceled => "it was canceled while queued; nothing was built or sent.".to_owned(),
        Status::Rejected => format!(
            "policy rejected it: {}",
            job.rejection
                .as_ref()
                .and_then(|rejection| rejection.get("sentence"))
                .and_then(|text| text.as_str())
                .unwrap_or("no reason is recorded")
        ),
        Status::Stopped => "it was stopped before delivery was authorized; nothing was sent.".to_owned(),
        Status::Completed => format!("it was delivered: {}", because(events).unwrap_or("a person recorded so.")),
        Status::OutcomeUnknown => format!(
            "whether it was delivered is not known: {}",
            because(events).unwrap_or("evidence has to settle it.")
        ),
        Status::Failed => match job.failure_reason {
            Some(FailureReason::BuildFailed) => "its file could not be built; nothing was sent.".to_owned(),
            Some(FailureReason::AttemptsExhausted) => "it used up its attempts; nothing was sent.".to_owned(),
            Some(FailureReason::NotDelivered) => {
                format!("it was not delivered: {}", because(events).unwrap_or("that was proven."))
            }
            Some(FailureReason::FinalNameOccupied) => "the final name was taken; nothing was sent.".to_owned(),
            Some(FailureReason::OriginalDelivered) | None => {
                "the original of this replacement delivered; nothing was sent by this one.".to_owned()
            }
        },
    }
}

/// What a queued job waits for, as far as it is on record.
fn waits_for(job: &Job, destination: Option<&DestinationState>) -> String {
    let scheduled = job.not_before.map(|time| format!(" It does not start before {}.", at(time))).unwrap_or_default();
    let waits = match destination {
        None => "it waits for a host that serves its destination.".to_owned(),
        Some(state) if !state.enabled => format!("it waits: the destination {} is disabled.", state.name),
        Some(DestinationState { attention: Some(attention), name, .. }) => {
            format!("it waits: the destination {name} needs attention since {}: {}", at(attention.since), attention.why)
        }
        Some(DestinationState { pause: Some(pause), name, .. }) => format!(
            "it waits: the destination {name} could not be reached {} times in a row; it is tried again in {} s.",
            pause.failures,
            pause.left.as_secs()
        ),
        Some(_) => "it waits to be claimed.".to_owned(),
    };
    waits + &scheduled
}

/// The reason that the last conclusion gave.
fn because(events: &[AttemptEvent]) -> Option<&str> {
    events
        .iter()
        .rev()
        .find(|event| matches!(event.kind, EventKind::Finished | EventKind::Reconciled | EventKind::ResolvedByRecovery))
        .and_then(|event| event.detail.as_ref()?.pointer("/proof/because")?.as_str())
}

fn to_the_partner(job: &Job) -> String {
    let name = job.expected.as_ref().map_or(job.delivery_key.as_str(), |file| file.name.as_str());
    match job.status {
        Status::Completed => format!("\"{name} was delivered.\""),
        Status::Delivering | Status::OutcomeUnknown => {
            format!("\"We may have delivered {name}; please look whether you have it, and do not delete it.\"")
        }
        Status::Queued | Status::Running if job.stop_request.is_none() => format!("\"{name} has not been sent yet.\""),
        Status::Queued | Status::Running | Status::Canceled | Status::Rejected | Status::Stopped => {
            format!("\"{name} was not sent, and will not be by this job.\"")
        }
        Status::Failed if job.failure_reason == Some(FailureReason::FinalNameOccupied) => {
            format!("\"We sent nothing: a file named {name} was there that is not ours. What is it?\"")
        }
        Status::Failed if job.failure_reason == Some(FailureReason::OriginalDelivered) => {
            format!("\"You have {name} from our first delivery.\"")
        }
        Status::Failed => format!("\"{name} was not delivered.\""),
    }
}

fn next(job: &Job) -> Vec<String> {
    let cancel = format!("waybill job cancel {} --tenant {} --as YOU", job.id, job.tenant);
    match job.status {
        Status::Queued => vec![format!("Cancel it: it ends Canceled unless a worker claims it first.  {cancel}")],
        Status::Running if job.stop_request.is_none() => vec![format!("Ask it to stop: it ends Stopped unless delivery is authorized first.  {cancel}")],
        Status::Running | Status::Delivering => vec!["Wait: nothing can be changed now. The end will be recorded.".to_owned()],
        Status::OutcomeUnknown => vec!["Ask the partner whether the file is there. Do not send it again by other means: that could deliver it twice.".to_owned()],
        Status::Failed if job.failure_reason == Some(FailureReason::FinalNameOccupied) => vec!["Find out whose file has the name, with the partner.".to_owned()],
        Status::Failed if job.failure_reason == Some(FailureReason::OriginalDelivered) => vec!["Have a named person correct the original's record.".to_owned()],
        Status::Failed | Status::Canceled | Status::Rejected | Status::Stopped => vec!["Mend the cause and create a new job, which gets a delivery key of its own.".to_owned()],
        Status::Completed => vec!["Nothing is left to do.".to_owned()],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn canceled_is_said_only_of_what_is_canceled() {
        for outcome in CancellationOutcome::ALL {
            let found = match outcome {
                CancellationOutcome::CanceledWhileQueued => Status::Queued,
                CancellationOutcome::StopRequested | CancellationOutcome::StopAlreadyRequested => Status::Running,
                CancellationOutcome::AlreadyCanceled => Status::Canceled,
                CancellationOutcome::AlreadyEnded => Status::Failed,
                CancellationOutcome::TooLate => Status::Delivering,
            };
            let says = cancellation(*outcome, found).contains("canceled");
            let is = matches!(outcome, CancellationOutcome::CanceledWhileQueued | CancellationOutcome::AlreadyCanceled);
            assert_eq!(says, is, "{outcome}");
        }
        for found in [Status::Delivering, Status::Completed, Status::OutcomeUnknown] {
            assert!(cancellation(CancellationOutcome::TooLate, found).starts_with("It is too late"));
        }
    }
}
