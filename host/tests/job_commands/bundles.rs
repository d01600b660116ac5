//! What `waybill partner list` says of bundles that are not served as they lie there, and a host that is told to end while it
//! compiles its first one.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::Context as _;
use uuid::Uuid;
use waybill_tests::house::{DESTINATION, TENANT, plugins};
use waybill_tests::{House, Plan, Reach, Sshd, wait};

use crate::partners::waybill;

fn edit(file: &Path, from: &str, to: &str) -> anyhow::Result<()> {
    let text = std::fs::read_to_string(file)?;
    anyhow::ensure!(text.contains(from), "{from:?} is not in {text}");
    Ok(std::fs::write(file, text.replace(from, to))?)
}

/// How the destinations of a bundle stand, and why.
async fn stands(house: &House, bundle: &str) -> anyhow::Result<(String, String)> {
    let listed = waybill(house, &["partner", "list", "--json"]).await?.json()?;
    let bundles = listed.as_array().context("no list")?;
    let one = bundles.iter().find(|one| one["bundle"] == bundle).context("it is not listed")?;
    let text = |key: &str| {
        let value = one.pointer("/destinations/0").and_then(|one| one.get(key));
        value.and_then(serde_json::Value::as_str).unwrap_or_default().to_owned()
    };
    Ok((text("stands"), text("why")))
}

#[tokio::test]
async fn plg_02_the_list_says_what_is_not_served_as_it_lies_there() -> anyhow::Result<()> {
    let server = Sshd::start().await?;
    let house = House::before(&Reach::openssh(&server)?, Plan::default()).await?;
    let acme = house.partners().join("acme");
    let (manifest, destinations) = (acme.join("partner.toml"), acme.join("destinations.toml"));
    let good = [std::fs::read(&manifest)?, std::fs::read(&destinations)?];
    let mend = || anyhow::Ok((std::fs::write(&manifest, &good[0])?, std::fs::write(&destinations, &good[1])?));
    let said = async |how: &str, part: &str| -> anyhow::Result<()> {
        let (stands, why) = stands(&house, "acme").await?;
        assert!(stands == how && why.contains(part), "{how}, {part:?}: it says {stands:?} because {why:?}");
        mend()?;
        Ok(())
    };
    said("ready", "").await?;
    edit(&manifest, "revision = 1", "revision = 2")?;
    said("older version serves", "revision 1 is in force").await?;
    edit(&manifest, "publishes_whole = true\n", "")?;
    said("refused", "in force with another partner.toml").await?;
    edit(&manifest, "revision = 1", "revision = 0")?;
    let listed = waybill(&house, &["partner", "list"]).await?;
    listed.says(0, &["refused", "partner.toml line 2"]);
    mend()?;
    edit(&destinations, "directory = '.'", "directory = 'in'")?;
    said("not joined", "no host has taken in yet").await?;
    edit(&destinations, "name = 'acme'", "name = 'other'")?;
    said("not joined", "no host has taken in yet").await?;
    std::fs::write(acme.join("builder.wasm"), "#!/bin/sh\n")?;
    said("refused", "builder.wasm is not WebAssembly").await?;
    std::fs::copy(plugins()?.join("csv-builder.wasm"), acme.join("builder.wasm"))?;
    edit(&destinations, &DESTINATION.to_string(), &Uuid::from_u128(9).to_string())?;
    said("refused", "has another destination named \"acme\"").await?;
    edit(&manifest, "partner = 'acme'", "partner = 'beta'")?;
    said("refused", "belongs to another tenant or partner").await?;
    sqlx::query("UPDATE destinations SET revision = 7").execute(&house.admin).await?;
    said("older than the database's", "the database has revision 7").await?;
    sqlx::query("UPDATE destinations SET revision = 1").execute(&house.admin).await?;

    // Gone, as when it was taken away.
    let aside = house.partners().join(".acme");
    std::fs::rename(&acme, &aside)?;
    let none = waybill(&house, &["partner", "list"]).await?;
    none.says(0, &["none", &DESTINATION.to_string(), "no bundle here", "its jobs wait until it is back"]);
    let job = house.create().await?.to_string();
    let explained = waybill(&house, &["job", "explain", &job]).await?;
    explained.says(0, &["a host that has the bundle of acme", "waybill partner list"]);
    std::fs::rename(&aside, &acme)?;

    // A neighbour has its names.
    let twin = house.partners().join("twin");
    std::fs::create_dir(&twin)?;
    for entry in std::fs::read_dir(&acme)? {
        let entry = entry?;
        std::fs::copy(entry.path(), twin.join(entry.file_name()))?;
    }
    said("ready", "").await?;
    let (how, why) = stands(&house, "twin").await?;
    assert!(how == "refused" && why.contains("already used by bundle acme"), "{how}: {why}");
    let problems = waybill(&house, &["partner", "show", "twin", "--json"]).await?;
    assert_eq!(problems.code, 4, "{}", problems.said);
    edit(&twin.join("partner.toml"), "partner = 'acme'", "partner = 'twin'")?;
    let (how, why) = stands(&house, "twin").await?;
    assert!(how == "refused" && why.contains("already served by bundle acme"), "{how}: {why}");
    Ok(())
}

#[tokio::test]
async fn plg_02_what_hosts_refuse_is_neither_shown_nor_checked_as_if_it_were_in_force() -> anyhow::Result<()> {
    let server = Sshd::start().await?;
    let house = House::before(&Reach::openssh(&server)?, Plan::default()).await?;
    let acme = house.partners().join("acme");
    let goes_on = "hosts that run go on with the version before (the database has revision 1)";
    let contract = "publishes_whole = true";
    for (file, from, to, problem) in [
        ("partner.toml", contract, "publishes_whole = false", "raise `revision`"),
        ("partner.toml", "partner = 'acme'", "partner = ", "partner.toml line 1"),
        ("destinations.toml", "[[destination]]", "[[destination]", "destinations.toml line 1"),
    ] {
        let good = std::fs::read(acme.join(file))?;
        edit(&acme.join(file), from, to)?;
        let (how, why) = stands(&house, "acme").await?;
        assert!(how == "refused" && why.contains(problem) && why.contains(goes_on), "{how}: {why}");
        let listed = waybill(&house, &["partner", "list"]).await?;
        assert!(!listed.said.contains("no bundle here"), "{}", listed.said);
        waybill(&house, &["partner", "show", "acme"]).await?.says(4, &["REFUSED", problem, goes_on]);
        for asked in [DESTINATION.to_string(), "acme".to_owned()] {
            let checked = waybill(&house, &["partner", "check", &asked]).await?;
            let again = format!("then: waybill partner check {DESTINATION} --as YOU");
            checked.says(4, &["Refused: the bundle acme", problem, goes_on, "nothing is recorded", &again]);
            assert!(!checked.said.contains("Agrees") && !checked.said.contains("NotFound"), "{}", checked.said);
        }
        let json = waybill(&house, &["partner", "check", "acme", "--json"]).await?.json()?;
        assert_eq!((&json["outcome"], &json["recorded"]), (&"Refused".into(), &false.into()), "{json}");
        waybill(&house, &["partner", "check", "nobody"]).await?.says(3, &["NotFound"]);
        std::fs::write(acme.join(file), good)?;
    }
    let recorded: i64 = sqlx::query_scalar("SELECT count(*) FROM destination_checks").fetch_one(&house.admin).await?;
    assert_eq!(recorded, 0);
    waybill(&house, &["partner", "check", "acme"]).await?.says(0, &["Agrees"]);
    Ok(())
}

#[tokio::test]
async fn plg_01_an_older_revision_put_back_is_told_with_what_the_database_has() -> anyhow::Result<()> {
    let server = Sshd::start().await?;
    let house = House::before(&Reach::openssh(&server)?, Plan::default()).await?;
    sqlx::query("UPDATE destinations SET revision = 3").execute(&house.admin).await?;
    let (how, why) = stands(&house, "acme").await?;
    assert_eq!(how, "older than the database's");
    assert!(why.contains("revision 1 lies here, and hosts with this directory deliver under its contract"), "{why}");
    let shown = waybill(&house, &["partner", "show", "acme"]).await?;
    shown.says(0, &["acme, revision 1", "in database  revision 3", "raise `revision` above it"]);
    let checked = waybill(&house, &["partner", "check", "acme"]).await?;
    checked.says(0, &["held against revision 1, which lies here; the database has revision 3"]);
    Ok(())
}

#[tokio::test]
async fn plg_01_a_long_reason_is_shortened_in_the_list_and_whole_in_the_bundles_own_view() -> anyhow::Result<()> {
    let server = Sshd::start().await?;
    let house = House::before(&Reach::openssh(&server)?, Plan::default()).await?;
    let command = format!("waybill destination resume {DESTINATION} --tenant {TENANT} --as YOU");
    let why = format!("{}its end; mend it, then: {command}", "the partner's server refused with status 2. ".repeat(12));
    sqlx::query("UPDATE destinations SET attention_since = clock_timestamp(), attention_why = $1")
        .bind(&why)
        .execute(&house.admin)
        .await?;
    let listed = waybill(&house, &["partner", "list"]).await?;
    listed.says(0, &["needs attention", " …", "`waybill partner show BUNDLE`", &command]);
    let longest = listed.said.lines().map(|line| line.chars().count()).max();
    assert!(longest.is_some_and(|longest| longest < 260), "{longest:?}: {}", listed.said);
    let shown = waybill(&house, &["partner", "show", "acme"]).await?;
    shown.says(0, &["its end; mend it, then: ", &command]);
    let times = |said: &str| said.matches("waybill destination resume").count();
    assert_eq!((times(&listed.said), times(&shown.said)), (1, 1), "{}\n{}", listed.said, shown.said);
    assert!(stands(&house, "acme").await?.1.contains(&command));
    Ok(())
}

#[tokio::test]
async fn plg_01_a_host_that_is_told_to_end_while_it_compiles_ends_in_good_order() -> anyhow::Result<()> {
    let server = Sshd::start().await?;
    let house = House::before(&Reach::openssh(&server)?, Plan::default()).await?;
    let directory = tempfile::tempdir()?;
    let data = directory.path().canonicalize()?.join("data");
    let compiled = data.join("compiled");
    std::os::unix::fs::DirBuilderExt::mode(&mut std::fs::DirBuilder::new(), 0o700).recursive(true).create(&compiled)?;
    // Its compiler waits for its turn, which never comes.
    let turn = std::fs::File::create(compiled.join("lock"))?;
    turn.lock()?;
    let mut serving = Command::new(env!("CARGO_BIN_EXE_waybill"))
        .env_clear()
        .env("WAYBILL_DATABASE_URL", house.database.url())
        .env("WAYBILL_PARTNERS", house.partners())
        .env("WAYBILL_DATA", &data)
        .arg("serve")
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    let handles = format!("/proc/{}/fd", serving.id());
    let reached = wait::until("the compiler", async || {
        let mut targets = std::fs::read_dir(&handles)?.filter_map(|entry| std::fs::read_link(entry.ok()?.path()).ok());
        Ok(targets.any(|target| target == compiled.join("lock")).then_some(()))
    })
    .await;
    let told = Command::new("kill").args(["-TERM", &serving.id().to_string()]).status()?;
    if reached.is_err() || !told.success() {
        serving.kill()?;
    }
    let output = tokio::task::spawn_blocking(move || serving.wait_with_output()).await??;
    reached?;
    let said = String::from_utf8(output.stdout)?;
    assert!(said.contains("bundle acme is compiled first, and served once that is done"), "{said}");
    assert!(output.status.success() && said.ends_with("stopped; nothing is under way\n"), "{said}");
    drop(turn);
    Ok(())
}
