//! A partner who takes one file name week after week and has agreed to its being replaced, in each language.

use waybill::job::evidence::{Evidence, PublishForm};
use waybill::job::status::{FailureReason, Status};
use waybill::remote::simulated::Behaviour;
use waybill_tests::house::TENANT;
use waybill_tests::{House, Plan, Reach, SftpServer};

use super::LANGUAGES;

const NAME: &str = "weekly.csv";

#[tokio::test]
async fn plg_07_rpl_07_each_language_replaces_last_weeks_file_where_that_is_agreed_and_nobody_elses()
-> anyhow::Result<()> {
    for language in LANGUAGES {
        let (server, password) = (SftpServer::start(Behaviour::default()).await?, tempfile::tempdir()?);
        let contract = "names_reused = true\noverwrites_last = 'mail of 2026-11-02'";
        let plan = Plan {
            manifest: format!("[names]\nfinal = '{NAME}'\n[contract]\n{contract}\n"),
            destination: format!("settings = {{ name = '{NAME}', query = 'rows' }}\n"),
            builder: language.builder,
            plugin: language.destination,
            rows: 3,
            ..Plan::default()
        };
        let house = House::before(&Reach::in_process(&server, password.path())?, plan).await?;
        let (_worker, _dispatcher) = (house.worker().await?, house.dispatcher().await?);
        // One contact more each week: the job's end, the form of its publish, and what is there then.
        let next = async || -> anyhow::Result<_> {
            sqlx::query("INSERT INTO crm.contacts SELECT $1, max(id) + 1, 'New', 'new@example.com' FROM crm.contacts")
                .bind(TENANT)
                .execute(&house.admin)
                .await?;
            let job = house.until_ended(house.create().await?).await?;
            let events = house.events(job.id).await?;
            let form = events.into_iter().find_map(|event| match serde_json::from_value(event.detail?) {
                Ok(Evidence::Publish { form, .. }) => Some(form),
                _ => None,
            });
            let lines = server.read(NAME).map_or(0, |file| String::from_utf8_lossy(&file).lines().count());
            anyhow::Ok(((job.status, job.failure_reason), form, lines))
        };
        let (delivered, of) = ((Status::Completed, None), language.name);
        assert_eq!(next().await?, (delivered, Some(PublishForm::Link), 5), "{of}");
        assert_eq!(next().await?, (delivered, Some(PublishForm::PosixRename), 6), "{of}");
        assert_eq!(next().await?, (delivered, Some(PublishForm::PosixRename), 7), "{of}");
        server.put(NAME, "somebody else's\n")?;
        let occupied = (Status::Failed, Some(FailureReason::FinalNameOccupied));
        assert_eq!(next().await?, (occupied, None, 1), "{of}");
    }
    Ok(())
}
