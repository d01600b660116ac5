//! A private OpenSSH server on 127.0.0.1: the partner of `waybill demo`, and the real server of the tests.
//!
//! Its keys, its configuration and its two logs are in one private directory. Every session runs `sftp-server` with a
//! log of its operations in a file of that directory, so that what arrived at the partner is told by the partner.
//! The server starts and stops with its handle, and can be down and up again on the same port.

mod client;
mod configuration;
mod error;
mod server;

pub use error::OpenSshError;
pub use server::{OpenSsh, Settings, end_left_behind};
