//! `waybill job correct`.

use waybill::job::status::FailureReason;
use waybill::store::{self, DeliveryOutcome};

use crate::stage::Stage;

const NOT_DELIVERED: DeliveryOutcome = DeliveryOutcome::Failed(FailureReason::NotDelivered);
const WORDS: [&str; 4] = ["--reason", "found in their archive", "--evidence", "case 4711"];

#[tokio::test]
async fn cor_01_a_person_corrects_once_and_the_second_is_refused_with_its_sentence() -> anyhow::Result<()> {
    let stage = Stage::new().await?;
    let of = stage.ended(DeliveryOutcome::Completed).await?;
    let id = of.job.to_string();
    let run = |from: &str, to: &str, more: &[&str]| {
        stage.waybill(&[&["correct", &id, "--from", from, "--to", to], &WORDS[..], more].concat())
    };
    run("failed", "failed", &[])?.says(4, &["NothingToCorrect"]);
    run("failed", "completed", &[])?.says(4, &["NotAsRecorded", "The job is Completed"]);
    run("failed", "completed", &["--failure", "NotDelivered"])?.says(4, &["CodeWithoutFailure"]);
    run("completed", "failed", &["--dry-run"])?
        .says(0, &["On record, Completed", "The test says so.", "It moves no file", "Nothing was written"]);
    assert_eq!(stage.state(of.job).await?, "Completed");

    let attempt = of.attempt.to_string();
    let corrected = run("completed", "failed", &["--attempt", &attempt, "--json"])?;
    corrected.says(0, &[]);
    assert_eq!(corrected.json()?["outcome"], "Corrected");
    assert_eq!(stage.state(of.job).await?, "Failed/NotDelivered");
    for (from, to) in [("failed", "completed"), ("completed", "failed")] {
        let second = run(from, to, &[])?;
        second.says(
            4,
            &["AlreadyCorrected", "only once can it be; what comes later is settled outside the job", "rosa did"],
        );
    }
    let told = stage.waybill(&["explain", &id])?;
    told.says(0, &["rosa corrected the record: Completed to Failed", "Evidence: case 4711", "was not delivered.\""]);
    assert!(!told.said.contains("waybill job correct"), "a step that the store refuses: {}", told.said);
    Ok(())
}

#[tokio::test]
async fn cor_03_a_failed_replacement_is_not_completed_while_another_holds_the_slot() -> anyhow::Result<()> {
    let stage = Stage::new().await?;
    let original = stage.ended(NOT_DELIVERED).await?.job;
    let words = ["--cannot-upload", "its host was scrapped"];
    let first = stage.claim(stage.replaced(original, &words)?).await?;
    stage.authorize(first).await?;
    stage.intend(first).await?;
    stage.finish(first, NOT_DELIVERED).await?;
    let second = stage.replaced(original, &words)?;
    let id = first.job.to_string();
    let correct = [&["correct", &id, "--from", "failed", "--to", "completed"], &WORDS[..]].concat();
    let refused = stage.waybill(&correct)?;
    refused.says(
        4,
        &[
            "SlotTaken",
            "nother replacement of the same original is live",
            "two cannot count as delivered",
            &format!("That one is {second}, which is Queued"),
        ],
    );
    assert_eq!(stage.state(first.job).await?, "Failed/NotDelivered");
    stage.waybill(&["cancel", &second.to_string()])?.says(0, &[]);
    stage.waybill(&correct)?.says(0, &["It is recorded as Completed"]);
    stage.waybill(&["explain", &original.to_string()])?.says(0, &["was delivered, by another delivery of ours.\""]);
    Ok(())
}

#[tokio::test]
async fn cor_01_what_was_never_authorized_is_not_corrected() -> anyhow::Result<()> {
    let stage = Stage::new().await?;
    let of = stage.claim(stage.queued().await?).await?;
    let failed = store::finish_failed(&stage.worker, of.job, of.attempt, FailureReason::BuildFailed, "no such column");
    assert!(failed.await?.is_written());
    let id = of.job.to_string();
    let refused = stage.waybill(&[&["correct", &id, "--from", "failed", "--to", "completed"], &WORDS[..]].concat())?;
    refused.says(4, &["NeverAuthorized", "never authorized to deliver", "waybill job explain"]);
    assert_eq!(stage.state(of.job).await?, "Failed/BuildFailed");
    let told = stage.waybill(&["explain", &id])?;
    told.says(
        0,
        &["It failed before anything was sent (BuildFailed): no such column", "was not sent", "waybill job replace"],
    );
    assert!(!told.said.contains("waybill job correct"), "{}", told.said);
    Ok(())
}
