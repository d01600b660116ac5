//! `waybill job watch`: a job's story as it happens, until the job is settled.
//!
//! It reads the same records as `explain`, at short intervals: events are no queue, and a reader that was away misses none.

use std::collections::HashSet;
use std::time::Duration;

use serde_json::json;
use tokio::time::{MissedTickBehavior, interval};

use super::show::One;
use crate::cli::output::Output;
use crate::cli::{Ended, explain};
use crate::job::model::Job;
use crate::job::status::Status;
use crate::store::Pool;

/// How often the records are read. A person does not notice the difference to at once.
const EVERY: Duration = Duration::from_millis(500);

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Watch {
    #[command(flatten)]
    one: One,
}

impl Watch {
    pub async fn run(self, pool: &Pool, output: &Output) -> anyhow::Result<Ended> {
        // One future for the whole watch: an interrupt while the records are read must not be missed.
        let mut interrupted = std::pin::pin!(tokio::signal::ctrl_c());
        let mut ticks = interval(EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut told = HashSet::new();
        let mut stood = String::new();
        loop {
            tokio::select! {
                caught = &mut interrupted => {
                    caught?;
                    return Ok(Ended::TryAgain);
                }
                _ = ticks.tick() => {}
            }
            let Some(job) = self.one.find(pool, output).await? else { return Ok(Ended::NotFound) };
            let settled = is_settled(&job);
            let record = explain::Record::read(pool, job).await?;
            for line in record.told() {
                if told.insert(line.key.clone()) && !output.follow(&line, || line.to_string())? {
                    return Ok(Ended::Done);
                }
            }
            let stands = record.stands();
            let state = explain::state(record.job.status, record.job.failure_reason);
            // A queued job has no event that says what it waits for, and a settled one is told once more in one sentence.
            if (settled || record.job.status == Status::Queued || record.job.status == Status::OutcomeUnknown)
                && told_apart(&stands) != told_apart(&stood)
            {
                let document = json!({ "kind": "Stands", "state": state, "settled": settled, "text": stands });
                if !output.follow(&document, || format!("{state}: {stands}"))? {
                    return Ok(Ended::Done);
                }
                stood = stands;
            }
            if settled {
                return Ok(Ended::Done);
            }
        }
    }
}

/// Without its numbers: seconds that pass are nothing new.
fn told_apart(stands: &str) -> String {
    stands.chars().filter(|letter| !letter.is_ascii_digit()).collect()
}

/// True once nothing but a person's correction can change the outcome.
const fn is_settled(job: &Job) -> bool {
    match job.status {
        Status::Canceled | Status::Rejected | Status::Stopped | Status::Failed | Status::Completed => true,
        Status::Queued | Status::Running | Status::Delivering | Status::OutcomeUnknown => false,
    }
}
