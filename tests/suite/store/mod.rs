//! The store's statements, each under its own role, against a real PostgreSQL. Races are made with two connections, and
//! that one waits for the other is read from the database.

pub mod world;

mod cancellation;
mod constraints;
mod creation;
mod cutoff_one;
mod cutoff_two;
mod edit;
mod ends;
mod fence;
mod idempotency;
mod leases;
mod lineage;
mod lists;
mod lost_answers;
mod migration;
mod promoted;
mod scheduled;
