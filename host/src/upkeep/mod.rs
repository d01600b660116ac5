//! What keeps the installation going beside its workers.
//!
//! Each is a periodic duty: a noun, a file, and one `run_once` without input, woken by a timer and by a signal, the same
//! way both times. Duties of one kind may run in any number of processes: what two of them must not both do is decided
//! by the database. They meet each other and the workers only there.

mod dispatcher;
mod duty;
mod sweeper;

pub use dispatcher::{Dispatcher, DispatcherError, DispatcherSettings, Drained};
pub use duty::{Signal, keep};
pub use sweeper::Sweeper;
