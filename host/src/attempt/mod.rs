//! One attempt, from the confirmed claim to its last write: build, name, list, check, authorize, baseline, send, fence,
//! publish, look, conclude.
//!
//! The sequence exists once. What it must have recorded goes through one trait, [`Record`]: delivery implements it
//! with the store, so the very code that delivers can also be rehearsed without a database. It decides nothing that a
//! statement must decide: ownership, both cutoffs and the publish fence are answers of `Record`.
//!
//! It keeps two rules. Nothing of a job reaches the partner before cutoff 2: a server that nobody checked yet is tried with
//! scratch files, and else only looked at. After it nothing stops the delivery but its own end,
//! and whatever that end is, the evidence is appended before the terminal write is tried. What comes after that write is the removal
//! of a temporary file, and its answer (`leftover`).

mod before;
mod checked;
mod deliver;
mod earlier;
mod leftover;
mod look;
mod look_back;
mod prepare;
mod record;
mod stop;

use std::sync::Arc;

pub use deliver::LONGEST_SETTLE;
pub use look_back::{Others, ask_away, asked_away, facts, look_back, names_of, set_beside};
pub use record::{
    Authorization, Delivered, Earlier, End, KeyHistory, Known, NotRecorded, Place, Record, Release, Terminal,
};
pub use stop::{Stop, StopReason};

use crate::job::model::ClaimedJob;
use crate::plugin::{Bundle, Destination};
use crate::remote::{Session, Sessions};
use crate::spool::Spool;

/// What all attempts of a host share: where files are built, and the sessions that are kept open.
#[derive(Clone)]
pub struct Means {
    pub spool: Spool,
    pub sessions: Sessions,
}

/// What one attempt works with, from its claim on. It keeps the components and the contract that it started with.
pub struct Work {
    pub job: ClaimedJob,
    pub bundle: Arc<Bundle>,
    pub destination: Arc<Destination>,
    pub means: Means,
    pub stop: Stop,
}

/// Runs the attempt and makes its terminal write. The answer is for logs and tests; the row is what counts.
pub async fn run(work: &Work, record: Arc<dyn Record>) -> Terminal {
    let built = match prepare::build(work).await {
        Ok(built) => built,
        Err(end) => return record.finish(&end).await,
    };
    let session = match prepare::reach(work).await {
        Ok(session) => session,
        Err(end) => return record.finish(&end).await,
    };
    let (end, leftover) = match prepare::authorized(work, record.as_ref(), &session, built).await {
        Ok(prepared) => deliver::deliver(work, &record, &session, &prepared).await,
        Err(end) => (end, None),
    };
    let terminal = record.finish(&end).await;
    if let Some(leftover) = leftover {
        leftover.remove(work, record.as_ref(), &session, &terminal).await;
    }
    give_back(work, session).await;
    terminal
}

/// Keeps the session for the destination's next job.
async fn give_back(work: &Work, session: Session) {
    work.means.sessions.give_back(work.destination.id, &work.destination.endpoint, session).await;
}
