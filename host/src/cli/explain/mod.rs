//! A job's story in plain words, from its row, its events, what people asked for, and the other jobs of its key.
//!
//! Neighbours: `told` makes a line of each event, `evidence` reads the documents of partners' answers and looks, `theirs`
//! what of them speaks of the outcome, `trigger` the files that the partner waits for, `family` brings the other jobs of the key, `waits` tells
//! what holds a queued job up, `said` holds what is true to say of a state, `next` what a person can do in it, `words` what every sentence needs. Only `Record::read`, `Family::read` and the functions here read;
//! the rest is pure.
//!
//! Every sentence says only what is on record: never "canceled" of a job that was asked to stop, never "delivered"
//! without the evidence that completed it, never "not delivered" without its proof.

mod evidence;
mod family;
mod next;
mod said;
mod theirs;
mod told;
mod trigger;
mod waits;
mod words;

use std::fmt;
use std::time::Duration;

use serde::Serialize;
use time::OffsetDateTime;

use self::trigger::Unconfirmed;
use self::waits::{HandedBack, Waits};
use crate::job::model::Job;
use crate::job::status::Status;
use crate::store::{self, AttemptEvent, DestinationState, Pool, RecordedCancellation, RecordedEdit, StoreError};

pub(super) use family::Family;
pub(super) use next::{Step, in_the_way, replaceable};
pub(super) use said::cancellation;
pub(super) use theirs::{Awaited, Theirs, What, Word};
pub(super) use told::Line;
pub(super) use words::{at, bounded, paused, sentence, state, stopped};

/// A job's story.
#[derive(Debug, Serialize)]
pub(super) struct Story {
    job: String,
    state: String,
    told: Vec<Line>,
    /// What the partner answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    answer: Option<Word>,
    /// Where it stands, and why that is so.
    stands: String,
    /// What may be said to the partner today.
    to_the_partner: String,
    /// What a person can do now, and what each step would mean.
    next: Vec<Step>,
}

/// What is on record about a job.
#[derive(Debug)]
pub(super) struct Record {
    pub job: Job,
    cancellations: Vec<RecordedCancellation>,
    edits: Vec<RecordedEdit>,
    destination: Option<DestinationState>,
    /// Its `not_before`, while that is to come and it waits.
    scheduled: Option<OffsetDateTime>,
    family: Family,
    theirs: Theirs,
}

impl Record {
    /// Reads it. The job comes first: an end and its event are one commit, so the events are never behind the state.
    pub async fn read(pool: &Pool, job: Job) -> Result<Self, StoreError> {
        let family = Family::read(pool, &job).await?;
        Ok(Self {
            theirs: theirs(pool, &job, &family).await?,
            cancellations: store::cancellations_of(pool, job.tenant, job.id).await?,
            edits: store::edits_of(pool, job.tenant, job.id).await?,
            destination: store::destination_state(pool, job.destination).await?,
            scheduled: scheduled(pool, &job).await?,
            family,
            job,
        })
    }

    /// Everything that happened, in order.
    pub fn told(&self) -> Vec<Line> {
        told::lines(&self.job, self.family.events(self.job.id), &self.cancellations, &self.edits)
    }

    /// Where the job stands.
    pub fn stands(&self) -> String {
        let because = said::because(self.family.events(self.job.id));
        said::stands(&self.job, because.as_deref(), &self.waits(), &self.theirs)
    }

    fn waits(&self) -> Waits<'_> {
        Waits {
            destination: self.destination.as_ref(),
            scheduled: self.scheduled,
            handed_back: HandedBack::of(self.family.events(self.job.id)),
        }
    }
}

/// A queued job's own time, while it is to come by the database's clock.
async fn scheduled(pool: &Pool, job: &Job) -> Result<Option<OffsetDateTime>, StoreError> {
    let Some(time) = job.not_before.filter(|_| job.status == Status::Queued) else { return Ok(None) };
    Ok((store::clock(pool).await? < time).then_some(time))
}

/// What is on record of the partner's side of a job.
pub(super) async fn theirs(pool: &Pool, job: &Job, family: &Family) -> Result<Theirs, StoreError> {
    let events = family.events(job.id);
    let awaited = match acknowledgment_period(pool, job, events).await? {
        None => None,
        within => Awaited::of(job, events, within, store::clock(pool).await?),
    };
    let triggers = Unconfirmed::of(job, events);
    Ok(Theirs { answer: family.answer(job), lies: family.lies(job), awaited, triggers })
}

/// How long an answer to a job's current attempt is waited for: the longer of what was agreed at its claim and what is now.
pub(super) async fn acknowledgment_period(
    pool: &Pool,
    job: &Job,
    events: &[AttemptEvent],
) -> Result<Option<Duration>, StoreError> {
    if job.publish_intended_at.is_none() {
        return Ok(None);
    }
    let then = theirs::contract(job, events).and_then(|contract| contract.acknowledgment);
    let now = store::acknowledgment_period(pool, job.destination).await?;
    Ok(now.max(then.map(|acknowledgment| acknowledgment.period)))
}

/// Reads what is on record about a job, and tells it.
pub(super) async fn read(pool: &Pool, job: &Job) -> Result<Story, StoreError> {
    Ok(Story::of(&Record::read(pool, job.clone()).await?))
}

impl Story {
    fn of(record: &Record) -> Self {
        let job = &record.job;
        Self {
            job: job.id.to_string(),
            state: state(job.status, job.failure_reason),
            told: record.told(),
            answer: record.theirs.answer.clone(),
            stands: record.stands(),
            to_the_partner: said::to_the_partner(job, record.family.key(job), &record.theirs),
            next: next::steps(job, &record.family, &record.theirs, &record.waits()),
        }
    }
}

impl fmt::Display for Story {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "Job {}: {}\n", self.job, self.state)?;
        for line in &self.told {
            writeln!(f, "  {line}")?;
        }
        writeln!(f, "\nWhere it stands: {}", self.stands)?;
        writeln!(f, "\nWhat may be said to the partner: {}", self.to_the_partner)?;
        writeln!(f, "\nWhat you can do next, and what each step would mean:")?;
        for step in &self.next {
            writeln!(f, "  - {}", step.means)?;
            if let Some(command) = &step.command {
                writeln!(f, "      {command}")?;
            }
        }
        Ok(())
    }
}
