//! Whole deliveries into a directory.

use waybill::job::evidence::{Answer, Evidence, PublishForm};
use waybill::job::facts::Found;
use waybill::job::status::{EventKind, Status};
use waybill_tests::house::TENANT;
use waybill_tests::{House, Plan, SmallDisk, wait};

use super::{DELIVERED, NOT_DELIVERED, OCCUPIED, Outbox, mode, names, stands};
use crate::delivery::kinds;

#[tokio::test]
async fn del_01_a_file_is_linked_into_a_directory_whole_and_nothing_else_stays() -> anyhow::Result<()> {
    let outbox = Outbox::new(Plan::default()).await?;
    let (_worker, _dispatcher) = (outbox.house.worker().await?, outbox.house.dispatcher().await?);
    let id = outbox.house.create().await?;
    let job = outbox.house.until_ended(id).await?;
    let events = outbox.house.events(id).await?;
    assert_eq!(stands(&job), DELIVERED, "{events:?}");
    assert_eq!(
        kinds(&events),
        [EventKind::Claimed, EventKind::DeliveryAuthorized, EventKind::PublishIntended, EventKind::Finished]
    );
    let evidence = outbox.evidence(id).await?;
    let [
        Evidence::Baseline { look, temporary: Some(_), .. },
        Evidence::Publish { form: PublishForm::Link, answer: Answer::Acknowledged },
        Evidence::Receipt(receipt),
    ] = evidence.as_slice()
    else {
        panic!("unexpected evidence: {evidence:?}");
    };
    assert_eq!(look.found, Found::Absent);
    let expected = job.expected.ok_or_else(|| anyhow::anyhow!("no expected file"))?;
    assert_eq!((receipt.conclusion.as_deref(), receipt.bytes_read_back), (Some("checksum"), Some(expected.bytes)));

    let name = House::final_name(id);
    assert_eq!(outbox.names()?, [name.as_str()]);
    let delivered = std::fs::read_to_string(outbox.file(&name))?;
    assert_eq!(u64::try_from(delivered.len())?, expected.bytes);
    assert_eq!(delivered.lines().count(), 101, "a header and the tenant's hundred rows");
    assert!(!delivered.contains("Somebody else"), "another tenant's row left the house");
    assert_eq!(mode(&outbox.file(&name))? & 0o137, 0, "others may read what holds personal data");

    // Where it lies is on record as one place, whatever path led to it; names are compared without case.
    let place: (String, String) =
        sqlx::query_as("SELECT endpoint, directory FROM final_names").fetch_one(&outbox.house.admin).await?;
    let directory = std::fs::canonicalize(&outbox.path)?.to_string_lossy().to_lowercase();
    assert_eq!(place, ("file://".to_owned(), directory));
    Ok(())
}

#[tokio::test]
async fn del_02_an_occupied_name_in_a_directory_ends_the_original_and_nothing_is_written() -> anyhow::Result<()> {
    let outbox = Outbox::new(Plan::default()).await?;
    let id = outbox.house.create().await?;
    let name = House::final_name(id);
    std::fs::write(outbox.file(&name), b"somebody else's")?;
    let (_worker, _dispatcher) = (outbox.house.worker().await?, outbox.house.dispatcher().await?);
    assert_eq!(stands(&outbox.house.until_ended(id).await?), OCCUPIED);
    assert_eq!(kinds(&outbox.house.events(id).await?), [EventKind::Claimed, EventKind::Failed]);
    assert_eq!(std::fs::read(outbox.file(&name))?, b"somebody else's");
    assert_eq!(outbox.names()?, [name]);
    Ok(())
}

#[tokio::test]
async fn rpl_07_the_file_of_last_week_in_a_directory_is_replaced_in_one_step_by_agreement() -> anyhow::Result<()> {
    for (words, replaced) in [("overwrites_last = 'mail of 2026-11-02'", true), ("", false)] {
        let plan = Plan {
            manifest: format!("[names]\nfinal = 'weekly.csv'\n[contract]\nnames_reused = true\n{words}\n"),
            destination: "settings = { name = 'weekly.csv', query = 'rows' }\n".to_owned(),
            ..Plan::default()
        };
        let outbox = Outbox::new(plan).await?;
        let (_worker, _dispatcher) = (outbox.house.worker().await?, outbox.house.dispatcher().await?);
        let first = outbox.house.until_ended(outbox.house.create().await?).await?;
        assert_eq!(stands(&first), DELIVERED);
        let before = std::fs::read(outbox.file("weekly.csv"))?;
        sqlx::query("INSERT INTO crm.contacts VALUES ($1, 1000, 'New', 'new@example.com')")
            .bind(TENANT)
            .execute(&outbox.house.admin)
            .await?;
        let second = outbox.house.until_ended(outbox.house.create().await?).await?;
        let now = std::fs::read(outbox.file("weekly.csv"))?;
        if replaced {
            assert_eq!(stands(&second), DELIVERED);
            assert_eq!(
                outbox.published(second.id).await?,
                Some((PublishForm::PosixRename, Answer::Acknowledged)),
                "one step"
            );
            assert_eq!(now.len(), before.len() + "1000,New,new@example.com\r\n".len());
        } else {
            assert_eq!((stands(&second), now), (OCCUPIED, before));
        }
        assert_eq!(outbox.names()?, ["weekly.csv"]);
    }
    Ok(())
}

#[tokio::test]
async fn a_full_disk_is_not_delivered_to_and_left_clean() -> anyhow::Result<()> {
    let around = tempfile::tempdir()?;
    let path = around.path().join("outbox");
    let disk = SmallDisk::mount(&path, 64)?;
    let plan = Plan { rows: 5_000, ..Plan::default() };
    let house = House::at(&format!("path = '{}'", path.display()), plan).await?;
    let (_worker, _dispatcher) = (house.worker().await?, house.dispatcher().await?);
    let id = house.create().await?;
    assert_eq!(stands(&house.until_ended(id).await?), NOT_DELIVERED);
    let evidence = serde_json::to_string(&crate::delivery::evidence(&house.events(id).await?)?)?;
    assert!(evidence.contains("No space left on device"), "{evidence}");
    assert_eq!(names(&path)?, Vec::<String>::new(), "the temporary file stays");
    drop(disk);
    Ok(())
}

#[tokio::test]
async fn del_08_a_directory_that_is_missing_or_not_mounted_is_told_and_nothing_is_written() -> anyhow::Result<()> {
    let around = tempfile::tempdir()?;
    let path = around.path().join("outbox");
    for (lines, sentence, attention) in [
        (format!("path = '{}'", path.display()), "does not exist; create it", true),
        (format!("path = '{}'\nmarker = '.mounted'", around.path().display()), "is not mounted", false),
    ] {
        let house = House::at(&lines, Plan::default()).await?;
        let (_worker, _dispatcher) = (house.worker().await?, house.dispatcher().await?);
        let id = house.create().await?;
        let why = wait::until("the job to be handed back", async || {
            let events = house.events(id).await?;
            let released = events.into_iter().find(|event| event.kind == EventKind::ReleasedByWorker);
            Ok(released.map(|event| event.detail.unwrap_or_default().to_string()))
        })
        .await?;
        assert!(why.contains(sentence), "{why}");
        let attended: bool = wait::until("the destination to be marked", async || {
            let (attention, paused): (bool, bool) =
                sqlx::query_as("SELECT attention_since IS NOT NULL, pause_failures > 0 FROM destinations")
                    .fetch_one(&house.admin)
                    .await?;
            Ok((attention || paused).then_some(attention))
        })
        .await?;
        assert_eq!(attended, attention, "{why}");
        assert_eq!(names(around.path())?, Vec::<String>::new());
        assert_eq!(house.job(id).await?.status, Status::Queued);
    }
    Ok(())
}
