//! Wake-ups on their way from the outbox to a worker.
//!
//! A wake-up is a hint: it names a job to look at, and everything starts from the job's row. Neighbours: the dispatcher
//! publishes what the outbox holds, workers receive, and the store keeps the rows of the broker that is the database.
//!
//! Rules kept here:
//! - A message's id is its outbox row's, so that publishing again after a lost answer makes no second wake-up while the
//!   first is unsettled.
//! - A worker receives only for the destinations that it serves.
//! - What is neither settled nor handed back comes again when the worker's hold ends, however often.
//! - Notifications only shorten the wait; polling finds everything without them.
//!
//! Not promised: that a wake-up is received only once, or that it still means anything when it is.

mod postgres;

pub use postgres::{Publisher, Receiver, Subscription};

use std::error::Error;

use uuid::Uuid;

use crate::store::StoreError;

/// A wake-up that this worker holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wakeup {
    pub message: Uuid,
    pub job: Uuid,
    /// The job's destination when it was published. The row tells the present one.
    pub destination: Uuid,
    /// Receipts so far, this one included.
    pub deliveries: i32,
    /// Proves the hold.
    token: Uuid,
}

/// What the broker said to a publish. Each means that the outbox entry is done.
#[must_use]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Published {
    Accepted,
    /// It has this message id already.
    Duplicate,
    /// The job is gone or not queued; whatever queues it again writes a wake-up of its own.
    NothingToWake,
}

/// Why the broker did not do what was asked. Each may be tried again.
#[derive(Debug, thiserror::Error)]
pub enum BrokerError {
    #[error("{act}: the broker could not be reached, and nothing was sent; see that it runs and accepts this login")]
    Unreachable { act: &'static str, source: Box<dyn Error + Send + Sync> },
    #[error("{act}: the broker's answer was lost; it may have been done")]
    Unanswered { act: &'static str, source: Box<dyn Error + Send + Sync> },
    #[error("{act}: the broker refused it; its own log says why")]
    Refused { act: &'static str, source: Box<dyn Error + Send + Sync> },
}

impl BrokerError {
    /// A stable code for the outbox and for metrics.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Unreachable { .. } => "broker_unreachable",
            Self::Unanswered { .. } => "broker_unanswered",
            Self::Refused { .. } => "broker_refused",
        }
    }

    fn of(act: &'static str, error: StoreError) -> Self {
        let source = Box::new(error);
        match *source {
            StoreError::NeverSent { .. } => Self::Unreachable { act, source },
            StoreError::MaybeCommitted { .. } => Self::Unanswered { act, source },
            StoreError::Answered { .. } | StoreError::Unreadable { .. } => Self::Refused { act, source },
        }
    }
}
