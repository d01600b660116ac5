//! A place that files go to, seen from its own side, and a house before it.

use uuid::Uuid;
use waybill::job::evidence::{Answer, Evidence, PublishForm, Receipt};
use waybill::job::model::Job;
use waybill::job::status::{EventKind, FailureReason, Status};
use waybill_tests::house::Running;
use waybill_tests::object_store::PREFIX;
use waybill_tests::proxy::{Fault, Moment};
use waybill_tests::sftp_server::Gate;
use waybill_tests::{House, Moto, ObjectStore, Plan, Proxy, wait};

use crate::delivery::LONG;
pub use crate::settled::{COMPLETED as DELIVERED, NOT_DELIVERED, UNKNOWN};

pub const OCCUPIED: (Status, Option<FailureReason>) = (Status::Failed, Some(FailureReason::FinalNameOccupied));

pub fn stands(job: &Job) -> (Status, Option<FailureReason>) {
    (job.status, job.failure_reason)
}

/// A place. Names are relative to the part of it that a destination is.
pub trait Place {
    /// The lines of `destinations.toml` that name it.
    fn lines(&self) -> String;
    /// All names there, in order.
    fn names(&self) -> anyhow::Result<Vec<String>>;
    fn read(&self, name: &str) -> anyhow::Result<Option<Vec<u8>>>;
    /// As somebody else puts a file there.
    fn write(&self, name: &str, content: &[u8]) -> anyhow::Result<()>;
}

/// A kind of place of which each test has one of its own.
pub trait Fresh: Place + Sized {
    /// How a file gets its final name there.
    const FORM: PublishForm;

    async fn fresh() -> anyhow::Result<Self>;
    /// How the list of given names calls it: server and directory.
    fn on_record(&self) -> anyhow::Result<(String, String)>;
}

impl Place for ObjectStore {
    fn lines(&self) -> String {
        self.place()
    }

    fn names(&self) -> anyhow::Result<Vec<String>> {
        let below = format!("{PREFIX}/");
        Ok(self.keys().iter().map(|key| key.strip_prefix(&below).unwrap_or(key).to_owned()).collect())
    }

    fn read(&self, name: &str) -> anyhow::Result<Option<Vec<u8>>> {
        Ok(self.content(&format!("{PREFIX}/{name}")))
    }

    fn write(&self, name: &str, content: &[u8]) -> anyhow::Result<()> {
        self.put(&format!("{PREFIX}/{name}"), content);
        Ok(())
    }
}

impl Fresh for ObjectStore {
    const FORM: PublishForm = PublishForm::CreateWhole;

    async fn fresh() -> anyhow::Result<Self> {
        Self::start().await
    }

    fn on_record(&self) -> anyhow::Result<(String, String)> {
        Ok((format!("{}/deliveries", self.url()), format!("/{PREFIX}")))
    }
}

impl Place for Moto {
    fn lines(&self) -> String {
        self.place()
    }

    fn names(&self) -> anyhow::Result<Vec<String>> {
        Moto::names(self)
    }

    fn read(&self, name: &str) -> anyhow::Result<Option<Vec<u8>>> {
        Moto::read(self, name).map(Some)
    }

    fn write(&self, name: &str, content: &[u8]) -> anyhow::Result<()> {
        self.put(name, content)
    }
}

/// A house before a place.
pub struct Before<P> {
    pub house: House,
    pub place: P,
}

impl<P: Fresh> Before<P> {
    pub async fn new(plan: Plan) -> anyhow::Result<Self> {
        let place = P::fresh().await?;
        Ok(Self { house: House::at(&place.lines(), plan).await?, place })
    }
}

impl<P> Before<P> {
    pub async fn evidence(&self, job: Uuid) -> anyhow::Result<Vec<Evidence>> {
        crate::delivery::evidence(&self.house.events(job).await?)
    }

    /// What was answered to the publish; none if it was never sent.
    pub async fn published(&self, job: Uuid) -> anyhow::Result<Option<(PublishForm, Answer)>> {
        Ok(self.evidence(job).await?.into_iter().find_map(|one| match one {
            Evidence::Publish { form, answer } => Some((form, answer)),
            _ => None,
        }))
    }

    pub async fn receipt(&self, job: Uuid) -> anyhow::Result<Receipt> {
        let receipt = self.evidence(job).await?.into_iter().rev().find_map(|one| match one {
            Evidence::Receipt(receipt) => Some(receipt),
            _ => None,
        });
        receipt.ok_or_else(|| anyhow::anyhow!("no receipt is on record"))
    }
}

/// An attempt that is held at the publish fence.
pub struct Held<P> {
    pub at: Before<P>,
    pub job: Uuid,
    pub gate: Gate,
    pub worker: Running,
    _dispatcher: Running,
    _line: Proxy,
}

impl<P: Fresh> Held<P> {
    pub async fn at_the_fence(moment: Moment) -> anyhow::Result<Self> {
        let plan = Plan { renew_every: LONG, watch_stop_every: None, ..Plan::default() };
        let at = Before::<P>::new(plan).await?;
        let line = Proxy::before(&at.house.database)?;
        let gate = Gate::default();
        let _held = line.at("intend_publish", Fault::hold(moment, gate.clone()));
        let (worker, dispatcher) = (at.house.worker_on(&line).await?, at.house.dispatcher().await?);
        let job = at.house.create().await?;
        gate.reached().await?;
        Ok(Self { at, job, gate, worker, _dispatcher: dispatcher, _line: line })
    }
}

/// Gives a job to a destination that these lines name and that cannot be reached so: the job is handed back with a sentence,
/// which is returned, and the destination waits for a person or for better times.
pub async fn handed_back(lines: &str, wants_a_person: bool) -> anyhow::Result<String> {
    let house = House::at(lines, Plan::default()).await?;
    let (_worker, _dispatcher) = (house.worker().await?, house.dispatcher().await?);
    let id = house.create().await?;
    let why = wait::until("the job to be handed back", async || {
        let events = house.events(id).await?;
        let released = events.into_iter().find(|event| event.kind == EventKind::ReleasedByWorker);
        Ok(released.map(|event| event.detail.unwrap_or_default().to_string()))
    })
    .await?;
    let attended: bool = wait::until("the destination to be marked", async || {
        let (attention, paused): (bool, bool) =
            sqlx::query_as("SELECT attention_since IS NOT NULL, pause_failures > 0 FROM destinations")
                .fetch_one(&house.admin)
                .await?;
        Ok((attention || paused).then_some(attention))
    })
    .await?;
    assert_eq!(attended, wants_a_person, "{why}");
    assert_eq!(house.job(id).await?.status, Status::Queued, "{why}");
    Ok(why)
}
