//! A worker: receives wake-ups, asks policy, claims, and runs attempts, as many at once as it is allowed.
//!
//! A wake-up is a hint. It is settled once the row, and not the message, carries the job: claimed by this worker or by
//! another, or no longer queued. It is handed back with a delay while policy says later, and left alone where the claim's
//! answer was lost, so that it comes again.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use uuid::Uuid;

use super::keeper::{Keeper, Renew, Renewal};
use super::pause::Pauses;
use super::record::{Bounds, JobRecord, chain};
use super::stop_watcher::{Asked, StopWatcher};
use crate::attempt::{self, Means, Stop, StopReason, Terminal, Work};
use crate::broker::{Receiver, Subscription, Wakeup};
use crate::job::model::ClaimedJob;
use crate::job::status::Status;
use crate::plugin::{Registry, Served};
use crate::policy::{self, Clock, Decision, DestinationFacts, DestinationRules, Facts, Load, Pause, State, Weekday};
use crate::store::{self, Claim, PolicyFacts, Pool, Write};

/// What a worker is made of.
pub struct WorkerParts {
    /// For people and the lease's record; unique to a process.
    pub name: String,
    pub pool: Pool,
    /// The lease keeper's own, so that a burst of other statements never keeps a renewal waiting.
    pub keeper_pool: Pool,
    pub receiver: Receiver,
    /// How often wake-ups are looked for without a hint.
    pub poll: Duration,
    /// What this host can serve; it changes while the worker runs.
    pub registry: Registry,
    pub means: Means,
    pub lease: Duration,
    pub renew_every: Duration,
    /// `None`: no watcher; cutoff 2 still refuses what was asked to stop.
    pub watch_stop_every: Option<Duration>,
    pub concurrency: usize,
    pub bounds: Bounds,
}

/// Runs attempts until it is told to end.
pub struct Worker {
    shared: Arc<Shared>,
    permits: Arc<Semaphore>,
    attempts: TaskTracker,
    poll: Duration,
}

struct Shared {
    name: String,
    pool: Pool,
    receiver: Receiver,
    registry: Registry,
    means: Means,
    lease: Duration,
    keeper: Keeper,
    watcher: StopWatcher,
    pauses: Pauses,
    bounds: Bounds,
    /// Ends preparation; deliveries go on within the shutdown's bound.
    shutdown: CancellationToken,
}

/// Wait before a job is looked at again that stayed queued although policy allowed it.
const LOOK_AGAIN: Duration = Duration::from_mins(1);
/// Wait of a job that would have probed a paused destination, had not another one been faster.
const PROBE_AGAIN: Duration = Duration::from_secs(15);

impl Worker {
    pub fn new(parts: WorkerParts) -> Self {
        let watcher = match parts.watch_stop_every {
            Some(every) => StopWatcher::start(asked(parts.pool.clone()), every),
            None => StopWatcher::disabled(),
        };
        let shared = Shared {
            name: parts.name,
            pauses: Pauses::new(parts.pool.clone()),
            pool: parts.pool,
            receiver: parts.receiver,
            registry: parts.registry,
            means: parts.means,
            keeper: Keeper::start(renewals(parts.keeper_pool, parts.lease), parts.renew_every),
            lease: parts.lease,
            watcher,
            bounds: parts.bounds,
            shutdown: CancellationToken::new(),
        };
        Self {
            shared: Arc::new(shared),
            permits: Arc::new(Semaphore::new(parts.concurrency.max(1))),
            attempts: TaskTracker::new(),
            poll: parts.poll,
        }
    }

    /// Receives and runs until `shutdown`, then hands back what is being prepared and waits at most `grace` for
    /// deliveries under way. True if all of them ended; what did not is left to recovery.
    pub async fn run(&self, shutdown: CancellationToken, grace: Duration) -> bool {
        let mut subscription = self.shared.receiver.clone().subscribe(self.poll);
        while let Some(received) = self.receive(&mut subscription, &shutdown).await {
            for (wakeup, permit) in received {
                let shared = Arc::clone(&self.shared);
                self.attempts.spawn(async move {
                    shared.handle(wakeup).await;
                    drop(permit);
                });
            }
        }
        self.shared.shutdown.cancel();
        self.attempts.close();
        let ended = tokio::time::timeout(grace, self.attempts.wait()).await.is_ok();
        self.shared.means.sessions.close().await;
        ended
    }

    /// As many wake-ups as there is room for; `None` once the worker is told to end.
    async fn receive(
        &self,
        subscription: &mut Subscription,
        shutdown: &CancellationToken,
    ) -> Option<Vec<(Wakeup, OwnedSemaphorePermit)>> {
        loop {
            let first = tokio::select! {
                biased;
                () = shutdown.cancelled() => return None,
                permit = Arc::clone(&self.permits).acquire_owned() => permit.ok()?,
            };
            let mut permits = vec![first];
            while let Ok(permit) = Arc::clone(&self.permits).try_acquire_owned() {
                permits.push(permit);
            }
            let most = u32::try_from(permits.len()).unwrap_or(u32::MAX);
            let received = tokio::select! {
                biased;
                () = shutdown.cancelled() => return None,
                received = subscription.next(|| self.shared.registry.destinations(), most) => received,
            };
            match received {
                Ok(wakeups) if wakeups.is_empty() => {}
                Ok(wakeups) => return Some(wakeups.into_iter().zip(permits).collect()),
                Err(error) => {
                    tracing::warn!(error = chain(&error), "no wake-ups could be received; trying again");
                    tokio::select! {
                        () = shutdown.cancelled() => return None,
                        () = tokio::time::sleep(Duration::from_secs(1)) => {}
                    }
                }
            }
        }
    }
}

impl Shared {
    async fn handle(&self, wakeup: Wakeup) {
        match self.consider(&wakeup).await {
            Next::Settle => self.settle(&wakeup).await,
            Next::HandBack(after) => {
                if let Err(error) = self.receiver.hand_back(&wakeup, after).await {
                    tracing::warn!(job = %wakeup.job, error = chain(&error), "a wake-up could not be handed back; it comes again by itself");
                }
            }
            Next::LeaveIt => {}
            Next::Run { job, served, was_paused } => {
                self.settle(&wakeup).await;
                self.attempt(*job, served, was_paused).await;
            }
        }
    }

    async fn settle(&self, wakeup: &Wakeup) {
        if let Err(error) = self.receiver.settle(wakeup).await {
            // It comes again, finds the job claimed or ended, and does nothing.
            tracing::warn!(job = %wakeup.job, error = chain(&error), "a wake-up could not be settled");
        }
    }

    /// Up to cutoff 1: the row, policy, the claim.
    async fn consider(&self, wakeup: &Wakeup) -> Next {
        let rate = self.registry.find(wakeup.destination).and_then(|served| served.destination.rules.rate);
        let rate_period = rate.map(|rate| Duration::from_secs(rate.seconds.into()));
        let read = match store::policy_facts(&self.pool, wakeup.job, rate_period).await {
            Ok(Some(read)) if read.status == Status::Queued => read,
            Ok(_) => return Next::Settle,
            Err(error) => return self.leave(wakeup, &error),
        };
        // From here to its end this attempt works with what is served at this moment.
        let served = self.registry.find(read.destination);
        let unruled = DestinationRules::default();
        let rules = served.as_ref().map_or(&unruled, |served| &served.destination.rules);
        let facts = facts(&read, served.is_some(), rules);
        let decision = policy::evaluate(&facts);
        match decision {
            Decision::Reject(rejection) => {
                let document = serde_json::to_value(&rejection).unwrap_or_default();
                match store::reject(&self.pool, wakeup.job, read.version, document).await {
                    Ok(written) => {
                        if written.is_written() {
                            tracing::info!(job = %wakeup.job, from = "Queued", to = "Rejected", code = rejection.code, why = rejection.sentence, "rejected by policy");
                        }
                        Next::Settle
                    }
                    Err(error) => self.leave(wakeup, &error),
                }
            }
            Decision::Later { after, code, sentence } => {
                tracing::debug!(job = %wakeup.job, ?after, code, sentence, "policy says later");
                Next::HandBack(after)
            }
            Decision::Allow => {
                let is_probe = policy::is_probe(&facts);
                let Some(served) = served else { return Next::HandBack(LOOK_AGAIN) };
                if is_probe && !self.takes_the_probe(read.destination, wakeup.job).await {
                    return Next::HandBack(PROBE_AGAIN);
                }
                self.claim(wakeup, read.version, served, read.pause.is_some()).await
            }
        }
    }

    /// One job at a time tries whether a paused destination answers again.
    async fn takes_the_probe(&self, destination: Uuid, job: Uuid) -> bool {
        match store::take_probe(&self.pool, destination, job, self.lease).await {
            Ok(taken) => taken,
            Err(error) => {
                tracing::warn!(%destination, error = chain(&error), "the probe of a paused destination could not be taken");
                false
            }
        }
    }

    /// Cutoff 1.
    async fn claim(&self, wakeup: &Wakeup, version: i32, served: Served, was_paused: bool) -> Next {
        let attempt = Uuid::now_v7();
        let claim = Claim {
            job: wakeup.job,
            version,
            attempt,
            worker: self.name.clone(),
            lease: self.lease,
            digests: served.destination.digests.clone(),
        };
        match store::claim(&self.pool, claim).await {
            Ok(Write::Written(claimed)) => {
                tracing::info!(job = %claimed.id, attempt = %attempt, count = claimed.attempt_count, from = "Queued", to = "Running", "claimed");
                Next::Run { job: Box::new(claimed), served, was_paused }
            }
            // Still queued on the same terms, for a reason that policy did not see: the wake-up must not be lost.
            Ok(Write::Refused(found)) if found.status == Status::Queued && found.version == version => {
                tracing::warn!(job = %wakeup.job, due = found.due, enabled = found.destination_enabled, history_known = found.history_known,
                    "the claim was refused and the job is still queued; looking again later");
                Next::HandBack(LOOK_AGAIN)
            }
            Ok(Write::Refused(_) | Write::Absent) => Next::Settle,
            Err(error) => self.leave(wakeup, &error),
        }
    }

    fn leave(&self, wakeup: &Wakeup, error: &store::StoreError) -> Next {
        tracing::warn!(job = %wakeup.job, worker = self.name, error = chain(error), "the wake-up is left unsettled; it comes again");
        Next::LeaveIt
    }

    /// From the confirmed claim to the attempt's last write.
    async fn attempt(&self, job: ClaimedJob, served: Served, was_paused: bool) {
        let Served { bundle, destination } = served;
        let stop = Stop::new();
        let lease = self.keeper.keep(job.id, job.attempt, stop.clone());
        let _watched = self.watcher.watch(job.attempt, stop.clone());
        let record: Arc<dyn attempt::Record> = Arc::new(JobRecord {
            pool: self.pool.clone(),
            worker: self.name.clone(),
            job: job.id,
            attempt: job.attempt,
            attempt_count: job.attempt_count,
            original: job.replacement.as_ref().map(|replacement| replacement.original),
            destination: job.destination,
            checked: destination.digests.checked.clone(),
            contract: bundle.manifest.contract.clone(),
            bounds: self.bounds.clone(),
            lease,
            pauses: self.pauses.clone(),
            was_paused,
        });
        let work = Work { job, bundle, destination, means: self.means.clone(), stop: stop.clone() };
        let run = attempt::run(&work, record);
        let shutting_down = async {
            self.shutdown.cancelled().await;
            stop.signal(StopReason::ShuttingDown);
            std::future::pending::<()>().await;
        };
        let terminal: Terminal = tokio::select! {
            terminal = run => terminal,
            () = shutting_down => return,
        };
        tracing::debug!(job = %work.job.id, attempt = %work.job.attempt, ?terminal, "attempt over");
    }
}

/// What becomes of a wake-up.
enum Next {
    /// The row carries the job, or there is nothing to do.
    Settle,
    /// Not now.
    HandBack(Duration),
    /// Nothing is known: it comes again by itself.
    LeaveIt,
    /// Claimed, to be worked on with what was served then. `was_paused`: its destination could not be reached lately, and
    /// this job tries it.
    Run { job: Box<ClaimedJob>, served: Served, was_paused: bool },
}

/// What was read, as policy sees it.
fn facts<'a>(read: &'a PolicyFacts, served: bool, rules: &'a DestinationRules) -> Facts<'a> {
    let state = match (&read.attention, &read.pause) {
        (Some(why), _) => State::NeedsAttention { why },
        (None, Some(pause)) => {
            State::Paused(Pause { failures: pause.failures, since: pause.since, probing: pause.probing.is_some() })
        }
        (None, None) => State::Ready,
    };
    let day = Weekday::ALL.get(usize::from(read.weekday)).copied().unwrap_or(Weekday::Monday);
    Facts {
        tenant: read.tenant,
        scope: &read.scope,
        starts_in: read.starts_in,
        destination: Some(DestinationFacts {
            tenant: read.destination_tenant,
            name: &read.destination_name,
            served,
            enabled: read.enabled,
            state,
            rules,
            load: Load { started: read.started, oldest: read.oldest_start },
        }),
        clock: Clock { day, second: read.second_of_day },
        jitter: rand::random(),
    }
}

/// Renewals of leases with the store.
fn renewals(pool: Pool, lease: Duration) -> Renew {
    Arc::new(move |job, attempt| {
        let pool = pool.clone();
        Box::pin(async move {
            match store::renew(&pool, job, attempt, lease).await {
                Ok(Write::Written(())) => Renewal::Renewed,
                Ok(Write::Refused(_) | Write::Absent) => Renewal::Lost,
                Err(error) => Renewal::Failed { why: chain(&error) },
            }
        })
    })
}

/// Stop requests by the store. A look that fails is a look less.
fn asked(pool: Pool) -> Asked {
    Arc::new(move |attempts| {
        let pool = pool.clone();
        Box::pin(async move {
            match store::watch_stop(&pool, &attempts).await {
                Ok(asked) => asked,
                Err(error) => {
                    tracing::debug!(error = chain(&error), "stop requests could not be looked for");
                    Vec::new()
                }
            }
        })
    })
}
