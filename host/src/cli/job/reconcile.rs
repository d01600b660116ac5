//! `waybill job reconcile`: a named person settles an unknown outcome, once an attempt.

use std::time::Duration;

use super::arguments::{Refusal, not_found};
use super::decide::{Deciding, earlier};
use crate::cli::output::Output;
use crate::cli::{Ended, explain};
use crate::job::model::Job;
use crate::job::status::{EventKind, Status};
use crate::store::{self, Found, Pool, ReconciliationByHand, Write};

/// After this, a host looks whether an acknowledgment contradicts what was recorded, where the contract has one.
const LOOK_AFTER: Duration = Duration::from_mins(1);

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Reconcile {
    #[command(flatten)]
    deciding: Deciding,
    /// What you found out.
    #[arg(long, value_enum)]
    outcome: Outcome,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Outcome {
    /// The partner has this attempt's file.
    Completed,
    /// The partner does not have it, and this attempt can no longer bring it.
    NotDelivered,
}

impl Reconcile {
    pub async fn run(self, pool: &Pool, output: &Output) -> anyhow::Result<Ended> {
        let Deciding { job: id, tenant, .. } = self.deciding;
        let Some(job) = store::find_tenant_job(pool, tenant, id).await? else {
            not_found(*output, tenant, id)?;
            return Ok(Ended::NotFound);
        };
        let decision = match self.deciding.decision() {
            Ok(decision) => decision,
            Err(refusal) => return refusal.answer(*output, id),
        };
        let before = match self.deciding.before(pool, *output, job, |_| self.means().to_owned()).await? {
            Ok(before) => before,
            Err(refusal) => return refusal.answer(*output, id),
        };
        if self.deciding.dry_run {
            return before.nothing_written(*output);
        }
        let attempt = before.attempt;
        let events = store::events_of(pool, id).await?;
        let by_hand = ReconciliationByHand {
            tenant,
            job: id,
            attempt,
            delivered: self.outcome == Outcome::Completed,
            decision,
            look_after: LOOK_AFTER,
            acknowledgment_within: explain::acknowledgment_period(pool, &before.job, &events).await?,
        };
        let refusal = match store::reconcile_by_hand(pool, by_hand).await {
            Ok(Write::Written(())) => {
                let recorded = match self.outcome {
                    Outcome::Completed => "Completed",
                    Outcome::NotDelivered => "Failed/NotDelivered",
                };
                return before.answer(*output, "Reconciled", &format!("It is recorded as {recorded}, in your name."));
            }
            Ok(Write::Absent) => {
                not_found(*output, tenant, id)?;
                return Ok(Ended::NotFound);
            }
            Ok(Write::Refused(found)) => self.refusal(pool, &before.job, &found).await?,
            Err(error) => Refusal::of_error(error, &self.deciding.look())?,
        };
        refusal.answer(*output, id)
    }

    const fn means(&self) -> &'static str {
        match self.outcome {
            Outcome::Completed => {
                "records in your name that the partner has this attempt's file. The job ends Completed, and nobody can replace it. It is once and for good: a \
                 mistake can only be corrected, once."
            }
            Outcome::NotDelivered => {
                "records in your name that the partner does not have the file and that this attempt can no longer bring it. The job ends Failed/NotDelivered, \
                 and can be replaced: if you are mistaken, the partner may get it twice. It is once and for good: a mistake can only be corrected, once."
            }
        }
    }

    async fn refusal(&self, pool: &Pool, job: &Job, found: &Found) -> anyhow::Result<Refusal> {
        let look = self.deciding.look();
        let attempt = self.deciding.attempt.or(job.attempt).unwrap_or_default();
        if let Some(by) = earlier(pool, job.id, attempt, EventKind::Reconciled).await? {
            return Ok(Refusal::new(
                "AlreadyReconciled",
                format!(
                    "This attempt's outcome was settled before ({by}), and only once can it be; the job is {} now, and nothing was written. If that record \
                     is wrong, correct it: {look}",
                    found.status
                ),
            ));
        }
        if found.attempt != Some(attempt) {
            let current = found.attempt.map_or_else(|| "none".to_owned(), |attempt| attempt.to_string());
            return Ok(Refusal::new(
                "AnotherAttempt",
                format!(
                    "The job's current attempt is {current}, not {attempt}; nothing was written. Read it again: {look}"
                ),
            ));
        }
        Ok(match found.status {
            Status::OutcomeUnknown if !found.publish_intended && self.outcome == Outcome::Completed => Refusal::new(
                "NeverPublished",
                format!(
                    "This attempt was never to publish, so a file found at the partner is somebody else's; nothing was written. It can only be \
                     not-delivered. See {look}"
                ),
            ),
            Status::OutcomeUnknown => Refusal::again(
                "Moved",
                format!("The job moved while it was looked at; nothing was written. Look again: {look}"),
            ),
            Status::Queued | Status::Running | Status::Delivering => Refusal::new(
                "NotEnded",
                format!(
                    "The job is {} and has not ended; nothing was written. Its worker, or recovery, records how it ends: {look}",
                    found.status
                ),
            ),
            Status::Completed | Status::Failed => Refusal::new(
                "NotUnknown",
                format!(
                    "The job is {}: its outcome is on record, and nothing was written. If that record is wrong, correct it: {look}",
                    found.status
                ),
            ),
            Status::Canceled | Status::Rejected | Status::Stopped => Refusal::new(
                "NothingSent",
                format!(
                    "The job ended as {}, before anything was sent; there is no outcome to settle: {look}",
                    found.status
                ),
            ),
        })
    }
}
