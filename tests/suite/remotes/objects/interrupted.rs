//! A create whose answer is missing, wrong, or comes from a line that repeats.

use uuid::Uuid;
use waybill::job::evidence::{Answer, PublishForm};
use waybill::job::status::Status;
use waybill::upkeep::Looked;
use waybill_tests::object_store::Fault;
use waybill_tests::{House, Plan};

use super::{Bucket, key};
use crate::remotes::place::{UNKNOWN, stands};

/// A job whose one PUT of its final name breaks so, taken to its end. An earlier job has shown what the store keeps.
async fn broken(fault: Fault) -> anyhow::Result<(Bucket, Uuid)> {
    let bucket = Bucket::new(Plan::default()).await?;
    let (_worker, dispatcher) = (bucket.house.worker().await?, bucket.house.dispatcher().await?);
    bucket.house.until_ended(bucket.house.create().await?).await?;
    dispatcher.stop().await?;
    let id = bucket.house.create().await?;
    bucket.place.once("PUT", &House::final_name(id), fault);
    let _dispatcher = bucket.house.dispatcher().await?;
    let job = bucket.house.until_ended(id).await?;
    assert_eq!(stands(&job), UNKNOWN, "{fault:?}");
    let puts = bucket.place.asked("PUT", &House::final_name(id));
    assert_eq!(puts.len(), 1, "a create was repeated: {puts:?}");
    Ok((bucket, id))
}

async fn looked(bucket: &Bucket, job: Uuid) -> anyhow::Result<Vec<Looked>> {
    bucket.house.look_is_due(job).await?;
    Ok(bucket.house.reconciler().await?.run_once().await?)
}

#[tokio::test]
async fn fen_09_a_create_that_was_done_and_not_answered_is_unknown_until_a_later_look() -> anyhow::Result<()> {
    for fault in [Fault::CutAfter, Fault::AnswerAfter(503)] {
        let (bucket, id) = broken(fault).await?;
        let published = bucket.published(id).await?;
        assert!(matches!(&published, Some((PublishForm::CreateWhole, Answer::Unanswered { .. }))), "{published:?}");
        assert_eq!(looked(&bucket, id).await?, [Looked::Reconciled(Status::Completed)]);
        assert_eq!(bucket.receipt(id).await?.conclusion.as_deref(), Some("interrupted"), "the worker's own receipt");
        assert_eq!(bucket.place.asked("PUT", &House::final_name(id)).len(), 1, "it was sent again");
    }
    Ok(())
}

#[tokio::test]
async fn fen_09_a_create_that_was_not_done_and_not_answered_stays_unknown_and_is_not_repeated() -> anyhow::Result<()> {
    for fault in [Fault::CutBefore, Fault::Answer(503), Fault::Answer(500)] {
        let (bucket, id) = broken(fault).await?;
        let published = bucket.published(id).await?;
        assert!(matches!(&published, Some((PublishForm::CreateWhole, Answer::Unanswered { .. }))), "{published:?}");
        assert_eq!(looked(&bucket, id).await?, [Looked::Open]);
        assert_eq!(bucket.place.content(&key(id)), None);
        assert_eq!(bucket.place.asked("PUT", &House::final_name(id)).len(), 1, "it was sent again");
    }
    Ok(())
}

#[tokio::test]
async fn del_03_a_create_that_took_effect_and_was_answered_exists_already_is_not_believed() -> anyhow::Result<()> {
    // As a proxy that repeats requests makes of it.
    let (bucket, id) = broken(Fault::AnswerAfter(412)).await?;
    let published = bucket.published(id).await?;
    assert!(matches!(&published, Some((_, Answer::Refused { code: Some(11), .. }))), "{published:?}");
    assert_eq!(looked(&bucket, id).await?, [Looked::Open], "a refusal was taken for proof");
    assert!(bucket.place.content(&key(id)).is_some());
    Ok(())
}
