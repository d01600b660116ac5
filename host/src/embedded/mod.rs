//! Servers that the host runs itself: a private PostgreSQL and a private OpenSSH.
//!
//! Part of the wiring: `waybill serve --embedded`, `waybill demo` and the tests start them, nothing below does.
//! Both keep everything that belongs to a server in one private directory, listen where only this machine
//! (PostgreSQL: only this account) can reach them, and stop with their handle. A process that is killed cannot stop
//! what it started, so the next start on the same directory ends what was left running before it goes on.
//!
//! What they do not promise: they are no service manager. A server that dies is reported, not started again.

pub(crate) mod process;

pub mod openssh;
pub mod postgres;
