//! What keeps the installation going beside its workers.
//!
//! Each is a periodic duty: a noun, a file, and one `run_once` without input, woken by a timer and by a signal, the same
//! way both times. Duties of one kind may run in any number of processes: what two of them must not both do is decided
//! by the database. They meet each other and the workers only there.

mod conclude;
mod dispatcher;
mod duty;
mod inspection;
mod reconciler;
mod recovery;
mod registrar;
mod sweeper;

pub use dispatcher::{Dispatcher, DispatcherError, DispatcherSettings, Drained};
pub use duty::{Signal, keep, within};
pub use inspection::Inspector;
pub use reconciler::{Looked, Reconciler, ReconcilerSettings};
pub use recovery::{Recovered, Recovery, RecoverySettings};
pub use registrar::{Registered, Registrar, RegistrarError, in_words};
pub use sweeper::Sweeper;
