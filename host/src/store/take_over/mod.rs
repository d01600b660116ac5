//! Recovery's takeovers: the only way in which an attempt loses its job. One conditional statement a case, with its
//! event.
//!
//! A scan ([`find_expired`](super::find_expired)) nominates; the statement repeats all that justified it: status,
//! attempt, a lease that is still expired, the stop request, the cap, and that the database is the one in which the
//! attempt was claimed. So a renewal, a stop request or a cutoff that commits after the scan makes it match nothing,
//! and of two recovery runs one takes the job over.
//!
//! Refused is no trouble: the next scan sees the job as it then is. `Found::history_known` says if a person has to
//! accept a lost database first.

use uuid::Uuid;

use super::boundary::{AskTheRow, Boundary};
use super::recorded::OwnEvent;
use crate::job::status::EventKind;

mod exhaust;
mod requeue;
mod resolve;
mod stop;

pub use exhaust::exhaust;
pub use requeue::requeue;
pub use resolve::{Resolution, Resolve, resolve};
pub use stop::stop;

/// Which attempt is taken over, and by whom.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TakeOver {
    pub job: Uuid,
    /// The attempt that the scan found expired.
    pub attempt: Uuid,
    /// The recovery run, for the event. Unique to a run, since it proves a takeover whose answer was lost.
    pub run: String,
}

impl TakeOver {
    fn boundary(&self, act: &'static str, kind: EventKind, detail: Option<serde_json::Value>) -> Boundary<()> {
        let own = OwnEvent { act, job: self.job, attempt: self.attempt, kind, observed_by: self.run.clone(), detail };
        Boundary { act, job: self.job, tenant: None, ask: AskTheRow::AfterALostAnswer, landed: own.landed() }
    }
}
