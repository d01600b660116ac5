//! What `waybill partner list` says of bundles that are not served as they lie there, and a host that is told to end while it
//! compiles its first one.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::Context as _;
use uuid::Uuid;
use waybill_tests::house::{DESTINATION, plugins};
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
    said("newer version in force", "revision 7").await?;
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
