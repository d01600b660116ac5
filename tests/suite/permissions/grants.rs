//! PRM-01. The list below is the whole of what is granted; everything that it does not name is refused.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Context;
use sqlx::{AssertSqlSafe, Connection, PgConnection};
use waybill::job::status::Role;

use crate::store::world::World;

const INSUFFICIENT_PRIVILEGE: &str = "42501";

use Role::{Api, Corrector, Dispatcher, Reader, Reconciler, Recovery, Worker};

const ALL: &[Role] = &[Api, Worker, Dispatcher, Recovery, Reconciler, Corrector, Reader];
const BUT_DISPATCHER: &[Role] = &[Api, Worker, Recovery, Reconciler, Corrector, Reader];

/// Who may read a table: every column of it, unless columns are named.
const SELECT: &[(&str, &[Role], &str)] = &[
    ("_sqlx_migrations", ALL, ""),
    ("hosts", ALL, ""),
    ("export_jobs", BUT_DISPATCHER, ""),
    ("export_jobs", &[Dispatcher], "id tenant_id status destination_id priority"),
    ("deliveries", BUT_DISPATCHER, ""),
    ("export_attempt_events", BUT_DISPATCHER, ""),
    ("destinations", BUT_DISPATCHER, ""),
    ("destination_checks", BUT_DISPATCHER, ""),
    ("final_names", BUT_DISPATCHER, ""),
    ("final_name_uses", BUT_DISPATCHER, ""),
    ("looks", BUT_DISPATCHER, ""),
    ("accepted_losses", BUT_DISPATCHER, ""),
    ("allowed_transitions", BUT_DISPATCHER, ""),
    ("allowed_event_kinds", BUT_DISPATCHER, ""),
    ("cancellation_requests", &[Api, Corrector, Reader], ""),
    ("outbox", &[Api, Dispatcher, Reader], ""),
    ("outbox_claims", &[Api, Dispatcher, Reader], ""),
    ("outbox_requeues", &[Api, Reader], ""),
    ("wakeups", &[Worker, Dispatcher, Reader], ""),
    ("audit", &[Api, Corrector, Reader], ""),
    ("idempotency_keys", &[Api], ""),
    ("api_tokens", &[Api], ""),
];

const INSERT: &[(&str, &[Role], &str)] = &[
    (
        "export_jobs",
        &[Api],
        "id tenant_id status version destination_id scope not_before priority delivery_key replaces_job_id created_by
         replacement_reason overwrite_agreement_ref cannot_upload_statement woken_at known_system known_timeline",
    ),
    ("deliveries", &[Api], "tenant_id delivery_key original_job_id"),
    (
        "export_attempt_events",
        &[Worker, Recovery, Reconciler, Corrector],
        "job_id attempt_id kind version worker_id observed_by detail recorded_at",
    ),
    (
        "cancellation_requests",
        &[Api],
        "tenant_id id job_id requested_by reason outcome found_status found_attempt_id found_attempt_count
         found_delivery_authorized_at",
    ),
    ("outbox", &[Api, Worker, Recovery], "message_id kind job_id created_at"),
    ("outbox_claims", &[Api, Worker, Recovery], "message_id priority ready_at"),
    ("outbox_requeues", &[Api], "message_id requeued_by reason found"),
    ("wakeups", &[Dispatcher], "message_id job_id destination_id priority ready_at"),
    (
        "destinations",
        &[Worker],
        "id tenant_id name partner revision manifest contract rules digests endpoint updated_at",
    ),
    ("destination_checks", &[Api, Worker], "id tenant_id destination_id requested_by"),
    ("final_names", &[Worker], "endpoint directory folded_name tenant_id delivery_key job_id reused held_since"),
    ("final_name_uses", &[Worker], "job_id endpoint directory folded_name"),
    ("looks", &[Worker, Recovery, Reconciler], "job_id attempt_id purpose next_at until"),
    ("looks", &[Worker], "owner token expires_at"),
    ("accepted_losses", &[Corrector], "job_id system timeline standing fences_intact statement accepted_by"),
    ("idempotency_keys", &[Api], "tenant_id key operation fingerprint started_by"),
    ("api_tokens", &[Api], "id name sha256 tenant_id roles created_by expires_at"),
    ("audit", &[Api, Corrector], "tenant_id actor action target detail"),
    ("hosts", &[Api, Worker, Dispatcher, Recovery, Reconciler], "id version roles serves"),
];

const UPDATE: &[(&str, &[Role], &str)] = &[
    (
        "export_jobs",
        &[Api],
        "status version destination_id scope not_before priority woken_at stop_request_id cancellation_request_id",
    ),
    (
        "export_jobs",
        &[Worker],
        "status attempt_id attempt_count claimed_by lease_expires_at expected_file_name expected_file_bytes
         expected_file_sha256 delivery_authorized_at publish_intended_at failure_reason rejection woken_at known_system
         known_timeline",
    ),
    ("export_jobs", &[Recovery], "status attempt_id claimed_by lease_expires_at failure_reason woken_at sweep_count"),
    ("export_jobs", &[Reconciler, Corrector], "status failure_reason"),
    ("outbox", &[Dispatcher], "published_at"),
    (
        "outbox_claims",
        &[Dispatcher],
        "ready_at owner token claimed_at expires_at claims failures last_error_code dead_lettered_at dead_reason_code
         finished_at",
    ),
    ("outbox_claims", &[Api], "ready_at claims failures dead_lettered_at dead_reason_code"),
    ("wakeups", &[Worker], "ready_at taken_by taken_token taken_until deliveries"),
    (
        "destinations",
        &[Worker],
        "name revision manifest contract rules digests endpoint updated_at attention_since attention_why paused_at
         paused_until pause_failures probe_job_id probe_until",
    ),
    (
        "destinations",
        &[Api],
        "enabled attention_since attention_why paused_at paused_until pause_failures probe_job_id probe_until",
    ),
    (
        "destination_checks",
        &[Worker],
        "taken_by taken_until finished_at server server_fingerprint proof problem seen checked",
    ),
    ("final_names", &[Worker], "tenant_id delivery_key job_id reused held_since"),
    ("looks", &[Worker], "owner token expires_at"),
    ("looks", &[Reconciler], "purpose next_at until looks owner token expires_at last_found ended_at"),
    ("looks", &[Corrector], "purpose next_at until ended_at"),
    ("idempotency_keys", &[Api], "answered_at answer"),
    ("api_tokens", &[Api], "revoked_at last_used_at"),
    ("hosts", &[Api, Worker, Dispatcher, Recovery, Reconciler], "roles serves seen_at stopped_at"),
];

const DELETE: &[(&str, &[Role])] = &[("wakeups", &[Worker])];

/// Tables with their columns, from the database itself, so that a new one is refused until it is listed.
async fn tables(connection: &mut PgConnection) -> anyhow::Result<BTreeMap<String, Vec<String>>> {
    let rows: Vec<(String, String)> = sqlx::query_as(
        "SELECT relname::text, attname::text FROM pg_class JOIN pg_attribute ON attrelid = pg_class.oid
         WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p', 'v', 'm') AND attnum > 0 AND NOT attisdropped",
    )
    .fetch_all(connection)
    .await?;
    let mut tables: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (table, column) in rows {
        tables.entry(table).or_default().push(column);
    }
    Ok(tables)
}

fn listed(list: &[(&str, &[Role], &str)], role: Role, table: &str, column: &str) -> bool {
    list.iter().any(|(of, roles, columns)| {
        *of == table
            && roles.contains(&role)
            && (columns.is_empty() || columns.split_whitespace().any(|name| name == column))
    })
}

/// True if the role's statement is let through by the privileges. It runs in a transaction that is rolled back; what
/// else stops it (a constraint, a guard) comes after the privileges and counts as let through.
async fn let_through(connection: &mut PgConnection, statement: &str) -> anyhow::Result<bool> {
    let mut transaction = connection.begin().await?;
    let tried = sqlx::query(AssertSqlSafe(statement)).execute(&mut *transaction).await;
    transaction.rollback().await?;
    match tried {
        Ok(_) => Ok(true),
        Err(error) => {
            let code = error.as_database_error().and_then(sqlx::error::DatabaseError::code).context("an answer")?;
            anyhow::ensure!(!code.starts_with("42") || code == INSUFFICIENT_PRIVILEGE, "{statement}: {error}");
            Ok(code != INSUFFICIENT_PRIVILEGE)
        }
    }
}

#[tokio::test]
async fn prm_01_every_privilege_on_every_column_is_granted_exactly_where_listed() -> anyhow::Result<()> {
    let world = World::new().await?;
    let mut admin = world.database.admin().await?.acquire().await?.detach();
    let tables = tables(&mut admin).await?;
    let (mut wrong, mut tried) = (Vec::new(), 0);
    for role in ALL {
        let mut connection = world.login(*role).await?;
        for (table, columns) in &tables {
            for column in columns {
                let generated = column == "id"
                    && ["export_attempt_events", "outbox_requeues", "audit", "accepted_losses"]
                        .contains(&table.as_str());
                let overriding = if generated { "OVERRIDING SYSTEM VALUE" } else { "" };
                for (privilege, list, statement) in [
                    ("SELECT", SELECT, format!("SELECT {column} FROM {table} WHERE false")),
                    ("INSERT", INSERT, format!("INSERT INTO {table} ({column}) {overriding} SELECT NULL WHERE false")),
                    ("UPDATE", UPDATE, format!("UPDATE {table} SET {column} = DEFAULT WHERE false")),
                ] {
                    tried += 1;
                    let statement = if privilege == "INSERT" {
                        typed(statement, table, column, &mut admin).await?
                    } else {
                        statement
                    };
                    if let_through(&mut connection, &statement).await? != listed(list, *role, table, column) {
                        wrong.push(format!("{} {privilege} {table}.{column}", role.login()));
                    }
                }
            }
            for (privilege, statement) in
                [("DELETE", format!("DELETE FROM {table}")), ("TRUNCATE", format!("TRUNCATE {table}"))]
            {
                tried += 1;
                let listed =
                    privilege == "DELETE" && DELETE.iter().any(|(of, roles)| of == table && roles.contains(role));
                if let_through(&mut connection, &statement).await? != listed {
                    wrong.push(format!("{} {privilege} {table}", role.login()));
                }
            }
        }
        connection.close().await?;
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(tried > 3_000, "the product is whole: {tried}");
    let named: BTreeSet<&str> = [SELECT, INSERT, UPDATE].into_iter().flatten().map(|(table, ..)| *table).collect();
    let unknown: Vec<_> = named.iter().filter(|table| !tables.contains_key(**table)).collect();
    assert!(unknown.is_empty(), "listed, but not there: {unknown:?}");
    Ok(())
}

/// `NULL` with the column's type, so that the statement is refused for nothing but its privilege.
async fn typed(statement: String, table: &str, column: &str, admin: &mut PgConnection) -> anyhow::Result<String> {
    let of: String = sqlx::query_scalar(
        "SELECT format_type(atttypid, atttypmod) FROM pg_attribute WHERE attrelid = $1::regclass AND attname = $2",
    )
    .bind(table)
    .bind(column)
    .fetch_one(admin)
    .await?;
    Ok(statement.replace("SELECT NULL", &format!("SELECT NULL::{of}")))
}

#[tokio::test]
async fn prm_01_no_login_creates_anything() -> anyhow::Result<()> {
    let world = World::new().await?;
    for role in ALL {
        for statement in [
            "CREATE TABLE mine (a integer)",
            "CREATE SCHEMA mine",
            "CREATE FUNCTION mine() RETURNS integer LANGUAGE sql AS 'SELECT 1'",
            "ALTER TABLE export_jobs DISABLE TRIGGER guard_update",
            "DROP TABLE wakeups",
            "SET ROLE waybill_owner",
            "SET ROLE waybill_corrector; RESET ROLE",
            "SET session_replication_role = replica",
        ] {
            if *role == Corrector && statement.starts_with("SET ROLE waybill_corrector") {
                continue;
            }
            let mut connection = world.login(*role).await?;
            let refused = sqlx::raw_sql(AssertSqlSafe(statement)).execute(&mut connection).await.err();
            let code =
                refused.as_ref().and_then(|error| error.as_database_error()).and_then(sqlx::error::DatabaseError::code);
            assert_eq!(code.as_deref(), Some(INSUFFICIENT_PRIVILEGE), "{} {statement}", role.login());
        }
    }
    Ok(())
}

#[tokio::test]
async fn prm_02_a_temporary_table_does_not_stand_in_for_the_list_of_edges() -> anyhow::Result<()> {
    let world = World::new().await?;
    let job = world.ended(waybill::store::DeliveryOutcome::OutcomeUnknown).await?.job;
    let mut connection = world.login(Worker).await?;
    let tried = sqlx::raw_sql(AssertSqlSafe(format!(
        "CREATE TEMPORARY TABLE allowed_transitions (role text, from_status text, to_status text);
         INSERT INTO allowed_transitions VALUES ('waybill_worker', 'OutcomeUnknown', 'Completed');
         UPDATE export_jobs SET status = 'Completed' WHERE id = '{job}'"
    )))
    .execute(&mut connection)
    .await
    .unwrap_err();
    assert_eq!(tried.as_database_error().and_then(sqlx::error::DatabaseError::code).as_deref(), Some("WB001"));
    Ok(())
}
