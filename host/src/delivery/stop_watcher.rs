//! The stop watcher: one a host. It makes a stop fast; cutoff 2 is what makes it sure.
//!
//! It asks the database, every so often and for all of this host's attempts at once, which of them have a recorded stop
//! request. A look that fails is only a look less.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::future::BoxFuture;
use uuid::Uuid;

use crate::attempt::{Stop, StopReason};

/// Answers which of these attempts have a recorded stop request.
pub type Asked = Arc<dyn Fn(Vec<Uuid>) -> BoxFuture<'static, Vec<Uuid>> + Send + Sync>;

/// Watches the attempts of a host.
#[derive(Clone, Default)]
pub struct StopWatcher {
    watched: Arc<Mutex<HashMap<Uuid, Stop>>>,
}

/// One attempt under watch, until it is dropped.
pub struct Watched {
    attempt: Uuid,
    watcher: StopWatcher,
}

impl StopWatcher {
    /// Starts to look every so often. The task ends with the last handle.
    pub fn start(asked: Asked, every: Duration) -> Self {
        let watcher = Self::default();
        let watched = Arc::downgrade(&watcher.watched);
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(every).await;
                let Some(watched) = watched.upgrade() else { return };
                let watcher = Self { watched };
                watcher.look(&asked).await;
            }
        });
        watcher
    }

    /// One that never looks; cutoff 2 still refuses.
    pub fn disabled() -> Self {
        Self::default()
    }

    /// Watches one attempt. Its job id is what a stop request names, its attempt id what it must still hold.
    pub fn watch(&self, attempt: Uuid, stop: Stop) -> Watched {
        self.watched().insert(attempt, stop);
        Watched { attempt, watcher: self.clone() }
    }

    async fn look(&self, asked: &Asked) {
        let attempts: Vec<Uuid> = self.watched().keys().copied().collect();
        if attempts.is_empty() {
            return;
        }
        for attempt in asked(attempts).await {
            if let Some(stop) = self.watched().get(&attempt) {
                stop.signal(StopReason::Requested);
            }
        }
    }

    /// The map is whole after every single change, so a panic elsewhere leaves it usable.
    fn watched(&self) -> MutexGuard<'_, HashMap<Uuid, Stop>> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        self.watcher.watched().remove(&self.attempt);
    }
}
