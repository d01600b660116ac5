//! What a delivery does wherever it goes, in a directory and in a bucket alike.

use uuid::Uuid;
use waybill::job::evidence::{Answer, Evidence};
use waybill::job::facts::Found;
use waybill::job::status::{EventKind, Role};
use waybill::store::Write;
use waybill::store::take_over::{self, Resolution, Resolve, TakeOver};
use waybill_tests::proxy::Moment;
use waybill_tests::{House, ObjectStore, Plan};

use super::directory::{Directory, mode};
use super::place::{Before, DELIVERED, Fresh, Held, OCCUPIED, UNKNOWN, stands};
use crate::delivery::{LONG, kinds};

/// Delivers one file, and hands the place and the final name to whoever knows more of it.
async fn delivered<P: Fresh>(more: impl FnOnce(&P, &str) -> anyhow::Result<()>) -> anyhow::Result<()> {
    let at = Before::<P>::new(Plan::default()).await?;
    let (_worker, _dispatcher) = (at.house.worker().await?, at.house.dispatcher().await?);
    let id = at.house.create().await?;
    let job = at.house.until_ended(id).await?;
    let events = at.house.events(id).await?;
    assert_eq!(stands(&job), DELIVERED, "{events:?}");
    assert_eq!(
        kinds(&events),
        [EventKind::Claimed, EventKind::DeliveryAuthorized, EventKind::PublishIntended, EventKind::Finished]
    );
    let evidence = at.evidence(id).await?;
    let [
        Evidence::Baseline { look, temporary: Some(_), .. },
        Evidence::Publish { form, answer: Answer::Acknowledged },
        Evidence::Receipt(receipt),
    ] = evidence.as_slice()
    else {
        panic!("unexpected evidence: {evidence:?}");
    };
    assert_eq!((&look.found, *form), (&Found::Absent, P::FORM));
    let expected = job.expected.ok_or_else(|| anyhow::anyhow!("no expected file"))?;
    assert_eq!((receipt.conclusion.as_deref(), receipt.bytes_read_back), (Some("checksum"), Some(expected.bytes)));

    let name = House::final_name(id);
    assert_eq!(at.place.names()?, [name.as_str()], "scratch or temporary files stay");
    let there = String::from_utf8(at.place.read(&name)?.unwrap_or_default())?;
    assert_eq!(u64::try_from(there.len())?, expected.bytes);
    assert_eq!(there.lines().count(), 101, "a header and the tenant's hundred rows");
    assert!(!there.contains("Somebody else"), "another tenant's row left the house");
    let on_record: (String, String) =
        sqlx::query_as("SELECT endpoint, directory FROM final_names").fetch_one(&at.house.admin).await?;
    assert_eq!(on_record, at.place.on_record()?);
    more(&at.place, &name)
}

#[tokio::test]
async fn del_01_fen_09_a_file_appears_whole_after_the_fence_and_nothing_stays_beside_it() -> anyhow::Result<()> {
    delivered(|directory: &Directory, name| {
        assert_eq!(mode(&directory.file(name))? & 0o137, 0, "others may read what holds personal data");
        Ok(())
    })
    .await?;
    delivered(|store: &ObjectStore, name| {
        let puts = store.asked("PUT", name);
        assert!(matches!(&puts[..], [put] if put.conditional && put.status == Some(200)), "{puts:?}");
        Ok(())
    })
    .await
}

async fn occupied<P: Fresh>() -> anyhow::Result<P> {
    let at = Before::<P>::new(Plan::default()).await?;
    let id = at.house.create().await?;
    let name = House::final_name(id);
    at.place.write(&name, b"somebody else's")?;
    let (_worker, _dispatcher) = (at.house.worker().await?, at.house.dispatcher().await?);
    assert_eq!(stands(&at.house.until_ended(id).await?), OCCUPIED);
    assert_eq!(kinds(&at.house.events(id).await?), [EventKind::Claimed, EventKind::Failed]);
    assert_eq!(at.place.read(&name)?.as_deref(), Some(&b"somebody else's"[..]));
    assert_eq!(at.place.names()?, [name]);
    Ok(at.place)
}

#[tokio::test]
async fn del_02_an_occupied_name_ends_the_original_and_nothing_is_written() -> anyhow::Result<()> {
    occupied::<Directory>().await?;
    assert_eq!(occupied::<ObjectStore>().await?.asked("PUT", ""), []);
    Ok(())
}

async fn appears_late<P: Fresh>() -> anyhow::Result<()> {
    let held = Held::<P>::at_the_fence(Moment::After).await?;
    let name = House::final_name(held.job);
    assert_eq!(held.at.place.read(&name)?, None, "the final name is there before the fence was answered");
    held.at.place.write(&name, b"a paused upload that landed late")?;
    held.gate.open();
    assert_eq!(stands(&held.at.house.until_ended(held.job).await?), UNKNOWN);
    let published = held.at.published(held.job).await?;
    assert!(
        matches!(&published, Some((form, Answer::Refused { code: Some(11), .. })) if *form == P::FORM),
        "{published:?}"
    );
    assert_eq!(held.at.place.read(&name)?.as_deref(), Some(&b"a paused upload that landed late"[..]));
    Ok(())
}

#[tokio::test]
async fn del_04_a_file_that_appears_before_the_publish_is_not_replaced() -> anyhow::Result<()> {
    appears_late::<Directory>().await?;
    appears_late::<ObjectStore>().await
}

async fn lost_before_the_fence<P: Fresh>() -> anyhow::Result<()> {
    let held = Held::<P>::at_the_fence(Moment::Before).await?;
    let house = &held.at.house;
    let temporaries = held.at.place.names()?;
    assert_eq!(temporaries.len(), usize::from(P::FORM.has_temporary()), "{temporaries:?}");
    house.expire_lease(held.job).await?;
    let attempt = house.job(held.job).await?.attempt.unwrap_or_default();
    let resolve = Resolve {
        take_over: TakeOver { job: held.job, attempt, run: Uuid::new_v4().to_string() },
        resolution: Resolution::OutcomeUnknown,
        proof: serde_json::json!({ "because": "no evidence" }),
        look_after: LONG,
        acknowledgment_within: None,
    };
    let taken = take_over::resolve(&house.database.store(Role::Recovery).await?, resolve).await?;
    assert_eq!(taken, Write::Written(()));
    held.gate.open();
    assert!(held.worker.stop().await?);
    assert_eq!(stands(&house.job(held.job).await?), UNKNOWN);
    let events = house.events(held.job).await?;
    assert!(!kinds(&events).contains(&EventKind::PublishIntended), "{events:?}");
    assert_eq!(held.at.published(held.job).await?, None);
    assert_eq!(held.at.place.names()?, [""; 0], "something was published, or the temporary stays");
    Ok(())
}

#[tokio::test]
async fn fen_01_an_attempt_that_lost_its_job_publishes_nothing() -> anyhow::Result<()> {
    lost_before_the_fence::<Directory>().await?;
    lost_before_the_fence::<ObjectStore>().await
}
