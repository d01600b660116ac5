//! Disks that are really full: ours, and the partner's.

use std::time::Duration;

use waybill::job::evidence::{Answer, Evidence};
use waybill::job::facts::Found;
use waybill::job::status::{EventKind, FailureReason, Status};
use waybill::store;
use waybill_tests::house::DESTINATION;
use waybill_tests::{House, Plan, Reach, SmallDisk, Sshd, wait};

use super::{assert_sentence, handed_back};

/// Some megabytes of CSV.
const MANY_ROWS: i32 = 80_000;

#[tokio::test]
async fn bad_input_a_full_spool_is_named_and_keeps_nothing() -> anyhow::Result<()> {
    let server = Sshd::start().await?;
    let plan = Plan { rows: MANY_ROWS, first_backoff: Duration::from_secs(2), ..Plan::default() };
    let house = House::before(&Reach::openssh(&server)?, plan).await?;
    let disk = SmallDisk::mount(&house.spool(), 16 << 10)?;
    let filler = house.spool().join("filler");
    std::fs::write(&filler, vec![0; 15 << 20])?;
    let filled = disk.used_bytes()?;
    let (_worker, _dispatcher) = (house.worker().await?, house.dispatcher().await?);
    let id = house.create().await?;
    let spool = house.spool();
    assert_sentence(
        &handed_back(&house, id).await?,
        &["no space", &spool.display().to_string(), "free some", "[directories] data"],
    );
    assert_eq!(disk.names()?, ["filler"]);
    assert_eq!(disk.used_bytes()?, filled, "the disk is not given back");
    assert_eq!(server.operations()?, [], "the partner was asked for something");
    // Nothing is wrong with the destination, and room is all that the job needs.
    let state = store::destination_state(&house.api, DESTINATION).await?;
    assert!(state.is_some_and(|state| state.pause.is_none() && state.attention.is_none()));
    std::fs::remove_file(&filler)?;
    let job = house.until_woken(id).await?;
    assert_eq!(job.status, Status::Completed);
    Ok(())
}

#[tokio::test]
async fn bad_input_a_partners_full_disk_is_no_delivery_and_keeps_nothing() -> anyhow::Result<()> {
    let server = Sshd::start().await?;
    let disk = SmallDisk::mount(&server.files().join("incoming"), 1024)?;
    let reach = Reach { directory: "incoming".to_owned(), ..Reach::openssh(&server)? };
    let house = House::before(&reach, Plan { rows: MANY_ROWS, ..Plan::default() }).await?;
    let (_worker, _dispatcher) = (house.worker().await?, house.dispatcher().await?);
    let id = house.create().await?;
    let job = house.until_ended(id).await?;
    assert_eq!((job.status, job.failure_reason), (Status::Failed, Some(FailureReason::NotDelivered)));
    assert_eq!(job.publish_intended_at, None, "the publish was asked for");
    assert!(job.expected.is_some_and(|expected| expected.bytes > 2 << 20));
    assert_eq!(server.times_created(&format!("incoming/{}", House::final_name(id)))?, 0);

    // The temporary file is removed once the end is on record.
    let (events, evidence) = wait::until("the removal's answer", async || {
        let events = house.events(id).await?;
        let evidence = events.iter().filter(|event| event.kind == EventKind::DeliveryEvidence);
        let evidence: Vec<Evidence> = evidence
            .map(|event| Ok(serde_json::from_value(event.detail.clone().unwrap_or_default())?))
            .collect::<anyhow::Result<_>>()?;
        Ok(matches!(evidence.last(), Some(Evidence::RemovalAnswered { .. })).then_some((events, evidence)))
    })
    .await?;
    assert_eq!(disk.names()?, [""; 0], "something stays at the partner");
    let [.., Evidence::Receipt(receipt), Evidence::RemovalAnswered { answer, .. }] = &evidence[..] else {
        panic!("no receipt: {evidence:?}")
    };
    assert_eq!(*answer, Answer::Acknowledged);
    assert!(!evidence.iter().any(|one| matches!(one, Evidence::Publish { .. })), "{evidence:?}");
    assert!(receipt.look.as_ref().is_some_and(|look| look.found == Found::Absent), "{receipt:?}");
    assert_sentence(receipt.call.as_deref().unwrap_or_default(), &["server refused", "disk"]);
    let finished = events.iter().find(|event| event.kind == EventKind::Finished);
    let because = finished.and_then(|event| event.detail.clone()).unwrap_or_default();
    assert_sentence(because["proof"]["because"].as_str().unwrap_or_default(), &["No request to publish was sent"]);
    Ok(())
}
