//! A line for each thing that happened: the creation, the attempts' events, edits, cancellation requests.

use std::fmt;

use serde::Serialize;
use time::OffsetDateTime;

use super::evidence::{form_in_words, of_document};
use super::said::{cancellation, grounds};
use super::words::{at, bounded, short, stopped};
use crate::job::model::Job;
use crate::job::status::EventKind;
use crate::store::{AttemptEvent, RecordedCancellation, RecordedEdit};

/// Most letters of one text of a person, a plugin or a server.
const WORDS: usize = 400;

/// One thing that happened.
#[derive(Debug, Clone, Serialize)]
pub(in crate::cli) struct Line {
    /// Unique within a job, and the same at every reading.
    #[serde(skip)]
    pub key: String,
    at: String,
    /// `Created`, `Edited`, `CancellationRequested`, or the event's kind.
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    attempt: Option<String>,
    text: String,
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}  {}", self.at, self.text)
    }
}

/// Everything that happened to a job, in order.
pub(super) fn lines(
    job: &Job,
    events: &[AttemptEvent],
    cancellations: &[RecordedCancellation],
    edits: &[RecordedEdit],
) -> Vec<Line> {
    let mut told: Vec<(OffsetDateTime, Line)> = vec![(
        job.created_at,
        Line { key: "created".to_owned(), at: at(job.created_at), kind: "Created", attempt: None, text: created(job) },
    )];
    told.extend(events.iter().map(|event| {
        let line = Line {
            key: format!("event {}", event.id),
            at: at(event.recorded_at),
            kind: event.kind.as_str(),
            attempt: Some(event.attempt.to_string()),
            text: of_event(event),
        };
        (event.recorded_at, line)
    }));
    told.extend(cancellations.iter().map(|request| {
        let line = Line {
            key: format!("cancellation {}", request.id),
            at: at(request.recorded_at),
            kind: "CancellationRequested",
            attempt: request.found_attempt.map(|attempt| attempt.to_string()),
            text: of_cancellation(request),
        };
        (request.recorded_at, line)
    }));
    told.extend(edits.iter().map(|edit| {
        let line = Line {
            key: format!("edit {}", edit.id),
            at: at(edit.recorded_at),
            kind: "Edited",
            attempt: None,
            text: of_edit(edit),
        };
        (edit.recorded_at, line)
    }));
    // Times of one database: stable, so that what was recorded together keeps its order.
    told.sort_by_key(|(recorded, _)| *recorded);
    told.into_iter().map(|(_, line)| line).collect()
}

fn created(job: &Job) -> String {
    let by = &job.created_by;
    let Some(original) = job.replaces else {
        return format!("{by} created it with the delivery key {}.", job.delivery_key);
    };
    let reason = stopped(&bounded(job.replacement_reason.as_deref().unwrap_or_default(), WORDS));
    let overwrite = job.overwrite_agreement_ref.as_deref().map_or_else(
        || " It overwrites nothing.".to_owned(),
        |agreement| format!(" It may overwrite, as agreed in {}", stopped(&bounded(agreement, WORDS))),
    );
    format!(
        "{by} created it to replace job {original}, with the same delivery key {}: {reason}{overwrite}",
        job.delivery_key
    )
}

fn of_cancellation(request: &RecordedCancellation) -> String {
    let why = request.reason.as_deref().map(|reason| format!(" ({})", bounded(reason, WORDS))).unwrap_or_default();
    format!(
        "{} asked for it to be canceled{why}. {}",
        request.requested_by,
        cancellation(request.outcome, request.found_status)
    )
}

fn of_edit(edit: &RecordedEdit) -> String {
    let version = edit.detail.get("version").and_then(serde_json::Value::as_i64);
    let version = version.map(|version| format!(": version {version} is in force")).unwrap_or_default();
    format!("{} edited its terms{version}. A worker that saw the old ones cannot claim it.", edit.edited_by)
}

fn of_event(event: &AttemptEvent) -> String {
    let detail = event.detail.as_ref();
    let text = |pointer: &str| {
        let text = detail.and_then(|detail| detail.pointer(pointer)).and_then(|value| value.as_str());
        bounded(text.unwrap_or_default(), WORDS)
    };
    let grounds = stopped(&bounded(detail.and_then(grounds).unwrap_or_default(), WORDS));
    let worker = event.worker.as_deref().unwrap_or("a worker");
    let observer = event.observed_by.as_deref().unwrap_or("somebody");
    match event.kind {
        EventKind::Claimed => {
            let version = event.version.map(|version| format!("version {version} of ")).unwrap_or_default();
            format!("Worker {worker} claimed {version}its terms and began to build the file.")
        }
        EventKind::DeliveryAuthorized => {
            let bytes = detail.and_then(|detail| detail.pointer("/expected/bytes")).and_then(serde_json::Value::as_u64);
            let bytes = bytes.map_or_else(|| "an unknown number of".to_owned(), |bytes| bytes.to_string());
            format!(
                "Delivery was authorized: {} with {bytes} bytes, SHA-256 {}. From here on a cancellation is too late.",
                text("/expected/name"),
                short(&text("/expected/sha256"))
            )
        }
        EventKind::PublishIntended => {
            format!("The worker recorded that it will publish now ({}).", form_in_words(&text("/form")))
        }
        EventKind::Stopped => {
            let during = text("/during");
            let during = if during.is_empty() { String::new() } else { format!(" while {during}") };
            format!("It was stopped{during}, on the recorded request. Nothing was sent.")
        }
        EventKind::Failed => {
            format!("It failed before anything was sent ({}): {}", text("/reason"), stopped(&text("/cause")))
        }
        EventKind::Finished => {
            let reason = text("/reason");
            let outcome =
                if reason.is_empty() { text("/outcome") } else { format!("{}/{reason}", text("/outcome")) };
            ended(format!("It was recorded as {outcome}."), &grounds)
        }
        EventKind::ReleasedByWorker => {
            let seconds = detail.and_then(|detail| detail.get("backoff_seconds")).and_then(serde_json::Value::as_u64);
            let later = seconds.map(|seconds| format!(" It is woken again {seconds} s later.")).unwrap_or_default();
            format!("The worker handed it back, with nothing sent: {}{later}", stopped(&text("/why")))
        }
        EventKind::RequeuedByRecovery => {
            "Its worker's lease ran out before anything was authorized; recovery put it back into the queue.".to_owned()
        }
        EventKind::StoppedByRecovery => {
            "Its worker's lease ran out with a stop request on record; recovery recorded it as stopped. Nothing was sent."
                .to_owned()
        }
        EventKind::AttemptsExhausted => "It had used up its attempts and was given up. Nothing was sent.".to_owned(),
        EventKind::ResolvedByRecovery => ended(
            format!("Its worker's lease ran out during the delivery; recovery recorded {}.", text("/outcome")),
            &grounds,
        ),
        EventKind::Reconciled => settled(observer, "settled the outcome", &grounds, &text),
        EventKind::Corrected => settled(observer, "corrected the record", &grounds, &text),
        EventKind::DeliveryEvidence => of_document(detail, observer),
    }
}

fn ended(said: String, because: &str) -> String {
    if because.is_empty() { said } else { format!("{said} {because}") }
}

/// A reconciliation or a correction: by evidence, or in a person's words.
fn settled(observer: &str, act: &str, grounds: &str, text: &impl Fn(&str) -> String) -> String {
    let (from, to, outcome) = (text("/from"), text("/to"), text("/outcome"));
    let what = if to.is_empty() { outcome } else { format!("{from} to {to}") };
    let (reason, evidence) = (text("/reason"), text("/evidence_ref"));
    let said = format!("{observer} {act}: {what}.");
    if evidence.is_empty() {
        ended(said, grounds)
    } else {
        format!("{said} Reason: {} Evidence: {}", stopped(&reason), stopped(&evidence))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use uuid::Uuid;

    use super::*;

    fn event(kind: EventKind, detail: Option<Value>) -> AttemptEvent {
        AttemptEvent {
            id: 1,
            attempt: Uuid::nil(),
            kind,
            version: None,
            worker: None,
            observed_by: Some("rosa".to_owned()),
            detail,
            recorded_at: OffsetDateTime::UNIX_EPOCH,
        }
    }

    #[test]
    fn every_kind_is_told_whatever_its_detail_holds() {
        let odd = [None, Some(json!(null)), Some(json!([])), Some(json!({ "outcome": 7, "expected": "?", "why": {} }))];
        for kind in EventKind::ALL {
            for detail in &odd {
                let said = of_event(&event(*kind, detail.clone()));
                assert!(said.ends_with(['.', ' ', ':']) || said.contains("does not know"), "{kind}: {said}");
            }
        }
    }

    #[test]
    fn a_persons_decision_is_told_with_reason_and_evidence() {
        let by_hand =
            json!({ "outcome": "Completed", "rests_on": "person", "reason": "they have it", "evidence_ref": "case 7" });
        let said = of_event(&event(EventKind::Reconciled, Some(by_hand)));
        assert_eq!(said, "rosa settled the outcome: Completed. Reason: they have it. Evidence: case 7.");
        let corrected =
            json!({ "from": "Completed", "to": "Failed", "reason": "wrong log.", "evidence_ref": "case 8" });
        let said = of_event(&event(EventKind::Corrected, Some(corrected)));
        assert_eq!(said, "rosa corrected the record: Completed to Failed. Reason: wrong log. Evidence: case 8.");
        let by_host =
            json!({ "outcome": "Failed", "rests_on": "absent_fence", "proof": { "because": "It never published." } });
        let said = of_event(&event(EventKind::Reconciled, Some(by_host)));
        assert_eq!(said, "rosa settled the outcome: Failed. It never published.");
    }

    #[test]
    fn what_the_reconciler_and_recovery_record_is_told_with_its_grounds() {
        // As `upkeep` writes it.
        let proof = json!({ "conclusion": "identical", "sentence": "The file is there.", "observation": null });
        let of = |kind, outcome: &str| of_event(&event(kind, Some(json!({ "outcome": outcome, "proof": proof }))));
        assert_eq!(of(EventKind::Reconciled, "Completed"), "rosa settled the outcome: Completed. The file is there.");
        assert!(of(EventKind::ResolvedByRecovery, "Completed").ends_with("recorded Completed. The file is there."));
        // What it concluded and did not record is no ground of what it did record.
        assert!(of(EventKind::ResolvedByRecovery, "OutcomeUnknown").ends_with("recorded OutcomeUnknown."));
    }
}
