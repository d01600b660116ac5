//! Secrets and personal data are planted, and then searched for in everything that comes out: the log of a host that works
//! with them, every row of the database, and what the commands print.

use std::path::Path;
use std::process::{Child, Command, Stdio};

use anyhow::Context as _;
use uuid::Uuid;
use waybill::job::status::Status;
use waybill::store::{self, Creation, NewJob};
use waybill_tests::house::{DESTINATION, TENANT, plugins};
use waybill_tests::object_store::{ACCESS_KEY, SECRET_KEY};
use waybill_tests::sftp_server::Behaviour;
use waybill_tests::{House, ObjectStore, Plan, Reach, SftpServer, Sshd, ssh, wait};

use crate::partners::waybill;

/// The second bundle's destination.
const TELLING: Uuid = Uuid::from_u128(0xde57_0002);
/// The third one's.
const DUMPING: Uuid = Uuid::from_u128(0xde57_0003);
/// The fourth one's.
const QUOTING: Uuid = Uuid::from_u128(0xde57_0004);
const URL_PASSWORD: &str = "canary-url-4711";
const PERSON: &str = "Canary Quillfeather";
const ADDRESS: &str = "canary.quillfeather@example.com";

/// Ends a host that a failed test leaves behind.
struct Serving(Child);

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Serving {
    fn start(house: &House, directory: &Path) -> anyhow::Result<Self> {
        let log = std::fs::File::create(directory.join("log"))?;
        let child = Command::new(env!("CARGO_BIN_EXE_waybill"))
            .env_clear()
            .env("WAYBILL_DATABASE_URL", house.database.url())
            .env("WAYBILL_PARTNERS", house.partners())
            .env("WAYBILL_DATA", directory.join("data"))
            .env("WAYBILL_LOG", "trace")
            .env("CRM_URL", house.database.url().replacen('@', &format!(":{URL_PASSWORD}@"), 1))
            .arg("serve")
            .stdout(log.try_clone()?)
            .stderr(Stdio::from(log))
            .spawn()?;
        Ok(Self(child))
    }

    /// Everything that it said, once it has stopped in good order.
    async fn stop(mut self, directory: &Path) -> anyhow::Result<String> {
        let id = self.0.id().to_string();
        anyhow::ensure!(Command::new("kill").args(["-TERM", &id]).status()?.success(), "it could not be told to stop");
        let ended = tokio::task::spawn_blocking(move || self.0.wait()).await??;
        anyhow::ensure!(ended.success(), "it ended with {ended}");
        Ok(std::fs::read_to_string(directory.join("log"))?)
    }
}

/// The second bundle: its builder tells what it reads, and its server wants a key.
fn telling(house: &House, server: &Sshd) -> anyhow::Result<()> {
    let (acme, other) = (house.partners().join("acme"), house.partners().join("telling"));
    std::fs::create_dir(&other)?;
    std::fs::copy(acme.join("destination.wasm"), other.join("destination.wasm"))?;
    std::fs::copy(plugins()?.join("misbehaving-builder.wasm"), other.join("builder.wasm"))?;
    let manifest = std::fs::read_to_string(acme.join("partner.toml"))?;
    std::fs::write(other.join("partner.toml"), manifest.replace("'acme'", "'telling'"))?;
    let reach = Reach::openssh(server)?;
    std::fs::write(
        other.join("destinations.toml"),
        format!(
            "[[destination]]\nid = '{TELLING}'\nname = 'telling'\ntenant = '{TENANT}'\nhost = '127.0.0.1'\nport = {}\nuser = '{}'\n\
             directory = '.'\nhost_keys = ['{}']\n{}\nsettings = {{ behaviour = 'tell', query = 'rows', name = 'contacts-{{key}}.csv' }}\n\
             [destination.queries.rows]\nurl_env = 'CRM_URL'\nsql = 'select name, email from crm.contacts where tenant_id = :tenant::uuid'\n",
            reach.port, reach.user, reach.host_key, reach.secret
        ),
    )?;
    Ok(())
}

/// A bundle whose destination misbehaves so, and whose place is a bucket.
fn misbehaving(
    house: &House,
    store: &ObjectStore,
    name: &str,
    destination: Uuid,
    settings: &str,
) -> anyhow::Result<()> {
    let (acme, other) = (house.partners().join("acme"), house.partners().join(name));
    std::fs::create_dir(&other)?;
    std::fs::copy(acme.join("builder.wasm"), other.join("builder.wasm"))?;
    std::fs::copy(plugins()?.join("misbehaving-destination.wasm"), other.join("destination.wasm"))?;
    let manifest = std::fs::read_to_string(acme.join("partner.toml"))?;
    std::fs::write(other.join("partner.toml"), manifest.replace("'acme'", &format!("'{name}'")))?;
    std::fs::write(
        other.join("destinations.toml"),
        format!(
            "[[destination]]\nid = '{destination}'\nname = '{name}'\ntenant = '{TENANT}'\n{}\n\
             settings = {{ {settings}, query = 'rows', name = 'contacts-{{key}}.csv' }}\n\
             [destination.queries.rows]\nurl_env = 'CRM_URL'\nsql = 'select name, email from crm.contacts where tenant_id = :tenant::uuid'\n",
            store.place()
        ),
    )?;
    Ok(())
}

async fn create(house: &House, destination: Uuid) -> anyhow::Result<Uuid> {
    let id = Uuid::now_v7();
    let job = NewJob {
        id,
        tenant: TENANT,
        destination,
        scope: serde_json::json!({}),
        not_before: None,
        priority: 0,
        delivery_key: id.simple().to_string(),
        created_by: "rosa".to_owned(),
    };
    anyhow::ensure!(store::create(&house.api, job).await? == Creation::Created);
    Ok(id)
}

/// Every row of every table of the host's own schema.
async fn rows(house: &House) -> anyhow::Result<String> {
    let tables: Vec<String> =
        sqlx::query_scalar("SELECT format('%I', tablename) FROM pg_tables WHERE schemaname = 'public'")
            .fetch_all(&house.admin)
            .await?;
    let mut all = String::new();
    for table in tables {
        let rows: Vec<String> =
            sqlx::query_scalar(sqlx::AssertSqlSafe(format!("SELECT one::text FROM public.{table} AS one")))
                .fetch_all(&house.admin)
                .await?;
        all.extend(rows.iter().map(|row| format!("{table}: {row}\n")));
    }
    Ok(all)
}

#[tokio::test(flavor = "multi_thread")]
async fn plg_08_planted_secrets_and_personal_data_are_in_nothing_that_comes_out() -> anyhow::Result<()> {
    let (directory, keyed) = (tempfile::tempdir()?, Sshd::start().await?);
    let server = SftpServer::start(Behaviour::default()).await?;
    let house =
        House::before(&Reach::in_process(&server, directory.path())?, Plan { rows: 1, ..Plan::default() }).await?;
    sqlx::query("UPDATE crm.contacts SET name = $1, email = $2 WHERE tenant_id = $3")
        .bind(PERSON)
        .bind(ADDRESS)
        .bind(TENANT)
        .execute(&house.admin)
        .await?;
    let destinations = house.partners().join("acme/destinations.toml");
    let text = std::fs::read_to_string(&destinations)?;
    let inline = text.lines().find(|line| line.starts_with("url = ")).context("no url")?.to_owned();
    std::fs::write(&destinations, text.replace(&inline, "url_env = 'CRM_URL'"))?;
    telling(&house, &keyed)?;
    let bucket = ObjectStore::start().await?;
    // The third bundle reports all that it was told, and the fourth a row's values wherever it can.
    misbehaving(&house, &bucket, "dumping", DUMPING, "behaviour = 'dump'")?;
    let quoted = format!("behaviour = 'quote', message = 'they have {PERSON} of {ADDRESS}'");
    misbehaving(&house, &bucket, "quoting", QUOTING, &quoted)?;

    let serving = Serving::start(&house, directory.path())?;
    // Once it is joined, jobs can name it.
    for other in [TELLING, DUMPING, QUOTING] {
        wait::until("the other bundles to be served", async || Ok(store::destination_state(&house.api, other).await?))
            .await?;
    }
    let (delivered, told) = (create(&house, DESTINATION).await?, create(&house, TELLING).await?);
    let (dumped, quoted) = (create(&house, DUMPING).await?, create(&house, QUOTING).await?);
    house.until(quoted, Status::Completed).await?;
    house.until(dumped, Status::Completed).await?;
    house.until(delivered, Status::Completed).await?;
    house.until(told, Status::Failed).await?;
    let file = server.read(&House::final_name(delivered)).context("nothing was delivered")?;
    assert!(String::from_utf8_lossy(&file).contains(PERSON), "the canary was not in the data");

    let mut printed = String::new();
    for arguments in [
        &["partner", "list"][..],
        &["partner", "show", "acme"],
        &["partner", "show", "telling"],
        &["partner", "check", &DESTINATION.to_string()],
        &["partner", "check", &TELLING.to_string()],
        &["plugin", "inspect", &house.partners().join("telling").display().to_string()],
        &["destination", "list"],
        &["job", "show", &delivered.to_string()],
        &["job", "explain", &delivered.to_string()],
        &["job", "explain", &told.to_string()],
        &["job", "show", &dumped.to_string()],
        &["job", "explain", &dumped.to_string()],
        &["job", "show", &quoted.to_string()],
        &["job", "explain", &quoted.to_string()],
        &["job", "list"],
    ] {
        for format in [&[][..], &["--json"]] {
            let ended = waybill(&house, &[arguments, format].concat()).await?;
            ended.says(0, &[]);
            printed += &ended.said;
        }
    }
    let log = serving.stop(directory.path()).await?;
    let database = rows(&house).await?;
    // What is searched is what was said: the guest's words are there, without the values.
    for said in [&log, &database, &printed] {
        assert!(said.contains("the first row holds (a value) and (a value)"), "{said}");
    }
    assert!(database.contains("they have (a value) of (a value)") && log.contains("they have (a value)"), "{log}");
    // All that a plugin is told of its job and its destination is among it.
    let dump = database.lines().find(|line| line.contains("Job {"));
    for told in ["behaviour", "dump", "contacts-{key}.csv", &dumped.simple().to_string()] {
        assert!(dump.is_some_and(|dump| dump.contains(told)), "{told} was not dumped: {dump:?}");
    }
    let key = std::fs::read_to_string(keyed.client_key())?;
    let key = key.lines().nth(2).context("the key is short")?;
    for canary in [ssh::PASSWORD, URL_PASSWORD, key, ACCESS_KEY, SECRET_KEY, PERSON, "Quillfeather", ADDRESS] {
        for (of, said) in [("log", &log), ("database", &database), ("commands", &printed)] {
            let line = said.lines().find(|line| line.contains(canary));
            assert!(line.is_none(), "{canary:?} is in the {of}: {}", line.unwrap_or_default());
        }
    }
    Ok(())
}
