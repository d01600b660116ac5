//! Recovery as an actor.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use waybill::job::evidence::{Answer, Evidence};
use waybill::job::facts::Found;
use waybill::job::status::{CancellationOutcome, EventKind, FailureReason, Status};
use waybill::store::Cancellation;
use waybill::upkeep::Looked;
use waybill_tests::sftp_server::{Action, Behaviour, Fault, When};
use waybill_tests::{House, Plan, Reach, SftpServer, wait};

use super::{COMPLETED, NOT_DELIVERED, ONE_STEP, Silent, UNKNOWN, agreed, renames};

fn quiet() -> Plan {
    Plan { renew_every: Duration::from_hours(1), ..Plan::default() }
}

#[tokio::test]
async fn rcv_03_a_job_that_ends_every_worker_ends_failed_at_the_cap() -> anyhow::Result<()> {
    let server = SftpServer::start(Behaviour::default()).await?;
    let directory = tempfile::tempdir()?;
    let plan = Plan { max_attempts: 2, ..quiet() };
    let house = House::before(&Reach::in_process(&server, directory.path())?, plan).await?;
    let _dispatcher = house.dispatcher().await?;
    server.always(When::Before, Action::RealPath, Fault::Hang);
    let (id, recovery) = (house.create().await?, house.recovery().await?);
    for attempt in 1..=2 {
        let worker = house.worker().await?;
        wait::until("the attempt", async || {
            let job = house.job(id).await?;
            Ok((job.status == Status::Running && job.attempt_count == attempt).then_some(()))
        })
        .await?;
        worker.crash();
        house.expire_lease(id).await?;
        recovery.run_once().await?;
    }
    let job = house.job(id).await?;
    assert_eq!((job.status, job.failure_reason), (Status::Failed, Some(FailureReason::AttemptsExhausted)));
    assert_eq!(job.attempt_count, 2);
    assert_eq!(server.times_created(&House::final_name(id)), 0);
    Ok(())
}

#[tokio::test]
async fn rcv_06_fen_03_a_crash_before_the_fence_is_unknown_and_then_not_delivered_without_a_person()
-> anyhow::Result<()> {
    let mut silent = Silent::held_at_a_known_server(Behaviour::default(), agreed(ONE_STEP), |_, when, action, _| {
        when == When::Before && action == Action::Write
    })
    .await?;
    assert_eq!(silent.taken_over().await?.status, Status::OutcomeUnknown);
    // Somebody else's file under the very name, with any content.
    silent.server.put(&silent.name(), b"not ours".to_vec())?;
    silent.looked().await?;
    assert_eq!(silent.stands().await?, NOT_DELIVERED);
    // What it had sent is cleared away; its worker, should it wake up, is stopped at the fence.
    assert_eq!(silent.server.read(&silent.temporary().await?), None);
    assert_eq!(silent.until_removal().await?, Answer::Acknowledged);
    let proof = silent.detail(EventKind::Reconciled).await?;
    assert_eq!(proof["rests_on"], "absent_fence", "{proof}");
    assert_eq!(proof["proof"]["observation"]["look"]["found"], "present", "the file is named in the event: {proof}");
    silent.gate.open();
    wait::until("the old attempt to end", async || {
        Ok(silent.evidence().await?.iter().any(|one| matches!(one, Evidence::Receipt(_))).then_some(()))
    })
    .await?;
    assert_eq!(silent.stands().await?, NOT_DELIVERED);
    assert_eq!(silent.server.times_created(&silent.name()), 0);
    Ok(())
}

#[tokio::test]
async fn rcv_04_rcv_07_a_crash_after_the_publish_is_completed_from_evidence_and_nothing_is_sent_again()
-> anyhow::Result<()> {
    let mut silent = Silent::at(renames(), agreed(ONE_STEP), When::After, Action::Rename).await?;
    let job = silent.taken_over().await?;
    assert_eq!(job.status, Status::Completed, "{:?}", silent.detail(EventKind::ResolvedByRecovery).await?);
    let proof = silent.detail(EventKind::ResolvedByRecovery).await?;
    assert_eq!((&proof["ground"], &proof["proof"]["conclusion"]), (&"listing".into(), &"listing".into()), "{proof}");
    silent.worker.crash();
    let _worker = silent.house.worker().await?;
    assert_eq!(silent.server.times_created(&House::final_name(silent.job)), 1);
    assert_eq!(silent.house.job(silent.job).await?.attempt_count, 1);
    Ok(())
}

#[tokio::test]
async fn rcv_08_lse_03_a_late_receipt_of_an_attempt_that_was_taken_over_is_kept_and_changes_nothing()
-> anyhow::Result<()> {
    let mut silent = Silent::at(renames(), agreed(ONE_STEP), When::Before, Action::Rename).await?;
    assert_eq!(silent.taken_over().await?.status, Status::OutcomeUnknown);
    silent.gate.open();
    wait::until("the late receipt", async || {
        Ok(silent.evidence().await?.iter().any(|one| matches!(one, Evidence::Receipt(_))).then_some(()))
    })
    .await?;
    assert_eq!(silent.stands().await?, UNKNOWN);
    // The reconciler weighs it.
    silent.looked().await?;
    assert_eq!(silent.stands().await?, COMPLETED);
    assert_eq!(silent.server.times_created(&silent.name()), 1);
    Ok(())
}

#[tokio::test]
async fn rcv_09_a_cancellation_after_recovery_gave_the_job_back_cancels_it() -> anyhow::Result<()> {
    let server = SftpServer::start(Behaviour::default()).await?;
    let directory = tempfile::tempdir()?;
    let house = House::before(&Reach::in_process(&server, directory.path())?, quiet()).await?;
    let dispatcher = house.dispatcher().await?;
    server.always(When::Before, Action::RealPath, Fault::Hang);
    let (id, worker) = (house.create().await?, house.worker().await?);
    house.until(id, Status::Running).await?;
    worker.crash();
    dispatcher.stop().await?;
    house.expire_lease(id).await?;
    house.recovery().await?.run_once().await?;
    assert_eq!(house.job(id).await?.status, Status::Queued);
    let Cancellation::Recorded(canceled) = house.cancel(id).await? else { panic!("not recorded") };
    assert_eq!((canceled.outcome, canceled.found_attempt_count), (CancellationOutcome::CanceledWhileQueued, 1));
    let job = house.job(id).await?;
    assert_eq!((job.status, job.attempt_count), (Status::Canceled, 1));
    Ok(())
}

#[tokio::test]
async fn rcv_10_two_recoveries_at_once_take_each_job_over_once() -> anyhow::Result<()> {
    let server = SftpServer::start(Behaviour::default()).await?;
    let directory = tempfile::tempdir()?;
    let house = House::before(&Reach::in_process(&server, directory.path())?, quiet()).await?;
    let dispatcher = house.dispatcher().await?;
    server.always(When::Before, Action::RealPath, Fault::Hang);
    let mut jobs = Vec::new();
    for _ in 0..4 {
        jobs.push(house.create().await?);
    }
    let worker = house.worker().await?;
    for id in &jobs {
        house.until(*id, Status::Running).await?;
    }
    worker.crash();
    dispatcher.stop().await?;
    for id in &jobs {
        house.expire_lease(*id).await?;
    }
    let (one, other) = (house.recovery().await?, house.recovery().await?);
    let (one, other) = tokio::join!(one.run_once(), other.run_once());
    let taken = [one?, other?].iter().map(|ran| ran.taken_over.values().sum::<u32>()).sum::<u32>();
    assert_eq!(taken, 4);
    for id in jobs {
        let events = house.events(id).await?;
        let requeued = events.iter().filter(|event| event.kind == EventKind::RequeuedByRecovery).count();
        assert_eq!((house.job(id).await?.status, requeued), (Status::Queued, 1));
    }
    Ok(())
}

#[tokio::test]
async fn rcv_12_a_partner_that_cannot_be_reached_leaves_the_outcome_unknown() -> anyhow::Result<()> {
    let mut silent = Silent::at(renames(), agreed(ONE_STEP), When::After, Action::Rename).await?;
    // Whoever connects from now on gets no answer before its connection ends.
    silent.server.always(When::Before, Action::RealPath, Fault::Cut);
    assert_eq!(silent.taken_over().await?.status, Status::OutcomeUnknown);
    silent.looked().await?;
    assert_eq!(silent.stands().await?, UNKNOWN);
    silent.server.clear_hooks();
    silent.looked().await?;
    assert_eq!(silent.stands().await?, COMPLETED);
    Ok(())
}

#[tokio::test]
async fn rcv_13_recovery_takes_nothing_over_within_a_lease_of_the_databases_first_answer() -> anyhow::Result<()> {
    let mut silent = Silent::at(renames(), agreed(ONE_STEP), When::After, Action::Rename).await?;
    silent.house.expire_lease(silent.job).await?;
    let recovery = silent.house.recovery_after(Duration::from_hours(1)).await?;
    for _ in 0..2 {
        let ran = recovery.run_once().await?;
        assert!(ran.waiting && ran.taken_over.is_empty(), "{ran:?}");
    }
    assert_eq!(silent.stands().await?.0, Status::Delivering);
    assert_eq!(silent.taken_over().await?.status, Status::Completed);
    Ok(())
}

#[tokio::test]
async fn rcv_12_a_plugin_that_traps_while_it_observes_leaves_the_outcome_unknown() -> anyhow::Result<()> {
    let settings = "settings = { name = 'contacts-{key}.csv', query = 'rows', behaviour = 'panic', in = 'observe' }\n";
    let plan = Plan { plugin: "misbehaving-destination", destination: settings.to_owned(), ..agreed(ONE_STEP) };
    let mut silent = Silent::at(renames(), plan, When::After, Action::Rename).await?;
    assert_eq!(silent.taken_over().await?.status, Status::OutcomeUnknown);
    let evidence = silent.evidence().await?;
    let Some(Evidence::Observation(seen)) = evidence.last() else { panic!("{evidence:?}") };
    assert!(seen.call.as_deref().is_some_and(|call| call.contains("trap")), "{seen:?}");
    // The host's own look needs no plugin.
    silent.looked().await?;
    assert_eq!(silent.stands().await?, COMPLETED);
    Ok(())
}

#[tokio::test]
async fn vrd_05_plg_05_a_receipt_that_the_plugin_made_up_convinces_nobody() -> anyhow::Result<()> {
    let server = SftpServer::start(Behaviour::default()).await?;
    let directory = tempfile::tempdir()?;
    let settings = "settings = { name = 'contacts-{key}.csv', query = 'rows', behaviour = 'lie-receipt' }\n";
    let plan = Plan { plugin: "misbehaving-destination", destination: settings.to_owned(), ..Plan::default() };
    let house = House::before(&Reach::in_process(&server, directory.path())?, plan).await?;
    let (_worker, _dispatcher) = (house.worker().await?, house.dispatcher().await?);
    let job = house.until_ended(house.create().await?).await?;
    assert_eq!((job.status, job.failure_reason), NOT_DELIVERED);
    let events = house.events(job.id).await?;
    let receipt = events.iter().rev().find(|event| event.kind == EventKind::DeliveryEvidence);
    let receipt = receipt.and_then(|event| event.detail.clone()).unwrap_or_default();
    assert_eq!(receipt["look"]["found"], "absent", "{receipt}");
    assert!(receipt["differences"].as_array().is_some_and(|named| !named.is_empty()), "{receipt}");
    Ok(())
}

#[tokio::test]
async fn rcv_13_an_outage_that_recovery_saw_makes_it_wait_again() -> anyhow::Result<()> {
    let server = SftpServer::start(Behaviour::default()).await?;
    let directory = tempfile::tempdir()?;
    let house = House::before(&Reach::in_process(&server, directory.path())?, quiet()).await?;
    let recovery = house.recovery_after(Duration::from_secs(1)).await?;
    wait::until(
        "recovery to have waited for a lease",
        async || Ok((!recovery.run_once().await?.waiting).then_some(())),
    )
    .await?;
    let name: String = sqlx::query_scalar("SELECT current_database()").fetch_one(&house.admin).await?;
    let change = async |statement: String| sqlx::query(sqlx::AssertSqlSafe(statement)).execute(&house.admin).await;
    change(format!("REVOKE CONNECT ON DATABASE {name} FROM PUBLIC")).await?;
    sqlx::query(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'waybill_recovery' AND datname = $1",
    )
    .bind(&name)
    .execute(&house.admin)
    .await?;
    let away = recovery.run_once().await;
    assert!(away.is_err(), "{away:?}");
    change(format!("GRANT CONNECT ON DATABASE {name} TO PUBLIC")).await?;
    // Connections that died with the outage may each cost a run.
    let back = wait::until("the database's first answer", async || Ok(recovery.run_once().await.ok())).await?;
    assert!(back.waiting, "what expired during an outage was taken over at once: {back:?}");
    Ok(())
}

#[tokio::test]
async fn rcv_01_an_attempt_whose_takeover_the_database_refuses_keeps_no_other_one_silent() -> anyhow::Result<()> {
    let server = SftpServer::start(Behaviour::default()).await?;
    let directory = tempfile::tempdir()?;
    let house = House::before(&Reach::in_process(&server, directory.path())?, quiet()).await?;
    let dispatcher = house.dispatcher().await?;
    server.always(When::Before, Action::RealPath, Fault::Hang);
    let jobs = [house.create().await?, house.create().await?, house.create().await?];
    let worker = house.worker().await?;
    for id in jobs {
        house.until(id, Status::Running).await?;
    }
    worker.crash();
    dispatcher.stop().await?;
    // The first in the scan's order cannot be written by anybody.
    let statement = format!(
        "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'refused'; END $$;
         CREATE TRIGGER refuse BEFORE UPDATE OF status ON export_jobs FOR EACH ROW WHEN (OLD.id = '{}') EXECUTE FUNCTION refuse()",
        jobs[0]
    );
    sqlx::raw_sql(sqlx::AssertSqlSafe(statement)).execute(&house.admin).await?;
    for id in jobs {
        house.expire_lease(id).await?;
    }
    let ran = house.recovery().await?.run_once().await?;
    assert_eq!((ran.failed, ran.taken_over.get("requeued")), (1, Some(&2)), "{ran:?}");
    assert_eq!(house.job(jobs[0]).await?.status, Status::Running);
    Ok(())
}

/// A partner that answers nobody, and beside it an attempt that needs no look at anything.
#[tokio::test]
async fn rcv_01_while_a_look_waits_for_its_partner_others_are_taken_over() -> anyhow::Result<()> {
    let silent = Silent::at(renames(), agreed(ONE_STEP), When::After, Action::Rename).await?;
    let connected = Arc::new(AtomicUsize::new(0));
    let met = Arc::clone(&connected);
    silent.server.hook(move |event| {
        let connecting = event.when == When::Before && event.action == Action::RealPath;
        connecting.then(|| {
            met.fetch_add(1, Ordering::SeqCst);
            Fault::Hang
        })
    });
    // It hangs before cutoff 2.
    let beside = silent.house.create().await?;
    silent.house.until(beside, Status::Running).await?;
    wait::until("its connection", async || Ok((connected.load(Ordering::SeqCst) == 1).then_some(()))).await?;
    silent.house.expire_lease(silent.job).await?;
    let recovery = silent.house.recovery().await?;
    let given_back = async {
        wait::until("recovery to connect", async || Ok((connected.load(Ordering::SeqCst) == 2).then_some(()))).await?;
        silent.house.expire_lease(beside).await?;
        wait::until("the other to be given back", async || {
            let events = silent.house.events(beside).await?;
            Ok(events.iter().any(|event| event.kind == EventKind::RequeuedByRecovery).then_some(()))
        })
        .await
    };
    tokio::select! {
        given_back = given_back => given_back?,
        ran = recovery.run_once() => anyhow::bail!("the look was over first: {ran:?}"),
    }
    assert_eq!(silent.stands().await?.0, Status::Delivering);
    Ok(())
}

#[tokio::test]
async fn rcv_13_a_database_that_stood_still_makes_recovery_wait_again() -> anyhow::Result<()> {
    let lease = Duration::from_secs(2);
    let silent = Silent::at(renames(), agreed(ONE_STEP), When::After, Action::Rename).await?;
    let recovery = silent.house.recovery_after(lease).await?;
    wait::until("recovery to have waited", async || Ok((!recovery.run_once().await?.waiting).then_some(()))).await?;
    silent.house.expire_lease(silent.job).await?;
    let mut still = silent.house.admin.begin().await?;
    sqlx::query("LOCK TABLE export_jobs").execute(&mut *still).await?;
    let over = async {
        tokio::time::sleep(lease).await;
        still.commit().await
    };
    let (ran, over) = tokio::join!(recovery.run_once(), over);
    over?;
    let ran = ran?;
    assert!(ran.waiting && ran.taken_over.is_empty(), "{ran:?}");
    assert_eq!(silent.stands().await?.0, Status::Delivering);
    Ok(())
}

/// Its plugin computes for longer than all the looks may take.
#[tokio::test]
async fn rec_02_a_plugin_that_takes_too_long_costs_its_own_report_and_no_look_of_the_hosts() -> anyhow::Result<()> {
    let settings = "settings = { name = 'contacts-{key}.csv', query = 'rows', behaviour = 'loop', in = 'observe' }\n";
    let agreed = agreed(ONE_STEP);
    let manifest = agreed.manifest.replace("[limits]\n", "[limits]\ncall_seconds = 600\n");
    let plan = Plan { plugin: "misbehaving-destination", destination: settings.to_owned(), manifest, ..agreed };
    let silent = Silent::ended(renames(), plan, |name, event| {
        let publish = event.action == Action::Rename && event.path.ends_with(name);
        (publish && event.when == When::After).then_some(Fault::Cut)
    })
    .await?;
    assert_eq!(silent.stands().await?, UNKNOWN);
    silent.house.look_is_due(silent.job).await?;
    let reconciler = silent.house.reconciler_with(Duration::from_secs(4)).await?;
    assert_eq!(reconciler.run_once().await?, [Looked::Reconciled(Status::Completed)]);
    let seen = silent.evidence().await?.into_iter().rev().find_map(|one| one.look().cloned()).unwrap_or_default();
    assert!(seen.call.as_deref().is_some_and(|call| call.contains("the looks took longer than 3 s")), "{seen:?}");
    assert!(seen.look.is_some_and(|look| matches!(look.found, Found::Present(_))));
    Ok(())
}
