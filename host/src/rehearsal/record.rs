//! The record of a rehearsed attempt, in memory: what the store keeps for a real one, and the phase that faults go by.

use std::sync::{Mutex, MutexGuard, PoisonError};

use futures::future::BoxFuture;
use tokio::time::Instant;
use uuid::Uuid;

use crate::attempt::{
    Authorization, Delivered, Earlier, End, KeyHistory, Known, NotRecorded, Place, Record, Release, Terminal,
};
use crate::job::evidence::{Answer, Evidence, PublishForm};
use crate::job::facts::FileFacts;
use crate::job::on_record::AttemptOnRecord;
use crate::job::status::{FailureReason, Status};
use crate::job::verdict::Conclusion;
use crate::remote::{Check, Fence, FenceRefused, Journal, Proof, ServerFacts};

/// How far the attempt came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Phase {
    /// Nothing may be written yet.
    Before,
    /// Past cutoff 2.
    Authorized,
    /// Past the publish fence.
    Fenced,
    /// The publish was answered.
    Answered,
}

/// What the record answers in this run.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Orders {
    pub stop_requested: bool,
    pub lost_before_fence: bool,
}

/// One rehearsed attempt's record.
pub(super) struct MemoryRecord {
    /// Counts the requests that the server has seen.
    seen: Box<dyn Fn() -> usize + Send + Sync>,
    orders: Orders,
    proof: Proof,
    /// What was delivered last under a reused name.
    last: Option<FileFacts>,
    kept: Mutex<Kept>,
}

/// What was recorded.
#[derive(Debug, Clone, Default)]
pub(super) struct Kept {
    pub expected: Option<FileFacts>,
    pub intended: Option<(PublishForm, Instant)>,
    pub answered: bool,
    pub evidence: Vec<Evidence>,
    pub taken_over: bool,
    pub attention: Option<String>,
    pub concluded: Option<Concluded>,
    /// Requests that the server had seen at cutoff 2.
    pub requests_before: usize,
}

/// What the host concluded of an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Concluded {
    By(Conclusion),
    /// Nothing was sent, for this reason.
    Failed {
        reason: FailureReason,
        cause: String,
    },
    /// Handed back: it will be tried again.
    Released {
        why: String,
    },
    Stopped,
    /// The job was another's; nothing was written of it.
    Nothing {
        why: String,
    },
}

impl MemoryRecord {
    pub fn new(
        seen: impl Fn() -> usize + Send + Sync + 'static,
        orders: Orders,
        proof: Proof,
        last: Option<FileFacts>,
    ) -> Self {
        Self { seen: Box::new(seen), orders, proof, last, kept: Mutex::default() }
    }

    pub fn phase(&self) -> Phase {
        let kept = self.kept_now();
        match (&kept.expected, &kept.intended, kept.answered) {
            (None, ..) => Phase::Before,
            (Some(_), None, _) => Phase::Authorized,
            (Some(_), Some(_), false) => Phase::Fenced,
            (Some(_), Some(_), true) => Phase::Answered,
        }
    }

    /// Another worker takes the job over now.
    pub fn take_over(&self) {
        self.kept_now().taken_over = true;
    }

    /// Everything that is on record.
    pub fn kept(&self) -> Kept {
        self.kept_now().clone()
    }

    pub fn add(&self, evidence: Evidence) {
        self.kept_now().evidence.push(evidence);
    }

    /// Every change under this lock is whole, so a panic elsewhere leaves it usable.
    fn kept_now(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Fence for MemoryRecord {
    fn intend(&self, form: PublishForm) -> BoxFuture<'_, Result<(), FenceRefused>> {
        Box::pin(async move {
            let mut kept = self.kept_now();
            if self.orders.lost_before_fence {
                kept.taken_over = true;
            }
            if kept.taken_over {
                return Err(FenceRefused { why: "the job is no longer this attempt's to publish".to_owned() });
            }
            kept.intended = Some((form, Instant::now()));
            Ok(())
        })
    }
}

impl Journal for MemoryRecord {
    fn published(&self, form: PublishForm, answer: &Answer) -> BoxFuture<'_, ()> {
        let evidence = Evidence::Publish { form, answer: answer.clone() };
        Box::pin(async move {
            let mut kept = self.kept_now();
            kept.evidence.push(evidence);
            kept.answered = true;
        })
    }
}

impl Record for MemoryRecord {
    fn authorize<'a>(&'a self, expected: &'a FileFacts, _: &'a Place) -> BoxFuture<'a, Authorization> {
        Box::pin(async move {
            if self.orders.stop_requested {
                return Authorization::StopRecorded;
            }
            let requests = (self.seen)();
            let mut kept = self.kept_now();
            kept.expected = Some(expected.clone());
            kept.requests_before = requests;
            Authorization::Authorized
        })
    }

    fn renew_now(&self) -> BoxFuture<'_, bool> {
        Box::pin(async move { !self.kept_now().taken_over })
    }

    fn append<'a>(&'a self, evidence: &'a Evidence) -> BoxFuture<'a, Result<(), NotRecorded>> {
        Box::pin(async move {
            self.add(evidence.clone());
            Ok(())
        })
    }

    fn history<'a>(&'a self, _: &'a Place) -> BoxFuture<'a, Result<KeyHistory, NotRecorded>> {
        Box::pin(async move {
            let past_fence = u32::from(self.kept_now().intended.is_some());
            Ok(KeyHistory { others: Vec::new(), past_fence, last: self.last.clone() })
        })
    }

    fn original(&self) -> BoxFuture<'_, Result<Option<AttemptOnRecord>, NotRecorded>> {
        Box::pin(async { Ok(None) })
    }

    /// A rehearsed job replaces nothing.
    fn open_earlier_attempts(&self) -> BoxFuture<'_, Result<Vec<Earlier>, NotRecorded>> {
        Box::pin(async { Ok(Vec::new()) })
    }

    fn intend_removal<'a>(
        &'a self,
        _: &'a AttemptOnRecord,
        _: &'a str,
    ) -> BoxFuture<'a, Result<Option<Uuid>, NotRecorded>> {
        Box::pin(async { Ok(None) })
    }

    fn removal_answered<'a>(
        &'a self,
        _: &'a AttemptOnRecord,
        _: Uuid,
        _: &'a str,
        _: &'a Answer,
    ) -> BoxFuture<'a, Result<(), NotRecorded>> {
        Box::pin(async { Ok(()) })
    }

    /// As `waybill partner check` left it, before anything went wrong.
    fn known<'a>(&'a self, _: &'a ServerFacts) -> BoxFuture<'a, Result<Option<Known>, NotRecorded>> {
        Box::pin(async move { Ok(Some(Known { proof: self.proof.clone(), seen: None })) })
    }

    fn attention<'a>(&'a self, why: &'a str) -> BoxFuture<'a, ()> {
        Box::pin(async move { self.kept_now().attention = Some(why.to_owned()) })
    }

    fn keep_check<'a>(
        &'a self,
        _: &'a ServerFacts,
        _: Result<&'a Check, &'a String>,
    ) -> BoxFuture<'a, Result<(), NotRecorded>> {
        Box::pin(async { Ok(()) })
    }

    fn finish<'a>(&'a self, end: &'a End) -> BoxFuture<'a, Terminal> {
        Box::pin(async move {
            let concluded = Concluded::of(end);
            let mut kept = self.kept_now();
            kept.concluded = Some(concluded.clone());
            if kept.taken_over { Terminal::NotOwner } else { concluded.terminal() }
        })
    }
}

impl Concluded {
    fn of(end: &End) -> Self {
        match end {
            End::Stopped { .. } => Self::Stopped,
            End::Failed { reason, cause } => Self::Failed { reason: *reason, cause: cause.clone() },
            End::Released(Release::Partner(error)) => Self::Released { why: error.to_string() },
            End::Released(Release::LookFailed { why } | Release::Host { why, .. } | Release::Attention { why }) => {
                Self::Released { why: why.clone() }
            }
            End::Released(Release::ShuttingDown) => Self::Released { why: "the host is shutting down".to_owned() },
            End::Delivered(Delivered::Concluded(conclusion)) => Self::By(*conclusion),
            End::Delivered(Delivered::Occupied { cause }) => {
                Self::Failed { reason: FailureReason::FinalNameOccupied, cause: cause.clone() }
            }
            End::Delivered(Delivered::OriginalThere { cause }) => {
                Self::Failed { reason: FailureReason::OriginalDelivered, cause: cause.clone() }
            }
            End::Nothing { why } => Self::Nothing { why: why.clone() },
        }
    }

    fn terminal(&self) -> Terminal {
        match self {
            Self::By(conclusion) => Terminal::Written(conclusion.status().0),
            Self::Failed { .. } => Terminal::Written(Status::Failed),
            Self::Released { .. } => Terminal::Written(Status::Queued),
            Self::Stopped => Terminal::Written(Status::Stopped),
            Self::Nothing { why } => Terminal::Unwritten { why: why.clone() },
        }
    }

    /// As reports show it.
    pub fn name(&self) -> String {
        match self {
            Self::By(conclusion) => conclusion.to_string(),
            Self::Failed { reason, .. } => format!("Failed({reason})"),
            Self::Released { .. } => "Queued again".to_owned(),
            Self::Stopped => "Stopped".to_owned(),
            Self::Nothing { .. } => "nothing".to_owned(),
        }
    }

    /// Why, in a sentence.
    pub fn because(&self) -> String {
        match self {
            Self::By(conclusion) => conclusion.sentence().to_owned(),
            Self::Failed { cause, .. } => cause.clone(),
            Self::Released { why } | Self::Nothing { why } => why.clone(),
            Self::Stopped => "A stop request was recorded first.".to_owned(),
        }
    }
}
