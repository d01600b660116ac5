//! `waybill job cancel`: asks, and tells the truth about what was found.

use std::time::Duration;

use uuid::Uuid;

use super::arguments::not_found;
use crate::cli::output::Output;
use crate::cli::words::{job_id, words};
use crate::cli::{Ended, explain};
use crate::job::status::CancellationOutcome;
use crate::store::{self, Cancellation, CancellationRequest};

/// A cancellation waits this long for the row's lock.
const LOCK_TIMEOUT: Duration = Duration::from_secs(2);

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Cancel {
    /// The job.
    #[arg(value_parser = job_id)]
    job: Uuid,
    /// Its tenant.
    #[arg(long, env = "WAYBILL_TENANT")]
    tenant: Uuid,
    /// Who asks.
    #[arg(long = "as", env = "WAYBILL_AS", value_name = "WHO", value_parser = words)]
    requested_by: String,
    /// Why, for the record.
    #[arg(long)]
    reason: Option<String>,
    /// The request's id, to ask again after "could not be told". Minted if absent.
    #[arg(long, value_name = "UUID")]
    request_id: Option<Uuid>,
}

impl Cancel {
    pub async fn run(self, pool: &store::Pool, output: &Output) -> anyhow::Result<Ended> {
        let id = self.request_id.unwrap_or_else(Uuid::new_v4);
        let request = CancellationRequest {
            tenant: self.tenant,
            job: self.job,
            id,
            requested_by: self.requested_by,
            reason: self.reason,
            lock_timeout: LOCK_TIMEOUT,
        };
        let (ended, outcome, sentence) = match store::request_cancellation(pool, request).await? {
            Cancellation::Recorded(recorded) => {
                let ended = match recorded.outcome {
                    CancellationOutcome::CanceledWhileQueued
                    | CancellationOutcome::StopRequested
                    | CancellationOutcome::StopAlreadyRequested
                    | CancellationOutcome::AlreadyCanceled => Ended::Done,
                    CancellationOutcome::AlreadyEnded | CancellationOutcome::TooLate => Ended::Refused,
                };
                (ended, recorded.outcome.as_str(), explain::cancellation(recorded.outcome, recorded.found_status))
            }
            Cancellation::RequestIdReused => (
                Ended::Refused,
                "RequestIdReused",
                "This request id was used for another job or by somebody else; nothing was recorded. Use a new one."
                    .to_owned(),
            ),
            Cancellation::NotFound => {
                not_found(*output, self.tenant, self.job)?;
                return Ok(Ended::NotFound);
            }
            Cancellation::Busy => (
                Ended::TryAgain,
                "Busy",
                format!(
                    "It could not be told in time whether the job can still be stopped; nothing was recorded. Ask again with --request-id {id}."
                ),
            ),
        };
        output.answer(
            &serde_json::json!({ "job": self.job, "request_id": id, "outcome": outcome, "sentence": sentence }),
            || format!("{outcome}: {sentence}"),
        )?;
        Ok(ended)
    }
}
