//! All SQL of the host. A file is a transition, not a table: one public function, its statement, and what a refusal means.
//!
//! Neighbours: the actors above call these functions and never see a connection; `job` below holds the words and the
//! edges, which the schema repeats as constraints and triggers. sqlx stays inside this folder.
//!
//! Rules kept here:
//! - Every write is conditional on what its caller checked, in its own WHERE, and says what became of it
//!   ([`Write`]). What a refused write reports was found by a second statement: a report, not a proof.
//! - A transition and the event that proves it are one statement.
//! - A write whose answer was lost is settled by reading state and ownership together, on a fresh connection and within
//!   [`REREAD_WITHIN`]. If that fails too, the answer is [`StoreError::MaybeCommitted`], and nobody guesses.
//! - Only the database's clock is written or compared.
//!
//! Not promised: that a function whose future is dropped did nothing. Writes run in tasks of their own, and finish.

// What every transition stands on.
mod boundary;
mod error;
mod found;
mod migrate;
mod pools;
mod rows;
mod write;

// The way of a job.
mod append_evidence;
mod authorize_delivery;
mod claim;
mod create;
mod finish_delivery;
mod finish_failed;
mod finish_stopped;
mod intend_publish;
mod reject;
mod release;
mod renew;

// What people ask for.
mod edit_terms;
mod request_cancellation;

// Looks.
mod events_of;
mod find_job;
mod list_jobs;
mod watch_stop;

pub use append_evidence::append_evidence;
pub use authorize_delivery::{Authorization, Delivery, authorize_delivery};
pub use boundary::REREAD_WITHIN;
pub use claim::{Claim, claim};
pub use create::{Creation, NewJob, create};
pub use edit_terms::{Edit, TermsEdit, edit_terms};
pub use error::StoreError;
pub use events_of::{AttemptEvent, RecordedCancellation, cancellations_of, events_of};
pub use find_job::{find_job, find_tenant_job};
pub use finish_delivery::{DeliveryOutcome, Finish, finish_delivery};
pub use finish_failed::finish_failed;
pub use finish_stopped::finish_stopped;
pub use found::{Found, found};
pub use intend_publish::intend_publish;
pub use list_jobs::{JobCursor, JobFilter, JobPage, LARGEST_PAGE, list_jobs};
pub use migrate::{AppliedMigration, MigrateError, Migrated, migrate};
pub use pools::{ConnectOptions, Pool, Pools, connect};
pub use reject::reject;
pub use release::{Release, Released, release};
pub use renew::renew;
pub use request_cancellation::{Cancellation, CancellationRequest, request_cancellation};
pub use watch_stop::watch_stop;
pub use write::Write;
