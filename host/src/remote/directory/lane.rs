//! How many calls may be under way at one directory.
//!
//! A call at a share that hangs keeps its thread, given up or not, until the share answers. The process has some hundreds of such
//! threads for everything that blocks, the spool's files among them; here a dead share is kept from taking them all.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// More than the deliveries of one host that usually go to one directory at the same time; a further one waits its turn.
const CALLS: usize = 32;

/// The lane of one directory, which all its sessions in this process share.
#[derive(Debug, Clone)]
pub(super) struct Lane(Arc<Semaphore>);

impl Lane {
    /// Paths are those of destinations, so they are few.
    pub(super) fn of(path: &Path) -> Self {
        static LANES: LazyLock<Mutex<HashMap<PathBuf, Lane>>> = LazyLock::new(Mutex::default);
        let mut lanes = LANES.lock().unwrap_or_else(PoisonError::into_inner);
        lanes.entry(path.to_owned()).or_insert_with(|| Self(Arc::new(Semaphore::new(CALLS)))).clone()
    }

    /// Waits for a place, which the call keeps until it really ended.
    pub(super) async fn enter(&self, within: Duration) -> Result<OwnedSemaphorePermit, String> {
        match tokio::time::timeout(within, Arc::clone(&self.0).acquire_owned()).await {
            Ok(Ok(place)) => Ok(place),
            Ok(Err(_)) | Err(_) => Err(format!(
                "{CALLS} earlier calls there have not ended, and no more are made until some do; is the share still alive?"
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn bad_input_a_share_that_hangs_is_asked_no_more_than_so_often() {
        let (dead, alive) = (Lane::of(Path::new("/mnt/dead")), Lane::of(Path::new("/mnt/alive")));
        let within = Duration::ZERO;
        let mut held = Vec::new();
        for _ in 0..CALLS {
            held.push(dead.enter(within).await.unwrap());
        }
        // A later session at the same directory finds the same lane.
        let refused = Lane::of(Path::new("/mnt/dead")).enter(within).await.unwrap_err();
        assert!(refused.contains("is the share still alive"), "{refused}");
        assert!(alive.enter(within).await.is_ok());
        held.pop();
        assert!(dead.enter(within).await.is_ok());
    }
}
