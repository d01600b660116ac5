//! Deliveries that only a bucket knows: many blocks in one request, or too many; a store that replaces; keys and addresses that are wrong.

use waybill::job::status::Status;
use waybill::remote::SessionLimits;
use waybill_tests::certificates::Authority;
use waybill_tests::object_store::{ACCESS_KEY, Manners, SECRET_KEY};
use waybill_tests::{House, ObjectStore, Plan};

use super::Bucket;
use crate::remotes::place::{DELIVERED, NOT_DELIVERED, handed_back, stands};

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
async fn a_file_larger_than_one_request_carries_is_refused_before_the_fence_and_nothing_of_it_is_sent()
-> anyhow::Result<()> {
    assert_eq!(SessionLimits::default().largest_object, 5 << 30, "S3's own bound");
    let limits = SessionLimits { largest_object: 1000, ..SessionLimits::default() };
    let bucket = Bucket::new(Plan { limits, ..Plan::default() }).await?;
    let (_worker, _dispatcher) = (bucket.house.worker().await?, bucket.house.dispatcher().await?);
    let id = bucket.house.create().await?;
    let job = bucket.house.until_ended(id).await?;
    assert_eq!(stands(&job), NOT_DELIVERED);
    let bytes = job.expected.map_or(0, |expected| expected.bytes);
    let words =
        format!("the file has {bytes} bytes, and one request to this store carries at most 1000; have less put");
    let evidence = serde_json::to_string(&bucket.evidence(id).await?)?;
    assert!(bytes > 1000 && evidence.contains(&words), "{evidence}");
    assert_eq!((job.publish_intended_at, bucket.published(id).await?), (None, None));
    assert_eq!(bucket.place.asked("PUT", &House::final_name(id)), []);
    assert_eq!(bucket.place.keys(), [""; 0]);
    Ok(())
}

#[tokio::test]
async fn del_05_a_store_that_replaces_all_the_same_is_never_delivered_to() -> anyhow::Result<()> {
    let bucket = Bucket::new(Plan::default()).await?;
    bucket.place.set_manners(Manners { keeps_condition: false, ..Manners::default() });
    let (_worker, _dispatcher) = (bucket.house.worker().await?, bucket.house.dispatcher().await?);
    let id = bucket.house.create().await?;
    let why = bucket.house.until_attention().await?;
    assert!(why.contains("an existing object was not kept") && why.contains("If-None-Match"), "{why}");
    assert_eq!(bucket.house.until(id, Status::Queued).await?.delivery_authorized_at, None, "it was authorized");
    assert_eq!(bucket.published(id).await?, None, "it was never sent");
    assert_eq!(bucket.place.asked("PUT", &House::final_name(id)), []);
    assert_eq!(bucket.place.keys(), [""; 0], "scratch objects stay");
    Ok(())
}

#[tokio::test]
async fn del_08_a_bucket_or_key_that_is_wrong_is_told_without_a_secret_and_nothing_is_written() -> anyhow::Result<()> {
    let store = ObjectStore::start().await?;
    let unknown = Authority::new("somebody's authority")?.signed(&["localhost"])?;
    let untrusted = ObjectStore::start_secure(unknown.serving()?).await?;
    let gone = Manners { has_bucket: false, ..Manners::default() };
    let unreachable = store.place().replace(&store.url(), "http://127.0.0.1:1");
    let other_key = store.place().replace("access_key'", "secret_key'");
    for (place, manners, sentence, attention) in [
        (store.place(), gone, "it has no bucket", true),
        (other_key, Manners::default(), "it does not accept the access key", true),
        (unreachable, Manners::default(), "cannot be reached", false),
        (untrusted.place(), Manners::default(), "`ca_file`", true),
    ] {
        store.set_manners(manners);
        let why = handed_back(&place, attention).await?;
        assert!(why.contains(sentence) && !why.contains(ACCESS_KEY) && !why.contains(SECRET_KEY), "{why}");
        assert_eq!(store.asked("PUT", ""), []);
    }
    assert_eq!(untrusted.log(), [], "a request was sent to whom nobody vouches for");
    Ok(())
}
