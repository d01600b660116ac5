//! `waybill job replace`.

use uuid::Uuid;
use waybill::job::status::FailureReason;
use waybill::store::{self, DeliveryOutcome};

use crate::stage::Stage;

const NOT_DELIVERED: DeliveryOutcome = DeliveryOutcome::Failed(FailureReason::NotDelivered);

#[tokio::test]
async fn rpl_09_open_attempts_are_named_with_what_the_words_would_state() -> anyhow::Result<()> {
    let stage = Stage::new().await?;
    let unknown = stage.unknown(true).await?;
    let id = unknown.job.to_string();
    let refused = stage.waybill(&["replace", &id, "--reason", "they lost it"])?;
    refused.says(
        4,
        &[
            "EarlierAttemptsOpen",
            &unknown.attempt.to_string(),
            &id,
            "it was to publish",
            "With --cannot-upload WORDS you state",
        ],
    );
    let made =
        stage.waybill(&["replace", &id, "--reason", "they lost it", "--cannot-upload", "its host was scrapped"])?;
    made.says(
        0,
        &["You state that these can no longer upload", &unknown.attempt.to_string(), "Created: ", "overwrites nothing"],
    );
    Ok(())
}

#[tokio::test]
async fn rpl_01_a_replacement_of_a_replacement_is_resolved_to_its_original() -> anyhow::Result<()> {
    let stage = Stage::new().await?;
    let original = stage.ended(NOT_DELIVERED).await?.job;
    let words = ["--cannot-upload", "its host was scrapped"];
    let first = stage.replaced(original, &words)?;

    let taken = stage.waybill(&["replace", &first.to_string(), "--reason", "again", words[0], words[1]])?;
    taken.says(
        4,
        &[
            &format!("{first} is itself a replacement; what is replaced is its original, {original}"),
            "SlotTaken",
            &format!("That one is {first}, which is Queued: waybill job explain {first}"),
        ],
    );
    stage.waybill(&["cancel", &first.to_string()])?.says(0, &["CanceledWhileQueued"]);
    let again = stage.waybill(&["replace", &first.to_string(), "--reason", "again", words[0], words[1], "--json"])?;
    again.says(0, &[]);
    let (made, first) = (again.json()?, first.to_string());
    assert_eq!(
        (made["job"].as_str(), made["asked_for"].as_str()),
        (Some(original.to_string().as_str()), Some(first.as_str()))
    );
    let second: Uuid = made["replacement"].as_str().unwrap().parse()?;
    let row = store::find_job(&stage.api, second).await?.unwrap();
    assert_eq!((row.replaces, row.created_by.as_str()), (Some(original), "rosa"));
    stage
        .waybill(&["explain", &second.to_string()])?
        .says(0, &["rosa created it to replace job", "again", "It overwrites nothing"]);
    Ok(())
}

#[tokio::test]
async fn rpl_01_what_cannot_be_replaced_is_refused_in_plain_words() -> anyhow::Result<()> {
    let stage = Stage::new().await?;
    let completed = stage.ended(DeliveryOutcome::Completed).await?.job.to_string();
    let refused = stage.waybill(&["replace", &completed, "--reason", "once more", "--cannot-upload", "no"])?;
    refused.says(4, &["NotReplaceable", "The original is Completed", "waybill job explain"]);
    let occupied = stage.ended(DeliveryOutcome::Failed(FailureReason::FinalNameOccupied)).await?.job.to_string();
    let refused = stage.waybill(&["replace", &occupied, "--reason", "once more", "--cannot-upload", "no"])?;
    refused.says(4, &["Failed (FinalNameOccupied)"]);
    let failed = stage.ended(NOT_DELIVERED).await?.job.to_string();
    stage.waybill(&["replace", &failed, "--reason", "  "])?.says(4, &["ReasonMissing", "--reason"]);
    let elsewhere = stage.waybill(&["replace", &failed, "--reason", "why", "--tenant", &Uuid::new_v4().to_string()])?;
    elsewhere.says(3, &["NotFound"]);
    Ok(())
}
