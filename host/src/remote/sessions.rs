//! Keeps one session a destination open for its next job.
//!
//! A kept session belongs to nobody: taking it out removes it, so that two attempts never share one. It is kept only
//! if it is usable and no clone or request of it is alive, and is used again only after it answered a request.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::OwnedMutexGuard;
use tokio::time::Instant;
use uuid::Uuid;

use super::endpoint::Endpoint;
use super::error::ConnectError;
use super::session::{Session, SessionLimits};

/// How long a kept session may take to show that it lives; a new one costs about as much.
const PROOF_OF_LIFE: Duration = Duration::from_secs(5);

#[derive(Clone)]
pub struct Sessions {
    shared: Arc<Shared>,
}

struct Shared {
    limits: SessionLimits,
    idle: Duration,
    kept: Mutex<HashMap<Uuid, Kept>>,
    /// Whose server is being checked.
    checking: Mutex<HashMap<Uuid, Arc<tokio::sync::Mutex<()>>>>,
}

struct Kept {
    session: Session,
    endpoint: Endpoint,
    since: Instant,
}

impl Sessions {
    /// `idle` is how long an unused session is kept.
    pub fn new(limits: SessionLimits, idle: Duration) -> Self {
        Self { shared: Arc::new(Shared { limits, idle, kept: Mutex::default(), checking: Mutex::default() }) }
    }

    /// A session that nobody else has: the kept one if it lives and the endpoint has not changed, else a new one.
    pub async fn checkout(&self, destination: Uuid, endpoint: &Endpoint) -> Result<Session, ConnectError> {
        let kept = self.kept().remove(&destination);
        if let Some(kept) = kept {
            let fits =
                kept.endpoint == *endpoint && kept.since.elapsed() < self.shared.idle && kept.session.is_usable();
            if fits && tokio::time::timeout(PROOF_OF_LIFE, kept.session.ping()).await.is_ok_and(|answer| answer.is_ok())
            {
                return Ok(kept.session);
            }
            kept.session.close().await;
        }
        Session::connect(endpoint, &self.shared.limits).await
    }

    /// A turn to check a destination's server. Whoever waits for it finds what the one before kept.
    pub async fn turn_to_check(&self, destination: Uuid) -> OwnedMutexGuard<()> {
        let turn = {
            let mut checking = self.shared.checking.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(checking.entry(destination).or_default())
        };
        turn.lock_owned().await
    }

    /// Keeps the session for the destination's next job, or closes it.
    pub async fn give_back(&self, destination: Uuid, endpoint: &Endpoint, session: Session) {
        if !session.is_usable() || !session.is_sole() {
            session.close().await;
            return;
        }
        let since = Instant::now();
        let replaced = self.kept().insert(destination, Kept { session, endpoint: endpoint.clone(), since });
        if let Some(replaced) = replaced {
            replaced.session.close().await;
        }
        let (shared, idle) = (Arc::downgrade(&self.shared), self.shared.idle);
        tokio::spawn(async move {
            tokio::time::sleep(idle).await;
            let Some(shared) = shared.upgrade() else { return };
            let expired = {
                let mut kept = shared.kept();
                match kept.get(&destination) {
                    Some(entry) if entry.since == since => kept.remove(&destination),
                    _ => None,
                }
            };
            if let Some(expired) = expired {
                expired.session.close().await;
            }
        });
    }

    /// Closes every kept session, for the end of the process.
    pub async fn close(&self) {
        let kept: Vec<Kept> = self.kept().drain().map(|(_, kept)| kept).collect();
        futures::future::join_all(kept.iter().map(|kept| kept.session.close())).await;
    }

    fn kept(&self) -> MutexGuard<'_, HashMap<Uuid, Kept>> {
        self.shared.kept()
    }
}

impl Shared {
    /// The map is whole after every single change, so a panic elsewhere leaves it usable.
    fn kept(&self) -> MutexGuard<'_, HashMap<Uuid, Kept>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
