use anyhow::Context;
use uuid::Uuid;
use waybill::job::status::{EventKind, FailureReason, Role, Status};
use waybill::store::take_over::{self, TakeOver};
use waybill::store::{self, Authorization, Case, Write};

use super::actors::{self, Actors, CASES, kind};
use crate::store::world::{Attempt, LEASE, MAX_ATTEMPTS, World};

#[tokio::test]
async fn rcv_01_an_expired_running_attempt_is_queued_with_its_event_and_a_wake_up_of_its_own() -> anyhow::Result<()> {
    let actors = Actors::new().await?;
    let of = actors.silent(Case::Requeue).await?;
    assert!(actors.take_over(Case::Requeue, of, "run-1").await?.is_written());

    let job = store::find_job(&actors.worker, of.job).await?.context("the job")?;
    assert_eq!((job.status, job.attempt, job.claimed_by, job.lease_expires_at), (Status::Queued, None, None, None));
    assert_eq!(job.attempt_count, 1, "the attempt counts");
    assert_eq!(actors.kinds(of.job).await?, [EventKind::Claimed, EventKind::RequeuedByRecovery]);
    assert_eq!(actors.detail(of.job, EventKind::RequeuedByRecovery).await?.0.as_deref(), Some("run-1"));
    assert_eq!(actors.wakeups(of.job).await?, 2, "a second row, with an id of its own");
    let ready = "SELECT count(*) FROM outbox_claims WHERE ready_at <= clock_timestamp()";
    assert_eq!(actors.count(ready).await?, 2);

    let next = actors.claimed(of.job).await?;
    assert_eq!(next.attempt_count, 2);
    Ok(())
}

#[tokio::test]
async fn rcv_02_an_expired_attempt_with_a_stop_request_is_stopped_and_keeps_its_id() -> anyhow::Result<()> {
    let actors = Actors::new().await?;
    let of = actors.silent(Case::Stop).await?;
    assert!(actors.take_over(Case::Stop, of, "run-1").await?.is_written());
    let found = actors.found(of.job).await?;
    assert!(found.is(Status::Stopped, of.attempt), "{found:?}");
    assert_eq!(actors.kinds(of.job).await?, [EventKind::Claimed, EventKind::StoppedByRecovery]);
    assert_eq!(actors.wakeups(of.job).await?, 1, "nothing wakes it again");
    Ok(())
}

#[tokio::test]
async fn rcv_03_a_job_that_ends_each_worker_ends_failed_at_the_cap() -> anyhow::Result<()> {
    let actors = Actors::new().await?;
    let job = actors.queued().await?;
    for turn in 1..=MAX_ATTEMPTS {
        let of = Attempt { job, attempt: actors.claimed(job).await?.attempt };
        actors.expire(of).await?;
        let expired = store::find_expired(&actors.recovery, None, 10).await?;
        let case = expired.first().context("it is expired")?.case(MAX_ATTEMPTS);
        assert_eq!(case, if turn < MAX_ATTEMPTS { Case::Requeue } else { Case::Exhaust }, "turn {turn}");
        assert!(actors.take_over(case, of, "run-1").await?.is_written());
    }
    let found = actors.found(job).await?;
    assert_eq!((found.status, found.failure_reason), (Status::Failed, Some(FailureReason::AttemptsExhausted)));
    assert!(found.attempt.is_some(), "a terminal state keeps the attempt for audit");
    assert_eq!(actors.kinds(job).await?.last(), Some(&EventKind::AttemptsExhausted));
    assert_eq!(actors.wakeups(job).await?, i64::from(MAX_ATTEMPTS), "the last takeover wakes nobody");
    Ok(())
}

/// Whatever a scan nominated, the statement asks again.
#[tokio::test]
async fn rcv_01_rcv_02_rcv_03_each_takeover_fits_its_own_case_only() -> anyhow::Result<()> {
    let actors = Actors::new().await?;
    for state in CASES {
        for tried in CASES {
            let of = actors.silent(state).await?;
            let answer = actors.take_over(tried, of, "run-1").await?;
            assert_eq!(
                answer.is_written(),
                state == tried,
                "{tried:?} of an attempt that asks for {state:?}: {answer:?}"
            );
            if state != tried {
                assert_eq!(actors.found(of.job).await?.attempt, Some(of.attempt), "{tried:?} changed nothing");
            }
        }
    }
    Ok(())
}

#[tokio::test]
async fn rcv_01_rcv_02_rcv_03_a_takeover_asks_for_the_attempt_the_lease_and_the_database() -> anyhow::Result<()> {
    let actors = Actors::new().await?;
    for case in CASES {
        let of = actors.silent(case).await?;
        let other = Attempt { attempt: Uuid::new_v4(), ..of };
        assert!(
            matches!(actors.take_over(case, other, "run-1").await?, Write::Refused(_)),
            "{case:?}: another attempt"
        );

        actors.forget_history(of.job).await?;
        let refused = actors.take_over(case, of, "run-1").await?;
        assert!(matches!(&refused, Write::Refused(found) if !found.history_known), "{case:?}: {refused:?}");

        assert!(store::renew(&actors.worker, of.job, of.attempt, LEASE).await?.is_written());
        actors.accept_loss(of.job, false).await?;
        let refused = actors.take_over(case, of, "run-1").await?;
        assert!(matches!(&refused, Write::Refused(found) if found.lease_current), "{case:?}: {refused:?}");

        actors.expire(of).await?;
        assert!(actors.take_over(case, of, "run-1").await?.is_written(), "{case:?}: once the loss is accepted");
    }
    assert_eq!(
        actors.take_over(Case::Stop, Attempt { job: Uuid::new_v4(), attempt: Uuid::new_v4() }, "run-1").await?,
        Write::Absent
    );
    Ok(())
}

#[tokio::test]
async fn rcv_05_a_takeover_first_and_the_late_authorization_is_refused() -> anyhow::Result<()> {
    let actors = Actors::new().await?;
    let of = actors.silent(Case::Requeue).await?;
    let held = actors.hold(Role::Recovery, of, EventKind::RequeuedByRecovery).await?;
    let requeued = tokio::spawn({
        let pool = actors.recovery.clone();
        async move { actors::take_over(&pool, Case::Requeue, of, "run-1").await }
    });
    let requeuing = actors.blocked_by(held.pid).await?;

    // The worker resumes: its lease has expired, and the renewal that it then needs waits for the takeover.
    assert_eq!(actors.authorize(of).await?, Authorization::LeaseLapsed);
    let renewed = tokio::spawn({
        let pool = actors.worker.clone();
        async move { store::renew(&pool, of.job, of.attempt, LEASE).await }
    });
    actors.blocked_by(requeuing).await?;
    held.roll_back().await?;

    assert!(requeued.await??.is_written());
    assert!(matches!(renewed.await??, Write::Refused(found) if found.status == Status::Queued));
    assert!(matches!(actors.authorize(of).await?, Authorization::NotOwner(found) if found.status == Status::Queued));
    assert_eq!(actors.kinds(of.job).await?, [EventKind::Claimed, EventKind::RequeuedByRecovery]);
    Ok(())
}

#[tokio::test]
async fn rcv_05_an_authorization_first_and_the_takeover_waits_and_matches_nothing() -> anyhow::Result<()> {
    let actors = Actors::new().await?;
    let of = actors.running().await?;
    // Long enough for the authorization to begin under it, and it runs out while that one is open.
    let short = std::time::Duration::from_secs(2);
    assert!(store::renew(&actors.worker, of.job, of.attempt, short).await?.is_written());
    let held = actors.hold(Role::Worker, of, EventKind::DeliveryAuthorized).await?;
    let authorized = tokio::spawn({
        let (pool, delivery) = (actors.worker.clone(), World::delivery(of));
        async move { store::authorize_delivery(&pool, delivery).await }
    });
    let authorizing = actors.blocked_by(held.pid).await?;

    let nominated = waybill_tests::wait::until("the lease to run out", async || {
        Ok(store::find_expired(&actors.recovery, None, 1).await?.pop())
    })
    .await?;
    assert_eq!(nominated.case(MAX_ATTEMPTS), Case::Requeue, "the scan saw it Running");
    let requeued = tokio::spawn({
        let pool = actors.recovery.clone();
        async move { actors::take_over(&pool, Case::Requeue, of, "run-1").await }
    });
    actors.blocked_by(authorizing).await?;
    held.roll_back().await?;

    assert_eq!(authorized.await??, Authorization::Authorized);
    assert!(matches!(requeued.await??, Write::Refused(found) if found.is(Status::Delivering, of.attempt)));
    assert_eq!(actors.kinds(of.job).await?, [EventKind::Claimed, EventKind::DeliveryAuthorized]);
    Ok(())
}

#[tokio::test]
async fn rcv_10_of_two_runs_one_takes_the_job_over() -> anyhow::Result<()> {
    let actors = Actors::new().await?;
    for case in CASES {
        let of = actors.silent(case).await?;
        let held = actors.hold(Role::Recovery, of, kind(case)).await?;
        let run = |name: &'static str| {
            let pool = actors.recovery.clone();
            tokio::spawn(async move { actors::take_over(&pool, case, of, name).await })
        };
        let first = run("run-1");
        let taking = actors.blocked_by(held.pid).await?;
        let second = run("run-2");
        actors.blocked_by(taking).await?;
        held.roll_back().await?;
        assert!(first.await??.is_written(), "{case:?}");
        assert!(matches!(second.await??, Write::Refused(_)), "{case:?}");
        assert_eq!(actors.detail(of.job, kind(case)).await?.0.as_deref(), Some("run-1"), "{case:?}: one event");
    }
    Ok(())
}

#[tokio::test]
async fn rcv_10_a_takeover_that_was_cut_before_its_commit_did_not_happen() -> anyhow::Result<()> {
    let actors = Actors::new().await?;
    for case in CASES {
        let of = actors.silent(case).await?;
        let held = actors.hold(Role::Recovery, of, kind(case)).await?;
        let taken = tokio::spawn({
            let pool = actors.recovery.clone();
            async move { actors::take_over(&pool, case, of, "run-1").await }
        });
        let taking = actors.blocked_by(held.pid).await?;
        sqlx::query("SELECT pg_terminate_backend($1)").bind(taking).execute(&actors.database.admin().await?).await?;
        assert!(matches!(taken.await??, Write::Refused(_)), "{case:?}: cut before it committed, so it did not happen");
        held.roll_back().await?;
        assert!(actors.take_over(case, of, "run-1").await?.is_written(), "{case:?}");
    }
    Ok(())
}

#[tokio::test]
async fn lse_06_an_expired_lease_is_renewed_until_the_takeover_commits() -> anyhow::Result<()> {
    let actors = Actors::new().await?;
    for case in [Case::Requeue, Case::Resolve] {
        let of = actors.silent(case).await?;
        assert!(
            store::renew(&actors.worker, of.job, of.attempt, LEASE).await?.is_written(),
            "{case:?}: expiry ends nothing"
        );
        actors.expire(of).await?;
        let held = actors.hold(Role::Recovery, of, kind(case)).await?;
        let taken = tokio::spawn({
            let pool = actors.recovery.clone();
            async move { actors::take_over(&pool, case, of, "run-1").await }
        });
        let taking = actors.blocked_by(held.pid).await?;
        let renewed = tokio::spawn({
            let pool = actors.worker.clone();
            async move { store::renew(&pool, of.job, of.attempt, LEASE).await }
        });
        actors.blocked_by(taking).await?;
        held.roll_back().await?;
        assert!(taken.await??.is_written(), "{case:?}");
        assert!(matches!(renewed.await??, Write::Refused(_)), "{case:?}: now it has ended");
    }
    Ok(())
}

#[tokio::test]
async fn lse_07_a_renewal_after_the_scan_prevents_the_takeover() -> anyhow::Result<()> {
    let actors = Actors::new().await?;
    for case in CASES {
        let of = actors.silent(case).await?;
        let nominated = store::find_expired(&actors.recovery, None, 1).await?.pop().context("nominated")?;
        assert_eq!(nominated.case(MAX_ATTEMPTS), case);
        assert!(store::renew(&actors.worker, of.job, of.attempt, LEASE).await?.is_written());
        assert!(
            matches!(actors.take_over(case, of, "run-1").await?, Write::Refused(found) if found.lease_current),
            "{case:?}"
        );
    }
    Ok(())
}

#[tokio::test]
async fn lse_07_a_takeover_waits_for_an_open_renewal_and_looks_again() -> anyhow::Result<()> {
    let actors = Actors::new().await?;
    for case in CASES {
        let of = actors.silent(case).await?;
        let renewal = actors
            .hold_statement(
                Role::Worker,
                &format!(
                    "UPDATE export_jobs SET lease_expires_at = clock_timestamp() + interval '1 minute'
                     WHERE id = '{}' AND attempt_id = '{}'",
                    of.job, of.attempt
                ),
            )
            .await?;
        let taken = tokio::spawn({
            let pool = actors.recovery.clone();
            async move { actors::take_over(&pool, case, of, "run-1").await }
        });
        actors.blocked_by(renewal.pid).await?;
        renewal.commit().await?;
        assert!(matches!(taken.await??, Write::Refused(found) if found.lease_current), "{case:?}");
    }
    Ok(())
}

#[tokio::test]
async fn rcv_01_a_stop_request_after_the_scan_turns_the_requeue_away() -> anyhow::Result<()> {
    let actors = Actors::new().await?;
    let of = actors.silent(Case::Requeue).await?;
    let capped = TakeOver { job: of.job, attempt: of.attempt, run: "run-1".to_owned() };
    assert!(!take_over::requeue(&actors.recovery, capped, 1).await?.is_written(), "the cap counts as it is now");
    actors.cancel(of.job).await?;
    assert!(
        matches!(actors.take_over(Case::Requeue, of, "run-1").await?, Write::Refused(found) if found.stop_request.is_some())
    );
    assert!(actors.take_over(Case::Stop, of, "run-1").await?.is_written());
    Ok(())
}
