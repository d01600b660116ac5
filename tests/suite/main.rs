//! The whole suite in one binary, so that wasmtime is linked once.
//!
//! `kit` proves the fixtures, `tidy` holds the architecture; the other modules show the requirements of
//! `requirements.txt`, each test named by the id that it shows.

mod bad_input;
mod broker;
mod delivery;
mod kit;
mod permissions;
mod plugin;
mod recovery;
mod remote;
mod source;
mod store;
mod tidy;
