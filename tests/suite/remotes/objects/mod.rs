//! A bucket of an object store as the partner's place, judged by what lies in it and by what it was asked.

mod delivered;
mod interrupted;
mod session;

use uuid::Uuid;
use waybill::job::evidence::{Answer, Evidence, PublishForm, Receipt};
use waybill::job::model::Job;
use waybill::job::status::{FailureReason, Status};
use waybill_tests::{House, ObjectStore, Plan};

const OCCUPIED: (Status, Option<FailureReason>) = (Status::Failed, Some(FailureReason::FinalNameOccupied));
const DELIVERED: (Status, Option<FailureReason>) = (Status::Completed, None);
const UNKNOWN: (Status, Option<FailureReason>) = (Status::OutcomeUnknown, None);

/// A house before a bucket.
struct Bucket {
    store: ObjectStore,
    house: House,
}

impl Bucket {
    async fn new(plan: Plan) -> anyhow::Result<Self> {
        let store = ObjectStore::start().await?;
        let house = House::at(&store.place(), plan).await?;
        Ok(Self { store, house })
    }

    async fn evidence(&self, job: Uuid) -> anyhow::Result<Vec<Evidence>> {
        crate::delivery::evidence(&self.house.events(job).await?)
    }

    /// What was answered to the publish; none if it was never sent.
    async fn published(&self, job: Uuid) -> anyhow::Result<Option<(PublishForm, Answer)>> {
        Ok(self.evidence(job).await?.into_iter().find_map(|one| match one {
            Evidence::Publish { form, answer } => Some((form, answer)),
            _ => None,
        }))
    }

    async fn receipt(&self, job: Uuid) -> anyhow::Result<Receipt> {
        let receipt = self.evidence(job).await?.into_iter().rev().find_map(|one| match one {
            Evidence::Receipt(receipt) => Some(receipt),
            _ => None,
        });
        receipt.ok_or_else(|| anyhow::anyhow!("no receipt is on record"))
    }
}

/// Where a job's object lies in the bucket.
fn key(job: Uuid) -> String {
    format!("in/{}", House::final_name(job))
}

fn stands(job: &Job) -> (Status, Option<FailureReason>) {
    (job.status, job.failure_reason)
}
