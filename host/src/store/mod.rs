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
mod create_once;
mod finish_delivery;
mod finish_failed;
mod finish_stopped;
mod intend_publish;
mod reject;
mod release;
mod renew;
mod resume_destination;

// Wake-ups: the outbox, and the broker that is the database itself.
mod claim_outbox;
mod clock;
mod complete_outbox;
mod fail_outbox;
mod hand_back_wakeup;
mod outbox_answer;
mod publish_wakeup;
mod receive_wakeups;
mod settle_wakeup;
mod wakeup_hints;

// Where jobs go, and what is known before and about it.
mod acknowledgment_period;
mod agreement_in_force;
mod clear_pause;
mod destination_state;
mod find_check;
mod keep_check;
mod key_history;
mod latest_check;
mod mark_attention;
mod pause_destination;
mod policy_facts;
mod switch_destination;
mod take_probe;
mod upsert_destination;

// What people ask for.
mod edit_terms;
mod request_cancellation;

// Looks.
mod events_of;
mod find_job;
mod list_jobs;
mod watch_stop;

// Recovery, evidence and people.
mod accept_loss;
mod attempt_on_record;
mod claim_look;
mod correct;
mod create_replacement;
mod database_state;
mod decision;
mod fence_earlier;
mod find_expired;
mod finish_look;
mod ground;
mod intend_removal;
mod open_earlier_attempts;
mod reconcile;
mod reconcile_by_hand;
mod recorded;
mod sweep;
pub mod take_over;

pub use append_evidence::append_evidence;
pub use authorize_delivery::{Authorization, Delivery, authorize_delivery};
pub use boundary::REREAD_WITHIN;
pub use claim::{Claim, claim};
pub use create::{Creation, NewJob, create};
pub use create_once::{CreatedOnce, KeyedCreation, Made, create_once};
pub use edit_terms::{Edit, TermsEdit, edit_terms};
pub use error::StoreError;
pub use events_of::{AttemptEvent, RecordedCancellation, RecordedEdit, cancellations_of, edits_of, events_of};
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
pub use resume_destination::{Resumed, resume_destination};
pub use watch_stop::watch_stop;
pub use write::Write;

pub use claim_outbox::{ClaimedEntry, claim_outbox};
pub use complete_outbox::complete_outbox;
pub use fail_outbox::{fail_outbox, release_outbox};
pub use hand_back_wakeup::{hand_back_wakeup, hold_wakeup};
pub use outbox_answer::OutboxAnswer;
pub use publish_wakeup::{PublishedWakeup, publish_wakeup};
pub use receive_wakeups::{ReceivedWakeup, receive_wakeups};
pub use settle_wakeup::settle_wakeup;
pub use wakeup_hints::{WakeupHint, WakeupHints, hint_wakeup, listen_wakeups};

pub use accept_loss::{Acceptance, Accepted, LossOf, accept_loss};
pub use acknowledgment_period::acknowledgment_period;
pub use agreement_in_force::{AgreementInForce, agreement_in_force};
pub use attempt_on_record::attempt_on_record;
pub use claim_look::{DueLook, Purpose, claim_look};
pub use clear_pause::clear_pause;
pub use clock::clock;
pub use correct::{Corrected, Correction, CorrectionRefused, correct};
pub use create_replacement::{NewReplacement, OpenAttempt, ReplacementRefused, create_replacement, open_attempts};
pub use database_state::{DatabaseState, HeldBack, database_state};
pub use decision::{Decision, WordsMissing};
pub use destination_state::{
    Attention, DestinationPause, DestinationState, all_destinations, destination_state, destinations_of,
};
pub use fence_earlier::{Fencing, fence_earlier, give_back_look};
pub use find_check::find_check;
pub use find_expired::{Case, Expired, ExpiredAfter, Standing, find_expired};
pub use finish_look::{NextLook, finish_look};
pub use ground::Ground;
pub use intend_removal::intend_removal;
pub use keep_check::{CheckedServer, FinishedCheck, Showed, keep_check};
pub use key_history::{FinalPlace, KeyHistory, key_history, key_history_at};
pub use latest_check::{RecordedCheck, latest_check};
pub use mark_attention::{clear_attention, mark_attention};
pub use open_earlier_attempts::open_earlier_attempts;
pub use pause_destination::{PAUSE_CAP, PAUSE_FIRST, Pausing, pause_destination};
pub use policy_facts::{PolicyFacts, policy_facts};
pub use reconcile::{Conclusion, Reconciliation, reconcile};
pub use reconcile_by_hand::{ReconciliationByHand, reconcile_by_hand};
pub use sweep::{Swept, sweep};
pub use switch_destination::{Switch, Switched, disable_destination, enable_destination};
pub use take_probe::take_probe;
pub use upsert_destination::{JoinedDestination, Joining, differ, upsert_destinations};
