use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::{ConnectOptions, Connection, Executor};
use waybill::embedded::postgres::{Address, Durability, Postgres, PostgresError, SUPERUSER, Settings, running};

fn settings(directory: &tempfile::TempDir) -> Settings {
    Settings { durability: Durability::None, ..Settings::new(directory.path()) }
}

async fn connect(address: &Address) -> anyhow::Result<PgConnection> {
    let options = PgConnectOptions::new_without_pgpass().host(&address.socket_directory.to_string_lossy());
    Ok(options.port(address.port).username(SUPERUSER).database("postgres").connect().await?)
}

#[tokio::test]
async fn kit_postgres_keeps_what_was_written_over_a_stop_and_a_start() -> anyhow::Result<()> {
    let directory = tempfile::tempdir()?;
    let server = Postgres::start(&settings(&directory)).await?;
    let mut connection = connect(server.address()).await?;
    connection.execute("CREATE TABLE kept AS SELECT 7 AS number").await?;
    let listens: String = sqlx::query_scalar("SHOW listen_addresses").fetch_one(&mut connection).await?;
    assert_eq!(listens, "", "it listens on TCP");
    connection.close().await?;
    server.stop().await?;
    assert_eq!(running(directory.path()), None);

    let server = Postgres::start(&settings(&directory)).await?;
    let number: i32 =
        sqlx::query_scalar("SELECT number FROM kept").fetch_one(&mut connect(server.address()).await?).await?;
    assert_eq!(number, 7);
    drop(server);
    assert_eq!(running(directory.path()), None, "a dropped server still runs");
    Ok(())
}

#[tokio::test]
async fn kit_postgres_of_a_directory_runs_once() -> anyhow::Result<()> {
    let directory = tempfile::tempdir()?;
    let first = Postgres::start(&settings(&directory)).await?;
    let second = Postgres::start(&settings(&directory)).await;
    assert!(matches!(second, Err(PostgresError::InUse { .. })), "{second:?}");
    connect(first.address()).await?;
    Ok(())
}

#[tokio::test]
async fn kit_postgres_left_behind_is_replaced() -> anyhow::Result<()> {
    let directory = tempfile::tempdir()?;
    // What a killed process leaves: a server that runs, and a lock that is free.
    let left = Postgres::start(&settings(&directory)).await?.leave_running();
    let mut session = connect(&left).await?;
    assert_eq!(running(directory.path()), Some(left));
    let server = Postgres::start(&settings(&directory)).await?;
    assert!(session.ping().await.is_err(), "the server that was left still serves");
    connect(server.address()).await?;
    Ok(())
}

#[tokio::test]
async fn kit_postgres_tells_of_its_death_with_the_end_of_its_log() -> anyhow::Result<()> {
    let directory = tempfile::tempdir()?;
    let mut server = Postgres::start(&settings(&directory)).await?;
    let pid = fs::read_to_string(directory.path().join("data/postmaster.pid"))?;
    let pid = rustix::process::Pid::from_raw(pid.lines().next().unwrap_or_default().parse()?).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::QUIT)?;
    let death = tokio::time::timeout(Duration::from_secs(20), server.died()).await?;
    assert!(death.to_string().contains("immediate shutdown"), "{death}");
    drop(server);
    // The stale pid file of that crash does not stop the next start.
    connect(Postgres::start(&settings(&directory)).await?.address()).await?;
    Ok(())
}

#[tokio::test]
async fn kit_postgres_that_cannot_start_says_why() -> anyhow::Result<()> {
    let directory = tempfile::tempdir()?;
    Postgres::start(&settings(&directory)).await?.stop().await?;
    fs::write(directory.path().join("data/postgresql.conf"), "shared_buffers = 'a lot'\n")?;
    let refused = Postgres::start(&settings(&directory)).await.unwrap_err();
    assert!(matches!(refused, PostgresError::Died { .. }), "{refused:?}");
    assert!(refused.to_string().contains("shared_buffers"), "{refused}");
    Ok(())
}

#[tokio::test]
async fn kit_postgres_names_the_parent_that_its_account_cannot_enter() -> anyhow::Result<()> {
    if !rustix::process::geteuid().is_root() {
        // Only root runs the server as somebody else.
        return Ok(());
    }
    let closed = tempfile::tempdir()?;
    fs::set_permissions(closed.path(), fs::Permissions::from_mode(0o700))?;
    let refused = Postgres::start(&Settings::new(closed.path().join("inside"))).await.unwrap_err();
    assert!(matches!(&refused, PostgresError::Unreachable { blocked, .. } if blocked == closed.path()), "{refused:?}");
    Ok(())
}

#[tokio::test]
async fn kit_postgres_programs_that_are_missing_are_named() -> anyhow::Result<()> {
    let directory = tempfile::tempdir()?;
    let settings = Settings { programs: Some("/nowhere".into()), ..settings(&directory) };
    let refused = Postgres::start(&settings).await.unwrap_err();
    assert!(matches!(refused, PostgresError::NoServerIn { .. }), "{refused:?}");
    Ok(())
}
