//! Deliveries that only a directory knows: replacements, a full disk, a share that is not there.

use waybill::job::evidence::{Answer, PublishForm};
use waybill_tests::house::TENANT;
use waybill_tests::{House, Plan, SmallDisk, wait};

use super::{Outbox, names};
use crate::remotes::Place as _;
use crate::remotes::place::{DELIVERED, NOT_DELIVERED, OCCUPIED, handed_back, stands};

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
        let before = std::fs::read(outbox.place.file("weekly.csv"))?;
        sqlx::query("INSERT INTO crm.contacts VALUES ($1, 1000, 'New', 'new@example.com')")
            .bind(TENANT)
            .execute(&outbox.house.admin)
            .await?;
        let second = outbox.house.until_ended(outbox.house.create().await?).await?;
        let now = std::fs::read(outbox.place.file("weekly.csv"))?;
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
        assert_eq!(outbox.place.names()?, ["weekly.csv"]);
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
    // The temporary file is removed once the end is on record.
    wait::until("nothing to stay there", async || Ok(names(&path)?.is_empty().then_some(()))).await?;
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
        let why = handed_back(&lines, attention).await?;
        assert!(why.contains(sentence), "{why}");
        assert_eq!(names(around.path())?, Vec::<String>::new());
    }
    Ok(())
}
