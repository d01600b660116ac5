use serde_json::json;
use waybill::job::status::{FailureReason, Role, Status};
use waybill::store::{self, DeliveryOutcome};

use super::world::World;

/// PostgreSQL's `check_violation`.
const CHECK: &str = "23514";

#[tokio::test]
async fn rec_03_failed_and_its_code_go_together_by_any_path() -> anyhow::Result<()> {
    let world = World::new().await?;
    let running = world.running().await?.job;
    for change in [
        "status = 'Failed', lease_expires_at = NULL",
        "failure_reason = 'BuildFailed'",
        "status = 'Failed', lease_expires_at = NULL, failure_reason = 'Bored'",
    ] {
        let statement = format!("UPDATE export_jobs SET {change} WHERE id = '{running}'");
        assert_eq!(world.refused(Role::Worker, &statement).await?, CHECK, "{change}");
    }
    let unknown = world.ended(DeliveryOutcome::OutcomeUnknown).await?.job;
    let completed = world.ended(DeliveryOutcome::Completed).await?.job;
    let failed = world.ended(DeliveryOutcome::Failed(FailureReason::NotDelivered)).await?.job;
    for (role, job, change) in [
        (Role::Reconciler, unknown, "status = 'Failed'"),
        (Role::Reconciler, unknown, "status = 'Completed', failure_reason = 'NotDelivered'"),
        (Role::Corrector, completed, "status = 'Failed'"),
        (Role::Corrector, failed, "status = 'Completed'"),
    ] {
        let statement = format!("UPDATE export_jobs SET {change} WHERE id = '{job}'");
        assert_eq!(world.refused(role, &statement).await?, CHECK, "{change}");
    }
    assert_eq!(
        world
            .run(
                Role::Corrector,
                &format!("UPDATE export_jobs SET status = 'Completed', failure_reason = NULL WHERE id = '{failed}'")
            )
            .await?,
        1
    );
    assert_eq!(
        world
            .run(
                Role::Corrector,
                &format!(
                    "UPDATE export_jobs SET status = 'Failed', failure_reason = 'NotDelivered' WHERE id = '{completed}'"
                )
            )
            .await?,
        1
    );
    Ok(())
}

#[tokio::test]
async fn rec_03_the_other_invariants_of_a_row_hold_by_any_path() -> anyhow::Result<()> {
    let world = World::new().await?;
    let (queued, running, delivering) =
        (world.queued().await?, world.running().await?.job, world.delivering().await?.job);
    for (role, job, change) in [
        (Role::Api, queued, "status = 'Canceled'"),
        (Role::Worker, queued, "status = 'Rejected'"),
        (Role::Worker, queued, "status = 'Running', attempt_count = 1"),
        (Role::Worker, running, "lease_expires_at = NULL"),
        (Role::Worker, running, "status = 'Stopped', lease_expires_at = NULL"),
        (Role::Worker, running, "status = 'Delivering'"),
        (
            Role::Worker,
            running,
            "status = 'Delivering', expected_file_name = 'a', expected_file_bytes = 1, delivery_authorized_at = clock_timestamp()",
        ),
        (Role::Worker, running, "status = 'Queued', lease_expires_at = NULL"),
        (Role::Worker, delivering, "status = 'Completed'"),
        (Role::Worker, delivering, "status = 'Failed', lease_expires_at = NULL"),
    ] {
        let statement = format!("UPDATE export_jobs SET {change} WHERE id = '{job}'");
        assert_eq!(world.refused(role, &statement).await?, CHECK, "{change}");
    }
    let never_sent = world.running().await?;
    store::finish_failed(&world.worker, never_sent.job, never_sent.attempt, FailureReason::BuildFailed, "no memory")
        .await?
        .written();
    let statement =
        format!("UPDATE export_jobs SET status = 'Completed', failure_reason = NULL WHERE id = '{}'", never_sent.job);
    assert_eq!(
        world.refused(Role::Corrector, &statement).await?,
        CHECK,
        "what was never authorized was never delivered"
    );
    Ok(())
}

#[tokio::test]
async fn rpl_04_the_database_refuses_a_replacement_that_fits_no_original() -> anyhow::Result<()> {
    let world = World::new().await?;
    let original = world.ended(DeliveryOutcome::OutcomeUnknown).await?.job;
    let other_key = world.new_job().delivery_key;
    let insert = |id: uuid::Uuid, key: &str, replaces: uuid::Uuid| {
        format!(
            "INSERT INTO export_jobs (id, tenant_id, status, version, destination_id, delivery_key, replaces_job_id, created_by,
                                      replacement_reason, woken_at, known_system, known_timeline)
             SELECT '{id}', tenant_id, 'Queued', 1, destination_id, {key}, '{replaces}', 'olga', 'lost', clock_timestamp(), 1, 1
             FROM export_jobs WHERE id = '{original}'"
        )
    };
    let (first, second) = (uuid::Uuid::new_v4(), uuid::Uuid::new_v4());
    assert_eq!(world.refused(Role::Api, &insert(first, &format!("'{other_key}'"), original)).await?, "23503");
    assert_eq!(world.run(Role::Api, &insert(first, "delivery_key", original)).await?, 1);
    assert_eq!(
        world.refused(Role::Api, &insert(second, "delivery_key", first)).await?,
        "23503",
        "a replacement of a replacement"
    );
    assert_eq!(world.refused(Role::Api, &insert(second, "delivery_key", original)).await?, "23505", "one at a time");
    let elsewhere = world.destination(world.tenant, json!({})).await?;
    let moved = format!("UPDATE export_jobs SET destination_id = '{elsewhere}', version = 2 WHERE id = '{first}'");
    assert_eq!(world.refused(Role::Api, &moved).await?, "WB004");
    assert_eq!(world.status(first).await?, Status::Queued);
    Ok(())
}

#[tokio::test]
async fn plg_01_what_is_decided_by_a_check_is_decided_by_one_that_looked() -> anyhow::Result<()> {
    let world = World::new().await?;
    let asked = format!(
        "INSERT INTO destination_checks (id, tenant_id, destination_id, requested_by) VALUES ('{}', '{}', '{}', 'olga')",
        uuid::Uuid::new_v4(),
        world.tenant,
        world.destination
    );
    world.run(Role::Worker, &asked).await?;
    let finish = |more: &str| {
        format!(
            "UPDATE destination_checks SET finished_at = clock_timestamp(), checked = 'as it is', server = '{{}}',
                    server_fingerprint = 'openssh', {more}"
        )
    };
    assert_eq!(world.refused(Role::Worker, &finish("proof = '{}'")).await?, CHECK);
    assert_eq!(world.run(Role::Worker, &finish("proof = '{}', seen = '{}'")).await?, 1);
    Ok(())
}
