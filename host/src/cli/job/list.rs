//! `waybill job list`: a tenant's jobs, newest first.

use comfy_table::Table;
use comfy_table::presets::UTF8_HORIZONTAL_ONLY;
use uuid::Uuid;

use super::arguments::status;
use super::show::Shown;
use crate::cli::destination::{named, not_found};
use crate::cli::output::Output;
use crate::cli::{Ended, explain};
use crate::job::status::Status;
use crate::store::{self, JobFilter};

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct List {
    /// Whose jobs.
    #[arg(long, env = "WAYBILL_TENANT")]
    tenant: Uuid,
    /// Only jobs in this state, such as `Queued` or `OutcomeUnknown`; may be given several times.
    #[arg(long, value_parser = status)]
    status: Vec<Status>,
    /// Only jobs of this destination: its id, or its name.
    #[arg(long)]
    destination: Option<String>,
    /// Only jobs of this delivery key: the original and its replacements.
    #[arg(long)]
    key: Option<String>,
    /// At most so many.
    #[arg(long, default_value_t = 50)]
    limit: u16,
}

impl List {
    pub async fn run(self, pool: &store::Pool, output: &Output) -> anyhow::Result<Ended> {
        let destination = match &self.destination {
            None => None,
            Some(typed) => {
                let Some(id) = named(pool, self.tenant, typed).await? else {
                    let sentence = not_found(self.tenant, typed);
                    let document = serde_json::json!({ "outcome": "NoSuchDestination", "sentence": sentence });
                    output.answer(&document, || format!("NoSuchDestination: {sentence}"))?;
                    return Ok(Ended::NotFound);
                };
                Some(id)
            }
        };
        let filter = JobFilter { statuses: self.status, destination, delivery_key: self.key, ..JobFilter::default() };
        let page = store::list_jobs(pool, self.tenant, &filter, None, self.limit).await?;
        let mut rows = Vec::new();
        for job in &page.jobs {
            // Only what was to be published can have been answered.
            let answer = match job.publish_intended_at {
                Some(_) => explain::Word::of(job, &store::events_of(pool, job.id).await?),
                None => None,
            };
            let mut row = Shown::of(job);
            row.answer = answer;
            rows.push(row);
        }
        output.answer(&rows, || {
            if rows.is_empty() {
                return "no such jobs".to_owned();
            }
            let mut table = Table::new();
            table.load_style(UTF8_HORIZONTAL_ONLY).set_header([
                "job",
                "key",
                "state",
                "the partner",
                "file",
                "bytes",
                "created",
                "by",
            ]);
            for row in &rows {
                table.add_row([
                    row.job.to_string(),
                    row.delivery_key.clone(),
                    row.state(),
                    row.answer.as_ref().map(|answer| answer.says.verb().to_owned()).unwrap_or_default(),
                    row.file.clone().unwrap_or_default(),
                    row.bytes.map(|bytes| bytes.to_string()).unwrap_or_default(),
                    row.created_at.clone(),
                    row.created_by.clone(),
                ]);
            }
            let more = if page.next.is_some() { "\nthere are more; raise --limit" } else { "" };
            format!("{table}{more}")
        })?;
        Ok(Ended::Done)
    }
}
