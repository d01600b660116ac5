//! `waybill job create`: one export, one file, to be delivered once.

use std::time::Duration;

use anyhow::Context as _;
use time::OffsetDateTime;
use uuid::Uuid;

use super::arguments::{pair, timestamp};
use crate::cli::destination::{named, not_found};
use crate::cli::output::Output;
use crate::cli::words::words;
use crate::cli::{Ended, explain};
use crate::job::names::check_delivery_key;
use crate::store::{self, CreatedOnce, Creation, JobFilter, KeyedCreation, NewJob};

/// How long a request waits for one with the same key that is still in flight.
const LOCK_TIMEOUT: Duration = Duration::from_secs(2);

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Create {
    /// The tenant whose export it is.
    #[arg(long, env = "WAYBILL_TENANT")]
    tenant: Uuid,
    /// The destination's id, from the operator's destinations.toml, or its name.
    #[arg(long)]
    destination: String,
    /// What to export, as the partner's builder understands it; may be given several times.
    #[arg(long, value_name = "NAME=VALUE", value_parser = pair)]
    scope: Vec<(String, String)>,
    /// The delivery key, by which the partner knows the delivery: a part of the file's name, so without `/`, and at most 200
    /// bytes. Minted if absent; it never changes.
    #[arg(long, value_parser = delivery_key)]
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
    #[arg(long = "as", env = "WAYBILL_AS", value_name = "WHO", value_parser = words)]
    created_by: String,
}

impl Create {
    pub async fn run(self, pool: &store::Pool, output: &Output) -> anyhow::Result<Ended> {
        let none = || {
            format!(
                "{}; if the bundle is new, a host that has it must have started once",
                not_found(self.tenant, &self.destination)
            )
        };
        let Some(destination) = named(pool, self.tenant, &self.destination).await? else {
            return refused(*output, Ended::NotFound, "NoSuchDestination", &none());
        };
        let scope: serde_json::Map<String, serde_json::Value> =
            self.scope.into_iter().map(|(name, value)| (name, value.into())).collect();
        let id = Uuid::now_v7();
        let names_delivery_key = self.key.is_some();
        let delivery_key = self.key.unwrap_or_else(|| Uuid::new_v4().simple().to_string());
        let job = NewJob {
            id,
            tenant: self.tenant,
            destination,
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
                        return told(*output, self.tenant, made.job, &made.delivery_key);
                    }
                    CreatedOnce::OtherContent { used_by } => {
                        let sentence = format!(
                            "the idempotency key {key:?} was used by {used_by} for another request; nothing was created. Use a new key, or send that request as it was"
                        );
                        return refused(*output, Ended::Refused, "OtherContent", &sentence);
                    }
                    CreatedOnce::InFlight => {
                        let sentence = format!(
                            "another request with the idempotency key {key:?} or this delivery key has not ended; nothing was created. Send the same command again"
                        );
                        return refused(*output, Ended::TryAgain, "InFlight", &sentence);
                    }
                    CreatedOnce::KeyTaken => Creation::KeyTaken,
                    CreatedOnce::NoSuchDestination => Creation::NoSuchDestination,
                }
            }
        };
        match created {
            Creation::Created => told(*output, self.tenant, id, &delivery_key),
            Creation::KeyTaken => key_taken(pool, *output, self.tenant, &delivery_key).await,
            Creation::NoSuchDestination => refused(*output, Ended::NotFound, "NoSuchDestination", &none()),
        }
    }
}

/// Nothing was created; which job has the key.
async fn key_taken(pool: &store::Pool, output: Output, tenant: Uuid, key: &str) -> anyhow::Result<Ended> {
    let filter = JobFilter { delivery_key: Some(key.to_owned()), ..JobFilter::default() };
    let jobs = store::list_jobs(pool, tenant, &filter, None, store::LARGEST_PAGE).await?.jobs;
    let holder = jobs.iter().find(|job| job.replaces.is_none());
    let (by, look) = holder.map_or_else(
        || (String::new(), format!("waybill job list --tenant {tenant} --key {key:?}")),
        |job| {
            let state = explain::state(job.status, job.failure_reason);
            (
                format!(", by the job {}, which is {state}", job.id),
                format!("waybill job show {} --tenant {tenant}", job.id),
            )
        },
    );
    let sentence = format!(
        "the tenant has a delivery with the key {key:?} already{by}; nothing was created. Use another key, or look at that job: {look}"
    );
    let mut document = serde_json::json!({ "outcome": "KeyTaken", "sentence": sentence });
    if let (Some(job), Some(members)) = (holder, document.as_object_mut()) {
        members.insert("job".to_owned(), serde_json::json!(job.id));
        members.insert("status".to_owned(), job.status.as_str().into());
    }
    output.answer(&document, || format!("KeyTaken: {sentence}"))?;
    Ok(Ended::Refused)
}

/// Nothing was created; why, and what to do next.
fn refused(output: Output, ended: Ended, outcome: &str, sentence: &str) -> anyhow::Result<Ended> {
    output.answer(&serde_json::json!({ "outcome": outcome, "sentence": sentence }), || {
        format!("{outcome}: {sentence}")
    })?;
    Ok(ended)
}

fn told(output: Output, tenant: Uuid, job: Uuid, delivery_key: &str) -> anyhow::Result<Ended> {
    // The same answer for the first submission and for one sent again.
    output.answer(&serde_json::json!({ "job": job, "delivery_key": delivery_key }), || {
        format!("created job {job}\ndelivery key  {delivery_key}\nfollow it with: waybill job explain {job} --tenant {tenant}")
    })?;
    Ok(Ended::Done)
}

fn delivery_key(text: &str) -> Result<String, String> {
    check_delivery_key(text)
        .map(|()| text.to_owned())
        .map_err(|why| format!("it becomes a part of the file's name, and it {why}; nothing was created"))
}

fn idempotency_key(text: &str) -> Result<String, String> {
    match text.chars().count() {
        1..=255 if !text.trim().is_empty() => Ok(text.to_owned()),
        _ => Err("it has 1 to 255 characters".to_owned()),
    }
}
