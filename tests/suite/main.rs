//! The whole suite in one binary, so that wasmtime is linked once.
//!
//! `kit` proves the fixtures, `tidy` holds the architecture; the other modules show the requirements of
//! `requirements.txt`, each test named by the id that it shows.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "in a test's helper a panic is the failed test"
)]

mod bad_input;
mod broker;
mod conventions;
mod delivery;
mod kit;
mod languages;
mod lost;
mod permissions;
mod plugin;
mod recovery;
mod remote;
mod remotes;
mod servers;
mod settled;
mod source;
mod store;
mod strangers;
mod tidy;
