//! A private PostgreSQL in one directory: made on first use, started, watched and stopped by the host.
//!
//! It listens on a Unix socket in a directory that only its own account (and root) can enter, and on no TCP port;
//! that is why every role may log in by its name alone. One process at a time runs the server of a directory (a file
//! lock, which the kernel releases when that process dies, however it dies). PostgreSQL refuses to run as root, so
//! under root it runs as `postgres` or `nobody`.
//!
//! It does not create roles or tables: that is `waybill::store`'s.

mod account;
mod binaries;
mod error;
mod postmaster;
mod server;
mod socket;

pub use error::PostgresError;
pub use postmaster::Address;
pub use server::{Durability, Postgres, Settings, running, stop_running};

/// The superuser that the first start makes. Only set-up uses it; the host's own roles have no such power.
pub const SUPERUSER: &str = "waybill_admin";
