//! Why preparation should end early. Past cutoff 2 only a lost job is listened to, and only before the publish fence.

use std::sync::{Arc, OnceLock};

use tokio_util::sync::CancellationToken;

/// The first reason counts; later ones find the attempt already ending.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopReason {
    /// An operator's request is recorded on the row.
    Requested,
    /// A renewal matched nothing: a takeover was committed.
    OwnershipLost,
    /// The host is shutting down: the work is handed back.
    ShuttingDown,
}

/// A signal to end preparation, with its reason.
#[derive(Debug, Clone, Default)]
pub struct Stop {
    token: CancellationToken,
    lost: CancellationToken,
    reason: Arc<OnceLock<StopReason>>,
}

impl Stop {
    pub fn new() -> Self {
        Self::default()
    }

    /// Signals the end.
    pub fn signal(&self, reason: StopReason) {
        // A second reason is not an error: the attempt ends by the first.
        let _ = self.reason.set(reason);
        if reason == StopReason::OwnershipLost {
            self.lost.cancel();
        }
        self.token.cancel();
    }

    /// The reason, once it was signalled.
    pub fn reason(&self) -> Option<StopReason> {
        self.reason.get().copied()
    }

    /// Fires when the job was lost to a takeover, whatever was signalled before.
    pub fn lost(&self) -> &CancellationToken {
        &self.lost
    }

    /// For code that ends its work when the signal comes.
    pub fn token(&self) -> &CancellationToken {
        &self.token
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lse_03_a_lost_job_is_told_also_after_a_stop_request_and_nothing_else_is() {
        let stop = Stop::new();
        stop.signal(StopReason::Requested);
        stop.signal(StopReason::ShuttingDown);
        assert!(!stop.lost().is_cancelled(), "past cutoff 2 neither ends an upload");
        stop.signal(StopReason::OwnershipLost);
        assert!(stop.lost().is_cancelled());
        assert_eq!(stop.reason(), Some(StopReason::Requested));
    }
}
