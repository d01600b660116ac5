//! A directory that changes, or goes away, in the middle of a delivery; and an attempt that loses its job before one.

use uuid::Uuid;
use waybill::job::evidence::Answer;
use waybill::job::status::{EventKind, Role};
use waybill::store::Write;
use waybill::store::take_over::{self, Resolution, Resolve, TakeOver};
use waybill_tests::house::Running;
use waybill_tests::proxy::{Fault, Moment};
use waybill_tests::sftp_server::Gate;
use waybill_tests::{House, Plan, Proxy};

use super::{NOT_DELIVERED, Outbox, UNKNOWN, names, stands};
use crate::delivery::{LONG, kinds};

/// An attempt that is held at the publish fence.
struct Held {
    outbox: Outbox,
    job: Uuid,
    gate: Gate,
    worker: Running,
    _dispatcher: Running,
    _line: Proxy,
}

impl Held {
    async fn at_the_fence(moment: Moment) -> anyhow::Result<Self> {
        let plan = Plan { renew_every: LONG, watch_stop_every: None, ..Plan::default() };
        let outbox = Outbox::new(plan).await?;
        let line = Proxy::before(&outbox.house.database)?;
        let gate = Gate::default();
        let _held = line.at("intend_publish", Fault::hold(moment, gate.clone()));
        let (worker, dispatcher) = (outbox.house.worker_on(&line).await?, outbox.house.dispatcher().await?);
        let job = outbox.house.create().await?;
        gate.reached().await?;
        Ok(Self { outbox, job, gate, worker, _dispatcher: dispatcher, _line: line })
    }
}

#[tokio::test]
async fn fen_01_an_attempt_that_lost_its_job_links_nothing_into_a_directory() -> anyhow::Result<()> {
    let held = Held::at_the_fence(Moment::Before).await?;
    let house = &held.outbox.house;
    let temporary = held.outbox.names()?;
    assert_eq!(temporary.len(), 1, "sent under its temporary name: {temporary:?}");
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
    let job = house.job(held.job).await?;
    assert_eq!(stands(&job), UNKNOWN);
    let events = house.events(held.job).await?;
    assert!(!kinds(&events).contains(&EventKind::PublishIntended), "{events:?}");
    assert_eq!(held.outbox.published(held.job).await?, None);
    assert_eq!(held.outbox.names()?, Vec::<String>::new(), "the temporary is removed, and nothing was published");
    Ok(())
}

#[tokio::test]
async fn del_04_a_file_that_appears_in_a_directory_before_the_link_is_not_replaced() -> anyhow::Result<()> {
    let held = Held::at_the_fence(Moment::After).await?;
    let name = House::final_name(held.job);
    std::fs::write(held.outbox.file(&name), b"a paused upload that landed late")?;
    held.gate.open();
    let job = held.outbox.house.until_ended(held.job).await?;
    assert_eq!(stands(&job), UNKNOWN);
    let answer = held.outbox.published(held.job).await?.map(|(_, answer)| answer);
    assert!(matches!(&answer, Some(Answer::Refused { code: Some(11), text }) if text.contains("exists")), "{answer:?}");
    assert_eq!(std::fs::read(held.outbox.file(&name))?, b"a paused upload that landed late");
    Ok(())
}

#[tokio::test]
async fn del_03_a_directory_that_goes_away_before_the_link_gets_no_final_name() -> anyhow::Result<()> {
    let held = Held::at_the_fence(Moment::After).await?;
    let away = held.outbox.path.with_file_name("away");
    std::fs::rename(&held.outbox.path, &away)?;
    // As a share that is unmounted leaves the empty directory under it.
    std::fs::create_dir(&held.outbox.path)?;
    held.gate.open();
    let job = held.outbox.house.until_ended(held.job).await?;
    assert_eq!(stands(&job), NOT_DELIVERED);
    assert_eq!(held.outbox.published(held.job).await?, None, "it was never sent");
    let call = held.outbox.receipt(held.job).await?.call.unwrap_or_default();
    assert_eq!(held.outbox.names()?, Vec::<String>::new(), "{call}");
    assert!(names(&away)?.iter().all(|name| name != &House::final_name(held.job)), "{call}");
    Ok(())
}
