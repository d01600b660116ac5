//! `waybill job`: create, list, show, cancel, explain. On the database, for those who hold its logins.

use std::time::Duration;

use anyhow::{Context as _, bail};
use comfy_table::Table;
use comfy_table::presets::UTF8_HORIZONTAL_ONLY;
use serde::Serialize;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use uuid::Uuid;

use super::output::Output;
use super::{Ended, explain};
use crate::app;
use crate::config::Config;
use crate::job::model::Job;
use crate::job::status::{CancellationOutcome, Role, Status};
use crate::store::{self, Cancellation, CancellationRequest, CreatedOnce, Creation, JobFilter, KeyedCreation, NewJob};

#[derive(Debug, clap::Subcommand)]
pub(super) enum JobCommand {
    /// Create a job: one export, one file, to be delivered once.
    #[command(
        after_help = "Examples:\n  waybill job create --tenant 6f1… --destination 0b2… --scope region=emea --as ada@example.com\n  \
waybill job create --tenant 6f1… --destination 0b2… --scope region=emea --as ada@example.com --idempotency-key order-4711\n\n\
With --idempotency-key the same command sent twice makes one job and prints the same job. Exit code 4: the key was used for\n\
another request; 5: the first one is still in flight, send it again."
    )]
    Create(Create),
    /// List a tenant's jobs, newest first.
    #[command(after_help = "Example:\n  waybill job list --tenant 6f1… --status OutcomeUnknown --status Failed")]
    List(List),
    /// Show one job as its row stands.
    #[command(after_help = "Example:\n  waybill job show 018f… --tenant 6f1…")]
    Show(One),
    /// Ask for a job to be canceled, and read the truth about it.
    #[command(
        after_help = "Example:\n  waybill job cancel 018f… --tenant 6f1… --as ada@example.com --reason 'wrong region'\n\n\
Exit code 0: it is canceled, or asked to stop; 4: too late or ended before; 5: could not be told, try again with the same --request-id."
    )]
    Cancel(Cancel),
    /// Tell a job's story from its events, in plain words.
    #[command(after_help = "Example:\n  waybill job explain 018f… --tenant 6f1…")]
    Explain(One),
}

#[derive(Debug, clap::Args)]
pub(super) struct Create {
    /// The tenant whose export it is.
    #[arg(long, env = "WAYBILL_TENANT")]
    tenant: Uuid,
    /// The destination's id, from the operator's destinations.toml.
    #[arg(long)]
    destination: Uuid,
    /// What to export, as the partner's builder understands it; may be given several times.
    #[arg(long, value_name = "NAME=VALUE", value_parser = pair)]
    scope: Vec<(String, String)>,
    /// The delivery key, by which the partner knows the delivery. Minted if absent; it never changes.
    #[arg(long)]
    key: Option<String>,
    /// Your own name for this request, unique in the tenant: sent again with it, the request makes no second job.
    #[arg(long, value_name = "KEY", value_parser = idempotency_key)]
    idempotency_key: Option<String>,
    /// Not before this time (RFC 3339, for example 2026-12-01T06:00:00Z).
    #[arg(long, value_parser = timestamp)]
    not_before: Option<OffsetDateTime>,
    /// Higher is woken earlier.
    #[arg(long, default_value_t = 0, allow_negative_numbers = true)]
    priority: i16,
    /// Who creates it.
    #[arg(long = "as", env = "WAYBILL_AS", value_name = "WHO")]
    created_by: String,
}

#[derive(Debug, clap::Args)]
pub(super) struct List {
    #[arg(long, env = "WAYBILL_TENANT")]
    tenant: Uuid,
    /// Only jobs that stand so; may be given several times.
    #[arg(long, value_parser = status)]
    status: Vec<Status>,
    #[arg(long)]
    destination: Option<Uuid>,
    /// At most so many.
    #[arg(long, default_value_t = 50)]
    limit: u16,
}

#[derive(Debug, clap::Args)]
pub(super) struct One {
    job: Uuid,
    #[arg(long, env = "WAYBILL_TENANT")]
    tenant: Uuid,
}

#[derive(Debug, clap::Args)]
pub(super) struct Cancel {
    job: Uuid,
    #[arg(long, env = "WAYBILL_TENANT")]
    tenant: Uuid,
    /// Who asks.
    #[arg(long = "as", env = "WAYBILL_AS", value_name = "WHO")]
    requested_by: String,
    /// Why, for the record.
    #[arg(long)]
    reason: Option<String>,
    /// The request's id, to ask again after "could not be told". Minted if absent.
    #[arg(long, value_name = "UUID")]
    request_id: Option<Uuid>,
}

/// A cancellation waits this long for the row's lock.
const LOCK_TIMEOUT: Duration = Duration::from_secs(2);

impl JobCommand {
    pub async fn run(self, config: &Config, embedded: bool, output: &Output) -> anyhow::Result<Ended> {
        let role = match &self {
            Self::Create(_) | Self::Cancel(_) => Role::Api,
            Self::List(_) | Self::Show(_) | Self::Explain(_) => Role::Reader,
        };
        let pool = app::connect(config, embedded, role).await?;
        let ended = match self {
            Self::Create(command) => command.run(&pool, output).await,
            Self::List(command) => command.run(&pool, output).await,
            Self::Show(command) => command.show(&pool, output).await,
            Self::Cancel(command) => command.run(&pool, output).await,
            Self::Explain(command) => command.explain(&pool, output).await,
        };
        pool.close().await;
        ended
    }
}

impl Create {
    async fn run(self, pool: &store::Pool, output: &Output) -> anyhow::Result<Ended> {
        let scope: serde_json::Map<String, serde_json::Value> =
            self.scope.into_iter().map(|(name, value)| (name, value.into())).collect();
        let id = Uuid::now_v7();
        let names_delivery_key = self.key.is_some();
        let delivery_key = self.key.unwrap_or_else(|| Uuid::new_v4().simple().to_string());
        let job = NewJob {
            id,
            tenant: self.tenant,
            destination: self.destination,
            scope: scope.into(),
            not_before: self.not_before,
            priority: self.priority,
            delivery_key: delivery_key.clone(),
            created_by: self.created_by,
        };
        let created = match self.idempotency_key {
            None => store::create(pool, job)
                .await
                .context("the job was not confirmed; look with `waybill job list` before creating it again")?,
            Some(key) => {
                let request =
                    KeyedCreation { idempotency_key: key.clone(), job, names_delivery_key, lock_timeout: LOCK_TIMEOUT };
                match store::create_once(pool, request).await.context(
                    "the job was not confirmed; send the same command again, with the same --idempotency-key",
                )? {
                    CreatedOnce::Created(made) | CreatedOnce::Again(made) => {
                        return told(output, self.tenant, made.job, &made.delivery_key);
                    }
                    CreatedOnce::OtherContent { used_by } => {
                        let sentence = format!(
                            "the idempotency key {key:?} was used by {used_by} for another request; nothing was created. Use a new key, or send that request as it was"
                        );
                        output
                            .answer(&serde_json::json!({ "outcome": "OtherContent", "sentence": sentence }), || {
                                format!("OtherContent: {sentence}")
                            })?;
                        return Ok(Ended::Refused);
                    }
                    CreatedOnce::InFlight => {
                        let sentence = format!(
                            "another request with the idempotency key {key:?} or this delivery key has not ended; nothing was created. Send the same command again"
                        );
                        output.answer(&serde_json::json!({ "outcome": "InFlight", "sentence": sentence }), || {
                            format!("InFlight: {sentence}")
                        })?;
                        return Ok(Ended::TryAgain);
                    }
                    CreatedOnce::KeyTaken => Creation::KeyTaken,
                    CreatedOnce::NoSuchDestination => Creation::NoSuchDestination,
                }
            }
        };
        match created {
            Creation::Created => told(output, self.tenant, id, &delivery_key),
            Creation::KeyTaken => {
                bail!(
                    "the tenant has a delivery with the key {delivery_key:?} already; nothing was created. Use another key, or look at the job that has it"
                )
            }
            Creation::NoSuchDestination => bail!(
                "the tenant {} has no destination {}; see the partner's destinations.toml, and that a host with its bundle has started once",
                self.tenant,
                self.destination
            ),
        }
    }
}

fn told(output: &Output, tenant: Uuid, job: Uuid, delivery_key: &str) -> anyhow::Result<Ended> {
    // The same answer for the first submission and for one sent again.
    output.answer(&serde_json::json!({ "job": job, "delivery_key": delivery_key }), || {
        format!("created job {job}\ndelivery key  {delivery_key}\nfollow it with: waybill job explain {job} --tenant {tenant}")
    })?;
    Ok(Ended::Done)
}

impl List {
    async fn run(self, pool: &store::Pool, output: &Output) -> anyhow::Result<Ended> {
        let filter = JobFilter { statuses: self.status, destination: self.destination, ..JobFilter::default() };
        let page = store::list_jobs(pool, self.tenant, &filter, None, self.limit).await?;
        let rows: Vec<Shown> = page.jobs.iter().map(Shown::of).collect();
        output.answer(&rows, || {
            if rows.is_empty() {
                return "no such jobs".to_owned();
            }
            let mut table = Table::new();
            table.load_style(UTF8_HORIZONTAL_ONLY).set_header(["job", "state", "file", "bytes", "created", "by"]);
            for row in &rows {
                table.add_row([
                    row.job.to_string(),
                    row.state(),
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

impl One {
    async fn find(&self, pool: &store::Pool, output: &Output) -> anyhow::Result<Option<Job>> {
        let found = store::find_tenant_job(pool, self.tenant, self.job).await?;
        if found.is_none() {
            not_found(*output, self.tenant, self.job)?;
        }
        Ok(found)
    }

    async fn show(self, pool: &store::Pool, output: &Output) -> anyhow::Result<Ended> {
        let Some(job) = self.find(pool, output).await? else { return Ok(Ended::NotFound) };
        let shown = Shown::of(&job);
        output.answer(&shown, || {
            let mut lines = vec![
                format!("job           {}", shown.job),
                format!("state         {}", shown.state()),
                format!("delivery key  {}", shown.delivery_key),
                format!("destination   {}", shown.destination),
                format!("version       {} of the terms", shown.version),
                format!("attempts      {}", shown.attempts),
                format!("created       {} by {}", shown.created_at, shown.created_by),
            ];
            if let (Some(file), Some(bytes), Some(sha256)) = (&shown.file, shown.bytes, &shown.sha256) {
                lines.push(format!("file          {file}, {bytes} bytes, SHA-256 {sha256}"));
            }
            if let Some(rejection) = &shown.rejection {
                lines.push(format!(
                    "rejected      {}",
                    rejection.get("sentence").and_then(|text| text.as_str()).unwrap_or("")
                ));
            }
            lines.join("\n")
        })?;
        Ok(Ended::Done)
    }

    async fn explain(self, pool: &store::Pool, output: &Output) -> anyhow::Result<Ended> {
        let Some(job) = self.find(pool, output).await? else { return Ok(Ended::NotFound) };
        let story = explain::read(pool, &job).await?;
        output.answer(&story, || story.to_string())?;
        Ok(Ended::Done)
    }
}

impl Cancel {
    async fn run(self, pool: &store::Pool, output: &Output) -> anyhow::Result<Ended> {
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

/// A job as a person or a script reads it.
#[derive(Serialize)]
struct Shown {
    job: Uuid,
    status: &'static str,
    failure_reason: Option<&'static str>,
    delivery_key: String,
    destination: Uuid,
    version: i32,
    attempts: i32,
    file: Option<String>,
    bytes: Option<u64>,
    sha256: Option<String>,
    rejection: Option<serde_json::Value>,
    replaces: Option<Uuid>,
    created_at: String,
    created_by: String,
}

impl Shown {
    fn of(job: &Job) -> Self {
        Self {
            job: job.id,
            status: job.status.as_str(),
            failure_reason: job.failure_reason.map(crate::job::status::FailureReason::as_str),
            delivery_key: job.delivery_key.clone(),
            destination: job.destination,
            version: job.version,
            attempts: job.attempt_count,
            file: job.expected.as_ref().map(|file| file.name.clone()),
            bytes: job.expected.as_ref().map(|file| file.bytes),
            sha256: job.expected.as_ref().map(|file| file.sha256.to_string()),
            rejection: job.rejection.clone(),
            replaces: job.replaces,
            created_at: explain::at(job.created_at),
            created_by: job.created_by.clone(),
        }
    }

    fn state(&self) -> String {
        self.failure_reason.map_or_else(|| self.status.to_owned(), |reason| format!("{}/{reason}", self.status))
    }
}

fn not_found(output: Output, tenant: Uuid, job: Uuid) -> anyhow::Result<()> {
    output.answer(&serde_json::json!({ "job": job, "outcome": "NotFound" }), || {
        format!(
            "NotFound: the tenant {tenant} has no job {job}; `waybill job list --tenant {tenant}` shows those it has"
        )
    })
}

fn pair(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("write it as NAME=VALUE")?;
    if name.is_empty() { Err("the name is missing".to_owned()) } else { Ok((name.to_owned(), value.to_owned())) }
}

fn idempotency_key(text: &str) -> Result<String, String> {
    match text.chars().count() {
        1..=255 if !text.trim().is_empty() => Ok(text.to_owned()),
        _ => Err("it has 1 to 255 characters".to_owned()),
    }
}

fn timestamp(text: &str) -> Result<OffsetDateTime, String> {
    OffsetDateTime::parse(text, &Rfc3339)
        .map_err(|_| "write it in RFC 3339, for example 2026-12-01T06:00:00Z".to_owned())
}

fn status(text: &str) -> Result<Status, String> {
    text.parse().map_err(|_| {
        let known: Vec<&str> = Status::ALL.iter().map(|status| status.as_str()).collect();
        format!("the states are {}", known.join(", "))
    })
}
