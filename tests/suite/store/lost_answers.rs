//! The statement committed, and its answer was lost on the way: the row tells.

use serde_json::json;
use waybill::job::evidence::{Evidence, PublishForm, Receipt};
use waybill::job::status::{CancellationOutcome, EventKind, Role, Status};
use waybill::store::{
    self, Authorization, Cancellation, Creation, DeliveryOutcome, Finish, Released, StoreError, Write,
};
use waybill_tests::Proxy;
use waybill_tests::proxy::{Fault, Moment};

use super::world::{Attempt, World};

#[tokio::test]
async fn lst_01_an_attempt_finds_itself_after_every_lost_answer() -> anyhow::Result<()> {
    use EventKind::{Claimed, DeliveryAuthorized, Finished, PublishIntended};
    let world = World::new().await?;
    let line = Proxy::before(&world.database)?;
    let worker = line.store(&world.database, Role::Worker).await?;
    let job = world.queued().await?;

    let struck = line.at("claim", Fault::cut(Moment::After));
    let claim = World::claim(job, 1);
    let of = Attempt { job, attempt: claim.attempt };
    let claimed = store::claim(&worker, claim).await?.written().expect("it finds its claim");
    assert_eq!((claimed.attempt, claimed.attempt_count), (of.attempt, 1));
    assert_eq!(claimed.scope, json!({ "list": "spring" }));
    assert!(struck.has_happened(), "the answer was lost");

    let struck = line.at("authorize_delivery", Fault::cut(Moment::After));
    assert_eq!(store::authorize_delivery(&worker, World::delivery(of)).await?, Authorization::Authorized);
    assert!(struck.has_happened());

    let struck = line.at("intend_publish", Fault::cut(Moment::After));
    assert!(store::intend_publish(&worker, job, of.attempt, PublishForm::Link).await?.is_written());
    assert!(struck.has_happened());

    let struck = line.at("finish_delivery", Fault::cut(Moment::After));
    let finish = Finish {
        job,
        attempt: of.attempt,
        outcome: DeliveryOutcome::Completed,
        proof: json!({}),
        look_after: std::time::Duration::from_secs(1),
        acknowledgment_within: None,
    };
    assert!(store::finish_delivery(&worker, finish).await?.is_written());
    assert!(struck.has_happened());

    assert_eq!(world.kinds(job).await?, [Claimed, DeliveryAuthorized, PublishIntended, Finished], "each once");
    Ok(())
}

#[tokio::test]
async fn lst_01_a_release_finds_its_event_after_a_lost_answer() -> anyhow::Result<()> {
    let world = World::new().await?;
    let line = Proxy::before(&world.database)?;
    let worker = line.store(&world.database, Role::Worker).await?;
    let of = world.running().await?;
    let struck = line.at("release", Fault::cut(Moment::After));
    assert_eq!(store::release(&worker, World::release(of)).await?, Write::Written(Released::Queued));
    assert!(struck.has_happened());

    let stopping = world.running().await?;
    world.cancel(stopping.job).await?;
    let struck = line.at("finish_stopped", Fault::cut(Moment::After));
    assert!(store::finish_stopped(&worker, stopping.job, stopping.attempt, "building").await?.is_written());
    assert!(struck.has_happened());
    Ok(())
}

#[tokio::test]
async fn lst_03_if_the_row_cannot_be_read_either_nobody_guesses() -> anyhow::Result<()> {
    let world = World::new().await?;
    let line = Proxy::before(&world.database)?;
    let worker = line.store(&world.database, Role::Worker).await?;
    let job = world.queued().await?;
    let struck = line.at("claim", Fault::cut(Moment::After).then_refusing());
    let error = store::claim(&worker, World::claim(job, 1)).await.unwrap_err();
    assert!(struck.has_happened() && matches!(error, StoreError::MaybeCommitted { .. }), "{error:?}");
    assert_eq!(world.status(job).await?, Status::Running, "it had committed; recovery takes it from here");
    let again = store::claim(&world.worker, World::claim(job, 1)).await?;
    assert!(!again.is_written(), "the redelivered message does nothing");
    Ok(())
}

#[tokio::test]
async fn lst_04_a_fence_is_never_granted_twice() -> anyhow::Result<()> {
    let world = World::new().await?;
    let of = world.intended().await?;
    let line = Proxy::before(&world.database)?;
    let worker = line.store(&world.database, Role::Worker).await?;
    assert!(!store::intend_publish(&worker, of.job, of.attempt, PublishForm::Link).await?.is_written());
    Ok(())
}

#[tokio::test]
async fn lst_01_creation_and_cancellation_find_their_record() -> anyhow::Result<()> {
    let world = World::new().await?;
    let line = Proxy::before(&world.database)?;
    let api = line.store(&world.database, Role::Api).await?;
    let job = world.new_job();
    let struck = line.at("create", Fault::cut(Moment::After));
    assert_eq!(store::create(&api, job.clone()).await?, Creation::Created);
    assert!(struck.has_happened());
    assert_eq!(world.wakeups(job.id).await?, 1);

    // Inside a transaction the lost answer is that of a statement that was not committed: nothing is recorded, and the
    // operator is told to try again with the same id.
    let request = world.cancellation(job.id);
    let struck = line.at("request_cancellation", Fault::cut(Moment::After));
    assert_eq!(store::request_cancellation(&api, request.clone()).await?, Cancellation::Busy);
    assert!(struck.has_happened());
    assert_eq!(world.status(job.id).await?, Status::Queued);
    match store::request_cancellation(&api, request).await? {
        Cancellation::Recorded(recorded) => assert_eq!(recorded.outcome, CancellationOutcome::CanceledWhileQueued),
        other => panic!("{other:?}"),
    }
    Ok(())
}

#[tokio::test]
async fn lst_05_evidence_whose_answer_was_lost_stays_unknown() -> anyhow::Result<()> {
    let world = World::new().await?;
    let of = world.delivering().await?;
    let line = Proxy::before(&world.database)?;
    let worker = line.store(&world.database, Role::Worker).await?;
    let struck = line.at("append_evidence", Fault::cut(Moment::After));
    let receipt = Evidence::Receipt(Receipt::default());
    let error = store::append_evidence(&worker, of.job, of.attempt, "worker-1", &receipt).await.unwrap_err();
    assert!(struck.has_happened() && matches!(error, StoreError::MaybeCommitted { .. }), "{error:?}");
    assert!(store::append_evidence(&worker, of.job, of.attempt, "worker-1", &receipt).await?.is_written());
    Ok(())
}
