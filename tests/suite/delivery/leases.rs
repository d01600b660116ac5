//! Leases, takeovers and the publish fence, with a worker that is in the middle of something.

use std::time::Duration;

use sqlx::Row as _;
use uuid::Uuid;
use waybill::job::status::{EventKind, Role, Status};
use waybill::store::take_over::{self, Resolution, Resolve, TakeOver};
use waybill::store::{self, Write};
use waybill_tests::sftp_server::{Action, Behaviour, When};
use waybill_tests::{House, Operation, Plan, Reach, SftpServer, Sshd, wait};

use super::{HeldBuilds, LONG, kinds};

/// A lease that runs out while a test looks, and renewals that keep it.
fn short() -> Plan {
    Plan { lease: Duration::from_millis(600), renew_every: Duration::from_millis(100), ..Plan::default() }
}

/// Waits until the lease was renewed past a time at which it would have run out.
async fn outlives_its_lease(house: &House, job: Uuid, lease: Duration) -> anyhow::Result<()> {
    let claimed = house.job(job).await?.lease_expires_at;
    wait::until("the lease to be renewed past its first length", async || {
        let now = house.job(job).await?.lease_expires_at;
        Ok((now.zip(claimed).is_some_and(|(now, claimed)| now > claimed + lease)).then_some(()))
    })
    .await
}

#[tokio::test]
async fn lse_01_a_build_longer_than_the_lease_is_renewed_and_delivers_once() -> anyhow::Result<()> {
    let server = Sshd::start().await?;
    let house = House::before(&Reach::openssh(&server)?, short()).await?;
    let (_worker, _dispatcher) = (house.worker().await?, house.dispatcher().await?);
    let held = HeldBuilds::hold(&house).await?;
    let id = house.create().await?;
    held.reached_by(1).await?;
    outlives_its_lease(&house, id, Duration::from_millis(600)).await?;
    held.let_go().await?;
    let job = house.until(id, Status::Completed).await?;
    assert_eq!(job.attempt_count, 1);
    assert_eq!(server.times_created(&House::final_name(id))?, 1);
    Ok(())
}

#[tokio::test]
async fn lse_02_an_upload_longer_than_the_lease_is_renewed_and_completes() -> anyhow::Result<()> {
    let server = SftpServer::start(Behaviour::default()).await?;
    let directory = tempfile::tempdir()?;
    let house = House::before(&Reach::in_process(&server, directory.path())?, short()).await?;
    let (_worker, _dispatcher) = (house.worker().await?, house.dispatcher().await?);
    house.until(house.create().await?, Status::Completed).await?;
    let gate = server.hold(When::Before, Action::Write);
    let id = house.create().await?;
    gate.reached().await?;
    outlives_its_lease(&house, id, Duration::from_millis(600)).await?;
    let recovery = house.database.store(Role::Recovery).await?;
    let attempt = house.job(id).await?.attempt.unwrap_or_default();
    let taken = resolve(&recovery, id, attempt).await?;
    assert!(matches!(taken, Write::Refused(_)), "a renewed lease was taken over");
    gate.open();
    let job = house.until_ended(id).await?;
    assert_eq!((job.status, job.attempt_count), (Status::Completed, 1));
    Ok(())
}

/// Recovery's takeover of a Delivering attempt without evidence.
async fn resolve(pool: &store::Pool, job: Uuid, attempt: Uuid) -> anyhow::Result<Write<()>> {
    let resolve = Resolve {
        take_over: TakeOver { job, attempt, run: Uuid::new_v4().to_string() },
        resolution: Resolution::OutcomeUnknown,
        proof: serde_json::json!({ "because": "no evidence" }),
        look_after: LONG,
        acknowledgment_within: None,
    };
    Ok(take_over::resolve(pool, resolve).await?)
}

#[tokio::test]
async fn aut_02_an_expired_lease_is_refused_and_one_renewal_lets_the_retry_through() -> anyhow::Result<()> {
    let server = Sshd::start().await?;
    let plan = Plan { renew_every: LONG, ..Plan::default() };
    let house = House::before(&Reach::openssh(&server)?, plan).await?;
    let (_worker, _dispatcher) = (house.worker().await?, house.dispatcher().await?);
    // The server is known from the first job on: a check would begin with a renewal of its own.
    house.until(house.create().await?, Status::Completed).await?;
    let held = HeldBuilds::hold(&house).await?;
    let id = house.create().await?;
    held.reached_by(1).await?;
    house.expire_lease(id).await?;
    held.let_go().await?;
    let job = house.until_ended(id).await?;
    assert_eq!((job.status, job.attempt_count), (Status::Completed, 1));
    assert_eq!(server.times_created(&House::final_name(id))?, 1);
    Ok(())
}

#[tokio::test]
async fn aut_03_after_a_takeover_the_old_attempt_sends_and_records_nothing() -> anyhow::Result<()> {
    let server = Sshd::start().await?;
    let plan = Plan { renew_every: LONG, ..Plan::default() };
    let house = House::before(&Reach::openssh(&server)?, plan).await?;
    let worker = house.worker().await?;
    let dispatcher = house.dispatcher().await?;
    let held = HeldBuilds::hold(&house).await?;
    let id = house.create().await?;
    held.reached_by(1).await?;
    // The queue is left alone from here on, so that only the old attempt can act.
    dispatcher.stop().await?;
    house.expire_lease(id).await?;
    let attempt = house.job(id).await?.attempt.unwrap_or_default();
    let recovery = house.database.store(Role::Recovery).await?;
    let taken =
        take_over::requeue(&recovery, TakeOver { job: id, attempt, run: Uuid::new_v4().to_string() }, 5).await?;
    assert!(taken.is_written());
    held.let_go().await?;
    assert!(worker.stop().await?);
    let job = house.job(id).await?;
    assert_eq!((job.status, job.attempt), (Status::Queued, None));
    assert_eq!(kinds(&house.events(id).await?), [EventKind::Claimed, EventKind::RequeuedByRecovery]);
    let created: Vec<_> = server.operations()?.into_iter().filter(|done| done.operation.creates().is_some()).collect();
    assert_eq!(created, [], "the old attempt sent something");
    Ok(())
}

#[tokio::test]
async fn fen_01_a_takeover_before_the_fence_makes_it_refuse_and_no_publish_is_sent() -> anyhow::Result<()> {
    let server = SftpServer::start(Behaviour::default()).await?;
    let directory = tempfile::tempdir()?;
    let plan = Plan { renew_every: LONG, ..Plan::default() };
    let house = House::before(&Reach::in_process(&server, directory.path())?, plan).await?;
    let (worker, _dispatcher) = (house.worker().await?, house.dispatcher().await?);
    house.until(house.create().await?, Status::Completed).await?;
    let gate = server.hold(When::After, Action::Close);
    let id = house.create().await?;
    gate.reached().await?;
    house.expire_lease(id).await?;
    let attempt = house.job(id).await?.attempt.unwrap_or_default();
    let recovery = house.database.store(Role::Recovery).await?;
    assert!(resolve(&recovery, id, attempt).await?.is_written());
    gate.open();
    assert!(worker.stop().await?);
    let job = house.job(id).await?;
    assert_eq!((job.status, job.publish_intended_at), (Status::OutcomeUnknown, None));
    assert_eq!(server.times_created(&House::final_name(id)), 0, "a publish was sent without the fence");
    let linked = server
        .operations()
        .iter()
        .filter(|done| matches!(&done.operation, Operation::Link { to, .. } if to.ends_with(&House::final_name(id))))
        .count();
    assert_eq!(linked, 0);
    // What it did is kept as evidence, and the row is left alone.
    let last = kinds(&house.events(id).await?);
    assert_eq!(last, [EventKind::Claimed, EventKind::DeliveryAuthorized, EventKind::ResolvedByRecovery]);
    Ok(())
}

#[tokio::test]
async fn lse_05_after_the_terminal_write_no_renewal_touches_the_row() -> anyhow::Result<()> {
    let server = Sshd::start().await?;
    let house =
        House::before(&Reach::openssh(&server)?, Plan { renew_every: Duration::from_millis(5), ..Plan::default() })
            .await?;
    let (worker, _dispatcher) = (house.worker().await?, house.dispatcher().await?);
    let id = house.create().await?;
    house.until(id, Status::Completed).await?;
    assert!(worker.stop().await?);
    let row = sqlx::query("SELECT lease_expires_at IS NULL AS free FROM export_jobs WHERE id = $1")
        .bind(id)
        .fetch_one(&house.admin)
        .await?;
    assert!(row.try_get::<bool, _>("free")?);
    Ok(())
}
