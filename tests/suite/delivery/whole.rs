//! A job from its creation to Completed.

use waybill::job::evidence::{Answer, Evidence, PublishForm};
use waybill::job::facts::Found;
use waybill::job::status::{EventKind, Status};
use waybill_tests::{House, Operation, Plan, Reach, Sshd};

use super::{evidence, kinds};

#[tokio::test]
async fn del_01_the_baseline_is_recorded_before_any_byte_is_sent() -> anyhow::Result<()> {
    let server = Sshd::start().await?;
    let house = House::before(&Reach::openssh(&server)?, Plan::default()).await?;
    let (_worker, _dispatcher) = (house.worker().await?, house.dispatcher().await?);
    let id = house.create().await?;
    let job = house.until_ended(id).await?;
    assert_eq!(job.status, Status::Completed, "{:?}", house.events(id).await?);

    let events = house.events(id).await?;
    assert_eq!(
        kinds(&events),
        [EventKind::Claimed, EventKind::DeliveryAuthorized, EventKind::PublishIntended, EventKind::Finished]
    );
    let evidence = evidence(&events)?;
    let [
        Evidence::Baseline { look, temporary: Some(temporary), .. },
        Evidence::Publish { form, answer },
        Evidence::Receipt(receipt),
    ] = evidence.as_slice()
    else {
        panic!("unexpected evidence: {evidence:?}");
    };
    assert_eq!(look.found, Found::Absent);
    assert_eq!((*form, answer), (PublishForm::Link, &Answer::Acknowledged));
    assert_eq!(receipt.conclusion.as_deref(), Some("checksum"));

    // The baseline was committed before the temporary file was opened; its name says which file that was.
    let recorded: time::OffsetDateTime = events
        .iter()
        .find(|event| event.kind == EventKind::DeliveryEvidence)
        .map_or(job.created_at, |event| event.recorded_at);
    let intended = job.publish_intended_at.unwrap_or(job.created_at);
    assert!(recorded < intended, "the baseline comes before the publish fence");
    let opened: Vec<String> = server
        .operations()?
        .into_iter()
        .filter_map(|done| match done.operation {
            Operation::Open { path, mode } if mode.create && path.ends_with(temporary.as_str()) => Some(path),
            _ => None,
        })
        .collect();
    assert_eq!(opened.len(), 1, "the temporary file is created once: {opened:?}");

    let expected = job.expected.ok_or_else(|| anyhow::anyhow!("no expected file"))?;
    assert_eq!(expected.name, House::final_name(id));
    let delivered = server.fetch(&expected.name).await?;
    assert_eq!(u64::try_from(delivered.len())?, expected.bytes);
    let text = String::from_utf8(delivered)?;
    assert_eq!(text.lines().count(), 101, "a header and the tenant's hundred rows");
    assert!(!text.contains("Somebody else"), "another tenant's row left the house");
    assert_eq!(server.times_created(&expected.name)?, 1);
    Ok(())
}

#[tokio::test]
async fn fen_10_the_temporary_name_is_minted_and_committed_before_it_is_created() -> anyhow::Result<()> {
    let server = Sshd::start().await?;
    let house = House::before(&Reach::openssh(&server)?, Plan::default()).await?;
    let (_worker, _dispatcher) = (house.worker().await?, house.dispatcher().await?);
    let jobs = [house.create().await?, house.create().await?];
    let mut names = Vec::new();
    for id in jobs {
        let job = house.until(id, Status::Completed).await?;
        let attempt = job.attempt.unwrap_or_default().to_string();
        let events = house.events(id).await?;
        let baseline = evidence(&events)?.into_iter().find_map(|one| match one {
            Evidence::Baseline { temporary, .. } => temporary,
            _ => None,
        });
        let name = baseline.ok_or_else(|| anyhow::anyhow!("no temporary name is recorded"))?;
        assert!(name.contains(&attempt), "{name} does not carry the attempt {attempt}");
        names.push(name);
    }
    assert_ne!(names.first(), names.last());
    // Every file that was created is a recorded temporary, a scratch file of the proof, or a final name.
    for name in &names {
        assert_eq!(server.times_created(name)?, 1);
    }
    Ok(())
}

#[tokio::test]
async fn clm_04_the_claims_event_names_worker_version_and_digests() -> anyhow::Result<()> {
    let server = Sshd::start().await?;
    let house = House::before(&Reach::openssh(&server)?, Plan::default()).await?;
    let _worker = house.worker_named("the-worker").await?;
    let _dispatcher = house.dispatcher().await?;
    let id = house.create().await?;
    house.until(id, Status::Completed).await?;
    let events = house.events(id).await?;
    let claimed = events.first().ok_or_else(|| anyhow::anyhow!("no event"))?;
    assert_eq!(
        (claimed.kind, claimed.version, claimed.worker.as_deref()),
        (EventKind::Claimed, Some(1), Some("the-worker"))
    );
    let detail = claimed.detail.clone().unwrap_or_default();
    let destination = house.bundle.destinations.first().ok_or_else(|| anyhow::anyhow!("no destination"))?;
    for (name, digest) in serde_json::to_value(&destination.digests)?.as_object().into_iter().flatten() {
        let recorded = detail.get(name).or_else(|| detail.pointer(&format!("/digests/{name}")));
        assert_eq!(recorded, Some(digest), "the digest of the {name} is not in {detail}");
    }
    Ok(())
}
