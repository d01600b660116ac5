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
    pub baseline: Option<Listing>,
    pub temporary: Option<String>,
    /// Acknowledgment files that were there before; `None` where none are agreed or they could not be listed.
    pub acknowledgments: Option<Vec<String>>,
}

impl Recorded {
    /// `now`: the contract in force, with its digest.
    pub fn of(attempt: &AttemptOnRecord, now: &Contract, digest: &str) -> Self {
        let unchanged = attempt.digests.as_ref().is_some_and(|then| then.contract == digest);
        let mut recorded = Self {
            // An attempt that ended before its baseline left no contract; under another one nothing is promised.
            contract: if unchanged { now.clone() } else { Contract::default() },
            baseline: None,
            temporary: None,
            acknowledgments: None,
        };
        for evidence in &attempt.evidence {
            let Evidence::Baseline { look, temporary, acknowledgments, contract, .. } = evidence else { continue };
            recorded.baseline = Some(look.clone());
            recorded.temporary.clone_from(temporary);
            recorded.acknowledgments.clone_from(acknowledgments);
            if let Some(then) = contract {
                recorded.contract = stricter(then, now);
            }
        }
        recorded
    }
}
