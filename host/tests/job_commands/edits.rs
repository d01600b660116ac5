//! `waybill job edit`.

use uuid::Uuid;
use waybill::job::status::FailureReason;
use waybill::store::{self, DeliveryOutcome};

use crate::stage::Stage;

#[tokio::test]
async fn edt_01_an_edit_carries_over_what_is_not_named_and_is_told() -> anyhow::Result<()> {
    let stage = Stage::new().await?;
    let job = stage.queued().await?;
    let id = job.to_string();
    let edited = stage.waybill(&["edit", &id, "--version", "1", "--not-before", "2030-01-02T03:04:05Z"])?;
    edited.says(0, &["Changed: version 2", "region=emea", "2030-01-02 03:04:05Z", &stage.destination.to_string()]);
    let edited = stage.waybill(&["edit", &id, "--version", "2", "--scope", "region=apac", "--json"])?;
    edited.says(0, &[]);
    assert_eq!(edited.json()?["outcome"], "Changed");
    assert_eq!(edited.json()?["version"], 3);
    let row = store::find_job(&stage.api, job).await?.unwrap();
    assert_eq!((row.version, &row.scope["region"]), (3, &"apac".into()));
    assert!(row.not_before.is_some(), "it was not named");
    stage.waybill(&["edit", &id, "--version", "3", "--no-not-before"])?.says(0, &["as soon as policy allows"]);
    assert_eq!(store::find_job(&stage.api, job).await?.unwrap().not_before, None);
    stage.waybill(&["explain", &id])?.says(0, &["rosa edited its terms: version 2", "version 4 is in force"]);
    Ok(())
}

#[tokio::test]
async fn edt_01_not_changed_says_what_was_found_and_what_to_do() -> anyhow::Result<()> {
    let stage = Stage::new().await?;
    let edit = |job: Uuid, version: &str| {
        stage.waybill(&["edit", &job.to_string(), "--version", version, "--scope", "region=apac"])
    };
    let queued = stage.queued().await?;
    edit(queued, "1")?.says(0, &[]);
    edit(queued, "1")?.says(4, &["NotChanged", "Version 1 was edited", "version 2 is in force", "waybill job show"]);
    let running = stage.claim(stage.queued().await?).await?;
    edit(running.job, "1")?.says(4, &["NotChanged", "A worker has claimed it", "waybill job cancel"]);
    let delivering = stage.delivering().await?;
    edit(delivering.job, "1")?.says(4, &["cannot be stopped any more", "waybill job watch"]);
    let failed = stage.ended(DeliveryOutcome::Failed(FailureReason::NotDelivered)).await?;
    edit(failed.job, "1")?.says(4, &["It has ended, as Failed", "waybill job explain"]);
    edit(Uuid::new_v4(), "1")?.says(3, &["NotFound"]);
    let nowhere = Uuid::new_v4().to_string();
    let refused =
        stage.waybill(&["edit", &queued.to_string(), "--version", "2", "--destination", &nowhere, "--json"])?;
    refused.says(4, &[]);
    assert_eq!(refused.json()?["outcome"], "NoSuchDestination");

    let replacement = stage.replaced(failed.job, &["--cannot-upload", "its host is gone"])?;
    let other = stage.new_destination().await?.to_string();
    let refused = stage.waybill(&["edit", &replacement.to_string(), "--version", "1", "--destination", &other])?;
    refused.says(4, &["NotChanged", "It is a replacement, which goes where its original went"]);
    Ok(())
}
