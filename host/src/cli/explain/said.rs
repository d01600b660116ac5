//! What is true to say of a job: where it stands, and what the partner may be told.
//!
//! Pure, and every state is named: `golden/said.txt` prints all of them, for people to review. What is never said: "not
//! delivered" of an outcome that is not known, "delivered" of a delivery under way, "canceled" of a file that left.

use super::family::{Beside, Key, concludes};
use super::theirs::{Lies, Says, Theirs, Word};
use super::trigger::Unconfirmed;
use super::waits::Waits;
use super::words::{at, bounded, period, sentence, stopped};
use crate::job::model::Job;
use crate::job::status::{CancellationOutcome, FailureReason, Status};
use crate::store::AttemptEvent;

/// Most letters of a person's words.
const WORDS: usize = 400;

/// What is true to say of a cancellation's outcome.
pub(in crate::cli) fn cancellation(outcome: CancellationOutcome, found: Status) -> String {
    match outcome {
        CancellationOutcome::CanceledWhileQueued => {
            "The job was still queued and is canceled. Nothing was built or sent.".to_owned()
        }
        CancellationOutcome::StopRequested => {
            "The job is running and was asked to stop. It cannot be authorized to deliver any more; it ends Stopped once its worker, \
             or recovery, has seen the request."
                .to_owned()
        }
        CancellationOutcome::StopAlreadyRequested => {
            "The job is running, and a stop had been requested before.".to_owned()
        }
        CancellationOutcome::AlreadyCanceled => "The job had been canceled before.".to_owned(),
        CancellationOutcome::AlreadyEnded => format!("The job had ended before, as {found}; nothing was changed."),
        CancellationOutcome::TooLate => match found {
            Status::Completed => "It is too late: the job is recorded as delivered.".to_owned(),
            Status::OutcomeUnknown => {
                "It is too late: the delivery was authorized, and whether the file arrived is not known yet.".to_owned()
            }
            Status::Queued
            | Status::Running
            | Status::Delivering
            | Status::Canceled
            | Status::Rejected
            | Status::Stopped
            | Status::Failed => {
                "It is too late: the delivery was authorized, and the file may reach the partner.".to_owned()
            }
        },
    }
}

/// Where the job stands, with what the partner said of it; what they say against the record comes first. `because` is the
/// reason that the last conclusion gave.
pub(super) fn stands(job: &Job, because: Option<&str>, waits: &Waits<'_>, theirs: &Theirs) -> String {
    let triggers = theirs.triggers.as_ref().map(Unconfirmed::sentences).filter(|said| !said.is_empty());
    let recorded = recorded(job, because, waits) + &triggers.map(|said| format!(" {said}")).unwrap_or_default();
    let lies = theirs.lies.map(|lies| format!(" {}", lies.sentence())).unwrap_or_default();
    match (&theirs.answer, theirs.awaited) {
        (Some(word), _) if word.contradicts_the_record => {
            let (said, source) = (word.says.verb(), word.source());
            format!("the partner {said} {source}, which contradicts the record: {recorded}{lies}")
        }
        (Some(word), _) if job.status == Status::OutcomeUnknown && word.says != Says::Accepted => {
            let (said, source) = (word.says.verb(), word.source());
            format!(
                "the partner {said} {source}. That settles no outcome by itself: a person has to record what they have.{lies}"
            )
        }
        (Some(word), _) => format!("{recorded} The partner {} {}.{lies}", word.says.verb(), word.source()),
        (None, Some(awaited)) => format!("{recorded} {}", awaited.sentence()),
        (None, None) => recorded,
    }
}

/// The same by the record alone.
fn recorded(job: &Job, because: Option<&str>, waits: &Waits<'_>) -> String {
    let fenced = job.publish_intended_at.is_some();
    match job.status {
        Status::Queued => waits.sentence(job),
        Status::Running if job.stop_request.is_some() => {
            "its file is being prepared, and a stop request is recorded: it will not be delivered.".to_owned()
        }
        Status::Running => "its file is being prepared; nothing has left the host.".to_owned(),
        Status::Delivering if fenced => {
            "it is being published; the file may be with the partner at any moment.".to_owned()
        }
        Status::Delivering => {
            "its delivery is authorized and under way; nothing is under its final name yet by this attempt, and at any moment it may be."
                .to_owned()
        }
        Status::Canceled => "it was canceled while queued; nothing was built or sent.".to_owned(),
        Status::Rejected => {
            let said = job.rejection.as_ref().and_then(|rejection| rejection.get("sentence"));
            let said = said.and_then(|text| text.as_str()).unwrap_or("no reason is recorded");
            format!("policy rejected it: {}", stopped(&bounded(said, WORDS)))
        }
        Status::Stopped => "it was stopped before delivery was authorized; nothing was sent.".to_owned(),
        Status::Completed => {
            format!("it is recorded as delivered. {}", because.unwrap_or("No reason was recorded with it."))
        }
        Status::OutcomeUnknown if fenced => format!(
            "whether it was delivered is not known. {}",
            because.unwrap_or("Its worker went silent after it was to publish.")
        ),
        Status::OutcomeUnknown => format!(
            "whether it was delivered is not settled. {} No publish by this attempt is on record; unless the database lost commits, that \
             settles it as not delivered.",
            because.unwrap_or("Its worker went silent before it was to publish.")
        ),
        Status::Failed => failed(job.failure_reason, job.delivery_authorized_at.is_some(), because),
    }
}

fn failed(reason: Option<FailureReason>, authorized: bool, because: Option<&str>) -> String {
    let because = because.unwrap_or("No reason was recorded with it.");
    match reason {
        Some(FailureReason::BuildFailed) if authorized => format!("it is recorded as not built. {because}"),
        Some(FailureReason::BuildFailed) => format!("its file could not be built; nothing was sent. {because}"),
        Some(FailureReason::AttemptsExhausted) if authorized => {
            format!("it is recorded as given up. {because}")
        }
        Some(FailureReason::AttemptsExhausted) => "it used up its attempts; nothing was sent.".to_owned(),
        Some(FailureReason::NotDelivered) => format!("it is recorded as not delivered. {because}"),
        Some(FailureReason::FinalNameOccupied) => {
            format!("a file that was not shown to be ours had its final name, so it was not published. {because}")
        }
        Some(FailureReason::OriginalDelivered) => format!(
            "the file of the original was found at the partner, so this replacement was not published. {because}"
        ),
        None => format!("it failed, and no code is recorded. {because}"),
    }
}

/// The reason that the last conclusion gave: the evidence's, or a named person's.
pub(in crate::cli) fn because(events: &[AttemptEvent]) -> Option<String> {
    let last = events.iter().rev().find(|event| concludes(event.kind))?;
    let detail = last.detail.as_ref()?;
    let text = |name: &str| detail.get(name).and_then(|value| value.as_str()).map(|text| bounded(text, WORDS));
    match (text("reason"), text("evidence_ref")) {
        (Some(reason), Some(evidence)) => Some(format!(
            "{} recorded so: {} Evidence: {}",
            last.observed_by.as_deref().unwrap_or("A person"),
            stopped(&reason),
            stopped(&evidence)
        )),
        // What failed before authorization has its cause.
        _ => grounds(detail)
            .map(|text| stopped(&bounded(text, WORDS)))
            .or_else(|| text("cause").map(|cause| sentence(&cause))),
    }
}

/// The sentence of the conclusion that was recorded: a worker's, recovery's or the reconciler's. What recovery concluded and
/// did not record is none.
pub(super) fn grounds(detail: &serde_json::Value) -> Option<&str> {
    let text = |pointer: &str| detail.pointer(pointer).and_then(|value| value.as_str());
    let unknown = text("/outcome") == Some(Status::OutcomeUnknown.as_str());
    text("/proof/because").or_else(|| text("/proof/sentence").filter(|_| !unknown))
}

/// What this job alone could say to the partner.
enum Own {
    /// It is recorded as delivered.
    Delivered,
    /// The file of the original was found at the partner.
    OriginalDelivered,
    /// It is being sent.
    UnderWay,
    /// It may have arrived.
    MayHave,
    /// It has not been sent, and may be.
    ToCome,
    /// It was not sent, and will not be by this job.
    NotSent,
    /// It is recorded as not delivered.
    NotDelivered,
    /// Something that is not shown to be ours has the name.
    Occupied,
}

/// What may be said to the partner today, in quotation marks. The partner knows the delivery, not our jobs, so the other
/// jobs of the key speak too; and they know best what they answered.
pub(super) fn to_the_partner(job: &Job, key: Key, theirs: &Theirs) -> String {
    let it = job
        .expected
        .as_ref()
        .map_or_else(|| format!("The delivery {}", job.delivery_key), |file| bounded(&file.name, WORDS));
    let own = if key.overtaken { Own::NotDelivered } else { own(job) };
    if let Some(says) = theirs.answer.as_ref().and_then(|word| answered(&own, key, word, theirs.lies)) {
        return format!("\"{it} {says}{}\"", trigger(theirs, key));
    }
    let trigger = trigger(theirs, key);
    let says = match (own, key.beside) {
        (Own::Delivered | Own::OriginalDelivered, Beside::MayHave | Beside::Delivered)
        | (Own::UnderWay | Own::MayHave, Beside::Delivered | Beside::Found)
            if key.publishes > 1 =>
        {
            "was delivered; we may have sent it more than once under the same name."
        }
        (Own::OriginalDelivered, _) => "was delivered, by our first delivery.",
        (Own::Delivered, _)
        | (Own::UnderWay | Own::MayHave | Own::ToCome | Own::NotSent, Beside::Delivered | Beside::Found) => {
            "was delivered."
        }
        (Own::NotDelivered | Own::Occupied, Beside::Delivered) => "was delivered, by another delivery of ours.",
        (Own::NotDelivered | Own::Occupied, Beside::Found) => {
            "was found with you under its name, after we had recorded that it was not delivered; please look whether you have it, and do not delete it."
        }
        (Own::UnderWay, Beside::Nothing | Beside::ToCome) => {
            "is being sent now and may be with you at any moment; whether it arrived we cannot say yet."
        }
        (Own::MayHave, Beside::Nothing | Beside::ToCome | Beside::MayHave)
        | (Own::UnderWay | Own::ToCome | Own::NotSent | Own::NotDelivered | Own::Occupied, Beside::MayHave) => {
            "may have reached you; please look whether you have it, and do not delete it."
        }
        (Own::ToCome, Beside::Nothing | Beside::ToCome)
        | (Own::NotSent | Own::NotDelivered | Own::Occupied, Beside::ToCome) => "has not been delivered yet.",
        (Own::NotSent, Beside::Nothing) => "was not sent, and will not be as things stand.",
        (Own::NotDelivered, Beside::Nothing) => "was not delivered.",
        (Own::Occupied, Beside::Nothing) => {
            "was not published: a file that we cannot show to be ours has the name. What is it? Please do not delete it."
        }
    };
    let awaited = match theirs.awaited {
        Some(awaited) if awaited.over => {
            format!(" Your answer, agreed within {}, has not come.", period(awaited.within))
        }
        Some(awaited) => format!(" We await your answer until {}.", at(awaited.until)),
        None => String::new(),
    };
    format!("\"{it} {says}{trigger}{awaited}\"")
}

/// What is said of a trigger that is not confirmed, while nothing else shows that the file was delivered.
fn trigger(theirs: &Theirs, key: Key) -> String {
    let Some(triggers) = &theirs.triggers else { return String::new() };
    let asks = match (key.beside, theirs.answer.as_ref().map(|word| word.says)) {
        (Beside::Delivered | Beside::Found, _) | (_, Some(Says::Refused | Says::Duplicate | Says::OtherContent)) => {
            return String::new();
        }
        (_, Some(Says::Accepted)) => ".",
        (_, None) => ": please look whether you have that, too.",
    };
    format!(" We could not confirm its {}{asks}", triggers.called())
}

/// What may be said where they answered. None where their answer is of a delivery that another one has followed.
fn answered(own: &Own, key: Key, word: &Word, lies: Option<Lies>) -> Option<String> {
    let source = format!("(your answer {}, which we saw at {})", word.file, word.seen_at);
    let said = match (own, word.says) {
        (Own::UnderWay | Own::ToCome | Own::NotSent | Own::Occupied, _) => return None,
        (Own::NotDelivered, _) if matches!(key.beside, Beside::MayHave | Beside::Found | Beside::Delivered) => {
            return None;
        }
        (Own::Delivered, Says::Accepted) => format!("was delivered, and you accepted it {source}."),
        (Own::OriginalDelivered, Says::Accepted) => {
            format!("was delivered, by our first delivery, and you accepted it {source}.")
        }
        (Own::MayHave, Says::Accepted) => format!(
            "may have reached you, and you accepted it {source}, which does not settle our record yet; please do not delete it."
        ),
        (Own::NotDelivered, Says::Accepted) => format!(
            "is recorded here as not delivered, but you accepted it {source}; please keep it until that is cleared."
        ),
        (Own::Delivered | Own::OriginalDelivered | Own::MayHave, Says::Refused) => {
            format!("was sent to you, and you refused it {source}.")
        }
        (Own::NotDelivered, Says::Refused) => format!("was not delivered: you refused it {source}."),
        (Own::Delivered | Own::OriginalDelivered | Own::MayHave | Own::NotDelivered, Says::Duplicate) => {
            format!(
                "was sent to you, and you had it before {source}; what do you have under that name, and since when?"
            )
        }
        (Own::Delivered | Own::OriginalDelivered | Own::MayHave | Own::NotDelivered, Says::OtherContent) => {
            format!("was sent to you, and you accepted other content than ours {source}; what do you have?")
        }
    };
    let lies = lies.filter(|_| word.says == Says::Refused).map(|lies| format!(" {}", lies.sentence()));
    let again = match key.beside {
        _ if key.publishes > 1 => " We may have sent it more than once under the same name.",
        Beside::ToCome => " It is to be sent once more.",
        Beside::Nothing | Beside::MayHave | Beside::Found | Beside::Delivered => "",
    };
    Some(format!("{said}{}{again}", lies.unwrap_or_default()))
}

const fn own(job: &Job) -> Own {
    match job.status {
        Status::Running if job.stop_request.is_some() => Own::NotSent,
        Status::Queued | Status::Running => Own::ToCome,
        Status::Delivering => Own::UnderWay,
        Status::Canceled | Status::Rejected | Status::Stopped => Own::NotSent,
        Status::Completed => Own::Delivered,
        Status::OutcomeUnknown => Own::MayHave,
        Status::Failed => match job.failure_reason {
            Some(FailureReason::BuildFailed | FailureReason::AttemptsExhausted)
                if job.delivery_authorized_at.is_none() =>
            {
                Own::NotSent
            }
            Some(FailureReason::BuildFailed | FailureReason::AttemptsExhausted | FailureReason::NotDelivered)
            | None => Own::NotDelivered,
            Some(FailureReason::FinalNameOccupied) => Own::Occupied,
            Some(FailureReason::OriginalDelivered) => Own::OriginalDelivered,
        },
    }
}

#[cfg(test)]
pub(super) mod tests;
