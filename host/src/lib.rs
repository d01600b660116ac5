//! Waybill: a WebAssembly-pluggable delivery host.
//!
//! ARCHITECTURE.md tells a job's way through these modules. Arrows point down: wiring, actors, the attempt,
//! adapters, rules. A test holds the import table.

// Wiring.
pub mod app;
pub mod cli;
pub mod config;
pub mod embedded;
pub mod telemetry;
// Actors; they meet in the database and never import each other.
pub mod delivery;
pub mod rehearsal;
pub mod upkeep;
// The sequence of an attempt, which exists once.
pub mod attempt;
// Adapters.
pub mod broker;
pub mod plugin;
pub mod remote;
pub mod source;
pub mod spool;
pub mod store;
// Rules: no input or output, no clock, no runtime.
pub mod job;
pub mod policy;
