//! A directory of this machine as the partner's place, judged by what lies in it.

mod delivered;
mod interrupted;
mod session;

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use tempfile::TempDir;
use uuid::Uuid;
use waybill::job::evidence::{Answer, Evidence, PublishForm, Receipt};
use waybill::job::model::Job;
use waybill::job::status::{FailureReason, Status};
use waybill_tests::{House, Plan};

const OCCUPIED: (Status, Option<FailureReason>) = (Status::Failed, Some(FailureReason::FinalNameOccupied));
const NOT_DELIVERED: (Status, Option<FailureReason>) = (Status::Failed, Some(FailureReason::NotDelivered));
const DELIVERED: (Status, Option<FailureReason>) = (Status::Completed, None);
const UNKNOWN: (Status, Option<FailureReason>) = (Status::OutcomeUnknown, None);

/// A house before a directory.
struct Outbox {
    house: House,
    path: PathBuf,
    _around: TempDir,
}

impl Outbox {
    async fn new(plan: Plan) -> anyhow::Result<Self> {
        let around = tempfile::tempdir()?;
        let path = around.path().join("outbox");
        std::fs::create_dir(&path)?;
        let house = House::at(&format!("path = '{}'", path.display()), plan).await?;
        Ok(Self { house, path, _around: around })
    }

    fn names(&self) -> anyhow::Result<Vec<String>> {
        names(&self.path)
    }

    fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
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

fn names(directory: &Path) -> anyhow::Result<Vec<String>> {
    let mut names = std::fs::read_dir(directory)?
        .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
        .collect::<anyhow::Result<Vec<_>>>()?;
    names.sort();
    Ok(names)
}

fn mode(path: &Path) -> anyhow::Result<u32> {
    Ok(std::fs::metadata(path)?.permissions().mode() & 0o777)
}

fn stands(job: &Job) -> (Status, Option<FailureReason>) {
    (job.status, job.failure_reason)
}
