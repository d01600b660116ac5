//! Roles and schema. May run twice, and on several hosts at once.
//!
//! Roles belong to the cluster and not to a database, so they are created here and not in a migration; a migration only
//! grants. The schema's objects belong to `waybill_owner`, whatever login the administrator used.

use std::collections::BTreeSet;
use std::error::Error;

use sqlx::migrate::Migrator;
use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::{AssertSqlSafe, Connection};

use crate::job::status::Role;

static MIGRATIONS: Migrator = sqlx::migrate!("../migrations");

/// Serialises migrations of one database. Any number does, as long as it is always this one.
const MIGRATION_LOCK: i64 = 0x5761_7962_696c_6c01;

/// What [`migrate`] did.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Migrated {
    /// Roles that did not exist. They have no password yet.
    pub roles_created: Vec<Role>,
    /// Migrations that were applied now.
    pub applied: Vec<AppliedMigration>,
    /// How many had been applied before.
    pub already_applied: usize,
}

/// One migration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AppliedMigration {
    pub version: i64,
    pub description: String,
}

/// Why the database was not migrated.
#[derive(Debug, thiserror::Error)]
pub enum MigrateError {
    #[error("the administrator's database URL cannot be used; see that host, database and login are right")]
    Connect(#[source] Box<dyn Error + Send + Sync>),
    #[error("the role {role} could not be created; the administrator's login needs CREATEROLE or superuser")]
    Role { role: &'static str, source: Box<dyn Error + Send + Sync> },
    #[error(
        "the schema could not be handed to waybill_owner; the administrator's login must own the database or be superuser"
    )]
    HandOver(#[source] Box<dyn Error + Send + Sync>),
    #[error("a migration failed, and what it did was rolled back; mend the cause and run `waybill migrate` again")]
    Migration(#[source] Box<dyn Error + Send + Sync>),
}

/// Creates the roles that are missing and applies the migrations that are missing.
pub async fn migrate(admin_url: &str) -> Result<Migrated, MigrateError> {
    let options: PgConnectOptions =
        admin_url.parse().map_err(|error: sqlx::Error| MigrateError::Connect(error.into()))?;
    let mut connection =
        PgConnection::connect_with(&options).await.map_err(|error| MigrateError::Connect(error.into()))?;
    let answer = migrate_on(&mut connection).await;
    // The session holds the locks; ending it releases them, also after a failure.
    let closed = connection.close().await;
    let migrated = answer?;
    closed.map_err(|error| MigrateError::Connect(error.into()))?;
    Ok(migrated)
}

async fn migrate_on(connection: &mut PgConnection) -> Result<Migrated, MigrateError> {
    sqlx::query("SELECT pg_advisory_lock($1)")
        .bind(MIGRATION_LOCK)
        .execute(&mut *connection)
        .await
        .map_err(|error| MigrateError::Connect(error.into()))?;

    let mut roles_created = Vec::new();
    for role in Role::ALL {
        if create_role(connection, *role)
            .await
            .map_err(|error| MigrateError::Role { role: role.login(), source: error.into() })?
        {
            roles_created.push(*role);
        }
    }

    hand_over(connection).await.map_err(|error| MigrateError::HandOver(error.into()))?;

    let before = applied(connection).await.map_err(|error| MigrateError::Migration(error.into()))?;
    MIGRATIONS.run(&mut *connection).await.map_err(|error| MigrateError::Migration(error.into()))?;
    let applied = MIGRATIONS
        .iter()
        .filter(|migration| !before.contains(&migration.version))
        .map(|migration| AppliedMigration {
            version: migration.version,
            description: migration.description.clone().into_owned(),
        })
        .collect();
    Ok(Migrated { roles_created, applied, already_applied: before.len() })
}

/// True if the role was created now. Another database of the cluster may be migrating at the same moment.
async fn create_role(connection: &mut PgConnection, role: Role) -> Result<bool, sqlx::Error> {
    let exists: bool = sqlx::query_scalar("SELECT EXISTS (SELECT FROM pg_roles WHERE rolname = $1)")
        .bind(role.login())
        .fetch_one(&mut *connection)
        .await?;
    if exists {
        return Ok(false);
    }
    // A role's name cannot be a parameter; these names are constants of this program.
    let statement = format!("CREATE ROLE {} LOGIN NOINHERIT NOSUPERUSER NOCREATEDB NOCREATEROLE", role.login());
    match sqlx::query(AssertSqlSafe(statement)).execute(&mut *connection).await {
        Ok(_) => Ok(true),
        // Duplicate object, or the unique index of the catalogue when both were at it at once.
        Err(sqlx::Error::Database(answer)) if matches!(answer.code().as_deref(), Some("42710" | "23505")) => Ok(false),
        Err(error) => Err(error),
    }
}

/// From here on the session acts as `waybill_owner`, which may create in the schema; the other logins may only use it.
async fn hand_over(connection: &mut PgConnection) -> Result<(), sqlx::Error> {
    let may_act: bool = sqlx::query_scalar("SELECT pg_has_role(current_user, 'waybill_owner', 'MEMBER')")
        .fetch_one(&mut *connection)
        .await?;
    if !may_act {
        sqlx::query("GRANT waybill_owner TO CURRENT_USER").execute(&mut *connection).await?;
    }
    let create: bool = sqlx::query_scalar("SELECT has_schema_privilege('waybill_owner', 'public', 'CREATE')")
        .fetch_one(&mut *connection)
        .await?;
    if !create {
        let logins: Vec<&str> = Role::ALL.iter().map(|role| role.login()).collect();
        let statement = format!(
            "REVOKE CREATE ON SCHEMA public FROM PUBLIC; \
             GRANT USAGE ON SCHEMA public TO {}; \
             GRANT CREATE ON SCHEMA public TO waybill_owner",
            logins.join(", ")
        );
        sqlx::raw_sql(AssertSqlSafe(statement)).execute(&mut *connection).await?;
    }
    sqlx::query("SET ROLE waybill_owner").execute(&mut *connection).await?;
    Ok(())
}

/// Versions that the database has already.
async fn applied(connection: &mut PgConnection) -> Result<BTreeSet<i64>, sqlx::Error> {
    let begun: bool =
        sqlx::query_scalar("SELECT to_regclass('_sqlx_migrations') IS NOT NULL").fetch_one(&mut *connection).await?;
    if !begun {
        return Ok(BTreeSet::new());
    }
    let versions: Vec<i64> =
        sqlx::query_scalar("SELECT version FROM _sqlx_migrations WHERE success").fetch_all(&mut *connection).await?;
    Ok(versions.into_iter().collect())
}
