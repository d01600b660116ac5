//! What a host needs to start and does not find.

use tokio_util::sync::CancellationToken;
use waybill::app::Host;
use waybill::config::Config;
use waybill::embedded::openssh::{self, OpenSsh};
use waybill::embedded::postgres::{self, Postgres};
use waybill_tests::Database;

use super::assert_sentence;

/// A configuration with a database, and with directories that are not there yet.
fn config(url: String, directory: &std::path::Path) -> Config {
    let mut config = Config::default();
    config.database.url = Some(url);
    config.directories.partners = directory.join("partners");
    config.directories.data = directory.join("data");
    config
}

async fn refusal(config: &Config) -> anyhow::Result<String> {
    match Host::start(config, CancellationToken::new()).await {
        Ok(_) => anyhow::bail!("the host started"),
        Err(error) => Ok(format!("{error:#}")),
    }
}

#[tokio::test]
async fn bad_input_a_partners_directory_without_a_bundle_is_told_with_what_belongs_there() -> anyhow::Result<()> {
    let (database, directory) = (Database::fresh().await?, tempfile::tempdir()?);
    let config = config(database.url(), directory.path());
    let partners = config.directories.partners.display().to_string();
    assert_sentence(&refusal(&config).await?, &["partners directory", &partners, "make it"]);
    std::fs::create_dir(&partners)?;
    let files = ["partner.toml", "builder.wasm", "destination.wasm", "destinations.toml"];
    // It starts, and waits for one.
    let summary = Host::start(&config, CancellationToken::new()).await?.summary();
    let last = summary.trim_end().lines().last().unwrap_or_default();
    assert_sentence(last, &[&["until a bundle is put there"], files.as_slice()].concat());
    assert!(summary.contains(&partners), "{summary}");
    std::fs::create_dir(config.directories.partners.join("acme"))?;
    let summary = Host::start(&config, CancellationToken::new()).await?.summary();
    let told = summary.lines().find(|line| line.contains("acme")).unwrap_or_default();
    assert_sentence(told, &["acme", "partner.toml", "cannot be read"]);
    let joined: i64 =
        sqlx::query_scalar("SELECT count(*) FROM destinations").fetch_one(&database.admin().await?).await?;
    assert_eq!(joined, 0);
    Ok(())
}

#[tokio::test]
async fn bad_input_a_database_that_was_not_migrated_or_does_not_answer_is_told() -> anyhow::Result<()> {
    let (database, directory) = (Database::sql_ascii().await?, tempfile::tempdir()?);
    std::fs::create_dir(directory.path().join("partners"))?;
    let port = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
    let url = format!("postgres://someone:canary-77@127.0.0.1:{port}/waybill");
    let sentence = refusal(&config(url, directory.path())).await?;
    assert_sentence(&sentence, &["waybill_worker", &format!("127.0.0.1:{port}/waybill"), "refused", "waybill migrate"]);
    assert!(!sentence.contains("canary"), "a secret was told: {sentence}");
    let missing = database.url().replace(database.name(), "waybill_nowhere");
    let sentence = refusal(&config(missing, directory.path())).await?;
    assert_sentence(&sentence, &["waybill_worker", "waybill_nowhere", "does not exist"]);
    assert!(!directory.path().join("data").exists(), "state was made before the database was reached");
    Ok(())
}

#[tokio::test]
async fn bad_input_a_port_in_use_is_named_with_what_to_do() -> anyhow::Result<()> {
    let taken = std::net::TcpListener::bind("127.0.0.1:0")?;
    let port = taken.local_addr()?.port();
    let directory = tempfile::tempdir()?;
    let settings = openssh::Settings {
        directory: directory.path().join("server"),
        files: directory.path().join("files"),
        port: Some(port),
    };
    let sentence = match OpenSsh::start(&settings).await {
        Ok(_) => panic!("two servers listen on one port"),
        Err(error) => error.to_string(),
    };
    assert_sentence(&sentence, &[&format!("port {port}"), "taken", "choose another port"]);
    // Nothing of that try is in the way of the next one.
    drop(taken);
    assert_eq!(OpenSsh::start(&settings).await?.port(), port);
    Ok(())
}

#[tokio::test]
async fn bad_input_missing_postgresql_programs_are_told_with_what_to_install() -> anyhow::Result<()> {
    let (directory, programs) = (tempfile::tempdir()?, tempfile::tempdir()?);
    let settings = postgres::Settings {
        programs: Some(programs.path().to_owned()),
        ..postgres::Settings::new(directory.path().join("postgres"))
    };
    let sentence = match Postgres::start(&settings).await {
        Ok(_) => panic!("it started without programs"),
        Err(error) => error.to_string(),
    };
    assert_sentence(&sentence, &[&programs.path().display().to_string(), "initdb", "apt-get install postgresql"]);
    assert!(!settings.directory.join("data").exists(), "a database was begun");
    Ok(())
}
