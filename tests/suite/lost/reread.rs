//! The answer was lost and the row could be read: an attempt that finds itself goes on.

use waybill::job::status::{EventKind, Status};
use waybill_tests::proxy::{Fault, Moment};
use waybill_tests::{House, Plan, Proxy, Reach, Sshd, wait};

use super::{DELIVERED, OnTheLine};
use crate::delivery::kinds;

async fn cut_after(statement: &str) -> anyhow::Result<()> {
    let on = OnTheLine::new().await?;
    let cut = on.line.at(statement, Fault::cut(Moment::After));
    let job = on.house.create().await?;
    cut.happened().await?;
    on.assert_delivered_once(job).await?;
    on.until_settled(job).await
}

#[tokio::test]
async fn lst_01_a_worker_finds_its_claim_and_goes_on() -> anyhow::Result<()> {
    cut_after("claim").await
}

#[tokio::test]
async fn lst_01_a_worker_finds_its_authorization_and_goes_on() -> anyhow::Result<()> {
    cut_after("authorize_delivery").await
}

#[tokio::test]
async fn lst_01_a_worker_finds_its_fence_and_publishes() -> anyhow::Result<()> {
    cut_after("intend_publish").await
}

#[tokio::test]
async fn lst_01_a_worker_finds_its_terminal_write() -> anyhow::Result<()> {
    cut_after("finish_delivery").await
}

/// Every boundary of one and the same delivery, before OpenSSH, whose own log is the judge.
#[tokio::test]
async fn lst_01_every_answer_of_one_delivery_is_lost() -> anyhow::Result<()> {
    let server = Sshd::start().await?;
    let house = House::before(&Reach::openssh(&server)?, Plan::default()).await?;
    let line = Proxy::before(&house.database)?;
    let (worker, _dispatcher) = (house.worker_on(&line).await?, house.dispatcher().await?);
    let cuts = ["claim", "authorize_delivery", "intend_publish", "finish_delivery"]
        .map(|statement| line.at(statement, Fault::cut(Moment::After)));
    let id = house.create().await?;
    let job = house.until_ended(id).await?;
    assert_eq!((job.status, job.attempt_count), (Status::Completed, 1));
    assert!(worker.stop().await?);
    assert!(cuts.iter().all(waybill_tests::proxy::Struck::has_happened));
    assert_eq!(kinds(&house.events(id).await?), DELIVERED);
    assert_eq!(server.times_created(&House::final_name(id))?, 1);
    Ok(())
}

/// Kept from the server, cutoff 2 has not happened: the row shows the attempt still Running, and it asks again.
#[tokio::test]
async fn lst_01_an_authorization_that_never_arrived_is_asked_for_again() -> anyhow::Result<()> {
    let on = OnTheLine::new().await?;
    let cut = on.line.at("authorize_delivery", Fault::cut(Moment::Before));
    let job = on.house.create().await?;
    cut.happened().await?;
    on.assert_delivered_once(job).await
}

/// Nor has the fence: nothing is published, and the job says so.
#[tokio::test]
async fn lst_01_a_fence_that_never_arrived_lets_nothing_out() -> anyhow::Result<()> {
    let on = OnTheLine::new().await?;
    let cut = on.line.at("intend_publish", Fault::cut(Moment::Before));
    let job = on.house.create().await?;
    cut.happened().await?;
    let ended = on.house.until_ended(job).await?;
    assert_eq!((ended.status, ended.publish_intended_at), (Status::Failed, None));
    assert_eq!(on.server.times_created(&House::final_name(job)), 0);
    assert_eq!(
        kinds(&on.house.events(job).await?),
        [EventKind::Claimed, EventKind::DeliveryAuthorized, EventKind::Finished]
    );
    Ok(())
}

/// Nor has the terminal write. The row is left to recovery; nothing is sent again.
#[tokio::test]
async fn lst_01_a_terminal_write_that_never_arrived_is_left_to_recovery() -> anyhow::Result<()> {
    let on = OnTheLine::new().await?;
    let cut = on.line.at("finish_delivery", Fault::cut(Moment::Before));
    let job = on.house.create().await?;
    cut.happened().await?;
    let row = on.row(job).await?;
    let OnTheLine { worker, house, server, .. } = on;
    assert!(worker.stop().await?, "nothing is under way");
    let left = house.job(job).await?;
    assert_eq!((left.status, left.attempt_count), (Status::Delivering, 1), "{row}");
    assert_eq!(server.times_created(&House::final_name(job)), 1);
    wait::until("the receipt", async || {
        let events = house.events(job).await?;
        Ok((events.last().map(|event| event.kind) == Some(EventKind::DeliveryEvidence)).then_some(()))
    })
    .await
}
