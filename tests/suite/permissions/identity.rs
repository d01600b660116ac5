//! PRM-03. What never changes, and what changes only once, tried by the logins that hold the most columns; the guards
//! know no exception for them, so every column is granted here first.

use sqlx::AssertSqlSafe;
use waybill::job::status::Role;

use crate::store::world::World;

async fn with_every_column() -> anyhow::Result<World> {
    let world = World::new().await?;
    let grant = "GRANT UPDATE ON export_jobs TO waybill_api, waybill_worker, waybill_recovery, waybill_reconciler, waybill_corrector";
    sqlx::query(AssertSqlSafe(grant)).execute(&world.database.admin().await?).await?;
    Ok(world)
}

#[tokio::test]
async fn prm_03_the_identity_of_a_job_never_changes_for_any_role() -> anyhow::Result<()> {
    use waybill::store::DeliveryOutcome;
    let world = with_every_column().await?;
    let (queued, running) = (world.queued().await?, world.running().await?.job);
    let unknown = world.ended(DeliveryOutcome::OutcomeUnknown).await?.job;
    let completed = world.ended(DeliveryOutcome::Completed).await?.job;
    for (role, job, allowed) in [
        (Role::Api, queued, "priority = 1"),
        (Role::Worker, running, "lease_expires_at = clock_timestamp()"),
        (Role::Recovery, queued, "sweep_count = 1"),
        (Role::Reconciler, unknown, "status = 'Completed'"),
        (Role::Corrector, completed, "status = 'Failed', failure_reason = 'NotDelivered'"),
    ] {
        for change in [
            "id = gen_random_uuid()",
            "tenant_id = gen_random_uuid()",
            "delivery_key = 'another'",
            "replaces_job_id = gen_random_uuid()",
            "created_by = 'paul'",
            "created_at = clock_timestamp()",
            "replacement_reason = 'because'",
            "overwrite_agreement_ref = 'a letter'",
        ] {
            let statement = format!("UPDATE export_jobs SET {allowed}, {change} WHERE id = '{job}'");
            assert_eq!(world.refused(role, &statement).await?, "WB002", "{} {change}", role.login());
        }
        assert_eq!(
            world.run(role, &format!("UPDATE export_jobs SET {allowed} WHERE id = '{job}'")).await?,
            1,
            "{allowed}"
        );
    }
    Ok(())
}

#[tokio::test]
async fn prm_03_facts_of_an_attempt_are_written_with_their_edge_only() -> anyhow::Result<()> {
    let world = with_every_column().await?;
    let (queued, running, delivering, intended) =
        (world.queued().await?, world.running().await?.job, world.delivering().await?.job, world.intended().await?.job);
    let facts = "expected_file_name = 'a', expected_file_bytes = 1, expected_file_sha256 = sha256('a'), delivery_authorized_at = clock_timestamp()";
    for (role, job, change) in [
        (Role::Api, queued, facts),
        (Role::Worker, running, facts),
        (Role::Worker, delivering, facts),
        (Role::Worker, delivering, "expected_file_bytes = 2"),
        (Role::Worker, delivering, "delivery_authorized_at = clock_timestamp()"),
        (Role::Worker, running, "publish_intended_at = clock_timestamp()"),
        (Role::Worker, running, "status = 'Delivering', publish_intended_at = clock_timestamp()"),
        (Role::Worker, intended, "publish_intended_at = clock_timestamp()"),
        (Role::Worker, intended, "publish_intended_at = NULL"),
        (Role::Worker, intended, "status = 'OutcomeUnknown', lease_expires_at = NULL, publish_intended_at = NULL"),
        (
            Role::Recovery,
            delivering,
            "status = 'OutcomeUnknown', lease_expires_at = NULL, publish_intended_at = clock_timestamp()",
        ),
        (Role::Worker, running, "attempt_id = gen_random_uuid()"),
        (Role::Worker, running, "attempt_count = 2"),
        (Role::Worker, queued, "status = 'Running'"),
        (Role::Worker, running, "known_timeline = 9"),
        (Role::Worker, running, "stop_request_id = gen_random_uuid()"),
        (Role::Api, queued, "stop_request_id = gen_random_uuid()"),
        (Role::Api, queued, "cancellation_request_id = gen_random_uuid()"),
    ] {
        let statement = format!("UPDATE export_jobs SET {change} WHERE id = '{job}'");
        assert_eq!(world.refused(role, &statement).await?, "WB003", "{} {change}", role.login());
    }
    Ok(())
}

#[tokio::test]
async fn prm_03_the_first_stop_request_stands() -> anyhow::Result<()> {
    let world = with_every_column().await?;
    let job = world.running().await?.job;
    world.cancel(job).await?;
    for change in ["stop_request_id = NULL", "stop_request_id = gen_random_uuid()"] {
        let statement = format!("UPDATE export_jobs SET {change} WHERE id = '{job}'");
        assert_eq!(world.refused(Role::Api, &statement).await?, "WB003", "{change}");
    }
    Ok(())
}
