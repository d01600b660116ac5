//! Takeovers, reconciliation, corrections, replacements and the sweeper: each statement under its own role, alone and
//! in both orders against the write that it races with.

pub mod actors;

mod corrections;
mod earlier;
mod reconciliation;
mod replacements;
mod resolution;
mod scan;
mod sweeps;
mod takeovers;
