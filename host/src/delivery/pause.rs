//! What a failed connection means for the destination, to its partner or to its tenant's database: it is paused, or waits for a
//! person.
//!
//! An unreachable endpoint pauses its destination with a growing delay, and one job at a time probes it; a key or a
//! credential that is refused, or is not there, needs a person. Policy reads both. What cannot be recorded here is only logged: the job
//! itself was handed back with a wake-up of its own.

use uuid::Uuid;

use super::record::chain;
use crate::store::{self, Pool};

/// Writes the pauses of destinations.
#[derive(Clone)]
pub struct Pauses {
    pool: Pool,
}

impl Pauses {
    pub fn new(pool: Pool) -> Self {
        Self { pool }
    }

    /// A person must mend it.
    pub async fn needs_attention(&self, destination: Uuid, why: &str) {
        tracing::error!(%destination, why, "the destination needs attention; its jobs wait until someone mends it");
        if let Err(error) = store::mark_attention(&self.pool, destination, why).await {
            tracing::warn!(%destination, error = chain(&error), "that the destination needs attention could not be recorded");
        }
    }

    /// It did not answer.
    pub async fn unreachable(&self, destination: Uuid, job: Uuid) {
        if let Err(error) = store::pause_destination(&self.pool, destination, job).await {
            tracing::warn!(%destination, error = chain(&error), "the destination's pause could not be recorded");
        }
    }

    /// It answered.
    pub async fn reached(&self, destination: Uuid) {
        if let Err(error) = store::clear_pause(&self.pool, destination).await {
            tracing::warn!(%destination, error = chain(&error), "the end of the destination's pause could not be recorded");
        }
    }
}
