//! A look at one attempt by somebody else than its worker: what is on record, what the partner's server shows now, and
//! the facts that follow. Recovery and the reconciler conclude from it; it concludes nothing itself.
//!
//! It reads only. The host looks by itself, in a session of its own; what the destination plugin observes is kept beside
//! that as its report. Where the partner cannot be reached, takes too long, or the plugin traps, the look says so: nothing is
//! known then, and that is no evidence of anything.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::attempt::{Others, facts, look_back, names_of, set_beside};
use crate::job::contract::Contract;
use crate::job::evidence::Receipt;
use crate::job::facts::{FileFacts, Found, Listing};
use crate::job::on_record::{AttemptOnRecord, Recorded};
use crate::job::verdict::compare;
use crate::job::verdict::{Facts, Removal};
use crate::plugin::{CallError, Destination, Registry, Reported, Served};
use crate::remote::{Names, Reader, Session, SessionLimits};
use crate::store::{self, Pool, StoreError};

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
    /// How long the partner's answers are waited for.
    pub acknowledgment_period: Option<Duration>,
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

/// Why nothing was looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Uninspected {
    /// There is no such attempt, or it was never authorized.
    NeverAuthorized,
    /// This host does not serve its destination, or not at this moment: a bundle that is replaced by hand is away for a while.
    NotServed,
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

    /// Looks at an attempt, or says why there is nothing to look at. `within`: all of its looks together. The host looks first,
    /// so that a plugin which takes too long costs its own report and nothing else.
    pub(super) async fn inspect(
        &self,
        pool: &Pool,
        job: Uuid,
        attempt: Uuid,
        within: Duration,
    ) -> Result<Result<Inspection, Uninspected>, StoreError> {
        // Counted from before the record is read: a look never seems earlier in the contract's `keeps` than it is.
        let began = Instant::now();
        let Some(attempt) = store::attempt_on_record(pool, job, attempt).await? else {
            return Ok(Err(Uninspected::NeverAuthorized));
        };
        let Some(expected) = attempt.expected.clone() else { return Ok(Err(Uninspected::NeverAuthorized)) };
        let Some(served) = self.registry.find(attempt.job.destination) else { return Ok(Err(Uninspected::NotServed)) };
        let now = &served.bundle.manifest.contract;
        let recorded = Recorded::of(&attempt, now, &served.destination.digests.contract);
        let names = Arc::new(names_of(&attempt, &recorded, &expected));
        let too_long = format!("the looks took longer than {} s", within.as_secs());
        let (session, observation) = match self.open(&served.destination).await {
            Ok(session) => {
                let mut observation = nothing_known(&names, &too_long);
                let looking = async {
                    let read_back = served.bundle.manifest.limits.read_back_bytes();
                    look_back(&session, &names, &attempt, &recorded, read_back, &mut observation).await;
                    let observed = ask(&served, &session, &names, &attempt, &expected, &recorded).await;
                    set_beside(&mut observation, observed);
                };
                if tokio::time::timeout_at(began + within, looking).await.is_err() {
                    observation.call = Some(too_long);
                }
                (Some(session), observation)
            }
            Err(why) => (None, nothing_known(&names, &why)),
        };
        let history = store::key_history(pool, job, attempt.job.attempt).await?;
        let others = Others { expected: &history.others, past_the_fence: history.past_fence };
        let facts = facts(&attempt, &recorded, &observation, others, began.elapsed());
        Ok(Ok(Inspection {
            removal: compare::removal(&attempt.evidence),
            acknowledgment_period: recorded.acknowledgment_period(),
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

async fn ask(
    served: &Served,
    session: &Session,
    names: &Arc<Names>,
    attempt: &AttemptOnRecord,
    expected: &FileFacts,
    recorded: &Recorded,
) -> Result<Reported, CallError> {
    let Served { bundle, destination } = served;
    let reader = Reader::new(session.clone(), Arc::clone(names), CancellationToken::new());
    bundle.observe(destination, &attempt.job, expected, recorded.baseline.as_ref(), reader).await
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
