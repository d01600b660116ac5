//! `waybill job correct`: a named person mends a recorded outcome, once an attempt.

use super::arguments::{Refusal, not_found};
use super::decide::{Deciding, earlier};
use crate::cli::output::Output;
use crate::cli::{Ended, explain};
use crate::job::model::Job;
use crate::job::status::{EventKind, FailureReason};
use crate::store::{self, Corrected, Correction, CorrectionRefused, Pool};

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Correct {
    #[command(flatten)]
    deciding: Deciding,
    /// What is on record.
    #[arg(long, value_enum)]
    from: Recorded,
    /// What should be.
    #[arg(long, value_enum)]
    to: Recorded,
    /// The code that goes with failed: `NotDelivered`, `FinalNameOccupied` or `OriginalDelivered`. Without it, `NotDelivered`.
    #[arg(long, value_name = "CODE", value_parser = code)]
    failure: Option<FailureReason>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Recorded {
    /// The partner has the file.
    Completed,
    /// The partner does not have the file.
    Failed,
}

/// The codes that can be true of an attempt that was authorized; the others are of attempts that never were.
fn code(text: &str) -> Result<FailureReason, String> {
    match text.parse() {
        Ok(
            code @ (FailureReason::NotDelivered | FailureReason::FinalNameOccupied | FailureReason::OriginalDelivered),
        ) => Ok(code),
        Ok(FailureReason::BuildFailed | FailureReason::AttemptsExhausted) => {
            Err("that code is of attempts that were never authorized to deliver, and this one was".to_owned())
        }
        Err(_) => Err("the codes are NotDelivered, FinalNameOccupied and OriginalDelivered".to_owned()),
    }
}

impl Correct {
    pub async fn run(self, pool: &Pool, output: &Output) -> anyhow::Result<Ended> {
        let Deciding { job: id, tenant, .. } = self.deciding;
        let Some(job) = store::find_tenant_job(pool, tenant, id).await? else {
            not_found(*output, tenant, id)?;
            return Ok(Ended::NotFound);
        };
        let (corrected, decision) = match self.corrected().and_then(|edge| Ok((edge, self.deciding.decision()?))) {
            Ok(both) => both,
            Err(refusal) => return refusal.answer(*output, id),
        };
        let before = match self.deciding.before(pool, *output, job, |job| means(job, corrected)).await? {
            Ok(before) => before,
            Err(refusal) => return refusal.answer(*output, id),
        };
        if self.deciding.dry_run {
            return before.nothing_written(*output);
        }
        let correction = Correction { tenant, job: id, attempt: before.attempt, corrected, decision };
        let refusal = match store::correct(pool, correction).await {
            Ok(Ok(())) => {
                let recorded = match corrected {
                    Corrected::ToCompleted => "Completed".to_owned(),
                    Corrected::ToFailed(code) => format!("Failed/{code}"),
                };
                return before.answer(*output, "Corrected", &format!("It is recorded as {recorded}, in your name."));
            }
            Ok(Err(CorrectionRefused::Absent)) => {
                not_found(*output, tenant, id)?;
                return Ok(Ended::NotFound);
            }
            Ok(Err(refused)) => self.refusal(pool, &before.job, &refused).await?,
            Err(error) => Refusal::of_error(error, &self.deciding.look())?,
        };
        refusal.answer(*output, id)
    }

    fn corrected(&self) -> Result<Corrected, Refusal> {
        match (self.from, self.to, self.failure) {
            (Recorded::Failed, Recorded::Completed, None) => Ok(Corrected::ToCompleted),
            (Recorded::Completed, Recorded::Failed, code) => {
                Ok(Corrected::ToFailed(code.unwrap_or(FailureReason::NotDelivered)))
            }
            (Recorded::Failed, Recorded::Completed, Some(code)) => Err(Refusal::new(
                "CodeWithoutFailure",
                format!("A completed job has no failure code; leave --failure {code} away."),
            )),
            (Recorded::Completed, Recorded::Completed, _) | (Recorded::Failed, Recorded::Failed, _) => {
                Err(Refusal::new(
                    "NothingToCorrect",
                    "A correction goes from completed to failed, or from failed to completed; nothing was written."
                        .to_owned(),
                ))
            }
        }
    }

    async fn refusal(&self, pool: &Pool, job: &Job, refused: &CorrectionRefused) -> anyhow::Result<Refusal> {
        let said = explain::sentence(&refused.to_string());
        let look = self.deciding.look();
        Ok(match refused {
            CorrectionRefused::Absent => Refusal::new("NotFound", said),
            CorrectionRefused::NotAsRecorded(found) => {
                let attempt = self.deciding.attempt.or(job.attempt).unwrap_or_default();
                match earlier(pool, job.id, attempt, EventKind::Corrected).await? {
                    Some(by) => already(&by, &look),
                    None => Refusal::new(
                        "NotAsRecorded",
                        format!(
                            "The job is {}{}; nothing was written. Read it: {look}",
                            explain::state(found.status, found.failure_reason),
                            if found.attempt == Some(attempt) {
                                ", and a correction asks for the record that it mends".to_owned()
                            } else {
                                format!(", and its attempt is not {attempt}")
                            }
                        ),
                    ),
                }
            }
            CorrectionRefused::NeverAuthorized => Refusal::new("NeverAuthorized", format!("{said} See {look}")),
            CorrectionRefused::AlreadyCorrected => {
                let attempt = self.deciding.attempt.or(job.attempt).unwrap_or_default();
                let by = earlier(pool, job.id, attempt, EventKind::Corrected).await?;
                already(by.as_deref().unwrap_or("somebody did"), &look)
            }
            CorrectionRefused::SlotTaken => {
                let family = explain::Family::read(pool, job).await?;
                let holder =
                    job.replaces.and_then(|original| family.holder(original)).map_or_else(String::new, |holder| {
                        format!(
                            " That one is {}, which is {}.",
                            holder.id,
                            explain::state(holder.status, holder.failure_reason)
                        )
                    });
                Refusal::new("SlotTaken", format!("{said}{holder} Nothing was written."))
            }
        })
    }
}

fn already(by: &str, look: &str) -> Refusal {
    let said = explain::sentence(&CorrectionRefused::AlreadyCorrected.to_string());
    Refusal::new("AlreadyCorrected", format!("{said} ({by}; nothing was written. {look})"))
}

fn means(job: &Job, corrected: Corrected) -> String {
    let replaced = match (corrected, job.replaces) {
        (Corrected::ToCompleted, None) => {
            " A replacement that waits sends nothing any more; one that is past authorization goes on."
        }
        (Corrected::ToCompleted, Some(_)) => " It then counts as the key's delivery, and no other replacement can.",
        (Corrected::ToFailed(FailureReason::NotDelivered), None) => " It can then be replaced.",
        (Corrected::ToFailed(_), _) => "",
    };
    let records = match corrected {
        Corrected::ToCompleted => "records in your name that the partner has this attempt's file.".to_owned(),
        Corrected::ToFailed(code) => {
            format!("records in your name that the partner does not have this attempt's file ({code}).")
        }
    };
    format!(
        "{records}{replaced} It moves no file and starts no work, and it is once: a second correction of this attempt is refused."
    )
}
