//! Recovery: takes over the jobs of attempts that went silent.
//!
//! A scan nominates attempts with an expired lease, page by page; each is taken over by one conditional statement that
//! asks for everything again, so a renewal that comes after the scan prevents it. Before cutoff 2 the job goes back to the
//! queue, or ends as its stop request or the cap says. Past it, what the partner shows is gathered first, by reading only,
//! and the takeover records Completed on evidence and `OutcomeUnknown` otherwise: never Failed, and nothing is sent. What
//! needs no look does not wait for what needs one, so that a slow partner keeps no job of another from the queue.
//!
//! After the database was away no worker could renew, so an expired lease says nothing then: recovery waits one lease
//! from the database's first answer before it takes anything over. Not promised: that a silent attempt has ended. It
//! only loses its job.

use std::collections::BTreeMap;
use std::error::Error as _;
use std::sync::Mutex;
use std::time::Duration;

use futures::StreamExt as _;
use tokio::time::Instant;
use uuid::Uuid;

use super::conclude::ground;
use super::inspection::Inspector;
use crate::job::evidence::Evidence;
use crate::job::verdict::{Conclusion, conclude};
use crate::store::take_over::{self, Resolution, Resolve, TakeOver};
use crate::store::{self, Case, Expired, ExpiredAfter, Pool, Standing, StoreError, Write};

/// Attempts that one page of the scan holds.
const PAGE: u16 = 100;

/// Takeovers at a time.
const AT_ONCE: usize = 4;

/// How long the looks at one attempt may take together; the reconciler takes more time for its own.
const LOOKS_WITHIN: Duration = Duration::from_secs(60);

/// How long the attempts that need no look wait for those that do.
const BESIDE_LOOKS: Duration = Duration::from_secs(5);

/// How recovery works.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecoverySettings {
    /// Who takes over, for people.
    pub owner: String,
    /// Attempts of a job before it is given up.
    pub max_attempts: i32,
    /// The workers' lease, waited for once after the database was away.
    pub lease: Duration,
    /// When the reconciler looks for the first time at what stays unknown.
    pub look_after: Duration,
}

/// Recovery over its own login.
pub struct Recovery {
    pool: Pool,
    inspector: Inspector,
    settings: RecoverySettings,
    answering_since: Mutex<Option<Instant>>,
}

/// What one run did.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Recovered {
    /// Jobs that were taken over, by case.
    pub taken_over: BTreeMap<&'static str, u32>,
    /// Nominated and not taken over: renewed or ended meanwhile, another run was faster, or a person has to say first what a
    /// database lost.
    pub left: u32,
    /// The database refused, or a row could not be read: told in the log, and no reason to leave the others silent.
    pub failed: u32,
    /// Nothing was tried, or no more, because the database has only just come back.
    pub waiting: bool,
}

impl Recovered {
    fn add(&mut self, other: Self) {
        for (case, count) in other.taken_over {
            *self.taken_over.entry(case).or_default() += count;
        }
        self.left += other.left;
        self.failed += other.failed;
        self.waiting |= other.waiting;
    }
}

impl Recovery {
    pub fn new(pool: Pool, inspector: Inspector, settings: RecoverySettings) -> Self {
        Self { pool, inspector, settings, answering_since: Mutex::new(None) }
    }

    /// Takes over every attempt that is silent now.
    pub async fn run_once(&self) -> Result<Recovered, StoreError> {
        let answer = self.scan().await;
        if let Err(StoreError::NeverSent { .. } | StoreError::MaybeCommitted { .. }) = &answer {
            *self.since() = None;
        }
        answer
    }

    /// First what needs no look, and again every little while for as long as the looks take.
    async fn scan(&self) -> Result<Recovered, StoreError> {
        let mut recovered = self.take_over_all(false).await?;
        if recovered.waiting {
            return Ok(recovered);
        }
        let mut looks = std::pin::pin!(self.take_over_all(true));
        loop {
            let Ok(looked) = tokio::time::timeout(BESIDE_LOOKS, &mut looks).await else {
                recovered.add(self.take_over_all(false).await?);
                continue;
            };
            recovered.add(looked?);
            return Ok(recovered);
        }
    }

    /// Goes through all pages, for attempts that need a look at the partner or for those that need none.
    async fn take_over_all(&self, looks: bool) -> Result<Recovered, StoreError> {
        let (mut recovered, mut after) = (Recovered::default(), None);
        loop {
            let Some(page) = self.nominate(after).await? else {
                recovered.waiting = true;
                return Ok(recovered);
            };
            let Some(last) = page.last() else { return Ok(recovered) };
            after = Some(last.place());
            let mut takeovers = futures::stream::iter(page.iter().filter(|expired| fenced(expired) == looks))
                .map(async |expired| (expired.case(self.settings.max_attempts), self.take_over(expired).await))
                .buffer_unordered(AT_ONCE);
            while let Some((case, answer)) = takeovers.next().await {
                match answer {
                    Ok(true) => *recovered.taken_over.entry(name(case)).or_default() += 1,
                    Ok(false) => recovered.left += 1,
                    Err(error @ (StoreError::NeverSent { .. } | StoreError::MaybeCommitted { .. })) => {
                        return Err(error);
                    }
                    Err(error @ (StoreError::Answered { .. } | StoreError::Unreadable { .. })) => {
                        tracing::error!(case = name(case), %error, source = error.source().map(tracing::field::display), "a silent attempt could not be taken over");
                        recovered.failed += 1;
                    }
                }
            }
        }
    }

    /// A page of silent attempts; none where an expired lease says nothing yet, because the database was away.
    async fn nominate(&self, after: Option<ExpiredAfter>) -> Result<Option<Vec<Expired>>, StoreError> {
        let asked = Instant::now();
        let page = store::find_expired(&self.pool, after, PAGE).await?;
        let mut since = self.since();
        if asked.elapsed() >= self.settings.lease / 2 {
            // One that stood still was away: no worker could renew.
            *since = None;
        }
        let since = *since.get_or_insert_with(Instant::now);
        Ok((since.elapsed() >= self.settings.lease).then_some(page))
    }

    fn since(&self) -> std::sync::MutexGuard<'_, Option<Instant>> {
        self.answering_since.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// True if this run took the job over.
    async fn take_over(&self, expired: &Expired) -> Result<bool, StoreError> {
        if !expired.history_known {
            tracing::warn!(job = %expired.job, attempt = %expired.attempt, "a silent attempt is left as it is: the database may have lost commits, and a person has to say what was lost (waybill database accept)");
            return Ok(false);
        }
        let by = TakeOver { job: expired.job, attempt: expired.attempt, run: self.run() };
        let max_attempts = self.settings.max_attempts;
        let case = expired.case(max_attempts);
        let write = match case {
            Case::Requeue => take_over::requeue(&self.pool, by, max_attempts).await?,
            Case::Stop => take_over::stop(&self.pool, by).await?,
            Case::Exhaust => take_over::exhaust(&self.pool, by, max_attempts).await?,
            Case::Resolve => self.resolve(expired, by).await?,
        };
        match &write {
            Write::Written(()) => {
                tracing::info!(job = %expired.job, attempt = %expired.attempt, worker = expired.worker, case = name(case), "taken over");
            }
            Write::Refused(found) => {
                tracing::debug!(job = %expired.job, attempt = %expired.attempt, status = %found.status, "not taken over: it moved on");
            }
            Write::Absent => {}
        }
        Ok(write.is_written())
    }

    async fn resolve(&self, expired: &Expired, by: TakeOver) -> Result<Write<()>, StoreError> {
        // Without the fence nothing at the partner is this attempt's, so there is nothing to look for.
        let inspection = if fenced(expired) && self.inspector.serves(expired.destination) {
            self.inspector.inspect(&self.pool, expired.job, expired.attempt, LOOKS_WITHIN).await?.ok()
        } else {
            None
        };
        let Some(inspection) = inspection else {
            let why =
                if fenced(expired) { "no host that runs recovery serves its destination" } else { "no publish fence" };
            let proof = serde_json::json!({ "why": why });
            return self.record(by, Resolution::OutcomeUnknown, proof, None).await;
        };
        let conclusion = inspection.facts.as_ref().map(conclude);
        let proof = serde_json::json!({
            "conclusion": conclusion.map(Conclusion::code),
            "sentence": conclusion.map(Conclusion::sentence),
            "observation": inspection.seen(),
        });
        // Evidence first: what the takeover does not conclude from, the reconciler will.
        let observed = Evidence::Observation(inspection.observation.clone());
        let appended = store::append_evidence(&self.pool, by.job, by.attempt, &by.run, &observed).await?;
        let resolution = match conclusion {
            // A plugin that trapped leaves it to the reconciler, whose looks have time.
            Some(Conclusion::Completed(proof)) if appended.is_written() && inspection.observation.call.is_none() => {
                Resolution::Completed(ground(proof, &inspection))
            }
            Some(Conclusion::Completed(_) | Conclusion::NotDelivered(_) | Conclusion::Unknown(_)) | None => {
                Resolution::OutcomeUnknown
            }
        };
        let within = inspection.acknowledgment_period;
        inspection.close().await;
        let write = self.record(by.clone(), resolution, proof.clone(), within).await?;
        match (&write, resolution) {
            // Another attempt of the key took the evidence's meaning away; that it is unknown still holds.
            (Write::Refused(_), Resolution::Completed(_)) => {
                self.record(by, Resolution::OutcomeUnknown, proof, within).await
            }
            (Write::Written(()) | Write::Refused(_) | Write::Absent, _) => Ok(write),
        }
    }

    async fn record(
        &self,
        take_over: TakeOver,
        resolution: Resolution,
        proof: serde_json::Value,
        acknowledgment_within: Option<Duration>,
    ) -> Result<Write<()>, StoreError> {
        let look_after = self.settings.look_after;
        take_over::resolve(&self.pool, Resolve { take_over, resolution, proof, look_after, acknowledgment_within })
            .await
    }

    /// Unique to a takeover, since it proves one whose answer was lost.
    fn run(&self) -> String {
        format!("recovery {} {}", self.settings.owner, Uuid::new_v4().simple())
    }
}

/// Past the publish fence only the partner's server can tell what became of an attempt.
const fn fenced(expired: &Expired) -> bool {
    matches!(expired.standing, Standing::Delivering { publish_intended: true })
}

const fn name(case: Case) -> &'static str {
    match case {
        Case::Requeue => "requeued",
        Case::Stop => "stopped",
        Case::Exhaust => "exhausted",
        Case::Resolve => "resolved",
    }
}
