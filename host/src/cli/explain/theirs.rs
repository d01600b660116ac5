//! The partner's side of a delivery, as far as it is on record: what they answered, what lies under the final name, and
//! an answer that is still to come.
//!
//! Neighbours: `said` and `next` make sentences of it, `family` brings the jobs of the key. Pure. An answer counts here as
//! it does for verdicts: the host read it itself, and what speaks against the delivery weighs more than what speaks for it.

use std::time::Duration;

use serde::Serialize;
use time::OffsetDateTime;

use super::trigger::Unconfirmed;
use super::words::{at, bounded, period};
use crate::job::contract::Contract;
use crate::job::evidence::{Acknowledged, Evidence};
use crate::job::facts::{FileFacts, Found, Listing};
use crate::job::model::Job;
use crate::job::status::{EventKind, Status};
use crate::store::AttemptEvent;

/// Most letters of the name of a partner's file.
const NAME: usize = 200;

/// What is on record of the partner's side.
#[derive(Debug, Clone, Default)]
pub(in crate::cli) struct Theirs {
    pub answer: Option<Word>,
    pub lies: Option<Lies>,
    pub awaited: Option<Awaited>,
    /// Why the outcome is not known, where that is a trigger file.
    pub triggers: Option<Unconfirmed>,
}

/// What the partner said of a delivery, in weight's order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(in crate::cli) enum Says {
    Accepted,
    /// Accepted something, by a digest that is not our file's.
    OtherContent,
    Duplicate,
    Refused,
}

/// An answer of the partner's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(in crate::cli) struct Word {
    pub says: Says,
    /// The partner's file that carries it.
    pub file: String,
    /// When a host recorded it.
    pub seen_at: String,
    /// True if what is recorded of the job says otherwise.
    pub contradicts_the_record: bool,
}

/// What the newest look on record found under the final name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::cli) struct Lies {
    pub what: What,
    pub seen_at: OffsetDateTime,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::cli) enum What {
    /// The very file, by its digest.
    Ours,
    /// One of the same size, whose digest was not had.
    OfOurSize,
    Another,
    Nothing,
}

/// An answer that was agreed and is not on record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::cli) struct Awaited {
    pub until: OffsetDateTime,
    pub within: Duration,
    /// Its time has passed.
    pub over: bool,
}

impl Says {
    /// What they did, after "the partner" or "you".
    pub const fn verb(self) -> &'static str {
        match self {
            Self::Accepted => "accepted it",
            Self::OtherContent => "accepted other content than ours",
            Self::Duplicate => "had it before",
            Self::Refused => "refused it",
        }
    }

    fn of(acknowledged: &Acknowledged, job: &Job) -> Option<Self> {
        let another = |named: &Option<String>, ours: &str| {
            named.as_deref().is_some_and(|named| !named.eq_ignore_ascii_case(ours))
        };
        let attempt = job.attempt.map(|attempt| attempt.simple().to_string()).unwrap_or_default();
        let for_attempt = acknowledged.attempt.as_ref().map(|attempt| attempt.replace('-', ""));
        if acknowledged.key.as_ref().is_some_and(|key| *key != job.delivery_key) || another(&for_attempt, &attempt) {
            return None;
        }
        let sha256 = job.expected.as_ref().map(|file| file.sha256.to_string()).unwrap_or_default();
        match acknowledged.says.as_str() {
            "refused" => Some(Self::Refused),
            "duplicate" => Some(Self::Duplicate),
            "accepted" if another(&acknowledged.sha256, &sha256) => Some(Self::OtherContent),
            "accepted" => Some(Self::Accepted),
            _ => None,
        }
    }

    const fn contradicts(self, status: Status) -> bool {
        match (status, self) {
            (Status::Completed, Self::Refused | Self::Duplicate | Self::OtherContent)
            | (Status::Failed, Self::Accepted | Self::Duplicate | Self::OtherContent) => true,
            (Status::Completed, Self::Accepted)
            | (Status::Failed, Self::Refused)
            | (
                Status::Queued
                | Status::Running
                | Status::Delivering
                | Status::Canceled
                | Status::Rejected
                | Status::Stopped
                | Status::OutcomeUnknown,
                _,
            ) => false,
        }
    }
}

impl Word {
    /// The weightiest answer about the job's current attempt, as it was first seen.
    pub fn of(job: &Job, events: &[AttemptEvent]) -> Option<Self> {
        let mut weightiest: Option<Self> = None;
        for event in events.iter().filter(|event| Some(event.attempt) == job.attempt) {
            let Some(evidence) = evidence(event) else { continue };
            for acknowledged in evidence.look().into_iter().flat_map(|receipt| &receipt.acknowledgments) {
                let Some(says) = Says::of(acknowledged, job) else { continue };
                if weightiest.as_ref().is_none_or(|word| says > word.says) {
                    weightiest = Some(Self {
                        says,
                        file: bounded(&acknowledged.name, NAME),
                        seen_at: at(event.recorded_at),
                        contradicts_the_record: says.contradicts(job.status),
                    });
                }
            }
        }
        weightiest
    }

    /// Where it was said, in parentheses.
    pub fn source(&self) -> String {
        format!("({}, seen {})", self.file, self.seen_at)
    }

    /// For a table: what they did, and whether the record says otherwise.
    pub fn in_few_words(&self) -> String {
        let against = if self.contradicts_the_record { ", against the record" } else { "" };
        format!("{} {}{against}", self.says.verb(), self.source())
    }
}

impl Lies {
    /// What the newest of these looks found under the name of this file. A publish that was begun after it makes it old.
    pub fn of<'a>(expected: &FileFacts, events: impl IntoIterator<Item = &'a AttemptEvent>) -> Option<Self> {
        let mut newest = None;
        for event in events {
            if event.kind == EventKind::PublishIntended {
                newest = None;
            }
            let evidence = evidence(event);
            let what = evidence.as_ref().and_then(look).and_then(|look| what(expected, look));
            newest = what.map(|what| Self { what, seen_at: event.recorded_at }).or(newest);
        }
        newest
    }

    /// True if a file that may be ours was seen.
    pub const fn may_be_ours(self) -> bool {
        match self.what {
            What::Ours | What::OfOurSize => true,
            What::Another | What::Nothing => false,
        }
    }

    /// What lies there, before "under its name".
    pub const fn noun(self) -> &'static str {
        match self.what {
            What::Ours => "our file lies",
            What::OfOurSize => "a file of its size lies",
            What::Another => "another file lies",
            What::Nothing => "nothing lies",
        }
    }

    /// A whole sentence.
    pub fn sentence(self) -> String {
        format!("By the newest look, of {}, {} under its name.", at(self.seen_at), self.noun())
    }
}

impl Awaited {
    /// Until when an answer was agreed, counted as the host counts it: from the record of how the delivery ended.
    pub fn of(job: &Job, events: &[AttemptEvent], within: Option<Duration>, now: OffsetDateTime) -> Option<Self> {
        let awaits = job.publish_intended_at.is_some()
            && matches!(job.status, Status::Completed | Status::OutcomeUnknown)
            && Word::of(job, events).is_none();
        let within = within.filter(|_| awaits)?;
        let ended = events.iter().rev().find(|event| {
            Some(event.attempt) == job.attempt
                && matches!(event.kind, EventKind::Finished | EventKind::ResolvedByRecovery | EventKind::Reconciled)
        })?;
        let until = ended.recorded_at.checked_add(within.try_into().ok()?)?;
        Some(Self { until, within, over: until < now })
    }

    /// A whole sentence.
    pub fn sentence(self) -> String {
        if self.over {
            format!("No answer of theirs came within the agreed {}, until {}.", period(self.within), at(self.until))
        } else {
            format!("Their answer is awaited until {}.", at(self.until))
        }
    }
}

/// The contract that the current attempt works under, where its baseline holds it.
pub(super) fn contract(job: &Job, events: &[AttemptEvent]) -> Option<Contract> {
    events.iter().filter(|event| Some(event.attempt) == job.attempt).find_map(|event| match evidence(event)? {
        Evidence::Baseline { contract, .. } => contract.map(|contract| *contract),
        Evidence::Publish { .. }
        | Evidence::Receipt(_)
        | Evidence::Observation(_)
        | Evidence::RemovalIntended { .. }
        | Evidence::RemovalAnswered { .. } => None,
    })
}

/// The document of an event, where this version can read it.
pub(super) fn evidence(event: &AttemptEvent) -> Option<Evidence> {
    match event.kind {
        EventKind::DeliveryEvidence => serde_json::from_value(event.detail.clone()?).ok(),
        EventKind::Claimed
        | EventKind::DeliveryAuthorized
        | EventKind::PublishIntended
        | EventKind::Stopped
        | EventKind::Failed
        | EventKind::Finished
        | EventKind::ReleasedByWorker
        | EventKind::RequeuedByRecovery
        | EventKind::StoppedByRecovery
        | EventKind::AttemptsExhausted
        | EventKind::ResolvedByRecovery
        | EventKind::Reconciled
        | EventKind::Corrected => None,
    }
}

const fn look(evidence: &Evidence) -> Option<&Listing> {
    match evidence {
        Evidence::Baseline { look, .. } => Some(look),
        Evidence::Receipt(receipt) | Evidence::Observation(receipt) => receipt.look.as_ref(),
        Evidence::Publish { .. } | Evidence::RemovalIntended { .. } | Evidence::RemovalAnswered { .. } => None,
    }
}

fn what(expected: &FileFacts, look: &Listing) -> Option<What> {
    if look.at != expected.name {
        return None;
    }
    match (&look.found, look.sha256) {
        (Found::Absent, _) => Some(What::Nothing),
        (Found::Present(_), Some(sha256)) if sha256 == expected.sha256 => Some(What::Ours),
        (Found::Present(entry), None) if entry.bytes.is_none_or(|bytes| bytes == expected.bytes) => {
            Some(What::OfOurSize)
        }
        (Found::Present(_), _) => Some(What::Another),
        (Found::NotVisible { .. } | Found::Unknown { .. }, _) => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use uuid::Uuid;

    use super::*;
    use crate::cli::explain::said::tests::job;

    fn event(id: i64, kind: EventKind, detail: Value) -> AttemptEvent {
        AttemptEvent {
            id,
            attempt: Uuid::from_u128(5),
            kind,
            version: None,
            worker: None,
            observed_by: None,
            detail: Some(detail),
            recorded_at: OffsetDateTime::UNIX_EPOCH,
        }
    }

    fn answer(id: i64, acknowledgment: &Value) -> AttemptEvent {
        let observation = json!({ "evidence": "observation", "acknowledgments": [acknowledgment] });
        event(id, EventKind::DeliveryEvidence, observation)
    }

    fn looked(id: i64, found: &str) -> AttemptEvent {
        let look =
            json!({ "at": "FILE", "found": found, "name": "FILE", "kind": "file", "bytes": 9, "modified": null });
        event(id, EventKind::DeliveryEvidence, json!({ "evidence": "observation", "look": look }))
    }

    #[test]
    fn rec_04_what_is_said_against_a_delivery_weighs_more_and_what_is_of_another_one_nothing() {
        let job = job(Status::Completed, None, true, true);
        let says =
            |events: &[AttemptEvent]| Word::of(&job, events).map(|word| (word.says, word.contradicts_the_record));
        let accepted = answer(1, &json!({ "name": "a.ack", "says": "accepted" }));
        let refused = answer(2, &json!({ "name": "b.ack", "says": "refused" }));
        assert_eq!(says(std::slice::from_ref(&accepted)), Some((Says::Accepted, false)));
        assert_eq!(says(&[accepted, refused.clone()]), Some((Says::Refused, true)));
        let other = json!({ "name": "c.ack", "says": "accepted", "sha256": "00".repeat(32) });
        assert_eq!(says(&[answer(3, &other)]), Some((Says::OtherContent, true)));
        for named in [json!({ "key": "summer" }), json!({ "attempt": Uuid::from_u128(6) })] {
            let mut another = json!({ "name": "d.ack", "says": "refused" });
            another.as_object_mut().unwrap().extend(named.as_object().unwrap().clone());
            assert_eq!(says(&[answer(4, &another)]), None, "{named}");
        }
        let earlier = AttemptEvent { attempt: Uuid::from_u128(7), ..refused };
        assert_eq!(says(&[earlier]), None, "it is of an earlier attempt");
    }

    #[test]
    fn rpl_01_the_newest_look_counts_and_none_from_before_a_publish() {
        let file = job(Status::Completed, None, true, true).expected.unwrap();
        let lies = |events: &[AttemptEvent]| Lies::of(&file, events).map(|lies| lies.what);
        let publish = event(2, EventKind::PublishIntended, json!({}));
        assert_eq!(lies(&[looked(1, "absent"), publish.clone()]), None);
        assert_eq!(lies(&[publish, looked(3, "present")]), Some(What::OfOurSize));
        assert_eq!(lies(&[looked(3, "present"), looked(4, "absent")]), Some(What::Nothing));
    }
}
