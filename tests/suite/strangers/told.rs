//! What a refusal or a record tells is about the right row, where older strangers lie before it.

use std::time::Duration;

use anyhow::Context;
use uuid::Uuid;
use waybill::job::facts::FileFacts;
use waybill::store::{self, Authorization, Delivery, NewReplacement};

use super::{Stage, another_tenant, bring, delivery, go_on};
use crate::recovery::actors::Actors;
use crate::store::world::Attempt;

fn named(of: Attempt, delivery: Delivery, endpoint: &str, directory: &str, name: &str) -> Delivery {
    let Delivery { expected, reused, .. } = delivery;
    Delivery {
        job: of.job,
        attempt: of.attempt,
        reused,
        expected: FileFacts { name: name.to_owned(), ..expected },
        endpoint: endpoint.to_owned(),
        directory: directory.to_owned(),
        last_part: name.to_owned(),
    }
}

#[tokio::test]
async fn aut_07_the_holder_of_the_very_name_is_told_among_many() -> anyhow::Result<()> {
    let actors = Actors::new().await?;
    let (tenant, theirs) = another_tenant(&actors).await?;
    let new = |key: &str| store::NewJob { delivery_key: key.to_owned(), ..actors.new_job() };
    // Each holds a name that differs in one part.
    for (key, endpoint, directory, name) in [
        ("elsewhere", "sftp.other.test:22", "/upload", "contacts.csv"),
        ("beside", "sftp.partner.test:22", "/other", "contacts.csv"),
        ("another", "sftp.partner.test:22", "/upload", "orders.csv"),
        ("before", "sftp.partner.test:22", "/upload", "accounts.csv"),
        ("the holder", "sftp.partner.test:22", "/upload", "contacts.csv"),
        ("later", "sftp.partner.test:22", "/upload", "statements.csv"),
    ] {
        let of = bring(&actors, &new(key), Stage::Running).await?;
        let delivery = named(of, delivery(&actors, of).await?, endpoint, directory, name);
        assert_eq!(store::authorize_delivery(&actors.worker, delivery).await?, Authorization::Authorized, "{key}");
    }
    let ask = async |of: Attempt| {
        let delivery = named(of, delivery(&actors, of).await?, "sftp.partner.test:22", "/upload", "contacts.csv");
        anyhow::Ok(store::authorize_delivery(&actors.worker, delivery).await?)
    };
    let late = bring(&actors, &new("late"), Stage::Running).await?;
    assert_eq!(ask(late).await?, Authorization::NameTaken { holder: Some("the holder".to_owned()) });
    let foreign = store::NewJob { tenant, destination: theirs, ..actors.new_job() };
    let foreign = bring(&actors, &foreign, Stage::Running).await?;
    assert_eq!(ask(foreign).await?, Authorization::NameTaken { holder: None }, "another tenant's key is not told");
    Ok(())
}

/// An original of this key that was authorized, and its replacement, claimed.
pub(super) async fn replaced(
    actors: &Actors,
    tenant: Uuid,
    destination: Uuid,
    key: &str,
) -> anyhow::Result<[Attempt; 2]> {
    let new = store::NewJob { tenant, destination, delivery_key: key.to_owned(), ..actors.new_job() };
    let original = bring(actors, &new, Stage::Unknown).await?;
    let replacing = NewReplacement { tenant, ..actors.new_replacement(original.job) };
    let id = replacing.id;
    store::create_replacement(&actors.api, replacing).await?.map_err(|refused| anyhow::anyhow!("{refused}"))?;
    Ok([original, go_on(actors, tenant, id, Stage::Running).await?])
}

#[tokio::test]
async fn rpl_08_the_earlier_attempt_that_differs_is_told_among_strangers() -> anyhow::Result<()> {
    let actors = Actors::new().await?;
    let (tenant, theirs) = another_tenant(&actors).await?;
    // Older, and different in every part: another tenant's of the same key, the tenant's own of another.
    replaced(&actors, tenant, theirs, "spring").await?;
    for key in ["summer", "autumn"] {
        replaced(&actors, actors.tenant, actors.destination, key).await?;
    }
    let [_, replacement] = replaced(&actors, actors.tenant, actors.destination, "spring").await?;
    let wrong = Delivery { last_part: "other.csv".to_owned(), ..delivery(&actors, replacement).await? };
    let wrong = Delivery { expected: FileFacts { name: "other.csv".to_owned(), ..wrong.expected.clone() }, ..wrong };
    let told = Some("contacts-spring.csv".to_owned());
    let answer = store::authorize_delivery(&actors.worker, wrong).await?;
    assert_eq!(answer, Authorization::DiffersFromEarlier { destination: actors.destination, name: told });
    // What the tenant's other keys were delivered as says nothing of this one: only its lease is in the way.
    let right = delivery(&actors, replacement).await?;
    actors.expire(replacement).await?;
    assert_eq!(store::authorize_delivery(&actors.worker, right.clone()).await?, Authorization::LeaseLapsed);
    let lease = Duration::from_secs(60);
    assert!(store::renew(&actors.worker, replacement.job, replacement.attempt, lease).await?.is_written());
    assert_eq!(store::authorize_delivery(&actors.worker, right).await?, Authorization::Authorized);
    Ok(())
}

#[tokio::test]
async fn rcv_04_what_is_on_record_of_an_attempt_is_its_own() -> anyhow::Result<()> {
    let actors = Actors::new().await?;
    replaced(&actors, actors.tenant, actors.destination, "winter").await?;
    let [original, replacement] = replaced(&actors, actors.tenant, actors.destination, "spring").await?;
    let first = store::attempt_on_record(&actors.worker, original.job, original.attempt).await?.context("original")?;
    assert_eq!(first.job.replacement, None);
    assert_eq!(first.job.created_at, actors.created_at(original.job).await?);
    let second =
        store::attempt_on_record(&actors.worker, replacement.job, replacement.attempt).await?.context("one")?;
    let told = second.job.replacement.context("it is a replacement")?;
    assert_eq!((told.original, told.original_expected), (original.job, first.expected.clone()));
    assert_eq!(second.job.created_at, first.job.created_at, "the original's");
    let claimed = actors.found(replacement.job).await?;
    assert_eq!(claimed.original, Some(waybill::job::status::Status::OutcomeUnknown));
    assert_eq!(actors.found(original.job).await?.original, None);

    // What settles counts from its own end, whatever was recorded since: of another attempt, of another job, or a look.
    actors.age_events(original.job).await?;
    for (job, attempt, detail) in [
        (original.job, Uuid::new_v4(), r#"{"evidence": "publish"}"#),
        (replacement.job, original.attempt, r#"{"evidence": "publish"}"#),
        (original.job, original.attempt, r#"{"evidence": "observation"}"#),
    ] {
        actors.record(job, attempt, detail).await?;
        let record = store::attempt_on_record(&actors.worker, original.job, original.attempt).await?.context("it")?;
        assert!(
            record.since_settled > Duration::from_secs(900),
            "{job} {attempt} {detail}: {:?}",
            record.since_settled
        );
    }
    actors.record(original.job, original.attempt, r#"{"evidence": "removal_answered"}"#).await?;
    let record = store::attempt_on_record(&actors.worker, original.job, original.attempt).await?.context("it")?;
    assert!(record.since_settled < Duration::from_secs(900), "{:?}", record.since_settled);
    Ok(())
}

#[tokio::test]
async fn rec_04_the_acknowledgment_period_is_the_destinations_own() -> anyhow::Result<()> {
    let actors = Actors::new().await?;
    let reader = super::reader(&actors).await?;
    let (_, theirs) = another_tenant(&actors).await?;
    actors.promise_acknowledgments(theirs).await?;
    assert_eq!(store::acknowledgment_period(&reader, theirs).await?, Some(Duration::from_hours(1)));
    assert_eq!(store::acknowledgment_period(&reader, actors.destination).await?, None);
    assert_eq!(store::acknowledgment_period(&reader, Uuid::new_v4()).await?, None);
    Ok(())
}
