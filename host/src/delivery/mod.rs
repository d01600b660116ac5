//! The worker: from a wake-up to the end of an attempt.
//!
//! A wake-up is a hint; everything starts from the row. Policy is evaluated, the job is claimed (cutoff 1), the wake-up
//! is settled, and the attempt's sequence runs with a lease keeper and a stop watcher beside it. This module implements
//! what the sequence must have recorded with the store; it does not know how a file is built or sent.

pub mod keeper;
mod pause;
mod record;
pub mod stop_watcher;
mod worker;

pub use record::Bounds;
pub use worker::{Worker, WorkerParts};
