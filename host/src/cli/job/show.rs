//! `waybill job show` and `waybill job explain`: one job, as its row stands, and as its story goes.

use serde::Serialize;
use uuid::Uuid;

use super::arguments::not_found;
use crate::cli::output::Output;
use crate::cli::words::job_id;
use crate::cli::{Ended, explain};
use crate::job::model::Job;
use crate::store;

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct One {
    /// The job.
    #[arg(value_parser = job_id)]
    pub job: Uuid,
    /// Its tenant.
    #[arg(long, env = "WAYBILL_TENANT")]
    pub tenant: Uuid,
}

impl One {
    /// The job, or an answer that there is none.
    pub async fn find(&self, pool: &store::Pool, output: &Output) -> anyhow::Result<Option<Job>> {
        let found = store::find_tenant_job(pool, self.tenant, self.job).await?;
        if found.is_none() {
            not_found(*output, self.tenant, self.job)?;
        }
        Ok(found)
    }

    pub async fn show(self, pool: &store::Pool, output: &Output) -> anyhow::Result<Ended> {
        let Some(job) = self.find(pool, output).await? else { return Ok(Ended::NotFound) };
        let family = explain::Family::read(pool, &job).await?;
        let theirs = explain::theirs(pool, &job, &family).await?;
        let awaited = theirs.awaited.map(explain::Awaited::sentence);
        let shown = Shown { answer: theirs.answer, awaited, ..Shown::of(&job) };
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
            if let Some(not_before) = &shown.not_before {
                lines.push(format!("not before    {not_before}"));
            }
            if let (Some(file), Some(bytes), Some(sha256)) = (&shown.file, shown.bytes, &shown.sha256) {
                lines.push(format!("file          {file}, {bytes} bytes, SHA-256 {sha256}"));
            }
            if let Some(answer) = &shown.answer {
                lines.push(format!("the partner   {}", answer.in_few_words()));
            }
            if let Some(awaited) = &shown.awaited {
                lines.push(format!("the partner   {awaited}"));
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

    pub async fn explain(self, pool: &store::Pool, output: &Output) -> anyhow::Result<Ended> {
        let Some(job) = self.find(pool, output).await? else { return Ok(Ended::NotFound) };
        let story = explain::read(pool, &job).await?;
        output.answer(&story, || story.to_string())?;
        Ok(Ended::Done)
    }
}

/// A job as a person or a script reads it.
#[derive(Serialize)]
pub(super) struct Shown {
    pub job: Uuid,
    status: &'static str,
    failure_reason: Option<&'static str>,
    pub delivery_key: String,
    destination: Uuid,
    version: i32,
    /// Its own time, where it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    not_before: Option<String>,
    attempts: i32,
    pub file: Option<String>,
    pub bytes: Option<u64>,
    sha256: Option<String>,
    /// What the partner answered of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer: Option<explain::Word>,
    /// The answer that was agreed and is not on record, in a sentence.
    #[serde(skip_serializing_if = "Option::is_none")]
    awaited: Option<String>,
    rejection: Option<serde_json::Value>,
    replaces: Option<Uuid>,
    pub created_at: String,
    pub created_by: String,
}

impl Shown {
    pub fn of(job: &Job) -> Self {
        Self {
            job: job.id,
            status: job.status.as_str(),
            failure_reason: job.failure_reason.map(crate::job::status::FailureReason::as_str),
            delivery_key: job.delivery_key.clone(),
            destination: job.destination,
            version: job.version,
            not_before: job.not_before.map(explain::at),
            attempts: job.attempt_count,
            file: job.expected.as_ref().map(|file| file.name.clone()),
            bytes: job.expected.as_ref().map(|file| file.bytes),
            sha256: job.expected.as_ref().map(|file| file.sha256.to_string()),
            answer: None,
            awaited: None,
            rejection: job.rejection.clone(),
            replaces: job.replaces,
            created_at: explain::at(job.created_at),
            created_by: job.created_by.clone(),
        }
    }

    pub fn state(&self) -> String {
        self.failure_reason.map_or_else(|| self.status.to_owned(), |reason| format!("{}/{reason}", self.status))
    }
}
