//! PRM-02. Every pair of statuses and every kind of event, tried by every login. The constraints of a row would refuse
//! many of them by themselves, so they are dropped here: what is shown is the guards'.

use std::collections::BTreeSet;

use sqlx::{AssertSqlSafe, Connection, PgConnection};
use uuid::Uuid;
use waybill::job::status::{EDGES, EVENT_KINDS, EventKind, Role, Status};

use crate::store::world::World;

#[tokio::test]
async fn prm_02_the_tables_hold_the_edges_and_kinds_of_the_job_module() -> anyhow::Result<()> {
    let world = World::new().await?;
    let mut reader = world.login(Role::Reader).await?;
    let stored: BTreeSet<(String, Option<String>, String)> =
        sqlx::query_as("SELECT role, from_status, to_status FROM allowed_transitions")
            .fetch_all(&mut reader)
            .await?
            .into_iter()
            .collect();
    let ours = EDGES
        .iter()
        .map(|(role, from, to)| (role.login().to_owned(), from.map(|from| from.to_string()), to.to_string()))
        .collect();
    assert_eq!(stored, ours);
    let stored: BTreeSet<(String, String)> = sqlx::query_as("SELECT role, kind FROM allowed_event_kinds")
        .fetch_all(&mut reader)
        .await?
        .into_iter()
        .collect();
    let ours = EVENT_KINDS.iter().map(|(role, kind)| (role.login().to_owned(), kind.to_string())).collect();
    assert_eq!(stored, ours);
    Ok(())
}

/// A world whose rows have no constraints and whose columns every login may write, so that only the guards are left.
async fn guards_only() -> anyhow::Result<World> {
    let world = World::new().await?;
    let admin = world.database.admin().await?;
    sqlx::raw_sql(
        "DO $$ DECLARE each record; BEGIN
             FOR each IN SELECT conrelid::regclass AS of, conname FROM pg_constraint
                         WHERE conrelid IN ('export_jobs'::regclass, 'export_attempt_events'::regclass) AND contype IN ('c', 'f')
             LOOP EXECUTE format('ALTER TABLE %s DROP CONSTRAINT %I CASCADE', each.of, each.conname); END LOOP;
         END $$;
         DROP INDEX uq_attempt_transition, uq_attempt_claimed, uq_export_jobs_original_key;
         GRANT SELECT, INSERT, UPDATE ON export_jobs, export_attempt_events, allowed_transitions, allowed_event_kinds
             TO waybill_api, waybill_worker, waybill_dispatcher, waybill_recovery, waybill_reconciler, waybill_corrector, waybill_reader;
         GRANT INSERT, SELECT, UPDATE ON export_jobs, export_attempt_events TO waybill_owner",
    )
    .execute(&admin)
    .await?;
    Ok(world)
}

/// The SQLSTATE of a statement in a transaction that is rolled back; `None` if it would have written.
async fn tried(connection: &mut PgConnection, statement: &str) -> anyhow::Result<Option<String>> {
    let mut transaction = connection.begin().await?;
    let answer = sqlx::query(AssertSqlSafe(statement)).execute(&mut *transaction).await;
    transaction.rollback().await?;
    match answer {
        Ok(done) => {
            anyhow::ensure!(done.rows_affected() == 1, "{statement} met no row");
            Ok(None)
        }
        Err(error) => {
            Ok(error.as_database_error().and_then(sqlx::error::DatabaseError::code).map(std::borrow::Cow::into_owned))
        }
    }
}

fn insert(world: &World, job: Uuid, status: Status) -> String {
    format!(
        "INSERT INTO export_jobs (id, tenant_id, status, version, destination_id, delivery_key, created_by, woken_at, known_system, known_timeline)
         VALUES ('{job}', '{}', '{status}', 1, '{}', '{job}', 'olga', clock_timestamp(), 1, 1)",
        world.tenant, world.destination
    )
}

#[tokio::test]
async fn prm_02_every_role_takes_only_its_edges_on_insert_and_on_update() -> anyhow::Result<()> {
    let world = guards_only().await?;
    let mut jobs = Vec::new();
    let admin = world.database.admin().await?;
    // One row of each status, put there past the guards by the superuser.
    let mut planting = admin.acquire().await?;
    sqlx::query("SET session_replication_role = replica").execute(&mut *planting).await?;
    for status in Status::ALL {
        let job = Uuid::new_v4();
        sqlx::query(AssertSqlSafe(insert(&world, job, *status))).execute(&mut *planting).await?;
        jobs.push((*status, job));
    }
    for role in Role::ALL {
        let mut connection = world.login(*role).await?;
        for to in Status::ALL {
            let allowed = EDGES.contains(&(*role, None, *to));
            let answer = tried(&mut connection, &insert(&world, Uuid::new_v4(), *to)).await?;
            assert_eq!(answer.as_deref(), (!allowed).then_some("WB001"), "{} creates {to}", role.login());
            for (from, job) in &jobs {
                let allowed = EDGES.contains(&(*role, Some(*from), *to));
                // A claim raises the count, or its own guard would refuse it.
                let count = i32::from(*from == Status::Queued && *to == Status::Running);
                let statement =
                    format!("UPDATE export_jobs SET status = '{to}', attempt_count = {count} WHERE id = '{job}'");
                let answer = tried(&mut connection, &statement).await?;
                assert_eq!(answer.as_deref(), (!allowed).then_some("WB001"), "{} moves {from} to {to}", role.login());
            }
        }
    }
    Ok(())
}

#[tokio::test]
async fn prm_02_every_role_records_only_its_kinds_of_event() -> anyhow::Result<()> {
    let world = guards_only().await?;
    for role in Role::ALL {
        let mut connection = world.login(*role).await?;
        for kind in EventKind::ALL {
            let statement = format!(
                "INSERT INTO export_attempt_events (job_id, attempt_id, kind) VALUES (gen_random_uuid(), gen_random_uuid(), '{kind}')"
            );
            let allowed = EVENT_KINDS.contains(&(*role, *kind));
            let answer = tried(&mut connection, &statement).await?;
            assert_eq!(answer.as_deref(), (!allowed).then_some("WB005"), "{} records {kind}", role.login());
        }
    }
    Ok(())
}

#[tokio::test]
async fn cor_02_a_correction_is_refused_for_every_role_but_the_correctors() -> anyhow::Result<()> {
    use waybill::job::status::FailureReason;
    use waybill::store::DeliveryOutcome;
    let world = World::new().await?;
    let completed = world.ended(DeliveryOutcome::Completed).await?.job;
    let failed = world.ended(DeliveryOutcome::Failed(FailureReason::NotDelivered)).await?.job;
    for role in Role::ALL.iter().filter(|role| **role != Role::Corrector) {
        for statement in [
            format!(
                "UPDATE export_jobs SET status = 'Failed', failure_reason = 'NotDelivered' WHERE id = '{completed}'"
            ),
            format!("UPDATE export_jobs SET status = 'Completed', failure_reason = NULL WHERE id = '{failed}'"),
        ] {
            let code = world.refused(*role, &statement).await?;
            assert!(code == "42501" || code == "WB001", "{}: {code}", role.login());
        }
    }
    Ok(())
}
