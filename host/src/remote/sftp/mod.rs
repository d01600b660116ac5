//! SFTP, protocol version 3, over SSH: a session whose every failure says what is known about its effect.
//!
//! The layers, from the wire up: [`connect`] opens the line and knows the server; [`cancel`] frees what would block
//! on a dead channel; [`normalise`] mends what the client library cannot read; [`session`] makes single requests,
//! [`transfer`] moves content.
//!
//! Whatever is not a clear answer ends the session: after the first lost, late or unreadable answer it is never used
//! again. Nothing here knows jobs, plugins or what may be written when; that is [`super::gate`]'s.

mod cancel;
mod connect;
pub mod normalise;
mod pins;
mod session;
mod transfer;

pub use pins::host_key_fault;
pub use session::Session;
