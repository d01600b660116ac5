//! The sweeper: wakes jobs that are queued longer than any wake-up takes.
//!
//! It backs up outbox, dispatcher, broker and workers, and asks none of them: a second wake-up does no harm, since only one
//! claim can win. A job that it has to wake again and again is told, because something else is wrong then.

use std::time::Duration;

use crate::store::{self, Pool, StoreError};

/// Jobs that one statement wakes at most, so that a large backlog never becomes one long transaction.
const BATCH: u16 = 500;

/// Sweeps of one job from which on somebody should look at it.
const TOO_OFTEN: i32 = 3;

/// A sweeper.
pub struct Sweeper {
    pool: Pool,
    older_than: Duration,
}

impl Sweeper {
    /// Over recovery's pool. `older_than` must exceed the longest wait that a job may have in the queue.
    pub fn new(pool: Pool, older_than: Duration) -> Self {
        Self { pool, older_than }
    }

    /// Wakes every job that is due; answers how many.
    pub async fn run_once(&self) -> Result<usize, StoreError> {
        let mut woken = 0;
        loop {
            let swept = store::sweep(&self.pool, self.older_than, BATCH).await?;
            for job in swept.iter().filter(|job| job.sweep_count >= TOO_OFTEN) {
                tracing::warn!(job = %job.job, sweeps = job.sweep_count, "a queued job had to be woken again; its wake-ups do not get through");
            }
            woken += swept.len();
            if swept.len() < usize::from(BATCH) {
                return Ok(woken);
            }
        }
    }
}
