//! What happens to single jobs while the others are delivered. Every step waits for a fact, never for a time.

use std::time::Duration;

use anyhow::{Context as _, bail};
use uuid::Uuid;

use super::jobs::{Case, OPERATOR, Planned, the_one};
use super::line::Line;
use super::psql::Held;
use super::psql::Psql;
use super::watch::Watch;
use crate::embedded::openssh::OpenSsh;
use crate::job::model::Job;
use crate::job::status::{CancellationOutcome, EventKind, Status};
use crate::store::{self, Cancellation, CancellationRequest, Pool, RecordedCancellation};

/// Pools that an operator's tools have.
#[derive(Debug, Clone)]
pub(super) struct Operator {
    pub api: Pool,
    pub reader: Pool,
}

/// Counts the builders' queries that wait for the table of consents.
pub(super) const WAITS_FOR_CONSENTS: &str = "SELECT count(*) FROM pg_locks JOIN pg_stat_activity USING (pid)
    WHERE relation = 'consents'::regclass AND NOT granted AND application_name = 'waybill-source';";

/// How often a fact is looked for.
const LOOK_EVERY: Duration = Duration::from_millis(50);

impl Operator {
    /// Asks for a job to be canceled.
    pub async fn cancel(&self, job: &Planned, reason: &str) -> anyhow::Result<RecordedCancellation> {
        let request = CancellationRequest {
            tenant: job.place.tenant,
            job: job.id,
            id: Uuid::new_v4(),
            requested_by: OPERATOR.to_owned(),
            reason: Some(reason.to_owned()),
            lock_timeout: Duration::from_secs(5),
        };
        match store::request_cancellation(&self.api, request).await? {
            Cancellation::Recorded(recorded) => Ok(recorded),
            other => bail!("the cancellation of {} was not recorded: {other:?}", job.key),
        }
    }

    pub async fn job(&self, job: &Planned) -> anyhow::Result<Job> {
        store::find_tenant_job(&self.reader, job.place.tenant, job.id)
            .await?
            .with_context(|| format!("the job {} is gone", job.key))
    }

    async fn reaches(&self, job: &Planned, status: Status) -> anyhow::Result<()> {
        loop {
            let found = self.job(job).await?.status;
            if found == status {
                return Ok(());
            }
            if found.is_terminal() {
                bail!("the job {} became {found} before it was {status}", job.key);
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }
}

/// Cancels a job that no worker has seen yet.
pub(super) async fn cancel_while_queued(operator: &Operator, jobs: &[Planned], watch: &Watch) -> anyhow::Result<()> {
    let job = the_one(jobs, Case::CanceledWhileQueued)?;
    let recorded = operator.cancel(job, "wrong country").await?;
    watch.tell(&format!("{}: canceled before a worker saw it → {}", job.key, recorded.outcome))?;
    expect(job, recorded.outcome, CancellationOutcome::CanceledWhileQueued)
}

/// Asks a job to stop while its query waits for a lock, which PostgreSQL itself reports.
pub(super) async fn stop_while_building(
    operator: &Operator,
    jobs: &[Planned],
    crm: &Psql,
    lock: Held,
    watch: &Watch,
) -> anyhow::Result<()> {
    let job = the_one(jobs, Case::StoppedWhileBuilding)?;
    while crm.run(WAITS_FOR_CONSENTS, &[]).await? != "1" {
        if operator.job(job).await?.status.is_terminal() {
            bail!("the job {} ended although its table is locked", job.key);
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
    let recorded = operator.cancel(job, "the consents are being corrected").await?;
    watch.tell(&format!(
        "{}: its query waits for a locked table (pg_locks); asked to stop → {}",
        job.key, recorded.outcome
    ))?;
    expect(job, recorded.outcome, CancellationOutcome::StopRequested)?;
    operator.reaches(job, Status::Stopped).await?;
    watch.tell(&format!("{}: stopped, with the table still locked", job.key))?;
    lock.release().await
}

/// Asks a job to stop while half of its file is on the line.
pub(super) async fn cancel_too_late(
    operator: &Operator,
    jobs: &[Planned],
    slow: &mut Line,
    watch: &Watch,
) -> anyhow::Result<()> {
    let job = the_one(jobs, Case::TooLate)?;
    slow.held().await?;
    let recorded = operator.cancel(job, "changed my mind").await?;
    watch.tell(&format!("{}: its upload is under way; asked to stop → {}", job.key, recorded.outcome))?;
    slow.release();
    expect(job, recorded.outcome, CancellationOutcome::TooLate)
}

/// Starts a partner's server again, once a job was handed back because it did not answer.
pub(super) async fn partner_comes_back(
    operator: &Operator,
    jobs: &[Planned],
    west: &mut OpenSsh,
    watch: &Watch,
) -> anyhow::Result<()> {
    let job = the_one(jobs, Case::PartnerDown)?;
    loop {
        let events = store::events_of(&operator.reader, job.id).await?;
        if events.iter().any(|event| event.kind == EventKind::ReleasedByWorker) {
            break;
        }
        if operator.job(job).await?.status.is_terminal() {
            bail!("the job {} ended although its partner's server is down", job.key);
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
    watch.tell(&format!(
        "{}: the server is down; handed back with nothing sent, and the destination is paused",
        job.key
    ))?;
    west.start_again().await?;
    watch.tell(&format!("{}: the server is up again; the pause ends by itself, with one job that tries", job.key))
}

fn expect(job: &Planned, found: CancellationOutcome, expected: CancellationOutcome) -> anyhow::Result<()> {
    if found == expected { Ok(()) } else { bail!("the cancellation of {} came to {found}, not {expected}", job.key) }
}
