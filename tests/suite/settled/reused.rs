//! The same file name every week: what the standing agreement of a reused name lets us replace.

use uuid::Uuid;
use waybill::job::evidence::{Evidence, PublishForm};
use waybill::job::model::Job;
use waybill::job::status::{FailureReason, Status};
use waybill_tests::house::{Running, TENANT};
use waybill_tests::sftp_server::Behaviour;
use waybill_tests::{House, Plan, Reach, SftpServer};

const NAME: &str = "weekly.csv";
const OCCUPIED: (Status, Option<FailureReason>) = (Status::Failed, Some(FailureReason::FinalNameOccupied));
const DELIVERED: (Status, Option<FailureReason>) = (Status::Completed, None);

/// A partner that wants one name, whatever the delivery.
struct Weekly {
    server: SftpServer,
    house: House,
    _running: [Running; 2],
    _directory: tempfile::TempDir,
}

impl Weekly {
    async fn agreed(words: &str) -> anyhow::Result<Self> {
        let server = SftpServer::start(Behaviour::default()).await?;
        let directory = tempfile::tempdir()?;
        let plan = Plan {
            manifest: format!("[names]\nfinal = '{NAME}'\n[contract]\nnames_reused = true\n{words}\n"),
            destination: format!("settings = {{ name = '{NAME}', query = 'rows' }}\n"),
            ..Plan::default()
        };
        let house = House::before(&Reach::in_process(&server, directory.path())?, plan).await?;
        let running = [house.worker().await?, house.dispatcher().await?];
        Ok(Self { server, house, _running: running, _directory: directory })
    }

    /// Next week's delivery, with one contact more.
    async fn next(&self) -> anyhow::Result<Job> {
        sqlx::query("INSERT INTO crm.contacts SELECT $1, max(id) + 1, 'New', 'new@example.com' FROM crm.contacts")
            .bind(TENANT)
            .execute(&self.house.admin)
            .await?;
        self.house.until_ended(self.house.create().await?).await
    }

    fn there(&self) -> Vec<u8> {
        self.server.read(NAME).unwrap_or_default()
    }

    async fn form(&self, job: Uuid) -> anyhow::Result<Option<PublishForm>> {
        let events = self.house.events(job).await?;
        Ok(events.into_iter().find_map(|event| match serde_json::from_value(event.detail?) {
            Ok(Evidence::Publish { form, .. }) => Some(form),
            _ => None,
        }))
    }
}

fn stands(job: &Job) -> (Status, Option<FailureReason>) {
    (job.status, job.failure_reason)
}

#[tokio::test]
async fn rpl_07_the_standing_agreement_replaces_only_the_file_that_we_delivered_there_last() -> anyhow::Result<()> {
    let weekly = Weekly::agreed("overwrites_last = 'mail of 2026-11-02'").await?;
    let first = weekly.next().await?;
    assert_eq!((stands(&first), weekly.form(first.id).await?), (DELIVERED, Some(PublishForm::Link)));
    let of_the_first = weekly.there();
    let second = weekly.next().await?;
    assert_eq!((stands(&second), weekly.form(second.id).await?), (DELIVERED, Some(PublishForm::PosixRename)));
    let of_the_second = weekly.there();
    assert_ne!(of_the_second, of_the_first);
    // A foreign file of the very size, and then a file of ours that is not the last.
    let mut foreign = of_the_second.clone();
    foreign[0] = b'#';
    for other in [foreign, of_the_first] {
        weekly.server.put(NAME, other.clone())?;
        let job = weekly.next().await?;
        assert_eq!((stands(&job), weekly.there() == other), (OCCUPIED, true));
        assert_eq!((job.delivery_authorized_at, weekly.form(job.id).await?), (None, None));
    }
    // The last one again, by whatever hand: it is known by its content.
    weekly.server.put(NAME, of_the_second.clone())?;
    assert_eq!(stands(&weekly.next().await?), DELIVERED);
    assert_ne!(weekly.there(), of_the_second);
    Ok(())
}

#[tokio::test]
async fn rpl_07_a_reused_name_without_the_standing_agreement_replaces_nothing() -> anyhow::Result<()> {
    let weekly = Weekly::agreed("").await?;
    assert_eq!(stands(&weekly.next().await?), DELIVERED);
    let there = weekly.there();
    assert_eq!((stands(&weekly.next().await?), weekly.there() == there), (OCCUPIED, true));
    // Once the partner has taken the file, the name is free.
    assert!(weekly.server.collect(NAME));
    assert_eq!(stands(&weekly.next().await?), DELIVERED);
    Ok(())
}
