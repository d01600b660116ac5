//! Takeovers, reconciliation, corrections, replacements and the sweeper: each statement under its own role, alone and
//! in both orders against the write that it races with.

mod actors;

mod corrections;
mod reconciliation;
mod replacements;
mod resolution;
mod scan;
mod sweeps;
mod takeovers;
