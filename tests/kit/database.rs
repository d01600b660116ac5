//! A database a test: a clone of a migrated template, with the logins of the host's roles.
//!
//! The template is named by a hash of the migrations and built once, by whichever test process is first, under an
//! advisory lock. A clone takes some 30 ms. It is dropped with its handle; what killed runs left is swept by the next.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use anyhow::Context;
use sha2::{Digest, Sha256};
use sqlx::postgres::{PgConnectOptions, PgPool, PgPoolOptions};
use sqlx::{AssertSqlSafe, ConnectOptions as _, Connection, Executor, PgConnection};
use tokio::sync::OnceCell;
use waybill::embedded::postgres::{Address, SUPERUSER};
use waybill::job::status::Role;
use waybill::store::{ConnectOptions, Pool, connect};

use crate::proxy::{Proxy, mutants};
use crate::{services, wait};

/// One of the numbers that PostgreSQL's advisory locks are named by; it only must be the same in all test processes.
const TEMPLATE_LOCK: i64 = 0x7761_7962_696c_6c01;
const SWEEP_LOCK: i64 = 0x7761_7962_696c_6c02;
const CLONE_PREFIX: &str = "waybill_test_";
const POOL_SIZE: u32 = 8;

#[derive(Debug)]
pub struct Database {
    name: String,
    /// Where tests connect: the server, or a line before it.
    address: Address,
    server: Address,
    /// It belongs to a server of the test's own, and goes with that.
    goes_with_server: bool,
    /// Of `make mutants-sql` only.
    line: Option<Proxy>,
}

impl Database {
    /// A fresh clone of the migrated schema.
    pub async fn fresh() -> anyhow::Result<Self> {
        let shared = shared().await?;
        let name = clone_name();
        let mut maintenance = maintenance(&shared.address).await?;
        maintenance
            .execute(AssertSqlSafe(format!("CREATE DATABASE {name} TEMPLATE {}", shared.template)))
            .await
            .with_context(|| format!("cloning {}", shared.template))?;
        maintenance.close().await?;
        Self::of(name, &shared.address)
    }

    /// An empty database that checks no text, as old ones often are.
    pub async fn sql_ascii() -> anyhow::Result<Self> {
        let shared = shared().await?;
        let name = clone_name();
        let mut maintenance = maintenance(&shared.address).await?;
        let create = format!("CREATE DATABASE {name} ENCODING 'SQL_ASCII' LOCALE 'C' TEMPLATE template0");
        maintenance.execute(AssertSqlSafe(create)).await.context("creating a database with the encoding SQL_ASCII")?;
        maintenance.close().await?;
        Self::of(name, &shared.address)
    }

    fn of(name: String, server: &Address) -> anyhow::Result<Self> {
        let line = mutants::line(server)?;
        let address = line.as_ref().map_or_else(|| server.clone(), |line| line.address().clone());
        Ok(Self { name, address, server: server.clone(), goes_with_server: false, line })
    }

    /// A database that is there, at a server of the test's own.
    pub fn of_server(server: &Address, name: &str) -> Self {
        let (name, address) = (name.to_owned(), server.clone());
        Self { name, server: address.clone(), address, goes_with_server: true, line: None }
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// Where its server listens.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// The address that the host's configuration carries; each pool puts its role's login in.
    pub fn url(&self) -> String {
        self.address.url(SUPERUSER, &self.name)
    }

    /// The host's own pool of a role, to call `waybill::store` with.
    pub async fn store(&self, role: Role) -> anyhow::Result<Pool> {
        let options = ConnectOptions { acquire_timeout: wait::BOUND, ..ConnectOptions::new(self.url(), "test") };
        connect(role, &options).await.with_context(|| format!("opening the pool of {}", role.login()))
    }

    /// For processes and proxies that connect by themselves.
    pub fn options(&self, role: &str) -> PgConnectOptions {
        options(&self.address, role).database(&self.name)
    }

    /// Connections that logged in as this role, for statements of the test's own.
    pub async fn pool(&self, role: &str) -> anyhow::Result<PgPool> {
        PgPoolOptions::new()
            .max_connections(POOL_SIZE)
            .acquire_timeout(wait::BOUND)
            .after_connect(|connection, _| {
                Box::pin(async move {
                    connection
                        .execute("SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL READ COMMITTED")
                        .await
                        .map(drop)
                })
            })
            .connect_with(self.options(role))
            .await
            .with_context(|| format!("logging in to {} as {role}", self.name))
    }

    /// The superuser, for set-up that no role of the host may do.
    pub async fn admin(&self) -> anyhow::Result<PgPool> {
        self.pool(SUPERUSER).await
    }

    /// Waits until the server process waits for a lock, and returns the processes that hold it: the proof that one
    /// statement really waits for another.
    pub async fn wait_until_blocked(&self, pid: i32) -> anyhow::Result<Vec<i32>> {
        let mut watching = self.options(SUPERUSER).connect().await?;
        let blockers = wait::until("a statement that waits for a lock", async || {
            let blockers: Vec<i32> =
                sqlx::query_scalar("SELECT pg_blocking_pids($1)").bind(pid).fetch_one(&mut watching).await?;
            Ok((!blockers.is_empty()).then_some(blockers))
        })
        .await?;
        watching.close().await?;
        Ok(blockers)
    }
}

/// The server process behind a connection, as `pg_blocking_pids` names it.
pub async fn backend_pid(connection: &mut PgConnection) -> anyhow::Result<i32> {
    Ok(sqlx::query_scalar("SELECT pg_backend_pid()").fetch_one(connection).await?)
}

impl Drop for Database {
    fn drop(&mut self) {
        if let Some(line) = self.line.take()
            && let Err(error) = mutants::record(&line)
        {
            tracing::error!(%error, "which statements this test covers could not be recorded");
        }
        if self.goes_with_server {
            return;
        }
        let (address, name) = (self.server.clone(), self.name.clone());
        // A runtime of its own: the test's may be ending, and a drop cannot await.
        let dropped = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            runtime.block_on(drop_database(&address, &name))
        })
        .join();
        if !matches!(dropped, Ok(Ok(()))) {
            tracing::warn!(database = self.name, "a test's database stays behind until the next run sweeps it");
        }
    }
}

struct Shared {
    address: Address,
    template: String,
}

/// Once a test process: the server, the template, and the sweep.
async fn shared() -> anyhow::Result<&'static Shared> {
    static SHARED: OnceCell<Shared> = OnceCell::const_new();
    SHARED
        .get_or_try_init(|| async {
            let address = services::postgres().await?;
            sweep(&address).await?;
            let template = template(&address).await?;
            Ok(Shared { address, template })
        })
        .await
}

/// Builds the template unless a process before us did. It gets its name last, so that a template is whole.
async fn template(address: &Address) -> anyhow::Result<String> {
    let name = format!("waybill_template_{}", migrations_hash()?);
    let mut connection = maintenance(address).await?;
    sqlx::query("SELECT pg_advisory_lock($1)").bind(TEMPLATE_LOCK).execute(&mut connection).await?;
    let exists: bool = sqlx::query_scalar("SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)")
        .bind(&name)
        .fetch_one(&mut connection)
        .await?;
    if !exists {
        let unfinished = format!("{name}_unfinished");
        for statement in
            [format!("DROP DATABASE IF EXISTS {unfinished} WITH (FORCE)"), format!("CREATE DATABASE {unfinished}")]
        {
            connection.execute(AssertSqlSafe(statement)).await?;
        }
        let url = address.url(SUPERUSER, &unfinished);
        waybill::store::migrate(&url).await.context("migrating the template")?;
        connection.execute(AssertSqlSafe(format!("ALTER DATABASE {unfinished} RENAME TO {name}"))).await?;
    }
    // Closing the session releases the lock.
    connection.close().await?;
    Ok(name)
}

/// Drops the clones of test processes that are gone. One process at a time; the others have better things to do.
async fn sweep(address: &Address) -> anyhow::Result<()> {
    let mut connection = maintenance(address).await?;
    let ours: bool =
        sqlx::query_scalar("SELECT pg_try_advisory_lock($1)").bind(SWEEP_LOCK).fetch_one(&mut connection).await?;
    if ours {
        let names: Vec<String> = sqlx::query_scalar("SELECT datname::text FROM pg_database WHERE datname LIKE $1")
            .bind(format!("{}%", CLONE_PREFIX.replace('_', "\\_")))
            .fetch_all(&mut connection)
            .await?;
        for name in names {
            let owner = name.strip_prefix(CLONE_PREFIX).and_then(|rest| rest.split_once('_'));
            if owner.is_some_and(|(pid, _)| !services::process_exists(pid)) {
                connection.execute(AssertSqlSafe(format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)"))).await?;
            }
        }
    }
    connection.close().await?;
    Ok(())
}

async fn drop_database(address: &Address, name: &str) -> anyhow::Result<()> {
    let mut connection = maintenance(address).await?;
    connection.execute(AssertSqlSafe(format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)"))).await?;
    connection.close().await?;
    Ok(())
}

async fn maintenance(address: &Address) -> anyhow::Result<PgConnection> {
    let options = options(address, SUPERUSER).database("postgres");
    tokio::time::timeout(Duration::from_secs(20), options.connect())
        .await
        .context("the tests' PostgreSQL does not answer")?
        .context("connecting to the tests' PostgreSQL")
}

fn options(address: &Address, role: &str) -> PgConnectOptions {
    PgConnectOptions::new_without_pgpass()
        .host(&address.socket_directory.to_string_lossy())
        .port(address.port)
        .username(role)
}

/// Names and contents: a changed file is another template.
fn migrations_hash() -> anyhow::Result<String> {
    let mut hash = Sha256::new();
    let mut files: Vec<PathBuf> = match std::fs::read_dir(migrations_directory()) {
        Ok(entries) => entries.map(|entry| Ok(entry?.path())).collect::<anyhow::Result<_>>()?,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Vec::new(),
        Err(error) => return Err(error.into()),
    };
    files.sort();
    for file in files.iter().filter(|file| file.is_file()) {
        let content = std::fs::read(file)?;
        hash.update(file.file_name().unwrap_or_default().as_encoded_bytes());
        hash.update(u64::try_from(content.len())?.to_be_bytes());
        hash.update(content);
    }
    let digest = data_encoding::HEXLOWER.encode(&hash.finalize());
    Ok(digest.get(..16).unwrap_or_default().to_owned())
}

fn migrations_directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).with_file_name("migrations")
}

/// Carries the process id, by which the sweep knows whose it was.
fn clone_name() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    format!("{CLONE_PREFIX}{}_{number}_{:08x}", std::process::id(), rand::random::<u32>())
}
