//! Every statement is about the rows that it names, in the state that it asks for, and about no other.
//!
//! Each write is tried with half of its key belonging to somebody else, and in every state but its own: it must say that
//! nothing was written, and nothing may have changed in the whole database. Each read must tell the same after strangers
//! moved in: other jobs of the tenant, and another tenant's that look alike, down to delivery key, names and content.

mod answers;
mod destinations;
mod held;
mod pairs;
mod partners;
mod reads;
mod told;
mod wakeups;

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, bail};
use serde_json::json;
use sqlx::AssertSqlSafe;
use uuid::Uuid;
use waybill::job::facts::{FileFacts, Sha256};
use waybill::job::status::Role;
use waybill::store::take_over::{self, Resolution};
use waybill::store::{self, Authorization, Cancellation, Creation, Delivery, DeliveryOutcome, NewJob};

use crate::recovery::actors::{Actors, NOT_DELIVERED, resolving};
use crate::store::world::{Attempt, World};

/// How far a job is brought.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    Queued,
    Canceled,
    Running,
    /// With a stop request.
    Stopping,
    Delivering,
    /// Past the publish fence.
    Intended,
    Completed,
    Failed,
    /// `OutcomeUnknown` past the fence.
    Unknown,
    /// `OutcomeUnknown` without a fence.
    Unfenced,
}

pub const STAGES: [Stage; 10] = [
    Stage::Queued,
    Stage::Canceled,
    Stage::Running,
    Stage::Stopping,
    Stage::Delivering,
    Stage::Intended,
    Stage::Completed,
    Stage::Failed,
    Stage::Unknown,
    Stage::Unfenced,
];

/// Brings a new job there. Its attempt is a stranger's word where it has none.
pub async fn bring(actors: &Actors, new: &NewJob, stage: Stage) -> anyhow::Result<Attempt> {
    anyhow::ensure!(store::create(&actors.api, new.clone()).await? == Creation::Created);
    go_on(actors, new.tenant, new.id, stage).await
}

/// The same for a job that is queued.
pub async fn go_on(actors: &Actors, tenant: Uuid, job: Uuid, stage: Stage) -> anyhow::Result<Attempt> {
    match stage {
        Stage::Queued => return Ok(Attempt { job, attempt: Uuid::new_v4() }),
        Stage::Canceled => {
            cancel(actors, tenant, job).await?;
            return Ok(Attempt { job, attempt: Uuid::new_v4() });
        }
        _ => {}
    }
    let of = Attempt { job, attempt: actors.claimed(job).await?.attempt };
    match stage {
        Stage::Queued | Stage::Canceled | Stage::Running => return Ok(of),
        Stage::Stopping => {
            cancel(actors, tenant, job).await?;
            return Ok(of);
        }
        _ => {}
    }
    match store::authorize_delivery(&actors.worker, delivery(actors, of).await?).await? {
        Authorization::Authorized => {}
        refused => bail!("{refused:?}"),
    }
    if !matches!(stage, Stage::Delivering | Stage::Unfenced) {
        actors.intend(of).await?.written().context("the fence was refused")?;
    }
    match stage {
        Stage::Completed => drop(actors.finish(of, DeliveryOutcome::Completed).await?.written().context("ended")?),
        Stage::Failed => drop(actors.finish(of, NOT_DELIVERED).await?.written().context("ended")?),
        Stage::Unknown | Stage::Unfenced => {
            actors.expire(of).await?;
            let resolve = resolving(of, Resolution::OutcomeUnknown, "run-0");
            take_over::resolve(&actors.recovery, resolve).await?.written().context("the takeover")?;
        }
        _ => {}
    }
    Ok(of)
}

async fn cancel(actors: &Actors, tenant: Uuid, job: Uuid) -> anyhow::Result<()> {
    let request = store::CancellationRequest { tenant, ..actors.cancellation(job) };
    match store::request_cancellation(&actors.api, request).await? {
        Cancellation::Recorded(_) => Ok(()),
        other => bail!("{other:?}"),
    }
}

/// A name by the delivery key, so that a replacement has its original's, below a folder of the tenant.
pub async fn delivery(actors: &Actors, of: Attempt) -> anyhow::Result<Delivery> {
    let job = store::find_job(&actors.worker, of.job).await?.context("the job")?;
    let name = format!("contacts-{}.csv", job.delivery_key);
    Ok(Delivery {
        expected: FileFacts { name: name.clone(), bytes: 1_234, sha256: Sha256([7; 32]) },
        directory: format!("/{}", job.tenant),
        last_part: name,
        ..World::delivery(of)
    })
}

/// Another tenant with a destination of its own.
pub async fn another_tenant(actors: &Actors) -> anyhow::Result<(Uuid, Uuid)> {
    let tenant = Uuid::new_v4();
    Ok((tenant, actors.destination(tenant, json!({})).await?))
}

/// All rows, by table, as text.
pub async fn everything(actors: &Actors) -> anyhow::Result<BTreeMap<String, String>> {
    const TABLES: [&str; 15] = [
        "export_jobs",
        "deliveries",
        "export_attempt_events",
        "cancellation_requests",
        "outbox",
        "outbox_claims",
        "wakeups",
        "destinations",
        "destination_checks",
        "final_names",
        "final_name_uses",
        "looks",
        "audit",
        "accepted_losses",
        "idempotency_keys",
    ];
    let one = |table: &&str| {
        format!("SELECT '{table}', coalesce(string_agg(row::text, E'\\n' ORDER BY row::text), '') FROM {table} AS row")
    };
    let query = TABLES.iter().map(one).collect::<Vec<_>>().join(" UNION ALL ");
    let rows: Vec<(String, String)> =
        sqlx::query_as(AssertSqlSafe(query)).fetch_all(&actors.database.admin().await?).await?;
    Ok(rows.into_iter().collect())
}

/// The rows that name this id, of all tables.
pub async fn of(actors: &Actors, id: Uuid) -> anyhow::Result<Vec<String>> {
    let all = everything(actors).await?;
    let id = id.to_string();
    Ok(all.values().flat_map(|rows| rows.lines()).filter(|row| row.contains(&id)).map(str::to_owned).collect())
}

pub async fn reader(actors: &Actors) -> anyhow::Result<waybill::store::Pool> {
    actors.pool(Role::Reader).await
}

pub const SOON: Duration = Duration::from_secs(60);
