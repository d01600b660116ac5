//! A PostgreSQL of a test's own, and a copy of it that is promoted: what a restore, or a failover to a standby that lagged,
//! leaves behind.
//!
//! The copy is made by `pg_basebackup` while the primary runs. It replays what it has and goes on under a timeline of its
//! own, so whatever the primary commits after the copy was made is lost to it, as in a real loss.

use std::os::unix::fs::{MetadataExt, chown};
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use sqlx::postgres::PgConnectOptions;
use sqlx::{ConnectOptions as _, Connection as _, PgConnection};
use tempfile::TempDir;
use tokio::process::Command;
use waybill::embedded::postgres::{Address, Durability, Postgres, SUPERUSER, Settings};

use crate::Database;

/// The database that both servers hold.
const DATABASE: &str = "waybill";

/// A running server. It ends when this is dropped, before its directory goes.
pub struct Server {
    postgres: Postgres,
    directory: TempDir,
}

/// A copy that was not started yet.
pub struct Copy(TempDir);

impl Server {
    /// A fresh server with the migrated schema.
    pub async fn primary() -> anyhow::Result<Self> {
        let server = Self::start(tempfile::tempdir()?).await?;
        let mut connection = server.maintenance().await?;
        sqlx::query("CREATE DATABASE waybill").execute(&mut connection).await?;
        connection.close().await?;
        waybill::store::migrate(&server.address().url(SUPERUSER, DATABASE)).await.context("migrating the primary")?;
        Ok(server)
    }

    async fn start(directory: TempDir) -> anyhow::Result<Self> {
        let settings = Settings { durability: Durability::None, ..Settings::new(directory.path()) };
        let postgres = Postgres::start(&settings).await.context("starting a PostgreSQL of the test's own")?;
        Ok(Self { postgres, directory })
    }

    pub fn database(&self) -> Database {
        Database::of_server(self.address(), DATABASE)
    }

    /// Copies everything that is committed now.
    pub async fn copy(&self) -> anyhow::Result<Copy> {
        let mut connection = self.maintenance().await?;
        let programs: String = sqlx::query_scalar("SELECT setting FROM pg_config() WHERE name = 'BINDIR'")
            .fetch_one(&mut connection)
            .await?;
        connection.close().await?;
        let copy = tempfile::tempdir()?;
        let data = copy.path().join("data");
        // The copy is written, and later run, under the account that the primary runs under.
        let owner = std::fs::metadata(self.directory.path().join("data"))?;
        chown(copy.path(), Some(owner.uid()), Some(owner.gid()))?;
        let output = Command::new(PathBuf::from(programs).join("pg_basebackup"))
            .current_dir("/")
            .uid(owner.uid())
            .gid(owner.gid())
            .args(["--checkpoint=fast", "--wal-method=stream", "--no-sync", "--no-password", "--username", SUPERUSER])
            .arg("--host")
            .arg(&self.address().socket_directory)
            .arg(format!("--port={}", self.address().port))
            .arg("--pgdata")
            .arg(&data)
            .output()
            .await
            .context("running pg_basebackup")?;
        ensure!(output.status.success(), "pg_basebackup: {}", String::from_utf8_lossy(&output.stderr).trim());
        // Archive recovery without an archive: it replays what was copied, and ends on a new timeline. Nobody gets in before
        // that, so that what answers may be written to.
        append(&data.join("postgresql.auto.conf"), "restore_command = 'false'\nhot_standby = off\n")?;
        std::fs::write(data.join("recovery.signal"), "")?;
        Ok(Copy(copy))
    }

    pub async fn stop(self) -> anyhow::Result<()> {
        Ok(self.postgres.stop().await?)
    }

    /// The timeline that is written now, by its log file's name.
    pub async fn timeline(&self) -> anyhow::Result<i64> {
        let mut connection = self.maintenance().await?;
        let name: String =
            sqlx::query_scalar("SELECT pg_walfile_name(pg_current_wal_lsn())").fetch_one(&mut connection).await?;
        connection.close().await?;
        Ok(i64::from_str_radix(name.get(..8).unwrap_or_default(), 16)?)
    }

    fn address(&self) -> &Address {
        self.postgres.address()
    }

    async fn maintenance(&self) -> anyhow::Result<PgConnection> {
        let options = PgConnectOptions::new_without_pgpass()
            .host(&self.address().socket_directory.to_string_lossy())
            .port(self.address().port)
            .username(SUPERUSER)
            .database("postgres");
        Ok(options.connect().await?)
    }
}

impl Copy {
    /// Starts it as the new primary.
    pub async fn promote(self) -> anyhow::Result<Server> {
        Server::start(self.0).await
    }
}

fn append(file: &Path, line: &str) -> anyhow::Result<()> {
    use std::io::Write as _;
    let mut file = std::fs::OpenOptions::new().append(true).open(file)?;
    Ok(file.write_all(line.as_bytes())?)
}
