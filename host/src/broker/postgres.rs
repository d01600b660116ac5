//! The broker that is the database: one installation, nothing else to run.
//!
//! Publishing and receiving log in as different roles, and so are two types; a process makes those of its roles.

use std::time::Duration;

use futures::FutureExt;
use uuid::Uuid;

use super::{BrokerError, Published, Wakeup};
use crate::store::{self, Pool, PublishedWakeup, WakeupHint, WakeupHints};

/// The dispatcher's side.
#[derive(Debug, Clone)]
pub struct Publisher {
    pool: Pool,
}

impl Publisher {
    /// Over the dispatcher's pool.
    pub fn new(pool: Pool) -> Self {
        Self { pool }
    }

    /// Publishes a wake-up for a job under its outbox row's id. It is durable once this answers.
    pub async fn publish(&self, message: Uuid, job: Uuid) -> Result<Published, BrokerError> {
        let published =
            store::publish_wakeup(&self.pool, message, job).await.map_err(|error| BrokerError::of("publish", error))?;
        Ok(match published {
            PublishedWakeup::Published { destination } => {
                // Committed: from here on everything is a hint, and one that fails costs a worker its poll interval.
                if let Err(error) = store::hint_wakeup(&self.pool, destination).await {
                    tracing::debug!(%message, %job, %error, "no hint could be sent; a worker will find the wake-up by itself");
                }
                Published::Accepted
            }
            PublishedWakeup::Duplicate => Published::Duplicate,
            PublishedWakeup::NothingToWake => Published::NothingToWake,
        })
    }
}

/// A worker's side.
#[derive(Debug, Clone)]
pub struct Receiver {
    pool: Pool,
    worker: String,
    hold: Duration,
}

impl Receiver {
    /// Over the worker's pool. `hold`: how long a received wake-up is kept from others; policy and claim must fit in it,
    /// or [`Receiver::extend`] must be called.
    pub fn new(pool: Pool, worker: impl Into<String>, hold: Duration) -> Self {
        Self { pool, worker: worker.into(), hold }
    }

    /// Receives what is ready for these destinations, without waiting. If the future is dropped, what it had taken comes
    /// again when the hold ends.
    pub async fn receive(&self, served: &[Uuid], most: u32) -> Result<Vec<Wakeup>, BrokerError> {
        let received = store::receive_wakeups(&self.pool, &self.worker, Uuid::new_v4(), served, most, self.hold)
            .await
            .map_err(|error| BrokerError::of("receive", error))?;
        let wakeups = received.into_iter().map(|row| Wakeup {
            message: row.message,
            job: row.job,
            destination: row.destination,
            deliveries: row.deliveries,
            token: row.token,
        });
        Ok(wakeups.collect())
    }

    /// Ends a wake-up. False: it was no longer ours, which needs nothing done.
    pub async fn settle(&self, wakeup: &Wakeup) -> Result<bool, BrokerError> {
        store::settle_wakeup(&self.pool, wakeup.message, wakeup.token)
            .await
            .map_err(|error| BrokerError::of("settle", error))
    }

    /// Lets a wake-up come again after a delay, to whoever serves it then. False: it was no longer ours.
    pub async fn hand_back(&self, wakeup: &Wakeup, delay: Duration) -> Result<bool, BrokerError> {
        store::hand_back_wakeup(&self.pool, wakeup.message, wakeup.token, delay)
            .await
            .map_err(|error| BrokerError::of("hand_back", error))
    }

    /// Holds a wake-up for another while, from now on. False: it was no longer ours.
    pub async fn extend(&self, wakeup: &Wakeup) -> Result<bool, BrokerError> {
        store::hold_wakeup(&self.pool, wakeup.message, wakeup.token, self.hold)
            .await
            .map_err(|error| BrokerError::of("extend", error))
    }

    /// Receives and waits. `poll`: how often it looks without a hint, which also bounds how late a delayed wake-up is.
    pub fn subscribe(self, poll: Duration) -> Subscription {
        Subscription { receiver: self, poll, hints: None }
    }
}

/// A receiver that waits for hints between its looks.
pub struct Subscription {
    receiver: Receiver,
    poll: Duration,
    hints: Option<WakeupHints>,
}

impl Subscription {
    pub fn receiver(&self) -> &Receiver {
        &self.receiver
    }

    /// Waits until something is ready for what is served. It listens before it looks, so that nothing published in
    /// between waits for the next poll. What is served is asked before each look. May be dropped, as
    /// [`Receiver::receive`] may.
    pub async fn next(&mut self, served: impl Fn() -> Vec<Uuid>, most: u32) -> Result<Vec<Wakeup>, BrokerError> {
        loop {
            self.listen().await;
            let served = served();
            let received = self.receiver.receive(&served, most).await?;
            if !received.is_empty() {
                return Ok(received);
            }
            // Running out is the poll.
            let _ = tokio::time::timeout(self.poll, self.hint(&served)).await;
        }
    }

    async fn listen(&mut self) {
        if self.hints.is_none() {
            match store::listen_wakeups(&self.receiver.pool).await {
                Ok(hints) => self.hints = Some(hints),
                Err(error) => tracing::debug!(%error, "not listening for wake-ups; polling for them"),
            }
        }
        // What was hinted so far, the look that follows will find.
        while let Some(hints) = &mut self.hints {
            match hints.wait().now_or_never() {
                Some(Ok(_)) => {}
                Some(Err(_)) => self.hints = None,
                None => break,
            }
        }
    }

    /// Returns when a look may find something; never, if nobody listens.
    async fn hint(&mut self, served: &[Uuid]) {
        loop {
            let Some(hints) = &mut self.hints else { return std::future::pending().await };
            match hints.wait().await {
                Ok(WakeupHint::For(destination)) if !served.contains(&destination) => {}
                Ok(WakeupHint::For(_) | WakeupHint::Missed) => return,
                Err(error) => {
                    tracing::debug!(%error, "no longer listening for wake-ups; polling for them");
                    self.hints = None;
                }
            }
        }
    }
}
