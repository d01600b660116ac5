//! What reconciliation and correction share: a named person decides about an outcome, and sees before it is written what
//! is on record and what the decision will mean.

use serde_json::json;
use uuid::Uuid;

use super::arguments::Refusal;
use crate::cli::output::Output;
use crate::cli::words::{job_id, words};
use crate::cli::{Ended, explain};
use crate::job::model::Job;
use crate::job::status::EventKind;
use crate::store::{self, Decision, Pool};

#[derive(Debug, clap::Args)]
pub(super) struct Deciding {
    /// The job.
    #[arg(value_parser = job_id)]
    pub job: Uuid,
    /// Its tenant.
    #[arg(long, env = "WAYBILL_TENANT")]
    pub tenant: Uuid,
    /// The attempt whose record it is. Without it, the job's current one is taken, and named.
    #[arg(long, value_name = "UUID")]
    pub attempt: Option<Uuid>,
    /// Why, for the record.
    #[arg(long, value_name = "WORDS")]
    pub reason: String,
    /// Where the evidence is: a ticket, a mail, a log.
    #[arg(long, value_name = "REF")]
    pub evidence: String,
    /// Who decides it.
    #[arg(long = "as", env = "WAYBILL_AS", value_name = "WHO", value_parser = words)]
    pub decided_by: String,
    /// Show what is on record and what the step would mean, and write nothing.
    #[arg(long)]
    pub dry_run: bool,
}

/// What is on record before the step, and what the step will mean.
pub(super) struct Before {
    pub job: Job,
    pub attempt: Uuid,
    on_record: explain::Record,
    means: String,
}

impl Deciding {
    /// The person's words, or which of them is missing.
    pub fn decision(&self) -> Result<Decision, Refusal> {
        Decision::new(&self.decided_by, &self.reason, &self.evidence)
            .map_err(|missing| Refusal::new("WordsMissing", explain::sentence(&missing.to_string())))
    }

    /// Reads the record and shows it. A job that never had an attempt has no outcome to decide about.
    pub async fn before(
        &self,
        pool: &Pool,
        output: Output,
        job: Job,
        means: impl FnOnce(&Job) -> String,
    ) -> anyhow::Result<Result<Before, Refusal>> {
        let Some(attempt) = self.attempt.or(job.attempt) else {
            let state = explain::state(job.status, job.failure_reason);
            return Ok(Err(Refusal::new(
                "NoAttempt",
                format!("The job is {state} and has no attempt, so there is no outcome to decide about."),
            )));
        };
        let means = means(&job);
        let on_record = explain::Record::read(pool, job.clone()).await?;
        let before = Before { job, attempt, on_record, means };
        if self.attempt.is_none() {
            output.say(&format!("No attempt was named: it is {attempt}, the job's current one."))?;
        }
        output.say(&before.text())?;
        Ok(Ok(before))
    }

    /// The command that tells the whole story.
    pub fn look(&self) -> String {
        format!("waybill job explain {} --tenant {}", self.job, self.tenant)
    }
}

impl Before {
    fn state(&self) -> String {
        explain::state(self.job.status, self.job.failure_reason)
    }

    fn text(&self) -> String {
        let told: Vec<String> = self.on_record.told().iter().map(|line| format!("  {line}")).collect();
        format!(
            "On record, {}:\n{}\n  Where it stands: {}\nThis step: {}\n",
            self.state(),
            told.join("\n"),
            self.on_record.stands(),
            self.means
        )
    }

    /// Answers that it is recorded, or that nothing was to be.
    pub fn answer(&self, output: Output, outcome: &'static str, sentence: &str) -> anyhow::Result<Ended> {
        let document = json!({
            "job": self.job.id, "attempt": self.attempt, "outcome": outcome, "sentence": sentence,
            "was": self.state(), "stood": self.on_record.stands(), "told": self.on_record.told(), "means": self.means,
        });
        output.answer(&document, || format!("{outcome}: {sentence}"))?;
        Ok(Ended::Done)
    }

    /// The answer to `--dry-run`.
    pub fn nothing_written(&self, output: Output) -> anyhow::Result<Ended> {
        self.answer(output, "DryRun", "Nothing was written. Without --dry-run it is.")
    }
}

/// An earlier event of this kind for the attempt, in a sentence, as it is on record now.
pub(super) async fn earlier(pool: &Pool, job: Uuid, attempt: Uuid, kind: EventKind) -> anyhow::Result<Option<String>> {
    let events = store::events_of(pool, job).await?;
    Ok(events.into_iter().find(|event| event.kind == kind && event.attempt == attempt).map(|event| {
        format!("{} did, at {}", event.observed_by.as_deref().unwrap_or("somebody"), explain::at(event.recorded_at))
    }))
}
