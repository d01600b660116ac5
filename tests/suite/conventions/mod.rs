//! What partners agree on beside the data file, and who is believed about it: through worker and reconciler, before a server
//! in the process that answers as the partner would.
//!
//! `beside` delivers done-files, sidecars and manifests, `answers` weighs acknowledgments, `liars` lets plugins claim what is
//! not so. The same conventions as bundles are in `plugins/bundles`, rehearsed by `host/tests/plugin_commands`.

mod answers;
mod beside;
mod liars;

use std::sync::Arc;

use uuid::Uuid;
use waybill::job::evidence::{Evidence, Receipt};
use waybill::job::model::Job;
use waybill::job::status::{EventKind, FailureReason, Status};
use waybill::store::{self, NewJob, NewReplacement};
use waybill::upkeep::Looked;
use waybill_tests::house::{Running, TENANT};
use waybill_tests::sftp_server::{Action, Behaviour, HardLink, When};
use waybill_tests::{House, Plan, Reach, SftpServer};

/// A partner and those who deliver to it.
struct Partner {
    server: Arc<SftpServer>,
    house: House,
    _running: [Running; 2],
    _directory: tempfile::TempDir,
}

/// What became of a job: its status, its failure, and the code of what was concluded.
type Outcome = (Status, Option<FailureReason>, String);

impl Partner {
    /// A partner without hard links, with these folders, and with one delivery behind it: how the server publishes is known,
    /// so that every request is the next job's own.
    async fn agreed(plan: Plan, folders: &[&str]) -> anyhow::Result<Self> {
        let behaviour = Behaviour { hard_link: HardLink::NotOffered, ..Behaviour::default() };
        let server = Arc::new(SftpServer::start(behaviour).await?);
        for folder in folders {
            server.make_directory(folder)?;
        }
        let directory = tempfile::tempdir()?;
        let house = House::before(&Reach::in_process(&server, directory.path())?, plan).await?;
        let running = [house.worker().await?, house.dispatcher().await?];
        let partner = Self { server, house, _running: running, _directory: directory };
        partner.deliver("first").await?;
        Ok(partner)
    }

    /// A job with this key, at its end.
    async fn deliver(&self, key: &str) -> anyhow::Result<Job> {
        self.deliver_with(key, serde_json::json!({})).await
    }

    async fn deliver_with(&self, key: &str, scope: serde_json::Value) -> anyhow::Result<Job> {
        let job = NewJob { scope, delivery_key: key.to_owned(), ..House::new_job() };
        self.house.until_ended(self.house.create_job(job).await?).await
    }

    /// The replacement of a job whose person says that nothing can come of it any more, at its end.
    async fn replace(&self, original: Uuid) -> anyhow::Result<Job> {
        let id = Uuid::now_v7();
        let new = NewReplacement {
            id,
            tenant: TENANT,
            original,
            created_by: "rosa".to_owned(),
            reason: "the partner never saw it".to_owned(),
            overwrite_agreement_ref: None,
            cannot_upload: Some("its host was switched off for good".to_owned()),
        };
        store::create_replacement(&self.house.api, new).await?.map_err(|refused| anyhow::anyhow!("{refused}"))?;
        self.house.until_ended(id).await
    }

    /// From now on the partner does this with each name of these that appears under a final name: it gets the name's key.
    fn when_published(&self, act: impl Fn(&SftpServer, &str) + Send + 'static) {
        self.when(When::After, Action::Rename, act);
    }

    /// The same before our first look at the final name.
    fn before_the_first_look(&self, act: impl Fn(&SftpServer, &str) + Send + 'static) {
        let acted = std::sync::atomic::AtomicBool::new(false);
        self.when(When::Before, Action::Stat, move |server, key| {
            if !acted.swap(true, std::sync::atomic::Ordering::Relaxed) {
                act(server, key);
            }
        });
    }

    fn when(&self, when: When, action: Action, act: impl Fn(&SftpServer, &str) + Send + 'static) {
        let server = Arc::downgrade(&self.server);
        self.server.clear_hooks();
        self.server.hook(move |event| {
            let key = event.path.rsplit_once("/contacts-").and_then(|(_, rest)| rest.strip_suffix(".csv"));
            if let Some((server, key)) =
                server.upgrade().zip(key).filter(|_| (event.when, event.action) == (when, action))
            {
                act(&server, key);
            }
            None
        });
    }

    /// The job's next look comes due and is done.
    async fn looked(&self, job: &Job) -> anyhow::Result<Vec<Looked>> {
        self.house.look_is_due(job.id).await?;
        Ok(self.house.reconciler().await?.run_once().await?)
    }

    /// How a job stands, and the code of the conclusion that brought it there.
    async fn outcome(&self, job: &Job) -> anyhow::Result<Outcome> {
        let job = self.house.job(job.id).await?;
        let events = self.house.events(job.id).await?;
        let mut ends =
            events.iter().rev().filter(|event| matches!(event.kind, EventKind::Finished | EventKind::Reconciled));
        let proof = ends.find_map(|event| event.detail.as_ref()?.get("proof").cloned()).unwrap_or_default();
        let code = ["code", "conclusion"].iter().find_map(|key| proof.get(key)?.as_str()).unwrap_or_default();
        Ok((job.status, job.failure_reason, code.to_owned()))
    }

    async fn evidence(&self, job: &Job) -> anyhow::Result<Vec<Evidence>> {
        let events = self.house.events(job.id).await?;
        let evidence = events.into_iter().filter(|event| event.kind == EventKind::DeliveryEvidence);
        evidence.map(|event| Ok(serde_json::from_value(event.detail.unwrap_or_default())?)).collect()
    }

    /// The newest look that is on record, by the attempt or after it.
    async fn seen(&self, job: &Job) -> anyhow::Result<Receipt> {
        let evidence = self.evidence(job).await?;
        let newest = evidence.iter().rev().find_map(Evidence::look).cloned();
        newest.ok_or_else(|| anyhow::anyhow!("no look is on record: {evidence:?}"))
    }
}

/// Completed, by this.
fn completed(code: &str) -> Outcome {
    (Status::Completed, None, code.to_owned())
}

/// `OutcomeUnknown`, for this reason.
fn unknown(code: &str) -> Outcome {
    (Status::OutcomeUnknown, None, code.to_owned())
}

/// Failed/NotDelivered, on this proof.
fn not_delivered(code: &str) -> Outcome {
    (Status::Failed, Some(FailureReason::NotDelivered), code.to_owned())
}
