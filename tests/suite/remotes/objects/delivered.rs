//! Whole deliveries into a bucket.

use waybill::job::evidence::{Answer, Evidence, PublishForm};
use waybill::job::facts::Found;
use waybill::job::status::{EventKind, Status};
use waybill_tests::object_store::{ACCESS_KEY, Manners, SECRET_KEY};
use waybill_tests::{House, ObjectStore, Plan, wait};

use super::{Bucket, DELIVERED, OCCUPIED, key, stands};
use crate::delivery::kinds;

#[tokio::test]
async fn del_01_fen_09_an_object_is_created_whole_by_one_request_after_the_fence() -> anyhow::Result<()> {
    let bucket = Bucket::new(Plan::default()).await?;
    let (_worker, _dispatcher) = (bucket.house.worker().await?, bucket.house.dispatcher().await?);
    let id = bucket.house.create().await?;
    let job = bucket.house.until_ended(id).await?;
    let events = bucket.house.events(id).await?;
    assert_eq!(stands(&job), DELIVERED, "{events:?}");
    assert_eq!(
        kinds(&events),
        [EventKind::Claimed, EventKind::DeliveryAuthorized, EventKind::PublishIntended, EventKind::Finished]
    );
    let evidence = bucket.evidence(id).await?;
    let [
        Evidence::Baseline { look, .. },
        Evidence::Publish { form: PublishForm::CreateWhole, answer: Answer::Acknowledged },
        Evidence::Receipt(receipt),
    ] = evidence.as_slice()
    else {
        panic!("unexpected evidence: {evidence:?}");
    };
    assert_eq!(look.found, Found::Absent);
    assert_eq!(receipt.conclusion.as_deref(), Some("checksum"));

    let expected = job.expected.ok_or_else(|| anyhow::anyhow!("no expected file"))?;
    assert_eq!(bucket.store.keys(), [key(id)], "scratch objects stay");
    let delivered = bucket.store.content(&key(id)).unwrap_or_default();
    assert_eq!(u64::try_from(delivered.len())?, expected.bytes);
    assert_eq!(String::from_utf8(delivered)?.lines().count(), 101, "a header and the tenant's hundred rows");
    let puts = bucket.store.asked("PUT", &House::final_name(id));
    assert!(matches!(&puts[..], [put] if put.conditional && put.status == Some(200)), "{puts:?}");

    let place: (String, String) =
        sqlx::query_as("SELECT endpoint, directory FROM final_names").fetch_one(&bucket.house.admin).await?;
    assert_eq!(place, (format!("{}/deliveries", bucket.store.url()), "/in".to_owned()));
    Ok(())
}

#[tokio::test]
async fn a_file_of_many_blocks_arrives_as_it_was_built() -> anyhow::Result<()> {
    let bucket = Bucket::new(Plan { rows: 60_000, ..Plan::default() }).await?;
    let (_worker, _dispatcher) = (bucket.house.worker().await?, bucket.house.dispatcher().await?);
    let id = bucket.house.create().await?;
    let job = bucket.house.until_ended(id).await?;
    assert_eq!(stands(&job), DELIVERED);
    let expected = job.expected.ok_or_else(|| anyhow::anyhow!("no expected file"))?;
    assert!(expected.bytes > 3 * 512 * 1024, "{expected:?}");
    assert_eq!(bucket.receipt(id).await?.conclusion.as_deref(), Some("checksum"));
    Ok(())
}

#[tokio::test]
async fn del_02_an_occupied_name_in_a_bucket_ends_the_original_and_nothing_is_written() -> anyhow::Result<()> {
    let bucket = Bucket::new(Plan::default()).await?;
    let id = bucket.house.create().await?;
    bucket.store.put(&key(id), b"somebody else's");
    let (_worker, _dispatcher) = (bucket.house.worker().await?, bucket.house.dispatcher().await?);
    assert_eq!(stands(&bucket.house.until_ended(id).await?), OCCUPIED);
    assert_eq!(bucket.store.content(&key(id)).as_deref(), Some(&b"somebody else's"[..]));
    assert_eq!(bucket.store.asked("PUT", ""), []);
    Ok(())
}

#[tokio::test]
async fn del_05_a_store_that_replaces_all_the_same_is_never_delivered_to() -> anyhow::Result<()> {
    let bucket = Bucket::new(Plan::default()).await?;
    bucket.store.set_manners(Manners { keeps_condition: false, ..Manners::default() });
    let (_worker, _dispatcher) = (bucket.house.worker().await?, bucket.house.dispatcher().await?);
    let id = bucket.house.create().await?;
    let why = bucket.house.until_attention().await?;
    assert!(why.contains("an existing object was not kept") && why.contains("If-None-Match"), "{why}");
    assert_eq!(bucket.house.until(id, Status::Queued).await?.delivery_authorized_at, None, "it was authorized");
    assert_eq!(bucket.published(id).await?, None, "it was never sent");
    assert_eq!(bucket.store.asked("PUT", &House::final_name(id)), []);
    assert_eq!(bucket.store.keys(), [""; 0], "scratch objects stay");
    Ok(())
}

#[tokio::test]
async fn del_08_a_bucket_or_key_that_is_wrong_is_told_without_a_secret_and_nothing_is_written() -> anyhow::Result<()> {
    let store = ObjectStore::start().await?;
    let unreachable = store.place().replace(&store.url(), "http://127.0.0.1:1");
    let other_key = store.place().replace("access_key'", "secret_key'");
    for (place, manners, sentence, attention) in [
        (store.place(), Manners { has_bucket: false, ..Manners::default() }, "it has no bucket", true),
        (other_key, Manners::default(), "it does not accept the access key", true),
        (unreachable, Manners::default(), "cannot be reached", false),
    ] {
        store.set_manners(manners);
        let house = House::at(&place, Plan::default()).await?;
        let (_worker, _dispatcher) = (house.worker().await?, house.dispatcher().await?);
        let id = house.create().await?;
        let why = wait::until("the job to be handed back", async || {
            let events = house.events(id).await?;
            let released = events.into_iter().find(|event| event.kind == EventKind::ReleasedByWorker);
            Ok(released.map(|event| event.detail.unwrap_or_default().to_string()))
        })
        .await?;
        assert!(why.contains(sentence) && !why.contains(ACCESS_KEY) && !why.contains(SECRET_KEY), "{why}");
        let attended: bool = wait::until("the destination to be marked", async || {
            let (attention, paused): (bool, bool) =
                sqlx::query_as("SELECT attention_since IS NOT NULL, pause_failures > 0 FROM destinations")
                    .fetch_one(&house.admin)
                    .await?;
            Ok((attention || paused).then_some(attention))
        })
        .await?;
        assert_eq!(attended, attention, "{why}");
        assert_eq!(house.job(id).await?.status, Status::Queued);
        assert_eq!(store.asked("PUT", ""), []);
    }
    Ok(())
}
