use anyhow::Context;
use serde_json::json;
use uuid::Uuid;
use waybill::job::facts::{FileFacts, Sha256};
use waybill::job::status::{EventKind, FailureReason, Role, Status};
use waybill::store::{self, Authorization, Delivery, DeliveryOutcome, NewJob, Write};

use super::world::{Attempt, LEASE, World};

#[tokio::test]
async fn aut_01_a_stop_request_that_came_first_makes_it_refuse() -> anyhow::Result<()> {
    let world = World::new().await?;
    let of = world.running().await?;
    world.cancel(of.job).await?;
    assert_eq!(world.authorize(of).await?, Authorization::StopRecorded);
    assert!(store::finish_stopped(&world.worker, of.job, of.attempt, "before delivery").await?.is_written());
    assert_eq!(world.status(of.job).await?, Status::Stopped);
    assert_eq!(world.kinds(of.job).await?, [EventKind::Claimed, EventKind::Stopped]);
    assert_eq!(world.count("SELECT count(*) FROM final_names").await?, 0);
    Ok(())
}

#[tokio::test]
async fn aut_01_a_stop_request_under_way_is_waited_for() -> anyhow::Result<()> {
    let world = World::new().await?;
    let of = world.running().await?;
    let request = Uuid::new_v4();
    let held = world
        .hold(
            Role::Api,
            &format!(
                "WITH request AS (
                     INSERT INTO cancellation_requests (tenant_id, id, job_id, requested_by, outcome, found_status, found_attempt_count)
                     VALUES ('{}', '{request}', '{}', 'olga', 'StopRequested', 'Running', 1))
                 UPDATE export_jobs SET stop_request_id = '{request}' WHERE id = '{}'",
                world.tenant, of.job, of.job
            ),
        )
        .await?;
    let authorized = tokio::spawn({
        let (pool, delivery) = (world.worker.clone(), World::delivery(of));
        async move { store::authorize_delivery(&pool, delivery).await }
    });
    world.blocked_by(held.pid).await?;
    held.commit().await?;
    assert_eq!(authorized.await??, Authorization::StopRecorded);
    Ok(())
}

#[tokio::test]
async fn aut_02_an_expired_lease_is_refused_until_it_is_renewed() -> anyhow::Result<()> {
    let world = World::new().await?;
    let of = world.running().await?;
    world.expire(of).await?;
    assert_eq!(world.authorize(of).await?, Authorization::LeaseLapsed);
    assert_eq!(world.status(of.job).await?, Status::Running);
    assert!(store::renew(&world.worker, of.job, of.attempt, LEASE).await?.is_written());
    assert_eq!(world.authorize(of).await?, Authorization::Authorized);
    assert_eq!(world.kinds(of.job).await?, [EventKind::Claimed, EventKind::DeliveryAuthorized]);
    Ok(())
}

#[tokio::test]
async fn aut_03_after_a_takeover_every_write_of_the_old_attempt_matches_nothing() -> anyhow::Result<()> {
    let world = World::new().await?;
    let old = world.running().await?;
    world.expire(old).await?;
    assert_eq!(world.run(Role::Recovery, &World::takeover(old)).await?, 1);
    let new = world.claimed(old.job).await?;
    let new = Attempt { job: old.job, attempt: new.attempt };
    let events = world.kinds(old.job).await?;

    assert!(!store::renew(&world.worker, old.job, old.attempt, LEASE).await?.is_written());
    assert!(
        matches!(world.authorize(old).await?, Authorization::NotOwner(found) if found.is(Status::Running, new.attempt))
    );
    assert!(!store::release(&world.worker, World::release(old)).await?.is_written());
    assert!(!store::finish_stopped(&world.worker, old.job, old.attempt, "building").await?.is_written());
    assert!(
        !store::finish_failed(&world.worker, old.job, old.attempt, FailureReason::BuildFailed, "late")
            .await?
            .is_written()
    );

    assert_eq!(world.authorize(new).await?, Authorization::Authorized);
    assert!(!world.intend(old).await?.is_written());
    for outcome in [
        DeliveryOutcome::Completed,
        DeliveryOutcome::OutcomeUnknown,
        DeliveryOutcome::Failed(FailureReason::NotDelivered),
    ] {
        assert!(!world.finish(old, outcome).await?.is_written(), "{outcome:?}");
    }
    let after = world.kinds(old.job).await?;
    assert_eq!(
        after.get(events.len()..),
        Some([EventKind::DeliveryAuthorized].as_slice()),
        "only the new attempt wrote"
    );
    Ok(())
}

#[tokio::test]
async fn aut_03_a_takeover_while_delivering_leaves_the_old_attempt_only_its_evidence() -> anyhow::Result<()> {
    use waybill::job::evidence::{Evidence, Receipt};
    let world = World::new().await?;
    let of = world.intended().await?;
    world.expire(of).await?;
    assert_eq!(world.run(Role::Recovery, &World::takeover(of)).await?, 1);
    assert!(
        matches!(world.finish(of, DeliveryOutcome::Completed).await?, Write::Refused(found) if found.status == Status::OutcomeUnknown)
    );
    let receipt = Evidence::Receipt(Receipt::default());
    assert!(store::append_evidence(&world.worker, of.job, of.attempt, "worker-1", &receipt).await?.is_written());
    assert!(
        !store::append_evidence(&world.worker, of.job, Uuid::new_v4(), "worker-1", &receipt).await?.is_written(),
        "there is no evidence of an attempt that was never claimed"
    );
    assert_eq!(world.status(of.job).await?, Status::OutcomeUnknown);
    Ok(())
}

#[tokio::test]
async fn aut_04_the_statement_records_name_size_and_digest() -> anyhow::Result<()> {
    let world = World::new().await?;
    let of = world.delivering().await?;
    let row = store::find_job(&world.worker, of.job).await?.context("the job")?;
    assert_eq!(row.expected, Some(World::delivery(of).expected));
    assert!(row.delivery_authorized_at.is_some() && row.publish_intended_at.is_none());
    assert_eq!(world.count("SELECT count(*) FROM final_names").await?, 1);
    Ok(())
}

/// An original that was reconciled to `Failed/NotDelivered`, and a replacement of it that is being built.
async fn replaced(world: &World) -> anyhow::Result<(Attempt, Attempt)> {
    let original = world.ended(DeliveryOutcome::Failed(FailureReason::NotDelivered)).await?;
    let replacement = Uuid::new_v4();
    world
        .run(
            Role::Api,
            &format!(
                "INSERT INTO export_jobs (id, tenant_id, status, version, destination_id, delivery_key, replaces_job_id, created_by,
                                          replacement_reason, woken_at, known_system, known_timeline)
                 SELECT '{replacement}', tenant_id, 'Queued', 1, destination_id, delivery_key, id, 'olga', 'it never arrived',
                        clock_timestamp(), known_system, known_timeline
                 FROM export_jobs WHERE id = '{}'",
                original.job
            ),
        )
        .await?;
    let claimed = world.claimed(replacement).await?;
    let of_original = claimed.replacement.clone().context("a replacement")?;
    assert_eq!(of_original.original, original.job);
    assert_eq!(of_original.original_expected, Some(World::delivery(original).expected));
    assert!(!of_original.overwrite_agreed);
    Ok((original, Attempt { job: replacement, attempt: claimed.attempt }))
}

/// What a replacement delivers: another file under its original's name.
fn same_name(original: Attempt, replacement: Attempt) -> Delivery {
    let under = World::delivery(original);
    Delivery {
        job: replacement.job,
        attempt: replacement.attempt,
        expected: FileFacts { bytes: 1_235, sha256: Sha256([8; 32]), ..under.expected.clone() },
        ..under
    }
}

fn correction(job: Uuid) -> String {
    format!(
        "UPDATE export_jobs SET status = 'Completed', failure_reason = NULL WHERE id = '{job}' AND status = 'Failed'"
    )
}

#[tokio::test]
async fn aut_05_a_replacement_of_a_completed_original_is_refused() -> anyhow::Result<()> {
    let world = World::new().await?;
    let (original, replacement) = replaced(&world).await?;
    world.run(Role::Corrector, &correction(original.job)).await?;
    let delivery = same_name(original, replacement);
    assert_eq!(store::authorize_delivery(&world.worker, delivery).await?, Authorization::OriginalCompleted);
    let ended = store::finish_failed(
        &world.worker,
        replacement.job,
        replacement.attempt,
        FailureReason::OriginalDelivered,
        "the original was corrected",
    );
    assert!(ended.await?.is_written());
    Ok(())
}

#[tokio::test]
async fn aut_06_authorization_waits_for_a_correction_and_looks_again() -> anyhow::Result<()> {
    let world = World::new().await?;
    let (original, replacement) = replaced(&world).await?;
    for (how, expected) in
        [("ROLLBACK", Authorization::Authorized), ("COMMIT", Authorization::OriginalCompleted)].into_iter().rev()
    {
        let held = world.hold(Role::Corrector, &correction(original.job)).await?;
        let authorized = tokio::spawn({
            let (pool, delivery) = (world.worker.clone(), same_name(original, replacement));
            async move { store::authorize_delivery(&pool, delivery).await }
        });
        world.blocked_by(held.pid).await?;
        held.end(how).await?;
        assert_eq!(authorized.await??, expected, "{how}");
        if how == "COMMIT" {
            // Back to where it was, so that the other order can be shown on the same rows.
            let back = format!(
                "UPDATE export_jobs SET status = 'Failed', failure_reason = 'NotDelivered' WHERE id = '{}'",
                original.job
            );
            world.run(Role::Corrector, &back).await?;
        }
    }
    Ok(())
}

#[tokio::test]
async fn aut_06_a_correction_waits_for_an_authorization() -> anyhow::Result<()> {
    let world = World::new().await?;
    let (original, replacement) = replaced(&world).await?;
    let held = world.hold_event(replacement, EventKind::DeliveryAuthorized).await?;
    let authorized = tokio::spawn({
        let (pool, delivery) = (world.worker.clone(), same_name(original, replacement));
        async move { store::authorize_delivery(&pool, delivery).await }
    });
    let authorizing = world.blocked_by(held.pid).await?;
    let mut corrector = world.login(Role::Corrector).await?;
    let corrected = tokio::spawn(async move {
        sqlx::query(sqlx::AssertSqlSafe(correction(original.job))).execute(&mut corrector).await
    });
    world.blocked_by(authorizing).await?;
    held.roll_back().await?;
    assert_eq!(authorized.await??, Authorization::Authorized);
    assert_eq!(corrected.await??.rows_affected(), 1, "it was only late");
    assert_eq!(world.status(replacement.job).await?, Status::Delivering);
    Ok(())
}

#[tokio::test]
async fn rpl_08_a_replacement_keeps_its_originals_final_name() -> anyhow::Result<()> {
    let world = World::new().await?;
    let (original, replacement) = replaced(&world).await?;
    let answer = store::authorize_delivery(&world.worker, World::delivery(replacement)).await?;
    let was = Some(World::delivery(original).expected.name);
    assert_eq!(answer, Authorization::DiffersFromEarlier { destination: world.destination, name: was });
    assert_eq!(world.status(replacement.job).await?, Status::Running);
    let same = same_name(original, replacement);
    assert_eq!(store::authorize_delivery(&world.worker, same).await?, Authorization::Authorized);
    Ok(())
}

fn under(delivery: Delivery, directory: &str, name: &str) -> Delivery {
    Delivery {
        expected: FileFacts { name: name.to_owned(), ..delivery.expected },
        directory: directory.to_owned(),
        last_part: name.to_owned(),
        ..delivery
    }
}

#[tokio::test]
async fn aut_07_two_keys_never_get_one_final_name() -> anyhow::Result<()> {
    let world = World::new().await?;
    let first = world.running().await?;
    let delivery = under(World::delivery(first), "/upload", "Contacts.csv");
    assert_eq!(store::authorize_delivery(&world.worker, delivery).await?, Authorization::Authorized);
    let holder = store::find_job(&world.worker, first.job).await?.context("the holder")?.delivery_key;

    let second = world.running().await?;
    let delivery = under(World::delivery(second), "/Upload/", "contacts.CSV");
    let taken = store::authorize_delivery(&world.worker, delivery).await?;
    assert_eq!(taken, Authorization::NameTaken { holder: Some(holder) });
    assert_eq!(world.status(second.job).await?, Status::Running, "the whole statement was taken back");
    assert_eq!(world.kinds(second.job).await?, [EventKind::Claimed]);
    let cause = "another delivery holds the name";
    let ended =
        store::finish_failed(&world.worker, second.job, second.attempt, FailureReason::FinalNameOccupied, cause)
            .await?;
    assert!(ended.is_written());

    let tenant = Uuid::new_v4();
    let destination = world.destination(tenant, json!({})).await?;
    let foreign = NewJob { tenant, destination, ..world.new_job() };
    let foreign = world.claimed(world.create(&foreign).await?).await?;
    let foreign = Attempt { job: foreign.id, attempt: foreign.attempt };
    let delivery = under(World::delivery(foreign), "/upload", "contacts.csv");
    let taken = store::authorize_delivery(&world.worker, delivery).await?;
    assert_eq!(taken, Authorization::NameTaken { holder: None }, "also across tenants, and their keys stay theirs");

    let delivery = under(World::delivery(foreign), "/upload/in", "contacts.csv");
    assert_eq!(
        store::authorize_delivery(&world.worker, delivery).await?,
        Authorization::Authorized,
        "another directory"
    );
    Ok(())
}

#[tokio::test]
async fn aut_07_of_two_at_once_one_waits_and_is_refused() -> anyhow::Result<()> {
    let world = World::new().await?;
    let (first, second) = (world.running().await?, world.running().await?);
    let held = world
        .hold(
            Role::Worker,
            &format!(
                "INSERT INTO final_names (endpoint, directory, folded_name, tenant_id, delivery_key, job_id)
                 SELECT 'sftp.partner.test:22', '/upload', 'contacts.csv', tenant_id, delivery_key, id
                 FROM export_jobs WHERE id = '{}'",
                first.job
            ),
        )
        .await?;
    let authorized = tokio::spawn({
        let (pool, delivery) = (world.worker.clone(), under(World::delivery(second), "/upload", "contacts.csv"));
        async move { store::authorize_delivery(&pool, delivery).await }
    });
    world.blocked_by(held.pid).await?;
    held.commit().await?;
    assert!(matches!(authorized.await??, Authorization::NameTaken { holder: Some(_) }));
    assert_eq!(world.status(second.job).await?, Status::Running);
    Ok(())
}

#[tokio::test]
async fn aut_07_a_reused_name_is_handed_on_once_its_holder_is_settled() -> anyhow::Result<()> {
    let world = World::new().await?;
    let weekly = world.destination(world.tenant, json!({ "names_reused": true })).await?;
    let claimed = async || -> anyhow::Result<Attempt> {
        let job = world.create(&NewJob { destination: weekly, ..world.new_job() }).await?;
        let claimed = world.claimed(job).await?;
        Ok(Attempt { job, attempt: claimed.attempt })
    };
    let delivery = |of: Attempt| Delivery { reused: true, ..under(World::delivery(of), "/upload", "weekly.csv") };

    let first = claimed().await?;
    assert_eq!(store::authorize_delivery(&world.worker, delivery(first)).await?, Authorization::Authorized);
    let second = claimed().await?;
    let taken = async |of| -> anyhow::Result<bool> {
        Ok(matches!(store::authorize_delivery(&world.worker, delivery(of)).await?, Authorization::NameTaken { .. }))
    };
    assert!(taken(second).await?, "its holder is delivering");
    world.finish(first, DeliveryOutcome::OutcomeUnknown).await?.written().context("the end")?;
    assert!(taken(second).await?, "its holder's outcome is unknown");
    world
        .run(
            Role::Reconciler,
            &format!(
                "UPDATE export_jobs SET status = 'Failed', failure_reason = 'NotDelivered' WHERE id = '{}'",
                first.job
            ),
        )
        .await?;
    let not_reused = Delivery { reused: false, ..delivery(second) };
    assert!(
        matches!(store::authorize_delivery(&world.worker, not_reused).await?, Authorization::NameTaken { .. }),
        "the attempt's own contract does not reuse names"
    );
    assert_eq!(store::authorize_delivery(&world.worker, delivery(second)).await?, Authorization::Authorized);
    Ok(())
}
