//! `waybill job edit`: other terms for a job that is still queued, for the version that the editor read.

use std::fmt::Write as _;

use time::OffsetDateTime;
use uuid::Uuid;

use super::arguments::{Refusal, not_found, pair, timestamp};
use crate::cli::destination::{self, named};
use crate::cli::output::Output;
use crate::cli::words::{job_id, words};
use crate::cli::{Ended, explain};
use crate::job::model::Job;
use crate::job::status::Status;
use crate::store::{self, Found, Pool, TermsEdit, Write};

#[derive(Debug, clap::Args)]
#[command(group(clap::ArgGroup::new("change").required(true).multiple(true)))]
pub(in crate::cli) struct Edit {
    /// The job.
    #[arg(value_parser = job_id)]
    job: Uuid,
    /// Its tenant.
    #[arg(long, env = "WAYBILL_TENANT")]
    tenant: Uuid,
    /// The version of the terms that you read, as `waybill job show` tells it.
    #[arg(long, value_name = "N")]
    version: i32,
    /// Another destination, by its id, or its name. A replacement's cannot be edited.
    #[arg(long, group = "change")]
    destination: Option<String>,
    /// What to export; may be given several times. All that are given together are the new scope.
    #[arg(long, group = "change", value_name = "NAME=VALUE", value_parser = pair)]
    scope: Vec<(String, String)>,
    /// Not before this time (RFC 3339, for example 2026-12-01T06:00:00Z).
    #[arg(long, group = "change", value_parser = timestamp, conflicts_with = "no_not_before")]
    not_before: Option<OffsetDateTime>,
    /// As soon as policy allows.
    #[arg(long, group = "change")]
    no_not_before: bool,
    /// Who edits it.
    #[arg(long = "as", env = "WAYBILL_AS", value_name = "WHO", value_parser = words)]
    edited_by: String,
}

impl Edit {
    pub async fn run(self, pool: &Pool, output: &Output) -> anyhow::Result<Ended> {
        let Some(job) = store::find_tenant_job(pool, self.tenant, self.job).await? else {
            not_found(*output, self.tenant, self.job)?;
            return Ok(Ended::NotFound);
        };
        let destination = match &self.destination {
            None => Some(job.destination),
            Some(typed) => named(pool, self.tenant, typed).await?,
        };
        let no_such = |typed: &str| {
            Refusal::new(
                "NoSuchDestination",
                format!("{}. Nothing was changed.", destination::not_found(self.tenant, typed)),
            )
        };
        let Some(destination) = destination else {
            return no_such(self.destination.as_deref().unwrap_or_default()).answer(*output, self.job);
        };
        // What is not named is carried over, and only from the version that the editor read.
        if job.version != self.version || job.status != Status::Queued {
            return self.not_changed(&job, destination, job.status, job.version).answer(*output, self.job);
        }
        let edit = self.terms(&job, destination);
        let look = format!("waybill job show {} --tenant {}", self.job, self.tenant);
        let refusal = match store::edit_terms(pool, edit.clone()).await {
            Ok(store::Edit::Answered(Write::Written(version))) => {
                let text = changed(&edit, version);
                output.answer(
                    &serde_json::json!({
                        "job": self.job, "outcome": "Changed", "version": version, "destination": edit.destination,
                        "scope": edit.scope, "not_before": edit.not_before.map(explain::at), "sentence": text,
                    }),
                    || format!("Changed: {text}"),
                )?;
                return Ok(Ended::Done);
            }
            Ok(store::Edit::Answered(Write::Refused(Found { status, version, .. }))) => {
                self.not_changed(&job, destination, status, version)
            }
            Ok(store::Edit::Answered(Write::Absent)) => {
                not_found(*output, self.tenant, self.job)?;
                return Ok(Ended::NotFound);
            }
            Ok(store::Edit::NoSuchDestination) => no_such(&edit.destination.to_string()),
            Err(error) => Refusal::of_error(error, &look)?,
        };
        refusal.answer(*output, self.job)
    }

    fn terms(&self, job: &Job, destination: Uuid) -> TermsEdit {
        let scope: serde_json::Map<String, serde_json::Value> =
            self.scope.iter().map(|(name, value)| (name.clone(), value.clone().into())).collect();
        TermsEdit {
            tenant: self.tenant,
            job: self.job,
            expected_version: self.version,
            destination,
            scope: if self.scope.is_empty() { job.scope.clone() } else { scope.into() },
            not_before: if self.no_not_before { None } else { self.not_before.or(job.not_before) },
            edited_by: self.edited_by.clone(),
        }
    }

    /// What was found instead, and what to do.
    fn not_changed(&self, job: &Job, destination: Uuid, status: Status, version: i32) -> Refusal {
        let (id, tenant) = (self.job, self.tenant);
        let look = format!("waybill job show {id} --tenant {tenant}");
        let sentence = match status {
            Status::Queued if version != self.version => format!(
                "Version {} was edited, and version {version} is in force; nothing was changed. Look at it, then edit that one: {look}",
                self.version
            ),
            Status::Queued if destination != job.destination && job.replaces.is_some() => {
                format!(
                    "It is a replacement, which goes where its original went, {}; nothing was changed.",
                    job.destination
                )
            }
            Status::Queued => format!("It moved while it was looked at; nothing was changed. Look again: {look}"),
            Status::Running => format!(
                "A worker has claimed it and builds the file for version {version}; nothing was changed. If that must not be delivered, ask it to stop: \
                 waybill job cancel {id} --tenant {tenant} --reason WHY --as YOU"
            ),
            Status::Delivering => format!(
                "It is being delivered with version {version} of its terms; nothing was changed, and it cannot be stopped any more. Follow it: waybill job watch {id} --tenant {tenant}"
            ),
            Status::Canceled
            | Status::Rejected
            | Status::Stopped
            | Status::Failed
            | Status::Completed
            | Status::OutcomeUnknown => format!(
                "It has ended, as {status}; nothing was changed. What can be done now: waybill job explain {id} --tenant {tenant}"
            ),
        };
        Refusal::new("NotChanged", sentence)
    }
}

/// The terms that are in force now.
fn changed(edit: &TermsEdit, version: i32) -> String {
    let mut text = format!("version {version} of its terms is in force.\n  destination  {}", edit.destination);
    let scope = edit.scope.as_object().into_iter().flatten();
    for (name, value) in scope {
        // Writing to a string cannot fail.
        let _ =
            write!(text, "\n  scope        {name}={}", value.as_str().map_or_else(|| value.to_string(), str::to_owned));
    }
    let _ = match edit.not_before {
        Some(time) => write!(text, "\n  not before   {}", explain::at(time)),
        None => write!(text, "\n  not before   as soon as policy allows"),
    };
    text
}
