//! A new bundle on its way to a partner's server, as the guides tell it: its directory put before a host that runs,
//! `waybill job create`, and the file is there.
//!
//! Nothing is written for the test but what an operator fills in: the example of `destinations.toml` with a server, an
//! account and a tenant. What builds and passes in `authored` goes this way.

use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use anyhow::Context as _;
use serde_json::Value;
use sqlx::Row as _;
use uuid::Uuid;
use waybill_tests::house::compiled;
use waybill_tests::{Database, Sshd, wait};

use super::stage::{Bench, copy};

const TENANT: Uuid = Uuid::from_u128(0x7e4a_0009);
/// Where nobody compiled it before, a component of an interpreted language takes some seconds to two minutes, by the machine.
const TO_COMPILE: Duration = Duration::from_secs(240);

/// A host that ends with the test.
struct Serving(Child);

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The program with the settings of an operator's shell.
fn program(database: &Database, directory: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_waybill"));
    command
        .env_clear()
        .env("WAYBILL_DATABASE_URL", database.url())
        .env("WAYBILL_PARTNERS", directory.join("partners"))
        .env("WAYBILL_DATA", directory.join("data"))
        .env("WAYBILL_TENANT", TENANT.to_string())
        .env("WAYBILL_AS", "rosa")
        .env("CRM_URL", database.url());
    command
}

fn said(output: &Output) -> String {
    [&output.stdout[..], &output.stderr[..]].iter().map(|part| String::from_utf8_lossy(part)).collect()
}

/// The example that lies in every new bundle, filled in as its comments ask.
fn filled_in(example: &str, server: &Sshd) -> anyhow::Result<String> {
    let places = [
        ("tenant = ", format!("'{TENANT}'")),
        ("host = ", "'127.0.0.1'".to_owned()),
        ("port = ", server.port().to_string()),
        ("user = ", format!("'{}'", server.user())),
        ("host_keys = ", format!("['{}']", server.host_key()?)),
        ("key_file = ", format!("'{}'", server.client_key().display())),
    ];
    let mut lines: Vec<String> = example.lines().map(str::to_owned).collect();
    for (begins, value) in places {
        let mut named = lines.iter_mut().filter(|line| line.starts_with(begins));
        let (Some(line), None) = (named.next(), named.next()) else { anyhow::bail!("not one {begins:?} in {example}") };
        *line = format!("{begins}{value}");
    }
    Ok(lines.join("\n"))
}

/// The rows of the bundle's own case, as they stand in the tenant's database.
async fn fill(database: &Database) -> anyhow::Result<()> {
    let admin = database.admin().await?;
    sqlx::query(
        "CREATE TABLE contacts (tenant_id uuid, country text, number integer, name text, city text, newsletter boolean)",
    )
    .execute(&admin)
    .await?;
    let rows = [
        (TENANT, "DE", 1, "Ada Lovelace", "Berlin", Some(true)),
        (TENANT, "DE", 2, "Jürgen \"Jo\" Groß", "Düsseldorf", Some(false)),
        (TENANT, "DE", 3, "O'Neil, Zoë", "Hamburg\nAltona", None),
        (TENANT, "FR", 4, "Another country's", "Paris", None),
        (Uuid::from_u128(0xbad), "DE", 5, "Another tenant's", "Berlin", None),
    ];
    for (tenant, country, number, name, city, newsletter) in rows {
        sqlx::query("INSERT INTO contacts VALUES ($1, $2, $3, $4, $5, $6)")
            .bind(tenant)
            .bind(country)
            .bind(number)
            .bind(name)
            .bind(city)
            .bind(newsletter)
            .execute(&admin)
            .await?;
    }
    Ok(())
}

/// Serves a bundle that `waybill plugin new` made, and has it deliver its own case's rows to OpenSSH's server.
pub async fn delivers(bench: &Bench) -> anyhow::Result<()> {
    let (server, database, around) = (Sshd::start().await?, Database::fresh().await?, tempfile::tempdir()?);
    let directory = around.path().canonicalize()?;
    fill(&database).await?;
    std::fs::create_dir(server.files().join("inbox"))?;
    let partners = directory.join("partners");
    std::fs::create_dir(&partners)?;
    // What other tests compiled is not compiled again.
    std::fs::create_dir(directory.join("data"))?;
    std::fs::create_dir_all(compiled())?;
    std::os::unix::fs::symlink(compiled(), directory.join("data/compiled"))?;

    let log = directory.join("log");
    let file = std::fs::File::create(&log)?;
    let mut serve = program(&database, &directory);
    serve.arg("serve").stdout(file.try_clone()?).stderr(Stdio::from(file));
    let _serving = Serving(serve.spawn()?);
    let told = || std::fs::read_to_string(&log).unwrap_or_default();

    // Copied where no host looks, as by any tool that takes its time, and put there by its last step.
    let example = String::from_utf8(bench.read("destinations.example.toml")?)?;
    bench.write("destinations.toml", &filled_in(&example, &server)?)?;
    copy(&bench.bundle(), &partners.join(".acme"))?;
    std::fs::rename(partners.join(".acme"), partners.join("acme"))?;
    let admin = database.admin().await?;
    wait::until_within(TO_COMPILE, "the destination to be joined", async || {
        Ok(sqlx::query("SELECT id FROM destinations WHERE name = 'acme'").fetch_optional(&admin).await?)
    })
    .await
    .with_context(told)?;

    let create = ["job", "create", "--destination", "acme", "--scope", "country=DE", "--key", "K-1001", "--json"];
    let created = program(&database, &directory).args(create).output()?;
    let answer: Value = serde_json::from_slice(&created.stdout).with_context(|| said(&created))?;
    let job: Uuid = answer.get("job").and_then(Value::as_str).context("it has no id")?.parse()?;
    let row = wait::until_within(TO_COMPILE, "the job to end", async || {
        let row = sqlx::query(
            "SELECT status, failure_reason, to_char(created_at AT TIME ZONE 'UTC', 'YYYYMMDD') AS day FROM export_jobs WHERE id = $1",
        )
        .bind(job)
        .fetch_one(&admin)
        .await?;
        let status: String = row.try_get("status")?;
        Ok((!["Queued", "Running", "Delivering"].contains(&status.as_str())).then_some(row))
    })
    .await
    .with_context(told)?;
    let stands: (String, Option<String>) = (row.try_get("status")?, row.try_get("failure_reason")?);
    assert_eq!(stands, ("Completed".to_owned(), None), "{}", told());

    // The partner finds what the bundle's own case expects, and what its importer starts on.
    let name = format!("contacts-{}-K-1001.csv", row.try_get::<String, _>("day")?);
    let mut there: Vec<(String, Vec<u8>)> = Vec::new();
    for entry in std::fs::read_dir(server.files().join("inbox"))? {
        let entry = entry?;
        there.push((entry.file_name().to_string_lossy().into_owned(), std::fs::read(entry.path())?));
    }
    there.sort();
    let expected = [(name.clone(), bench.read("tests/golden/contacts.csv")?), (format!("{name}.done"), Vec::new())];
    assert_eq!(there, expected);
    assert_eq!(server.times_created(&format!("inbox/{name}"))?, 1);
    Ok(())
}
