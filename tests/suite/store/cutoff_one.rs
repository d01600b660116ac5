use anyhow::Context;
use serde_json::json;
use uuid::Uuid;
use waybill::job::status::{CancellationOutcome, EventKind, Role, Status};
use waybill::store::{self, Cancellation, Edit, TermsEdit, Write};

use super::world::{Attempt, World, digests};

#[tokio::test]
async fn clm_01_of_two_workers_one_claims() -> anyhow::Result<()> {
    let world = World::new().await?;
    let job = world.queued().await?;
    let first = World::claim(job, 1);
    let held = world.hold_event(Attempt { job, attempt: first.attempt }, EventKind::Claimed).await?;
    let winner = tokio::spawn({
        let (pool, claim) = (world.worker.clone(), first.clone());
        async move { store::claim(&pool, claim).await }
    });
    let claiming = world.blocked_by(held.pid).await?;
    let loser = tokio::spawn({
        let (pool, claim) = (world.worker.clone(), World::claim(job, 1));
        async move { store::claim(&pool, claim).await }
    });
    world.blocked_by(claiming).await?;
    held.roll_back().await?;

    assert_eq!(winner.await??.written().context("the first")?.attempt, first.attempt);
    match loser.await?? {
        Write::Refused(found) => assert!(found.is(Status::Running, first.attempt), "it is told who holds it"),
        answer => panic!("{answer:?}"),
    }
    assert_eq!(world.kinds(job).await?, [EventKind::Claimed]);
    assert_eq!(world.found(job).await?.attempt_count, 1);
    Ok(())
}

#[tokio::test]
async fn clm_02_a_claim_waits_for_a_cancellation_and_loses() -> anyhow::Result<()> {
    let world = World::new().await?;
    let job = world.queued().await?;
    let request = world.cancellation(job);
    // The same request, uncommitted: the real one does all its work, then waits for the key.
    let held = world
        .hold(
            Role::Api,
            &format!(
                "INSERT INTO cancellation_requests (tenant_id, id, job_id, requested_by, outcome, found_status, found_attempt_count)
                 VALUES ('{}', '{}', '{job}', 'holder', 'CanceledWhileQueued', 'Queued', 0)",
                world.tenant, request.id
            ),
        )
        .await?;
    let cancellation = tokio::spawn({
        let (pool, request) = (world.api.clone(), request.clone());
        async move { store::request_cancellation(&pool, request).await }
    });
    let canceling = world.blocked_by(held.pid).await?;
    let claim = tokio::spawn({
        let (pool, claim) = (world.worker.clone(), World::claim(job, 1));
        async move { store::claim(&pool, claim).await }
    });
    world.blocked_by(canceling).await?;
    held.roll_back().await?;

    match cancellation.await?? {
        Cancellation::Recorded(recorded) => assert_eq!(recorded.outcome, CancellationOutcome::CanceledWhileQueued),
        answer => panic!("{answer:?}"),
    }
    assert!(matches!(claim.await??, Write::Refused(found) if found.status == Status::Canceled));
    assert!(world.kinds(job).await?.is_empty(), "nothing was claimed");
    Ok(())
}

#[tokio::test]
async fn clm_02_a_cancellation_waits_for_a_claim_and_becomes_a_stop_request() -> anyhow::Result<()> {
    let world = World::new().await?;
    let job = world.queued().await?;
    let claim = World::claim(job, 1);
    let held = world.hold_event(Attempt { job, attempt: claim.attempt }, EventKind::Claimed).await?;
    let claimed = tokio::spawn({
        let (pool, claim) = (world.worker.clone(), claim.clone());
        async move { store::claim(&pool, claim).await }
    });
    let claiming = world.blocked_by(held.pid).await?;
    let cancellation = tokio::spawn({
        let (pool, request) = (world.api.clone(), world.cancellation(job));
        async move { store::request_cancellation(&pool, request).await }
    });
    world.blocked_by(claiming).await?;
    held.roll_back().await?;

    assert!(claimed.await??.is_written());
    match cancellation.await?? {
        Cancellation::Recorded(recorded) => {
            assert_eq!(recorded.outcome, CancellationOutcome::StopRequested);
            assert_eq!(recorded.found_status, Status::Running);
            assert_eq!(recorded.found_attempt, Some(claim.attempt));
        }
        answer => panic!("{answer:?}"),
    }
    assert_eq!(world.status(job).await?, Status::Running);
    Ok(())
}

#[tokio::test]
async fn clm_03_a_claim_of_an_old_version_changes_nothing() -> anyhow::Result<()> {
    let world = World::new().await?;
    let job = world.queued().await?;
    let edit = TermsEdit {
        tenant: world.tenant,
        job,
        expected_version: 1,
        destination: world.destination,
        scope: json!({ "list": "autumn" }),
        not_before: None,
        edited_by: "olga".to_owned(),
    };
    assert_eq!(store::edit_terms(&world.api, edit).await?, Edit::Answered(Write::Written(2)));

    match store::claim(&world.worker, World::claim(job, 1)).await? {
        Write::Refused(found) => assert_eq!((found.status, found.version, found.attempt_count), (Status::Queued, 2, 0)),
        answer => panic!("{answer:?}"),
    }
    assert_eq!(world.wakeups(job).await?, 2, "the edit brings the job back");
    assert_eq!(world.claimed(job).await?.scope, json!({ "list": "autumn" }));
    Ok(())
}

#[tokio::test]
async fn clm_04_the_event_names_worker_version_and_digests() -> anyhow::Result<()> {
    let world = World::new().await?;
    let of = world.running().await?;
    let events = store::events_of(&world.worker, of.job).await?;
    let event = events.first().context("the claim's event")?;
    assert_eq!((event.kind, event.attempt, event.version), (EventKind::Claimed, of.attempt, Some(1)));
    assert_eq!(event.worker.as_deref(), Some("worker-1"));
    // Beside the digests stands the destination, by which starts are counted.
    let mut expected = serde_json::to_value(digests())?;
    expected["destination_id"] = json!(store::find_job(&world.worker, of.job).await?.context("the job")?.destination);
    assert_eq!(event.detail, Some(expected));
    Ok(())
}

#[tokio::test]
async fn clm_06_nothing_is_claimed_for_a_destination_that_is_switched_off() -> anyhow::Result<()> {
    let world = World::new().await?;
    let job = world.queued().await?;
    world.run(Role::Api, "UPDATE destinations SET enabled = false").await?;
    assert!(
        matches!(store::claim(&world.worker, World::claim(job, 1)).await?, Write::Refused(found) if !found.destination_enabled)
    );
    world.run(Role::Api, "UPDATE destinations SET enabled = true").await?;
    world.claimed(job).await?;
    Ok(())
}

#[tokio::test]
async fn clm_05_a_rejection_holds_for_the_evaluated_version_only() -> anyhow::Result<()> {
    let world = World::new().await?;
    let job = world.queued().await?;
    assert!(
        matches!(store::reject(&world.worker, job, 2, json!({})).await?, Write::Refused(found) if found.version == 1)
    );
    let why = json!({ "rule": "no exports on holidays" });
    assert!(store::reject(&world.worker, job, 1, why.clone()).await?.is_written());
    let row = store::find_job(&world.worker, job).await?.context("the job")?;
    assert_eq!((row.status, row.rejection), (Status::Rejected, Some(why)));
    Ok(())
}

#[tokio::test]
async fn ops_04_a_job_known_from_another_history_is_claimed_only_after_a_person_said_what_was_lost()
-> anyhow::Result<()> {
    let world = World::new().await?;
    let job = Uuid::new_v4();
    let key = world.new_job().delivery_key;
    world
        .run(
            Role::Api,
            &format!(
                "WITH minted AS (INSERT INTO deliveries (tenant_id, delivery_key, original_job_id) VALUES ('{0}', '{key}', '{job}'))
                 INSERT INTO export_jobs (id, tenant_id, status, version, destination_id, delivery_key, created_by, woken_at,
                                          known_system, known_timeline)
                 SELECT '{job}', '{0}', 'Queued', 1, '{1}', '{key}', 'olga', clock_timestamp(), system, timeline + 1
                 FROM database_history()",
                world.tenant, world.destination
            ),
        )
        .await?;
    assert!(
        matches!(store::claim(&world.worker, World::claim(job, 1)).await?, Write::Refused(found) if !found.history_known)
    );
    world
        .run(
            Role::Corrector,
            &format!(
                "INSERT INTO accepted_losses (job_id, system, timeline, fences_intact, statement, accepted_by)
                 SELECT '{job}', system, timeline, false, 'the last minute was lost; the partner has nothing', 'ines'
                 FROM database_history()"
            ),
        )
        .await?;
    world.claimed(job).await?;
    let proof: bool = sqlx::query_scalar("SELECT history_is_known($1, 0, 0, true)")
        .bind(job)
        .fetch_one(&mut world.login(Role::Reconciler).await?)
        .await?;
    assert!(!proof, "an acceptance that does not say so makes no absent fence a proof");
    Ok(())
}
