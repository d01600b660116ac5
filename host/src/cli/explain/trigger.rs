//! The trigger files that were agreed, and whose puts nothing confirms: what they are called, and what became of each put.
//!
//! Neighbours: `said` and `next` make sentences of it, `theirs` brings the documents. Pure. They are named only where they are
//! why the outcome is not known. No host puts one later, so that a person has to settle the outcome.

use super::evidence::answered;
use super::theirs::{contract, evidence};
use super::words::bounded;
use crate::job::evidence::{Answer, AuxiliaryPut, Evidence};
use crate::job::model::Job;
use crate::job::names::Parts;
use crate::job::status::Status;
use crate::job::verdict::WhyUnknown;
use crate::store::AttemptEvent;

/// Most letters of a file's name.
const NAME: usize = 200;

/// The triggers of the job's current attempt that are not confirmed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::cli) struct Unconfirmed {
    files: Vec<File>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct File {
    name: String,
    /// What its put was answered; none where none is on record.
    answer: Option<Answer>,
}

impl Unconfirmed {
    /// None where the outcome is known, or where the newest conclusion gives another reason.
    pub fn of(job: &Job, events: &[AttemptEvent]) -> Option<Self> {
        if job.status != Status::OutcomeUnknown || job.publish_intended_at.is_none() {
            return None;
        }
        let newest = events.iter().rev().filter(|event| Some(event.attempt) == job.attempt).find_map(concluded)?;
        if newest != WhyUnknown::TriggerNotConfirmed.as_str() {
            return None;
        }
        let puts: Vec<AuxiliaryPut> =
            events.iter().filter(|event| Some(event.attempt) == job.attempt).flat_map(puts).collect();
        let mut files = answers(&puts);
        files.extend(never_put(job, events, &puts));
        Some(Self { files })
    }

    #[cfg(test)]
    pub fn refused(name: &str) -> Self {
        let answer = Answer::Refused { code: Some(4), text: "the name is taken".to_owned() };
        Self { files: vec![File { name: name.to_owned(), answer: Some(answer) }] }
    }

    /// What became of them, as whole sentences.
    pub fn sentences(&self) -> String {
        let sentences: Vec<String> = self.files.iter().map(File::sentence).collect();
        sentences.join(" ")
    }

    /// `trigger file NAME`, `trigger files NAME and NAME`: after an article.
    pub fn called(&self) -> String {
        let names: Vec<&str> = self.files.iter().map(|file| file.name.as_str()).collect();
        match names.as_slice() {
            [] => "agreed trigger file".to_owned(),
            [one] => format!("trigger file {one}"),
            several => format!("trigger files {}", several.join(" and ")),
        }
    }
}

impl File {
    fn sentence(&self) -> String {
        match &self.answer {
            Some(answer) => format!("The trigger file {} was {}.", self.name, answered(answer)),
            None => format!("That the trigger file {} was put is not on record.", self.name),
        }
    }
}

/// The code of what an event concluded: of a worker's end, of recovery, or of a later look.
fn concluded(event: &AttemptEvent) -> Option<&str> {
    let text = |pointer: &str| event.detail.as_ref()?.pointer(pointer)?.as_str();
    text("/proof/code").or_else(|| text("/proof/conclusion")).or_else(|| text("/conclusion"))
}

fn puts(event: &AttemptEvent) -> Vec<AuxiliaryPut> {
    match evidence(event) {
        Some(Evidence::Receipt(receipt) | Evidence::Observation(receipt)) => receipt.auxiliary,
        Some(
            Evidence::Baseline { .. }
            | Evidence::Publish { .. }
            | Evidence::RemovalIntended { .. }
            | Evidence::RemovalAnswered { .. },
        )
        | None => Vec::new(),
    }
}

/// The triggers that were put and not confirmed, with the latest answer of each.
fn answers(puts: &[AuxiliaryPut]) -> Vec<File> {
    let confirmed = |name: &str| puts.iter().any(|put| put.name == name && put.answer == Answer::Acknowledged);
    let mut files: Vec<File> = Vec::new();
    for put in puts.iter().filter(|put| put.trigger && !confirmed(&put.name)) {
        let file = File { name: bounded(&put.name, NAME), answer: Some(put.answer.clone()) };
        match files.iter_mut().find(|known| known.name == file.name) {
            Some(known) => *known = file,
            None => files.push(file),
        }
    }
    files
}

/// The triggers of the attempt's contract of which no put is on record.
fn never_put(job: &Job, events: &[AttemptEvent], puts: &[AuxiliaryPut]) -> Vec<File> {
    let (Some(contract), Some(expected)) = (contract(job, events), &job.expected) else { return Vec::new() };
    let attempt = job.attempt.map(|attempt| attempt.to_string()).unwrap_or_default();
    let parts = Parts { key: &job.delivery_key, attempt: &attempt, final_name: &expected.name };
    let triggers = contract.auxiliary.iter().filter(|auxiliary| auxiliary.trigger).map(|auxiliary| &auxiliary.name);
    triggers
        .filter(|pattern| !puts.iter().any(|put| pattern.matches(&put.name, parts)))
        .map(|pattern| pattern.mint(parts).unwrap_or_else(|_| pattern.to_string()))
        .map(|name| File { name: bounded(&name, NAME), answer: None })
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use time::OffsetDateTime;
    use uuid::Uuid;

    use super::*;
    use crate::cli::explain::said::tests::job;
    use crate::job::status::EventKind;

    fn event(kind: EventKind, detail: Value) -> AttemptEvent {
        AttemptEvent {
            id: 1,
            attempt: Uuid::from_u128(5),
            kind,
            version: None,
            worker: None,
            observed_by: None,
            detail: Some(detail),
            recorded_at: OffsetDateTime::UNIX_EPOCH,
        }
    }

    fn baseline() -> AttemptEvent {
        let look = json!({ "at": "FILE", "found": "absent" });
        let contract =
            json!({ "auxiliary": [{ "name": "{final}.done", "trigger": true }, { "name": "{key}.sha256" }] });
        let baseline = json!({ "evidence": "baseline", "look": look, "temporary": null, "contract": contract });
        event(EventKind::DeliveryEvidence, baseline)
    }

    fn put(answer: &str) -> AttemptEvent {
        let put = json!({ "name": "FILE.done", "trigger": true, "answer": answer, "why": "the line was cut" });
        let receipt = json!({ "evidence": "receipt", "auxiliary": [put], "conclusion": "trigger_not_confirmed" });
        event(EventKind::DeliveryEvidence, receipt)
    }

    fn resolved(code: &str) -> AttemptEvent {
        event(EventKind::ResolvedByRecovery, json!({ "proof": { "conclusion": code } }))
    }

    #[test]
    fn vrd_04_a_trigger_is_named_by_its_put_or_by_the_contract() {
        let job = job(Status::OutcomeUnknown, None, true, true);
        let said = |events: &[AttemptEvent]| Unconfirmed::of(&job, events).map(|triggers| triggers.sentences());
        let unknown = || resolved("trigger_not_confirmed");
        assert_eq!(
            said(&[baseline(), unknown()]).as_deref(),
            Some("That the trigger file FILE.done was put is not on record.")
        );
        assert_eq!(
            said(&[baseline(), put("unanswered"), unknown()]).as_deref(),
            Some("The trigger file FILE.done was not answered (the line was cut).")
        );
        assert_eq!(said(&[unknown()]).as_deref(), Some(""));
        assert_eq!(Unconfirmed::of(&job, &[unknown()]).unwrap().called(), "agreed trigger file");
    }

    #[test]
    fn vrd_04_a_trigger_is_named_only_where_it_is_the_reason() {
        let unknown = job(Status::OutcomeUnknown, None, true, true);
        let events = [baseline(), put("unanswered"), resolved("size_differs")];
        assert_eq!(Unconfirmed::of(&unknown, &events), None, "another reason");
        let completed = job(Status::Completed, None, true, true);
        assert_eq!(Unconfirmed::of(&completed, &[baseline(), put("unanswered")]), None, "it is settled");
        let earlier = AttemptEvent { attempt: Uuid::from_u128(6), ..put("unanswered") };
        assert_eq!(Unconfirmed::of(&unknown, &[earlier]), None, "it is of an earlier attempt");
    }
}
