//! What is on record about one attempt, and the contract under which it counts: for looks at its end by somebody else
//! than its worker.

use std::time::Duration;

use super::contract::Contract;
use super::evidence::{Evidence, PublishForm};
use super::facts::{FileFacts, Listing};
use super::model::{ClaimedJob, Digests};
use super::status::Status;
use super::verdict::stricter::stricter;

/// One attempt as row and events tell it.
#[derive(Debug, Clone, PartialEq)]
pub struct AttemptOnRecord {
    /// The job's terms, which an authorized attempt can no longer see change.
    pub job: ClaimedJob,
    pub status: Status,
    /// What cutoff 2 recorded.
    pub expected: Option<FileFacts>,
    /// The form that the publish fence recorded; none: the attempt never passed the fence.
    pub publish_intended: Option<PublishForm>,
    /// `publish_intended_at` is set.
    pub fenced: bool,
    /// False after a failover or restore, until a person said that no publish fence was lost.
    pub fences_known: bool,
    /// What the attempt started with.
    pub digests: Option<Digests>,
    /// In the order of recording. Documents that this version cannot read are left out, and counted.
    pub evidence: Vec<Evidence>,
    pub unreadable: usize,
    /// By the database's clock, when this was read.
    pub since_intended: Option<Duration>,
    /// By the database's clock: since the publish's answer, the end of the attempt's ownership or our removal of its
    /// temporary file, whichever came last. Zero while the attempt owns the job.
    pub since_settled: Duration,
}

/// What an attempt's baseline recorded, and the contract that counts.
#[derive(Debug, Clone, PartialEq)]
pub struct Recorded {
    /// The stricter of the contract that the attempt worked under and the one of now.
    pub contract: Contract,
    /// These two: the partner's answers are read by both.
    pub then: Contract,
    pub now: Contract,
    pub baseline: Option<Listing>,
    pub temporary: Option<String>,
    /// Acknowledgment files that were there before; `None` where none were agreed or they could not be listed.
    pub acknowledgments: Option<Vec<String>>,
}

impl Recorded {
    /// `now`: the contract in force, with its digest.
    pub fn of(attempt: &AttemptOnRecord, now: &Contract, digest: &str) -> Self {
        let unchanged = attempt.digests.as_ref().is_some_and(|then| then.contract == digest);
        // An attempt that ended before its baseline left no contract; under another one nothing is promised.
        let mut then = if unchanged { now.clone() } else { Contract::default() };
        let (mut baseline, mut temporary, mut acknowledgments) = (None, None, None);
        for evidence in &attempt.evidence {
            let Evidence::Baseline { look, temporary: minted, acknowledgments: there, contract, .. } = evidence else {
                continue;
            };
            baseline = Some(look.clone());
            temporary.clone_from(minted);
            acknowledgments.clone_from(there);
            if let Some(contract) = contract {
                then.clone_from(contract);
            }
        }
        Self { contract: stricter(&then, now), then, now: now.clone(), baseline, temporary, acknowledgments }
    }

    /// How long an answer is waited for: the longer of what was agreed then and now.
    pub fn acknowledgment_period(&self) -> Option<Duration> {
        let agreed = [&self.then, &self.now].into_iter().filter_map(|contract| contract.acknowledgment.as_ref());
        agreed.map(|acknowledgment| acknowledgment.period).max()
    }
}

#[cfg(test)]
mod tests {
    use time::OffsetDateTime;
    use uuid::Uuid;

    use super::*;
    use crate::job::facts::Found;

    const NOW: &str = "digest of now";

    fn attempt(contract: &str, evidence: Vec<Evidence>) -> AttemptOnRecord {
        let digest = |of: &str| of.to_owned();
        AttemptOnRecord {
            job: ClaimedJob {
                id: Uuid::nil(),
                tenant: Uuid::nil(),
                attempt: Uuid::nil(),
                attempt_count: 1,
                destination: Uuid::nil(),
                delivery_key: "spring".to_owned(),
                created_at: OffsetDateTime::UNIX_EPOCH,
                version: 1,
                scope: serde_json::Value::Null,
                replacement: None,
            },
            status: Status::OutcomeUnknown,
            expected: None,
            publish_intended: None,
            fenced: false,
            fences_known: true,
            digests: Some(Digests {
                builder: digest("b"),
                destination: digest("d"),
                manifest: digest("m"),
                settings: digest("s"),
                contract: contract.to_owned(),
                checked: digest("k"),
            }),
            evidence,
            unreadable: 0,
            since_intended: None,
            since_settled: Duration::ZERO,
        }
    }

    fn baseline(contract: Option<Contract>) -> Evidence {
        let look = Listing { at: "a.csv".to_owned(), found: Found::Absent, sha256: None, hashed_by: None };
        Evidence::Baseline {
            look,
            temporary: Some(".part".to_owned()),
            acknowledgments: Some(vec!["old.ack".to_owned()]),
            reported: None,
            contract: contract.map(Box::new),
        }
    }

    #[test]
    fn the_stricter_contract_counts_and_without_one_on_record_only_an_unchanged_one() {
        let promises = Contract { publishes_whole: true, collects: true, ..Contract::default() };
        let fewer = Contract { publishes_whole: true, ..Contract::default() };
        for (digest, evidence, counts) in [
            (NOW, vec![], &promises),
            ("another", vec![], &Contract::default()),
            (NOW, vec![baseline(None)], &promises),
            ("another", vec![baseline(None)], &Contract::default()),
            ("another", vec![baseline(Some(promises.clone()))], &promises),
        ] {
            assert_eq!(Recorded::of(&attempt(digest, evidence), &promises, NOW).contract, *counts, "{digest}");
        }
        let then = attempt("another", vec![baseline(Some(fewer))]);
        assert!(!Recorded::of(&then, &promises, NOW).contract.collects, "what was not promised then is not promised");
    }

    #[test]
    fn the_recorded_baseline_is_what_names_and_looks_go_by() {
        let recorded = Recorded::of(&attempt(NOW, vec![baseline(None)]), &Contract::default(), NOW);
        assert_eq!(recorded.temporary.as_deref(), Some(".part"));
        assert_eq!(recorded.baseline.map(|look| look.found), Some(Found::Absent));
        assert_eq!(recorded.acknowledgments, Some(vec!["old.ack".to_owned()]));
    }
}
