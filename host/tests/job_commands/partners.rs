//! `waybill partner` and `waybill plugin inspect`, before real servers.

use std::path::Path;
use std::process::{Command, Output};

use anyhow::Context as _;
use serde_json::Value;
use waybill_tests::house::{DESTINATION, TENANT};
use waybill_tests::object_store::{ACCESS_KEY, Manners, SECRET_KEY};
use waybill_tests::sftp_server::{Behaviour, HardLink, RenameOver};
use waybill_tests::{House, ObjectStore, Plan, Reach, SftpServer, Sshd};

use crate::stage::Ended;

/// Runs the program as rosa, on the house's database and partners directory.
pub async fn waybill(house: &House, arguments: &[&str]) -> anyhow::Result<Ended> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_waybill"));
    command
        .env_clear()
        .env("WAYBILL_DATABASE_URL", house.database.url())
        .env("WAYBILL_PARTNERS", house.partners())
        .env("WAYBILL_TENANT", TENANT.to_string())
        .env("WAYBILL_AS", "rosa")
        .env("CRM_URL", house.database.url())
        .args(arguments);
    // The partner's server may live in this process.
    let output: Output = tokio::task::spawn_blocking(move || command.output()).await??;
    let said = String::from_utf8(output.stdout)? + &String::from_utf8(output.stderr)?;
    Ok(Ended { code: output.status.code().context("ended by a signal")?, said })
}

pub async fn check(house: &House) -> anyhow::Result<Ended> {
    waybill(house, &["partner", "check", &DESTINATION.to_string()]).await
}

pub async fn enable(house: &House) -> anyhow::Result<Ended> {
    waybill(house, &["partner", "enable", &DESTINATION.to_string(), "--reason", "the partner confirmed"]).await
}

/// Before the in-process server, whose password lies in this directory.
pub async fn before(server: &SftpServer, directory: &Path, contract: &str) -> anyhow::Result<House> {
    let manifest = format!("[names]\nfinal = 'contacts-{{key}}.csv'\n[contract]\n{contract}\n");
    House::before(&Reach::in_process(server, directory)?, Plan { manifest, ..Plan::default() }).await
}

/// The points that contradict, by their words.
pub fn against(report: &Value) -> Vec<String> {
    let findings = report.get("findings").and_then(Value::as_array).cloned().unwrap_or_default();
    let against =
        findings.into_iter().filter(|finding| finding.get("stands").is_some_and(|stands| stands == "contradicts"));
    against.filter_map(|finding| Some(finding.get("about")?.as_str()?.to_owned())).collect()
}

#[tokio::test]
async fn plg_01_a_partner_is_checked_shown_and_enabled() -> anyhow::Result<()> {
    let server = Sshd::start().await?;
    let house = House::before(&Reach::openssh(&server)?, Plan::default()).await?;
    enable(&house).await?.says(4, &["Refused", "nothing was shown yet of the server", "waybill partner check"]);
    waybill(&house, &["partner", "list"])
        .await?
        .says(0, &["acme", &DESTINATION.to_string(), "ready", "never as it is now"]);

    let checked = check(&house).await?;
    checked.says(
        0,
        &[
            "Agrees: nothing that was seen contradicts the contract",
            "SSH-2.0-OpenSSH",
            "hardlink@openssh.com",
            "free space",
            "0 entries",
            "agrees       publish: a file gets its final name by a hard link",
            "agrees       publishes_whole",
            "agrees       may_remove_temporaries",
            "agrees       reading back",
            "not shown    rename_one_step",
        ],
    );
    assert_eq!(std::fs::read_dir(server.files())?.count(), 0, "scratch files are left");
    let created: Vec<String> =
        server.operations()?.iter().filter_map(|done| done.operation.creates().map(str::to_owned)).collect();
    assert!(created.len() > 5, "{created:?}");
    for path in &created {
        let name = path.rsplit('/').next().unwrap_or_default();
        assert!(
            name.strip_prefix('.').and_then(|name| name.strip_suffix(".part")).is_some(),
            "not a temporary name: {path}"
        );
    }
    let row: (String, Value, Value, Value, Option<String>) = sqlx::query_as(
        "SELECT requested_by, server, proof, seen, problem FROM destination_checks WHERE finished_at IS NOT NULL",
    )
    .fetch_one(&house.admin)
    .await?;
    assert_eq!((row.0.as_str(), row.4), ("rosa", None));
    assert!(row.1["banner"].as_str().is_some_and(|banner| banner.starts_with("SSH-2.0-OpenSSH")), "{}", row.1);
    assert_eq!(
        (&row.2["link_refuses"]["shown"], &row.3["reads_back"]["shown"]),
        (&Value::Bool(true), &Value::Bool(true))
    );

    waybill(&house, &["partner", "list"]).await?.says(0, &["agrees ("]);
    let shown = waybill(&house, &["partner", "show", "acme"]).await?;
    shown.says(
        0,
        &["acme, revision 1", "final names appear only whole", "builder.wasm", "key in the file", "agrees (", "rows"],
    );
    let json = waybill(&house, &["partner", "show", "acme", "--json"]).await?.json()?;
    assert_eq!(
        json["destinations"][0]["stands"]["checked"].as_str().map(|text| text.starts_with("agrees")),
        Some(true)
    );
    waybill(&house, &["partner", "show", "nobody"]).await?.says(3, &["NotFound", "waybill partner list"]);
    waybill(&house, &["partner", "check", "nobody"]).await?.says(3, &["NotFound", "waybill partner list"]);
    Ok(())
}

#[tokio::test]
async fn plg_01_a_directory_is_checked_shown_and_enabled_as_a_server_is() -> anyhow::Result<()> {
    let around = tempfile::tempdir()?;
    let outbox = around.path().join("outbox");
    let house = House::at(&format!("path = '{}'\nmarker = '.mounted'", outbox.display()), Plan::default()).await?;
    check(&house).await?.says(4, &["NotPossible", "outbox cannot serve", "does not exist; create it"]);
    std::fs::create_dir(&outbox)?;
    check(&house).await?.says(5, &["NotPossible", "outbox cannot be reached", ".mounted", "is not mounted"]);
    enable(&house).await?.says(4, &["Refused", "is not mounted"]);
    std::fs::write(outbox.join(".mounted"), b"")?;
    let checked = check(&house).await?;
    checked.says(
        0,
        &[
            "Agrees: nothing that was seen contradicts the contract",
            "a directory on ",
            "free space",
            "1 entries",
            "agrees       publish: a file gets its final name by a hard link",
            "agrees       may_remove_temporaries",
            "agrees       reading back",
        ],
    );
    assert!(!checked.said.contains("extensions"), "{}", checked.said);
    assert_eq!(std::fs::read_dir(&outbox)?.count(), 1, "scratch files are left");
    enable(&house).await?.says(0, &["Enabled"]);
    let shown = waybill(&house, &["partner", "show", "acme"]).await?;
    shown.says(0, &["acme, revision 1", &format!("{}", outbox.display()), "agrees (", "rows"]);
    assert!(!shown.said.contains("logs in by"), "{}", shown.said);
    let json = waybill(&house, &["partner", "show", "acme", "--json"]).await?.json()?;
    assert_eq!(json["destinations"][0]["secret"], Value::Null);
    Ok(())
}

#[tokio::test]
async fn del_05_a_store_that_replaces_all_the_same_is_found_out_and_one_that_refuses_is_enabled() -> anyhow::Result<()>
{
    let store = ObjectStore::start().await?;
    let house = House::at(&store.place(), Plan::default()).await?;
    store.set_manners(Manners { keeps_condition: false, ..Manners::default() });
    let replaces = check(&house).await?;
    replaces.says(4, &["CONTRADICTS  publish:", "an existing object was not kept", "If-None-Match"]);
    assert!(!replaces.said.contains("exclusive_create"), "{}", replaces.said);
    enable(&house).await?.says(4, &["Refused", "an existing object was not kept"]);
    store.set_manners(Manners { has_bucket: false, ..Manners::default() });
    check(&house).await?.says(4, &["NotPossible", "it has no bucket", "correct `bucket`"]);

    store.set_manners(Manners::default());
    let checked = check(&house).await?;
    checked.says(
        0,
        &[
            "Agrees: nothing that was seen contradicts the contract",
            "an S3 store (waybill-test)",
            "agrees       publish: one request creates the final name with the whole file",
            "agrees       publishes_whole: an object appears whole or not at all",
            "agrees       may_remove_temporaries",
            "agrees       reading back",
        ],
    );
    assert_eq!(store.keys(), [""; 0], "scratch objects are left");
    enable(&house).await?.says(0, &["Enabled"]);
    let shown = waybill(&house, &["partner", "show", "acme", "--json"]).await?;
    assert!(shown.said.contains("/deliveries/in"), "{}", shown.said);
    for said in [replaces.said, checked.said, shown.said] {
        assert!(!said.contains(ACCESS_KEY) && !said.contains(SECRET_KEY), "{said}");
    }
    Ok(())
}

#[tokio::test]
async fn plg_01_the_switch_is_recorded_with_who_and_why_and_holds_jobs() -> anyhow::Result<()> {
    let server = Sshd::start().await?;
    let house = House::before(&Reach::openssh(&server)?, Plan::default()).await?;
    let id = DESTINATION.to_string();
    let disabled = waybill(&house, &["partner", "disable", &id, "--reason", "they move their server"]).await?;
    disabled.says(0, &["Disabled: its jobs wait in the queue"]);
    waybill(&house, &["partner", "list"]).await?.says(0, &["disabled"]);
    let whole = format!("waybill partner enable {id} --tenant {TENANT} --reason WHY --as YOU");
    check(&house).await?.says(0, &["Agrees", &whole]);
    enable(&house).await?.says(0, &["Enabled: its jobs run again"]);
    waybill(&house, &["partner", "list"]).await?.says(0, &["ready"]);
    let rows: Vec<(String, String, String, Value)> =
        sqlx::query_as("SELECT actor, action, target, detail FROM audit ORDER BY id").fetch_all(&house.admin).await?;
    let [off, on] = rows.as_slice() else { panic!("{rows:?}") };
    assert_eq!((off.0.as_str(), off.1.as_str(), off.2.as_str()), ("rosa", "disable_destination", id.as_str()));
    assert_eq!((&off.3["reason"], &off.3["was_enabled"]), (&Value::from("they move their server"), &Value::Bool(true)));
    assert_eq!((on.1.as_str(), &on.3["was_enabled"]), ("enable_destination", &Value::Bool(false)));
    for command in ["enable", "disable"] {
        let other = uuid::Uuid::nil().to_string();
        waybill(&house, &["partner", command, &other, "--reason", "why"]).await?.says(3, &["NotFound"]);
        waybill(&house, &["partner", command, &id, "--reason", " "]).await?.says(2, &["needs words"]);
        waybill(&house, &["partner", command, &id]).await?.says(2, &["--reason"]);
    }
    Ok(())
}

#[tokio::test]
async fn cli_01_what_needs_attention_is_told_with_the_command_that_ends_it() -> anyhow::Result<()> {
    let server = Sshd::start().await?;
    let house = House::before(&Reach::openssh(&server)?, Plan::default()).await?;
    let silent = check(&house).await?;
    assert!(!silent.said.contains("destination resume"), "{}", silent.said);
    sqlx::query("UPDATE destinations SET attention_since = clock_timestamp(), attention_why = 'our key was refused'")
        .execute(&house.admin)
        .await?;
    let command = format!("waybill destination resume {DESTINATION} --tenant {TENANT} --as YOU");
    check(&house).await?.says(0, &["Agrees", "still needs attention", &command]);
    waybill(&house, &["partner", "list"]).await?.says(0, &["our key was refused", &command]);
    waybill(&house, &["partner", "show", "acme"]).await?.says(0, &[&command]);
    Ok(())
}

#[tokio::test]
async fn plg_01_a_destination_is_named_by_its_id_or_by_its_name() -> anyhow::Result<()> {
    let server = Sshd::start().await?;
    let house = House::before(&Reach::openssh(&server)?, Plan::default()).await?;
    let name = "acme";
    waybill(&house, &["partner", "check", name]).await?.says(0, &["Agrees"]);
    for command in ["disable", "enable"] {
        waybill(&house, &["partner", command, name, "--reason", "why"]).await?.says(0, &["ed: "]);
        let nobodys = waybill(&house, &["partner", command, "nobody's", "--reason", "why", "--json"]).await?;
        nobodys.says(3, &["NotFound", "nobody's", "waybill destination list"]);
    }
    waybill(&house, &["destination", "resume", name]).await?.says(0, &["Nothing had held it up"]);
    waybill(&house, &["destination", "resume", "nobody's"]).await?.says(3, &["NotFound", "nobody's"]);
    let created = waybill(&house, &["job", "create", "--destination", name, "--json"]).await?;
    created.says(0, &["delivery_key"]);
    let job = created.json()?["job"].as_str().context("it has no id")?.to_owned();
    waybill(&house, &["job", "create", "--destination", "nobody's"])
        .await?
        .says(3, &["NoSuchDestination", "nobody's", "waybill destination list", "must have started once"]);
    waybill(&house, &["job", "list", "--destination", name]).await?.says(0, &[&job]);
    waybill(&house, &["job", "list", "--destination", "nobody's"]).await?.says(3, &["NoSuchDestination", "nobody's"]);
    waybill(&house, &["destination", "resume", name, "--as", " "]).await?.says(2, &["needs words"]);
    let edit = async |to: &str| waybill(&house, &["job", "edit", &job, "--version", "1", "--destination", to]).await;
    edit("nobody's").await?.says(4, &["NoSuchDestination", "nobody's", "Nothing was changed"]);
    edit(name).await?.says(0, &["Changed", &DESTINATION.to_string()]);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn plg_01_a_check_of_another_server_enables_nothing() -> anyhow::Result<()> {
    let directory = tempfile::tempdir()?;
    let here = SftpServer::start(Behaviour::default()).await?;
    let replaces =
        Behaviour { rename_over: RenameOver::Replaces, hard_link: HardLink::NotOffered, ..Behaviour::default() };
    let there = SftpServer::start(replaces).await?;
    let house = before(&here, directory.path(), "publishes_whole = true").await?;
    let registrar = house.registrar().await?;
    registrar.run_once().await?;
    let id = DESTINATION.to_string();
    waybill(&house, &["partner", "disable", &id, "--reason", "they move their server"]).await?.says(0, &["Disabled"]);
    check(&house).await?.says(0, &["Agrees"]);

    let entry = house.partners().join("acme/destinations.toml");
    let first = std::fs::read_to_string(&entry)?;
    let port = |server: &SftpServer| format!("port = {}", server.port());
    let moved = first.replace(&port(&here), &port(&there)).replace(here.host_key(), there.host_key());
    // Contents are taken in once two looks found the same.
    let join = async |text: &str| -> anyhow::Result<()> {
        std::fs::write(&entry, text)?;
        registrar.run_once().await?;
        anyhow::ensure!(!registrar.run_once().await?.is_empty(), "the change was not taken in");
        Ok(())
    };
    join(&moved).await?;
    waybill(&house, &["partner", "list"]).await?.says(0, &["disabled", "never as it is now"]);
    enable(&house).await?.says(4, &["Refused", "nothing was shown yet of the server that destinations.toml names now"]);
    check(&house).await?.says(4, &["CONTRADICTS  publish:", "RENAME replaces"]);
    enable(&house).await?.says(4, &["Refused", "RENAME replaces"]);

    join(&first).await?;
    waybill(&house, &["partner", "list"]).await?.says(0, &["agrees (", ", by rosa)"]);
    enable(&house).await?.says(0, &["Enabled"]);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn plg_08_a_check_that_is_not_possible_says_why_and_no_secret() -> anyhow::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    let directory = tempfile::tempdir()?;
    let server = SftpServer::start(Behaviour::default()).await?;
    let reach = Reach::in_process(&server, directory.path())?;
    let house = House::before(&reach, Plan::default()).await?;
    let password = directory.path().join("password");
    std::fs::write(&password, "canary-password-4711")?;
    std::fs::set_permissions(&password, std::fs::Permissions::from_mode(0o600))?;
    let refused = check(&house).await?;
    refused.says(4, &["NotPossible", "does not accept user", &password.display().to_string()]);
    drop(server);
    let unreachable = check(&house).await?;
    unreachable.says(5, &["NotPossible", "cannot be reached"]);
    let problems: Vec<String> = sqlx::query_scalar("SELECT problem FROM destination_checks ORDER BY finished_at")
        .fetch_all(&house.admin)
        .await?;
    assert_eq!(problems.len(), 2, "{problems:?}");
    enable(&house).await?.says(4, &["Refused", "proved nothing", "cannot be reached"]);
    for said in [&refused.said, &unreachable.said].into_iter().chain(&problems) {
        assert!(!said.contains("canary"), "a secret was told: {said}");
    }
    Ok(())
}

#[tokio::test]
async fn plg_02_inspect_tells_what_a_bundle_is_and_everything_that_is_wrong_with_it() -> anyhow::Result<()> {
    let server = Sshd::start().await?;
    let house = House::before(&Reach::openssh(&server)?, Plan::default()).await?;
    let bundle = house.partners().join("acme");
    let path = bundle.display().to_string();
    let inspect = |more: &'static [&'static str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_waybill"))
            .env_clear()
            .args(["plugin", "inspect", &path])
            .args(more)
            .output()?;
        let said = String::from_utf8(output.stdout)? + &String::from_utf8(output.stderr)?;
        anyhow::Ok(Ended { code: output.status.code().context("ended by a signal")?, said })
    };
    inspect(&[])?.says(
        0,
        &[
            "bundle acme",
            "acme, revision 1",
            "built for waybill:partner 0.2.0",
            "waybill:partner/remote@0.2.0",
            "memory 256 MiB",
            "Sound",
            "Not looked at: the settings under [options]",
            "`waybill plugin test`",
        ],
    );
    // As its author has it.
    std::fs::remove_file(bundle.join("destinations.toml"))?;
    inspect(&[])?.says(0, &["Sound"]);
    std::fs::write(bundle.join("builder.wasm"), "#!/bin/sh\n")?;
    std::fs::write(bundle.join("destination.wasm"), b"\0asm\x0d\0\x01\0")?;
    let broken = inspect(&["--json"])?;
    let problems = broken.json()?["bundle"]["problems"].clone();
    assert_eq!((broken.code, problems.as_array().map(Vec::len)), (4, Some(2)), "{}", broken.said);
    broken.says(4, &["builder.wasm is not WebAssembly", "does not export `final-name`", "Refused"]);
    waybill(&house, &["partner", "list"]).await?.says(0, &["acme", "refused", "destinations.toml cannot be read"]);
    waybill(&house, &["partner", "show", "acme"]).await?.says(4, &["problems"]);
    std::fs::write(bundle.join("partner.toml"), "partner = 'acme'\nrevision = 0\n")?;
    inspect(&[])?.says(4, &["partner.toml line 1", "`names` is missing"]);
    Ok(())
}
