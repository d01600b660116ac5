//! What is settled after an attempt went silent: recovery and reconciler as actors, before a real server, with the
//! delivering worker still there, paused or dead.

mod acknowledgments;
mod cuts;
mod edited;
mod fence;
mod looks;
mod occupied;
mod recovery;
mod refusals;
mod replacements;
mod reused;
mod triggers;
mod uploads;

use std::time::Duration;

use anyhow::Context;
use uuid::Uuid;
use waybill::job::evidence::{Answer, Evidence, Receipt};
use waybill::job::model::Job;
use waybill::job::status::{EventKind, FailureReason, Status};
use waybill::upkeep::Looked;
use waybill_tests::house::Running;
use waybill_tests::sftp_server::{Action, Behaviour, Event, Fault, Gate, HardLink, When};
use waybill_tests::{House, Operation, Plan, Reach, SftpServer, wait};

/// A job that an attempt holds while the partner's server, held at a gate, does not answer it.
pub struct Silent {
    pub server: SftpServer,
    pub house: House,
    pub job: Uuid,
    pub gate: Gate,
    pub worker: Running,
    dispatcher: Option<Running>,
    _directory: tempfile::TempDir,
}

/// The words that a contract adds to the names of the default plan.
pub fn agreed(contract: &str) -> Plan {
    let manifest =
        format!("[names]\nfinal = 'contacts-{{key}}.csv'\n[limits]\nread_back_mib = 0\n[contract]\n{contract}\n");
    Plan { manifest, renew_every: Duration::from_hours(1), ..Plan::default() }
}

/// All that a partner with a one-step rename signs.
pub const ONE_STEP: &str =
    "publishes_whole = true\none_name_space = true\nmay_remove_temporaries = true\nrename_one_step = true";

/// A server without hard links: files are published by RENAME.
pub fn renames() -> Behaviour {
    Behaviour { hard_link: HardLink::NotOffered, ..Behaviour::default() }
}

impl Silent {
    /// Held before or after the first operation of this kind on the final name.
    pub async fn at(behaviour: Behaviour, plan: Plan, when: When, action: Action) -> anyhow::Result<Self> {
        Self::held(behaviour, plan, move |name, event_when, event_action, path| {
            event_when == when && event_action == action && path.ends_with(name)
        })
        .await
    }

    /// Held at the first operation that `here` picks: final name, moment, operation, path.
    pub async fn held(
        behaviour: Behaviour,
        plan: Plan,
        here: impl Fn(&str, When, Action, &str) -> bool + Send + 'static,
    ) -> anyhow::Result<Self> {
        let server = SftpServer::start(behaviour).await?;
        let directory = tempfile::tempdir()?;
        let house = House::before(&Reach::in_process(&server, directory.path())?, plan).await?;
        Self::held_in(house, server, directory, here).await
    }

    /// The same before a server that an earlier job has made known, so that every request is this job's own.
    pub async fn held_at_a_known_server(
        behaviour: Behaviour,
        plan: Plan,
        here: impl Fn(&str, When, Action, &str) -> bool + Send + 'static,
    ) -> anyhow::Result<Self> {
        let server = SftpServer::start(behaviour).await?;
        let directory = tempfile::tempdir()?;
        let house = House::before(&Reach::in_process(&server, directory.path())?, plan).await?;
        let (worker, dispatcher) = (house.worker().await?, house.dispatcher().await?);
        house.until_ended(house.create().await?).await?;
        dispatcher.stop().await?;
        worker.stop().await?;
        Self::held_in(house, server, directory, here).await
    }

    async fn held_in(
        house: House,
        server: SftpServer,
        directory: tempfile::TempDir,
        here: impl Fn(&str, When, Action, &str) -> bool + Send + 'static,
    ) -> anyhow::Result<Self> {
        let job = house.create().await?;
        let (gate, mut met) = (Gate::default(), false);
        let (held, name) = (gate.clone(), House::final_name(job));
        server.hook(move |event| {
            let first = !met && here(&name, event.when, event.action, event.path);
            met |= first;
            first.then(|| Fault::Wait(held.clone()))
        });
        let worker = house.worker().await?;
        let dispatcher = Some(house.dispatcher().await?);
        gate.reached().await?;
        Ok(Self { server, house, job, gate, worker, dispatcher, _directory: directory })
    }

    /// A job that its worker takes to the end, before a server that breaks as `breaks` says of the final name and the event.
    /// An earlier job has shown how the server publishes, so every request is this job's own.
    pub async fn ended(
        behaviour: Behaviour,
        plan: Plan,
        breaks: impl FnMut(&str, &Event<'_>) -> Option<Fault> + Send + 'static,
    ) -> anyhow::Result<Self> {
        Self::ended_with(behaviour, plan, &[], breaks).await
    }

    /// The same before a server that has these folders.
    pub async fn ended_with(
        behaviour: Behaviour,
        plan: Plan,
        folders: &[&str],
        mut breaks: impl FnMut(&str, &Event<'_>) -> Option<Fault> + Send + 'static,
    ) -> anyhow::Result<Self> {
        let server = SftpServer::start(behaviour).await?;
        for folder in folders {
            server.make_directory(folder)?;
        }
        let directory = tempfile::tempdir()?;
        let house = House::before(&Reach::in_process(&server, directory.path())?, plan).await?;
        let worker = house.worker().await?;
        let dispatcher = house.dispatcher().await?;
        house.until_ended(house.create().await?).await?;
        dispatcher.stop().await?;
        let job = house.create().await?;
        let name = House::final_name(job);
        server.hook(move |event| breaks(&name, event));
        let dispatcher = Some(house.dispatcher().await?);
        house.until_ended(job).await?;
        Ok(Self { server, house, job, gate: Gate::default(), worker, dispatcher, _directory: directory })
    }

    /// The lease runs out and recovery takes over.
    pub async fn taken_over(&mut self) -> anyhow::Result<Job> {
        if let Some(dispatcher) = self.dispatcher.take() {
            dispatcher.stop().await?;
        }
        self.house.expire_lease(self.job).await?;
        self.house.recovery().await?.run_once().await?;
        self.house.job(self.job).await
    }

    /// The next look comes due and is done.
    pub async fn looked(&self) -> anyhow::Result<Vec<Looked>> {
        self.looked_at(self.job).await
    }

    pub async fn looked_at(&self, job: Uuid) -> anyhow::Result<Vec<Looked>> {
        self.house.look_is_due(job).await?;
        Ok(self.house.reconciler().await?.run_once().await?)
    }

    pub fn name(&self) -> String {
        House::final_name(self.job)
    }

    /// The temporary name that the baseline recorded.
    pub async fn temporary(&self) -> anyhow::Result<String> {
        let found = self.evidence().await?.into_iter().find_map(|one| match one {
            Evidence::Baseline { temporary, .. } => temporary,
            _ => None,
        });
        found.ok_or_else(|| anyhow::anyhow!("no temporary name is on record"))
    }

    pub async fn evidence(&self) -> anyhow::Result<Vec<Evidence>> {
        let events = self.house.events(self.job).await?;
        Ok(events
            .into_iter()
            .filter(|event| event.kind == EventKind::DeliveryEvidence)
            .filter_map(|event| serde_json::from_value(event.detail?).ok())
            .collect())
    }

    /// The attempt's receipt, once its worker has recorded it.
    pub async fn until_receipt(&self) -> anyhow::Result<Receipt> {
        wait::until("the attempt's evidence", async || self.recorded_receipt().await).await
    }

    /// The receipt of an attempt that has ended.
    pub async fn receipt(&self) -> anyhow::Result<Receipt> {
        self.recorded_receipt().await?.context("the attempt left no receipt")
    }

    /// What the server answered when it was asked to remove the temporary file, which is after the attempt's end.
    pub async fn until_removal(&self) -> anyhow::Result<Answer> {
        wait::until("the removal's answer", async || {
            Ok(self.evidence().await?.into_iter().find_map(|one| match one {
                Evidence::RemovalAnswered { answer, .. } => Some(answer),
                _ => None,
            }))
        })
        .await
    }

    async fn recorded_receipt(&self) -> anyhow::Result<Option<Receipt>> {
        Ok(self.evidence().await?.into_iter().rev().find_map(|one| match one {
            Evidence::Receipt(receipt) => Some(receipt),
            _ => None,
        }))
    }

    /// How the job stands.
    pub async fn stands(&self) -> anyhow::Result<(Status, Option<FailureReason>)> {
        let job = self.house.job(self.job).await?;
        Ok((job.status, job.failure_reason))
    }

    /// The last event of this kind, with its detail.
    pub async fn detail(&self, kind: EventKind) -> anyhow::Result<serde_json::Value> {
        let events = self.house.events(self.job).await?;
        let event = events.into_iter().rev().find(|event| event.kind == kind);
        Ok(event.and_then(|event| event.detail).unwrap_or_default())
    }

    /// How often somebody asked the server to remove the attempt's temporary file.
    pub async fn removals(&self) -> anyhow::Result<usize> {
        let temporary = self.temporary().await?;
        let removed = self.server.operations().into_iter().filter(
            |done| matches!(&done.operation, Operation::Remove { path } if path.trim_start_matches('/') == temporary),
        );
        Ok(removed.count())
    }
}

/// Failed/NotDelivered.
pub const NOT_DELIVERED: (Status, Option<FailureReason>) = (Status::Failed, Some(FailureReason::NotDelivered));
pub const UNKNOWN: (Status, Option<FailureReason>) = (Status::OutcomeUnknown, None);
pub const COMPLETED: (Status, Option<FailureReason>) = (Status::Completed, None);
