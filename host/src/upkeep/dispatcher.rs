//! The dispatcher: hands what the outbox holds to the broker.
//!
//! A run claims a page under one lease, publishes each entry, completes or fails it, and goes on while pages are full.
//! Any number of dispatchers share the work. An entry that its dispatcher lost, by dying or by a lost answer, is
//! published again by the next one, under the same message id.
//!
//! Rule: an entry is complete only after the broker acknowledged it, and only a write that answered `applied` counts as
//! this dispatcher's work. Not promised: that an entry is published only once.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::broker::{BrokerError, Published, Publisher};
use crate::policy::growing_delay;
use crate::store::{self, ClaimedEntry, OutboxAnswer, Pool, StoreError};

/// How a dispatcher works.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DispatcherSettings {
    /// Who holds the claims, for people; unique to a process.
    pub owner: String,
    /// Entries that are claimed under one lease.
    pub page: u32,
    /// How long a page is kept from other dispatchers.
    pub lease: Duration,
    /// Longest wait for the broker's acknowledgment of one entry.
    pub publish_timeout: Duration,
    /// When an entry comes again after its first failure; doubled with each further one.
    pub first_retry: Duration,
    pub longest_retry: Duration,
}

impl DispatcherSettings {
    /// The defaults: pages of ten, five seconds a publish, a lease of a minute, retries from one second to five minutes.
    pub fn new(owner: impl Into<String>) -> Self {
        Self {
            owner: owner.into(),
            page: 10,
            lease: Duration::from_mins(1),
            publish_timeout: Duration::from_secs(5),
            first_retry: Duration::from_secs(1),
            longest_retry: Duration::from_mins(5),
        }
    }
}

/// Why a dispatcher cannot work as it is set up.
#[derive(Debug, thiserror::Error)]
pub enum DispatcherError {
    #[error("the dispatcher's page is empty; claim at least one entry at a time")]
    EmptyPage,
    #[error(
        "the dispatcher's lease of {lease:?} does not outlast a page of {page} entries with {publish_timeout:?} each, \
         so the last ones would be published twice in normal running; lengthen the lease, or shrink the page or the timeout"
    )]
    LeaseTooShort { lease: Duration, page: u32, publish_timeout: Duration },
}

/// What one run did.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Drained {
    pub pages: u32,
    /// Entries that this dispatcher completed, by what the broker had said.
    pub completed: BTreeMap<Published, u32>,
    /// Entries that this dispatcher failed, by the error's code; they come again.
    pub failed: BTreeMap<&'static str, u32>,
    /// Writes that were another's work, or nobody's.
    pub not_ours: BTreeMap<OutboxAnswer, u32>,
    /// Entries that were let go of untouched, because the lease or the process was ending.
    pub released: u64,
}

/// A dispatcher.
pub struct Dispatcher {
    pool: Pool,
    publisher: Publisher,
    settings: DispatcherSettings,
    stop: CancellationToken,
}

impl Dispatcher {
    /// Over the dispatcher's pool. Told to stop, a run ends after the entry in hand and lets go of the rest of its page.
    pub fn new(
        pool: Pool,
        publisher: Publisher,
        settings: DispatcherSettings,
        stop: CancellationToken,
    ) -> Result<Self, DispatcherError> {
        let DispatcherSettings { page, lease, publish_timeout, .. } = settings;
        if page == 0 {
            return Err(DispatcherError::EmptyPage);
        }
        if publish_timeout.checked_mul(page).is_none_or(|longest| lease <= longest) {
            return Err(DispatcherError::LeaseTooShort { lease, page, publish_timeout });
        }
        Ok(Self { pool, publisher, settings, stop })
    }

    /// Drains the outbox of what is ready.
    pub async fn run_once(&self) -> Result<Drained, StoreError> {
        let mut drained = Drained::default();
        while !self.stop.is_cancelled() {
            let token = Uuid::new_v4();
            // Taken before the claim, so that our idea of the lease never outlasts the database's.
            let claimed_at = Instant::now();
            let DispatcherSettings { owner, page, lease, .. } = &self.settings;
            let entries = store::claim_outbox(&self.pool, owner, token, *page, *lease).await?;
            let full = u32::try_from(entries.len()).is_ok_and(|claimed| claimed == *page);
            if !entries.is_empty() {
                drained.pages += 1;
                self.drain(token, claimed_at, &entries, &mut drained).await?;
            }
            if !full {
                break;
            }
        }
        Ok(drained)
    }

    async fn drain(
        &self,
        token: Uuid,
        claimed_at: Instant,
        entries: &[ClaimedEntry],
        drained: &mut Drained,
    ) -> Result<(), StoreError> {
        let mut untouched = entries.iter();
        while let Some(entry) = untouched.as_slice().first() {
            // A slow database may have eaten the lease; the next publish would then race another dispatcher's.
            let leased = claimed_at.elapsed() + self.settings.publish_timeout < self.settings.lease;
            if self.stop.is_cancelled() || !leased {
                let rest: Vec<Uuid> = untouched.map(|entry| entry.message).collect();
                drained.released += store::release_outbox(&self.pool, token, &rest).await?;
                return Ok(());
            }
            untouched.next();
            self.dispatch(entry, drained).await?;
        }
        Ok(())
    }

    async fn dispatch(&self, entry: &ClaimedEntry, drained: &mut Drained) -> Result<(), StoreError> {
        let ClaimedEntry { message, job, token, .. } = *entry;
        match self.publish(message, job).await {
            Ok(published) => {
                let answer = store::complete_outbox(&self.pool, message, token).await?;
                if self.ours(entry, "complete", answer, drained) {
                    *drained.completed.entry(published).or_default() += 1;
                    tracing::debug!(%message, %job, ?published, "wake-up published");
                }
            }
            Err((code, error)) => {
                let failures = u32::try_from(entry.failures).unwrap_or(0).saturating_add(1);
                let backoff = growing_delay(failures, self.settings.first_retry, self.settings.longest_retry);
                let answer = store::fail_outbox(&self.pool, message, token, code, backoff).await?;
                if self.ours(entry, "fail", answer, drained) {
                    *drained.failed.entry(code).or_default() += 1;
                    tracing::warn!(%message, %job, code, error, failures, ?backoff, "a wake-up was not published; it is tried again");
                }
            }
        }
        Ok(())
    }

    /// The broker's acknowledgment, or a stable code and what happened. A publish that timed out may have happened.
    async fn publish(&self, message: Uuid, job: Uuid) -> Result<Published, (&'static str, String)> {
        let publish = self.publisher.publish(message, job);
        match tokio::time::timeout(self.settings.publish_timeout, publish).await {
            Ok(answer) => answer.map_err(|error: BrokerError| (error.code(), error.to_string())),
            Err(_) => Err(("publish_timeout", "the broker did not answer in time".to_owned())),
        }
    }

    fn ours(&self, entry: &ClaimedEntry, act: &'static str, answer: OutboxAnswer, drained: &mut Drained) -> bool {
        if answer == OutboxAnswer::Applied {
            return true;
        }
        *drained.not_ours.entry(answer).or_default() += 1;
        tracing::warn!(
            message = %entry.message, job = %entry.job, claims = entry.claims, owner = self.settings.owner, act,
            answer = answer.as_str(), "an outbox entry was not this dispatcher's to write any more"
        );
        false
    }
}
