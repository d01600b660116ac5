//! A look at one attempt by somebody else than its worker: what is on record, what the partner's server shows now, and
//! the facts that follow. Recovery and the reconciler conclude from it; it concludes nothing itself.
//!
//! It reads only. The host looks by itself, in a session of its own; what the destination plugin observes is kept beside
//! that as its report. Where the partner cannot be reached, or the plugin traps, the look says so: nothing is known then,
//! and that is no evidence of anything.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::attempt::acknowledgment_that_weighs_most;
use crate::job::contract::Contract;
use crate::job::evidence::{Evidence, Receipt};
use crate::job::facts::{FileFacts, Found, Listing};
use crate::job::verdict::compare::{self, OnRecord};
use crate::job::verdict::stricter::stricter;
use crate::job::verdict::{Facts, Removal};
use crate::plugin::{Destination, Registry, Served};
use crate::remote::{self, Names, Reader, Session, SessionLimits};
use crate::store::{self, AttemptOnRecord, Pool, StoreError};

/// How long a session for looking may take to open.
const CONNECT_WITHIN: Duration = Duration::from_secs(20);

/// The destinations that this host can look at.
#[derive(Clone)]
pub struct Inspector {
    registry: Registry,
    limits: SessionLimits,
}

/// What is known of an attempt after a look.
pub(super) struct Inspection {
    pub attempt: AttemptOnRecord,
    pub expected: FileFacts,
    /// The stricter of the contract that the attempt worked under and the one of now.
    pub contract: Contract,
    /// `None` without a publish fence.
    pub facts: Option<Facts>,
    pub removal: Removal,
    /// What this look found.
    pub observation: Receipt,
    /// The temporary name that the baseline recorded.
    pub temporary: Option<String>,
    /// The session that it looked through, still open.
    pub session: Option<Session>,
}

impl Inspector {
    pub fn new(registry: Registry, limits: SessionLimits) -> Self {
        Self { registry, limits }
    }

    pub(super) fn destinations(&self) -> Vec<Uuid> {
        self.registry.destinations()
    }

    pub(super) fn serves(&self, destination: Uuid) -> bool {
        self.registry.find(destination).is_some()
    }

    /// Looks at an attempt. `None`: there is no such attempt, it was never authorized, or nobody here can look at it.
    pub(super) async fn inspect(
        &self,
        pool: &Pool,
        job: Uuid,
        attempt: Uuid,
    ) -> Result<Option<Inspection>, StoreError> {
        // Counted from before the record is read: a look never seems earlier in the contract's `keeps` than it is.
        let began = Instant::now();
        let Some(attempt) = store::attempt_on_record(pool, job, attempt).await? else { return Ok(None) };
        let Some(served) = self.registry.find(attempt.job.destination) else { return Ok(None) };
        let Some(expected) = attempt.expected.clone() else { return Ok(None) };
        let recorded = Recorded::of(&attempt, &served);
        let names = Arc::new(names(&recorded.contract, &attempt, &expected, recorded.temporary.clone()));
        let (session, observation) = match self.open(&served.destination).await {
            Ok(session) => {
                let observation = look(&served, &session, &names, &attempt, &expected, &recorded).await;
                (Some(session), observation)
            }
            Err(why) => (None, nothing_known(&names, &why)),
        };
        let history = store::key_history(pool, job, attempt.job.attempt).await?;
        let publish = compare::publish_on_record(attempt.publish_intended, &attempt.evidence, &recorded.contract)
            .filter(|_| attempt.fenced);
        let mut evidence = attempt.evidence.clone();
        evidence.push(Evidence::Observation(observation.clone()));
        let facts = publish.map(|publish| {
            compare::facts(&OnRecord {
                expected: &expected,
                key: &attempt.job.delivery_key,
                attempt: &attempt.job.attempt.to_string(),
                contract: &recorded.contract,
                publish,
                evidence: &evidence,
                others: &history.others,
                attempts_past_the_fence: history.past_fence,
                looked_after: attempt.since_intended.unwrap_or(Duration::MAX).saturating_add(began.elapsed()),
                looked_since_answer: attempt.since_settled,
            })
        });
        Ok(Some(Inspection {
            removal: compare::removal(&attempt.evidence),
            contract: recorded.contract,
            temporary: recorded.temporary,
            attempt,
            expected,
            facts,
            observation,
            session,
        }))
    }

    async fn open(&self, destination: &Destination) -> Result<Session, String> {
        match tokio::time::timeout(CONNECT_WITHIN, Session::connect(&destination.endpoint, &self.limits)).await {
            Ok(session) => session.map_err(|error| error.to_string()),
            Err(_) => Err(format!("no session for looking within {} s", CONNECT_WITHIN.as_secs())),
        }
    }
}

/// What the baseline recorded, and the contract that counts.
struct Recorded {
    contract: Contract,
    baseline: Option<Listing>,
    temporary: Option<String>,
    acknowledgments: Option<Vec<String>>,
}

impl Recorded {
    fn of(attempt: &AttemptOnRecord, served: &Served) -> Self {
        let now = &served.bundle.manifest.contract;
        let unchanged =
            attempt.digests.as_ref().is_some_and(|then| then.contract == served.destination.digests.contract);
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

/// The names to look at: those of the attempt, not those that the manifest of now would mint.
fn names(contract: &Contract, attempt: &AttemptOnRecord, expected: &FileFacts, temporary: Option<String>) -> Names {
    let (key, id) = (&attempt.job.delivery_key, attempt.job.attempt.to_string());
    let minted = Names::mint(contract, None, &expected.name, key, &id);
    let names = minted.unwrap_or_else(|_| Names {
        final_name: expected.name.clone(),
        temporary: None,
        auxiliary: Vec::new(),
        acknowledgment: None,
        key: key.clone(),
        attempt: id,
    });
    Names { temporary, ..names }
}

async fn look(
    served: &Served,
    session: &Session,
    names: &Arc<Names>,
    attempt: &AttemptOnRecord,
    expected: &FileFacts,
    recorded: &Recorded,
) -> Receipt {
    let Served { bundle, destination } = served;
    let reader = Reader::new(session.clone(), Arc::clone(names), CancellationToken::new());
    let observed = bundle.observe(destination, &attempt.job, expected, recorded.baseline.as_ref(), reader).await;
    let mut receipt = Receipt {
        look: Some(remote::look(session, &names.final_name, bundle.manifest.limits.read_back_bytes()).await),
        temporary: match &names.temporary {
            Some(name) => Some(remote::look(session, name, 0).await),
            None => None,
        },
        ..Receipt::default()
    };
    if let Some(there_before) = &recorded.acknowledgments {
        let ours: Vec<_> =
            attempt.evidence.iter().filter_map(Evidence::look).flat_map(|look| look.auxiliary.clone()).collect();
        receipt.acknowledgment =
            acknowledgment_that_weighs_most(session, names, &recorded.contract, there_before, &ours)
                .await
                .ok()
                .flatten();
    }
    match observed {
        Ok(reported) => {
            if let (Some(look), Some(told)) = (&receipt.look, &reported.listing) {
                receipt.differences = compare::differences(look, told);
            }
            receipt.reported = serde_json::to_value(&reported).ok();
        }
        Err(error) => receipt.call = Some(error.to_string()),
    }
    receipt
}

fn nothing_known(names: &Names, why: &str) -> Receipt {
    let unknown = |at: &str| Listing {
        at: at.to_owned(),
        found: Found::Unknown { why: why.to_owned() },
        sha256: None,
        hashed_by: None,
    };
    Receipt {
        look: Some(unknown(&names.final_name)),
        temporary: names.temporary.as_deref().map(unknown),
        ..Receipt::default()
    }
}

impl Inspection {
    /// What of the observation makes it another one than the last: the host's looks, not the guest's words.
    pub fn seen(&self) -> Option<serde_json::Value> {
        serde_json::to_value(Receipt { reported: None, call: None, ..self.observation.clone() }).ok()
    }

    pub async fn close(self) {
        if let Some(session) = self.session {
            session.close().await;
        }
    }
}
