//! The lease keeper: one actor a host, a handle an attempt.
//!
//! It renews each attempt's lease from the confirmed claim until the attempt's last write. A renewal that fails stops
//! nothing and is tried again soon; one that matches nothing means that a takeover was committed, and ends preparation
//! at once (past cutoff 2 nobody listens). An attempt's renewals never run at once: one that is asked for waits for the
//! scheduled one. It does not decide who owns a job; the statement does.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;
use uuid::Uuid;

use crate::attempt::{Stop, StopReason};

/// What became of one renewal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Renewal {
    Renewed,
    /// It matched nothing: the attempt lost the job, or has made its last write.
    Lost,
    /// The database gave no answer that counts.
    Failed {
        why: String,
    },
}

/// Renews one attempt's lease in the database.
pub type Renew = Arc<dyn Fn(Uuid, Uuid) -> BoxFuture<'static, Renewal> + Send + Sync>;

/// Tries of a renewal that is asked for, before the attempt gives up.
const TRIES: u32 = 4;

/// Keeps the leases of a host's attempts.
#[derive(Clone)]
pub struct Keeper {
    commands: mpsc::UnboundedSender<Command>,
}

/// One attempt's hold on the keeper. Dropping it without [`Held::finish`] ends the renewals too.
pub struct Held {
    attempt: Uuid,
    commands: mpsc::UnboundedSender<Command>,
}

enum Command {
    Keep { job: Uuid, attempt: Uuid, stop: Stop },
    RenewNow { attempt: Uuid, answer: oneshot::Sender<bool> },
    Finish { attempt: Uuid, done: Option<oneshot::Sender<()>> },
}

impl Keeper {
    /// Starts the actor. `every` should leave room for a few failures within the length of a lease.
    pub fn start(renew: Renew, every: Duration) -> Self {
        let (commands, inbox) = mpsc::unbounded_channel();
        tokio::spawn(Actor { renew, every, leases: HashMap::new(), renewals: FuturesUnordered::new() }.run(inbox));
        Self { commands }
    }

    /// Keeps the attempt's lease from now on.
    pub fn keep(&self, job: Uuid, attempt: Uuid, stop: Stop) -> Held {
        // The actor ends only with its last sender, so the send cannot fail while `self` lives.
        let _ = self.commands.send(Command::Keep { job, attempt, stop });
        Held { attempt, commands: self.commands.clone() }
    }
}

impl Held {
    /// Renews now, a few times if the database does not answer. False if a takeover was committed or the tries ran out.
    pub async fn renew_now(&self) -> bool {
        let (answer, answered) = oneshot::channel();
        let _ = self.commands.send(Command::RenewNow { attempt: self.attempt, answer });
        answered.await.unwrap_or(false)
    }

    /// Ends the renewals and waits for one that is under way; what that one finds is no loss.
    pub async fn finish(&self) {
        let (done, finished) = oneshot::channel();
        let _ = self.commands.send(Command::Finish { attempt: self.attempt, done: Some(done) });
        let _ = finished.await;
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let _ = self.commands.send(Command::Finish { attempt: self.attempt, done: None });
    }
}

struct Actor {
    renew: Renew,
    every: Duration,
    leases: HashMap<Uuid, Lease>,
    renewals: FuturesUnordered<BoxFuture<'static, (Uuid, Renewal)>>,
}

struct Lease {
    job: Uuid,
    stop: Stop,
    /// When the next renewal is due; none while one is under way, and none after a loss.
    due: Option<Instant>,
    under_way: bool,
    lost: bool,
    /// Asked for since the renewal under way began, and how many tries were made for them.
    asked: Vec<oneshot::Sender<bool>>,
    served: Vec<oneshot::Sender<bool>>,
    tries: u32,
    finishing: Option<Vec<oneshot::Sender<()>>>,
}

impl Actor {
    async fn run(mut self, mut inbox: mpsc::UnboundedReceiver<Command>) {
        loop {
            let due = self.leases.values().filter_map(|lease| lease.due).min();
            tokio::select! {
                // An end that was told before a renewal's answer is known first: what that renewal found is no loss then.
                biased;
                command = inbox.recv() => match command {
                    Some(command) => self.obey(command),
                    None => return,
                },
                Some((attempt, renewal)) = self.renewals.next(), if !self.renewals.is_empty() => self.renewed(attempt, &renewal),
                () = sleep_until(due), if due.is_some() => self.renew_what_is_due(),
            }
        }
    }

    fn obey(&mut self, command: Command) {
        match command {
            Command::Keep { job, attempt, stop } => {
                let due = Some(Instant::now() + self.every);
                let lease = Lease {
                    job,
                    stop,
                    due,
                    under_way: false,
                    lost: false,
                    asked: Vec::new(),
                    served: Vec::new(),
                    tries: 0,
                    finishing: None,
                };
                self.leases.insert(attempt, lease);
            }
            Command::RenewNow { attempt, answer } => match self.leases.get_mut(&attempt) {
                Some(lease) if !lease.lost && lease.finishing.is_none() => {
                    lease.asked.push(answer);
                    if !lease.under_way {
                        lease.due = Some(Instant::now());
                    }
                }
                Some(_) | None => tell(answer, false),
            },
            Command::Finish { attempt, done } => {
                if let Some(lease) = self.leases.get_mut(&attempt) {
                    lease.due = None;
                    lease.finishing.get_or_insert_default().extend(done);
                    if !lease.under_way {
                        self.forget(attempt);
                    }
                } else if let Some(done) = done {
                    tell(done, ());
                }
            }
        }
    }

    fn renew_what_is_due(&mut self) {
        let now = Instant::now();
        for (attempt, lease) in &mut self.leases {
            if lease.due.is_some_and(|due| due <= now) {
                lease.due = None;
                lease.under_way = true;
                lease.served.append(&mut lease.asked);
                let (attempt, renewal) = (*attempt, (self.renew)(lease.job, *attempt));
                self.renewals.push(Box::pin(async move { (attempt, renewal.await) }));
            }
        }
    }

    fn renewed(&mut self, attempt: Uuid, renewal: &Renewal) {
        let Some(lease) = self.leases.get_mut(&attempt) else { return };
        lease.under_way = false;
        if lease.finishing.is_some() {
            // After the last write a renewal finds nothing to renew; that is no loss.
            self.forget(attempt);
            return;
        }
        let now = Instant::now();
        match renewal {
            Renewal::Renewed => {
                lease.tries = 0;
                lease.answer(true);
                lease.due = Some(if lease.asked.is_empty() { now + self.every } else { now });
            }
            Renewal::Lost => {
                tracing::warn!(job = %lease.job, %attempt, "the lease could not be renewed: the job was taken over");
                lease.lost = true;
                lease.stop.signal(StopReason::OwnershipLost);
                lease.answer(false);
                lease.asked.drain(..).for_each(|answer| tell(answer, false));
            }
            Renewal::Failed { why } => {
                tracing::warn!(job = %lease.job, %attempt, why, "the lease could not be renewed; trying again");
                lease.tries += 1;
                let wait = self.every / 8;
                if !lease.served.is_empty() && lease.tries >= TRIES {
                    lease.tries = 0;
                    lease.answer(false);
                }
                // Those who asked stay in line for the next try.
                lease.asked.append(&mut lease.served);
                lease.due = Some(now + wait);
            }
        }
    }

    fn forget(&mut self, attempt: Uuid) {
        if let Some(lease) = self.leases.remove(&attempt) {
            lease.finishing.into_iter().flatten().for_each(|done| tell(done, ()));
            lease.asked.into_iter().chain(lease.served).for_each(|answer| tell(answer, false));
        }
    }
}

impl Lease {
    fn answer(&mut self, renewed: bool) {
        self.served.drain(..).for_each(|answer| tell(answer, renewed));
    }
}

/// Answers someone who may no longer be waiting.
fn tell<T>(answer: oneshot::Sender<T>, value: T) {
    let _ = answer.send(value);
}

async fn sleep_until(due: Option<Instant>) {
    match due {
        Some(due) => tokio::time::sleep_until(due).await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::sync::Mutex;

    use tokio::sync::Semaphore;

    use super::*;

    /// Renewals that begin when they are called and end when the test lets them.
    struct Script {
        answers: Mutex<VecDeque<Renewal>>,
        begun: Semaphore,
        may_end: Semaphore,
    }

    impl Script {
        fn new(answers: Vec<Renewal>) -> Arc<Self> {
            Arc::new(Self { answers: Mutex::new(answers.into()), begun: Semaphore::new(0), may_end: Semaphore::new(0) })
        }

        fn renew(self: &Arc<Self>) -> Renew {
            let script = Arc::clone(self);
            Arc::new(move |_, _| {
                let script = Arc::clone(&script);
                Box::pin(async move {
                    script.begun.add_permits(1);
                    script.may_end.acquire().await.unwrap().forget();
                    script.answers.lock().unwrap().pop_front().unwrap_or(Renewal::Renewed)
                })
            })
        }

        /// Waits until one more renewal has begun.
        async fn one_begins(&self) {
            self.begun.acquire().await.unwrap().forget();
        }

        fn let_end(&self, renewals: usize) {
            self.may_end.add_permits(renewals);
        }
    }

    fn failed() -> Renewal {
        Renewal::Failed { why: "the line was cut".to_owned() }
    }

    const SOON: Duration = Duration::from_millis(5);
    const NEVER: Duration = Duration::from_hours(1);
    /// Long enough for a loaded machine; a wait that needs it has failed.
    const BOUND: Duration = Duration::from_secs(20);

    #[tokio::test]
    async fn lse_04_a_renewal_that_fails_stops_nothing_and_is_tried_again() {
        let script = Script::new(vec![failed(), failed(), failed()]);
        let stop = Stop::new();
        let held = Keeper::start(script.renew(), SOON).keep(Uuid::nil(), Uuid::nil(), stop.clone());
        script.let_end(1000);
        for _ in 0..4 {
            script.one_begins().await;
        }
        assert_eq!(stop.reason(), None);
        assert!(held.renew_now().await);
    }

    #[tokio::test]
    async fn lse_04_a_renewal_that_matches_nothing_ends_preparation_at_once() {
        let script = Script::new(vec![Renewal::Lost]);
        let stop = Stop::new();
        let held = Keeper::start(script.renew(), SOON).keep(Uuid::nil(), Uuid::nil(), stop.clone());
        script.let_end(1);
        tokio::time::timeout(BOUND, stop.token().cancelled()).await.expect("preparation goes on without the job");
        assert_eq!(stop.reason(), Some(StopReason::OwnershipLost));
        assert!(!held.renew_now().await, "a lost lease is not renewed again");
        script.one_begins().await;
        assert_eq!(script.begun.available_permits(), 0);
    }

    #[tokio::test]
    async fn lse_05_an_asked_and_a_scheduled_renewal_do_not_run_at_once() {
        let script = Script::new(Vec::new());
        let keeper = Keeper::start(script.renew(), SOON);
        let held = keeper.keep(Uuid::nil(), Uuid::nil(), Stop::new());
        script.one_begins().await;
        let asked = async {
            let answers = futures::join!(held.renew_now(), held.renew_now());
            assert_eq!(answers, (true, true));
        };
        let watched = async {
            // The keeper obeys in order: once it answered about this unknown attempt, it has seen both askings.
            let other = Held { attempt: Uuid::max(), commands: keeper.commands.clone() };
            tokio::task::yield_now().await;
            assert!(!other.renew_now().await);
            assert_eq!(script.begun.available_permits(), 0, "a second renewal ran beside the first");
            script.let_end(1);
            script.one_begins().await;
            script.let_end(1);
        };
        futures::join!(asked, watched);
    }

    #[tokio::test]
    async fn lse_05_a_renewal_under_way_at_the_last_write_reports_no_loss() {
        let script = Script::new(vec![Renewal::Lost]);
        let stop = Stop::new();
        let held = Keeper::start(script.renew(), SOON).keep(Uuid::nil(), Uuid::nil(), stop.clone());
        script.one_begins().await;
        let ending = async { script.let_end(1) };
        futures::join!(held.finish(), ending);
        assert_eq!(stop.reason(), None);
        assert_eq!(script.begun.available_permits(), 0, "nothing is renewed after the last write");
    }

    #[tokio::test]
    async fn a_database_that_never_answers_makes_an_asked_renewal_give_up() {
        let script = Script::new(std::iter::repeat_with(failed).take(20).collect());
        let held = Keeper::start(script.renew(), NEVER / 3_600_000).keep(Uuid::nil(), Uuid::nil(), Stop::new());
        script.let_end(1000);
        assert!(!held.renew_now().await);
    }
}
