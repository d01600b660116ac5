//! The reconciler: looks again at what is unknown, until evidence settles it, and for acknowledgments that come late.
//!
//! A look is a row of `looks` with a lease, so that one reconciler at a time works on an attempt. It concludes by the
//! verdict's rules only, from `OutcomeUnknown` only, and once. An attempt that lost its job without a publish fence is
//! settled by that alone; one whose publish was not answered may have its temporary file removed, where the contract gives
//! leave and the rules say that it harms nothing. What a look finds is appended when it is something new.
//!
//! After Completed and Failed it looks for the contract's acknowledgment period. What contradicts the record is appended
//! and alerts, and changes no state: a named person corrects.

use std::error::Error as _;
use std::time::Duration;

use uuid::Uuid;

use super::conclude::ground;
use super::inspection::{Inspection, Inspector, Uninspected};
use crate::attempt::{ask_away, asked_away};
use crate::job::evidence::Evidence;
use crate::job::facts::Found;
use crate::job::status::Status;
use crate::job::verdict::{
    Conclusion, Leave, Lost, NotDeliveredProof, after_removal, contradiction, without_fence, worth_removing,
};
use crate::policy::growing_delay;
use crate::store::{self, DueLook, NextLook, Pool, Reconciliation, StoreError, Write};

/// Looks at a time.
const AT_ONCE: usize = 4;

/// The next look comes no sooner after a removal, also where the contract names no `settle` time.
const AFTER_REMOVAL: Duration = Duration::from_secs(5);

/// How the reconciler works.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReconcilerSettings {
    /// Who looks, for people.
    pub owner: String,
    /// How long a look is kept from other reconcilers.
    pub lease: Duration,
    /// The wait after the first look; doubled with each further one.
    pub first_wait: Duration,
    pub longest_wait: Duration,
}

/// A reconciler over its own login.
pub struct Reconciler {
    pool: Pool,
    inspector: Inspector,
    settings: ReconcilerSettings,
}

/// What became of one look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Looked {
    /// The outcome was settled by this look.
    Reconciled(Status),
    /// Still unknown.
    Open,
    /// Our temporary file was asked away; the next look weighs it.
    Removed,
    /// What was found speaks against the record.
    Contradicted,
    /// Nothing new about a recorded outcome.
    Quiet,
    /// The look was another's, or there is nothing left to look for.
    NotOurs,
    /// The database refused, or what is on record could not be read: told in the log, and tried again after the lease.
    Failed,
}

impl Reconciler {
    pub fn new(pool: Pool, inspector: Inspector, settings: ReconcilerSettings) -> Self {
        Self { pool, inspector, settings }
    }

    /// Does every look that is due now, each once.
    pub async fn run_once(&self) -> Result<Vec<Looked>, StoreError> {
        // A lane that fails leaves the others to finish what they have begun at the partner.
        let lanes = futures::future::join_all((0..AT_ONCE).map(|_| self.lane())).await;
        let mut looked = Vec::new();
        for lane in lanes {
            looked.extend(lane?);
        }
        Ok(looked)
    }

    /// One look after the other, until none is due.
    async fn lane(&self) -> Result<Vec<Looked>, StoreError> {
        let ReconcilerSettings { owner, lease, .. } = &self.settings;
        let mut looked = Vec::new();
        loop {
            // Lanes may be at work for hours, and bundles come and go.
            let destinations = self.inspector.destinations();
            let Some(look) = store::claim_look(&self.pool, owner, &destinations, *lease).await? else {
                return Ok(looked);
            };
            let (job, attempt) = (look.job, look.attempt);
            match self.look(look).await {
                Ok(what) => looked.push(what),
                Err(error @ (StoreError::NeverSent { .. } | StoreError::MaybeCommitted { .. })) => return Err(error),
                // One that nobody can read keeps no other from being looked at.
                Err(error @ (StoreError::Answered { .. } | StoreError::Unreadable { .. })) => {
                    tracing::error!(%job, %attempt, %error, source = error.source().map(tracing::field::display), "a look failed; it is tried again");
                    looked.push(Looked::Failed);
                }
            }
        }
    }

    async fn look(&self, look: DueLook) -> Result<Looked, StoreError> {
        // Done before the look's lease is.
        let within = self.settings.lease / 4 * 3;
        let inspection = match self.inspector.inspect(&self.pool, look.job, look.attempt, within).await? {
            Ok(inspection) => inspection,
            // Its bundle went away after the look was claimed. It may come back, and other hosts may have it.
            Err(Uninspected::NotServed) => {
                let next = NextLook::After(self.wait(&look));
                store::finish_look(&self.pool, &look, look.last_found.as_ref(), next).await?;
                return Ok(Looked::NotOurs);
            }
            Err(Uninspected::NeverAuthorized) => {
                store::finish_look(&self.pool, &look, None, NextLook::Never).await?;
                return Ok(Looked::NotOurs);
            }
        };
        let looked = match inspection.attempt.status {
            Status::OutcomeUnknown => self.outcome(&look, &inspection).await,
            Status::Completed => self.late(&look, &inspection, true).await,
            Status::Failed => self.late(&look, &inspection, false).await,
            Status::Queued
            | Status::Running
            | Status::Delivering
            | Status::Canceled
            | Status::Rejected
            | Status::Stopped => {
                store::finish_look(&self.pool, &look, None, NextLook::Never).await?;
                Ok(Looked::NotOurs)
            }
        };
        inspection.close().await;
        looked
    }

    async fn outcome(&self, look: &DueLook, inspection: &Inspection) -> Result<Looked, StoreError> {
        let run = self.run();
        self.append_if_new(look, inspection, &run, None).await?;
        let conclusion = conclude(inspection);
        let settled = match conclusion {
            Conclusion::Completed(proof) => {
                let conclusion = store::Conclusion::Completed(ground(proof, inspection));
                self.reconcile(look, inspection, &run, conclusion).await?
            }
            Conclusion::NotDelivered(NotDeliveredProof::NoFence) => {
                if let Some(Found::Present(_)) = inspection.observation.look.as_ref().map(|look| &look.found) {
                    tracing::warn!(job = %look.job, attempt = %look.attempt, name = inspection.expected.name, "a file that is not ours stands under the final name of an attempt that never published");
                }
                self.reconcile(look, inspection, &run, store::Conclusion::NeverFenced).await?
            }
            Conclusion::NotDelivered(
                NotDeliveredProof::NeverSent
                | NotDeliveredProof::RefusedAndUnchanged
                | NotDeliveredProof::TemporaryRemoved,
            ) => self.reconcile(look, inspection, &run, store::Conclusion::NotDelivered).await?,
            Conclusion::Unknown(_) => None,
        };
        if let Some(status) = settled {
            if matches!(conclusion, Conclusion::NotDelivered(_)) {
                self.clear_up(look, inspection, &run).await;
            }
            return Ok(Looked::Reconciled(status));
        }
        if matches!(conclusion, Conclusion::Unknown(_)) && self.remove(look, inspection, &run).await? {
            let settle = inspection.contract.settle.unwrap_or_default();
            self.put_off(look, inspection, settle.max(AFTER_REMOVAL)).await?;
            return Ok(Looked::Removed);
        }
        self.put_off(look, inspection, self.wait(look)).await?;
        Ok(Looked::Open)
    }

    /// The state that was written, if it was.
    async fn reconcile(
        &self,
        look: &DueLook,
        inspection: &Inspection,
        run: &str,
        conclusion: store::Conclusion,
    ) -> Result<Option<Status>, StoreError> {
        let concluded = conclude(inspection);
        let reconciliation = Reconciliation {
            job: look.job,
            attempt: look.attempt,
            conclusion,
            proof: serde_json::json!({
                "conclusion": concluded.code(),
                "sentence": concluded.sentence(),
                "observation": inspection.seen(),
            }),
            run: run.to_owned(),
            look_after: self.settings.first_wait,
            acknowledgment_within: inspection.acknowledgment_period,
        };
        match store::reconcile(&self.pool, reconciliation).await? {
            Write::Written(()) => {
                let to = conclusion.status();
                tracing::info!(job = %look.job, attempt = %look.attempt, from = "OutcomeUnknown", %to, why = concluded.code(), "reconciled");
                Ok(Some(to))
            }
            Write::Refused(found) => {
                tracing::info!(job = %look.job, attempt = %look.attempt, status = %found.status, "not reconciled: settled by somebody else, or what it rests on no longer holds");
                Ok(None)
            }
            Write::Absent => Ok(None),
        }
    }

    /// The temporary-name fence. True if the file was asked away, whatever the answer.
    async fn remove(&self, look: &DueLook, inspection: &Inspection, run: &str) -> Result<bool, StoreError> {
        let (Some(facts), Some(temporary), Some(session)) =
            (&inspection.facts, &inspection.temporary, &inspection.session)
        else {
            return Ok(false);
        };
        let contract = &inspection.contract;
        let leave =
            Leave { may_remove_temporaries: contract.may_remove_temporaries, one_name_space: contract.one_name_space };
        if !worth_removing(facts, leave) {
            return Ok(false);
        }
        let intended = store::intend_removal(&self.pool, look, run, temporary, self.settings.lease).await?;
        if !intended.is_written() {
            return Ok(false);
        }
        let answer = ask_away(session, &inspection.expected.name, temporary, facts.publish_overwrites()).await;
        tracing::info!(job = %look.job, attempt = %look.attempt, temporary, ?answer, "removal of the temporary file");
        let evidence = Evidence::RemovalAnswered { temporary: temporary.clone(), answer };
        let appended = store::append_evidence(&self.pool, look.job, look.attempt, run, &evidence).await?;
        if !appended.is_written() {
            tracing::error!(job = %look.job, attempt = %look.attempt, "the answer to a removal could not be recorded; its temporary file's absence proves nothing now");
        }
        Ok(true)
    }

    /// Removes what is left of an attempt that was shown to have published nothing and to publish nothing any more. Should the
    /// worker of one without a publish fence wake up, the fence stops it all the same.
    async fn clear_up(&self, look: &DueLook, inspection: &Inspection, run: &str) {
        let found = inspection.observation.temporary.as_ref().map(|look| &look.found);
        let (Some(temporary), Some(session), Some(Found::Present(_)), true) =
            (&inspection.temporary, &inspection.session, found, inspection.contract.may_remove_temporaries)
        else {
            return;
        };
        let answer = asked_away(session, temporary).await;
        tracing::info!(job = %look.job, attempt = %look.attempt, temporary, ?answer, "the temporary file of an attempt that published nothing");
        let evidence = Evidence::RemovalAnswered { temporary: temporary.clone(), answer };
        let appended = store::append_evidence(&self.pool, look.job, look.attempt, run, &evidence).await;
        if !appended.as_ref().is_ok_and(Write::is_written) {
            tracing::error!(job = %look.job, attempt = %look.attempt, error = appended.err().map(tracing::field::display), "the removal of the temporary file could not be recorded");
        }
    }

    /// A look at a recorded outcome: what speaks against it is appended and alerts.
    async fn late(&self, look: &DueLook, inspection: &Inspection, completed: bool) -> Result<Looked, StoreError> {
        let against = inspection.facts.as_ref().and_then(|facts| contradiction(completed, facts));
        let new = self.append_if_new(look, inspection, &self.run(), against).await?;
        if let Some(against) = against.filter(|_| new) {
            tracing::error!(job = %look.job, attempt = %look.attempt, against, "evidence contradicts the record; a named person has to look (waybill job correct)");
        }
        let next = if look.last { NextLook::Never } else { NextLook::After(self.wait(look)) };
        store::finish_look(&self.pool, look, inspection.seen().as_ref(), next).await?;
        Ok(if against.is_some() { Looked::Contradicted } else { Looked::Quiet })
    }

    /// Appends what was seen where it is not what the last look saw.
    async fn append_if_new(
        &self,
        look: &DueLook,
        inspection: &Inspection,
        run: &str,
        against: Option<&str>,
    ) -> Result<bool, StoreError> {
        if inspection.seen() == look.last_found {
            return Ok(false);
        }
        let mut observation = inspection.observation.clone();
        observation.differences.extend(against.map(ToOwned::to_owned));
        if let Some(why) = &observation.unread {
            tracing::warn!(job = %look.job, attempt = %look.attempt, why, "what the partner says is not known");
        }
        for difference in &observation.differences {
            tracing::warn!(job = %look.job, attempt = %look.attempt, difference, "a look differs from what was reported or recorded");
        }
        let evidence = Evidence::Observation(observation);
        Ok(store::append_evidence(&self.pool, look.job, look.attempt, run, &evidence).await?.is_written())
    }

    async fn put_off(&self, look: &DueLook, inspection: &Inspection, wait: Duration) -> Result<(), StoreError> {
        store::finish_look(&self.pool, look, inspection.seen().as_ref(), NextLook::After(wait)).await?;
        Ok(())
    }

    fn wait(&self, look: &DueLook) -> Duration {
        let ReconcilerSettings { first_wait, longest_wait, .. } = self.settings;
        growing_delay(look.looks.saturating_add(1), first_wait, longest_wait)
    }

    /// Unique to a look, since it proves a write whose answer was lost.
    fn run(&self) -> String {
        format!("reconciler {} {}", self.settings.owner, Uuid::new_v4().simple())
    }
}

/// By the verdict's rules: from the absence of the fence alone, or from all that is on record and was seen.
fn conclude(inspection: &Inspection) -> Conclusion {
    match &inspection.facts {
        Some(facts) => after_removal(facts, inspection.removal),
        None => without_fence(Lost {
            lost: true,
            fenced: inspection.attempt.fenced,
            database_unchanged: inspection.attempt.fences_known,
        }),
    }
}
