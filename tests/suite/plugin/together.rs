//! PLG-01 and PLG-02 for several bundles at once: while one is compiled, while one fails, and when names change hands.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use uuid::Uuid;
use waybill::app::Host;
use waybill::config::Config;
use waybill::job::status::{Role, Status};
use waybill::plugin::{PluginSettings, Plugins, Registry};
use waybill::store;
use waybill::upkeep::{Registered, Registrar};
use waybill_tests::house::{DESTINATION, plugins};
use waybill_tests::{House, Sshd, wait};

use super::fixture::guest;
use super::reload::{acme, added, copy, edit, house, removed, replaced, settled};
use crate::delivery::HeldBuilds;

const OTHER: Uuid = Uuid::from_u128(0xde57_0002);

/// A copy of the house's bundle that another partner could have, with a destination of its own.
fn another(house: &House, partner: &str, destination: Uuid) -> anyhow::Result<()> {
    let to = house.partners().join(partner);
    copy(&acme(house), &to)?;
    edit(&to, "partner.toml", |text| text.replace("'acme'", &format!("'{partner}'")))?;
    edit(&to, "destinations.toml", |text| {
        text.replace("'acme'", &format!("'{partner}'")).replace(&DESTINATION.to_string(), &destination.to_string())
    })
}

fn raise(bundle: &Path, from: u32) -> anyhow::Result<()> {
    let (from, to) = (format!("revision = {from}"), format!("revision = {}", from + 1));
    edit(bundle, "partner.toml", |text| text.replace(&from, &to))
}

/// Waits until this process has so many handles of a file.
async fn opened(file: &Path, times: usize) -> anyhow::Result<()> {
    wait::until("the file to be opened", async || {
        let mut found = 0;
        for entry in std::fs::read_dir("/proc/self/fd")? {
            // A descriptor may be closed between the listing and the look.
            found += usize::from(std::fs::read_link(entry?.path()).is_ok_and(|target| target == file));
        }
        Ok((found == times).then_some(()))
    })
    .await
}

#[tokio::test]
async fn plg_01_while_a_version_is_compiled_the_old_one_delivers_and_others_come_and_go() -> anyhow::Result<()> {
    let server = Sshd::start().await?;
    let (house, _) = house(&server).await?;
    let directory = tempfile::tempdir()?;
    let cache_dir = directory.path().canonicalize()?.join("compiled");
    let compiler = Plugins::open(&PluginSettings::new(cache_dir.clone()))?;
    let pool = house.database.store(Role::Worker).await?;
    let registrar = Registrar::new(pool, compiler, house.partners(), house.registry.clone())
        .looking_every(Duration::from_millis(20));
    assert_eq!(settled(&registrar).await?, [added("acme")]);

    // Nothing is compiled while another process has its turn.
    let turn = std::fs::File::create(cache_dir.join("lock"))?;
    turn.lock()?;
    std::fs::write(acme(&house).join("builder.wasm"), guest("json-lines-builder"))?;
    raise(&acme(&house), 1)?;
    assert_eq!(registrar.run_once().await?, []);
    let registrar = Arc::new(registrar);
    let running = tokio::spawn({
        let registrar = Arc::clone(&registrar);
        async move { registrar.run_once().await }
    });
    opened(&cache_dir.join("lock"), 2).await?;

    let (_worker, _dispatcher) = (house.worker().await?, house.dispatcher().await?);
    let job = house.create().await?;
    house.until(job, Status::Completed).await?;
    let served = |destination| house.registry.find(destination).map(|served| served.bundle.manifest.revision);
    assert_eq!(served(DESTINATION), Some(1));
    // The builder that both bundles of before have is in the cache.
    let beta = house.partners().join("beta");
    another(&house, "beta", OTHER)?;
    std::fs::copy(plugins()?.join("csv-builder.wasm"), beta.join("builder.wasm"))?;
    wait::until("the other bundle", async || Ok(served(OTHER))).await?;
    std::fs::remove_dir_all(&beta)?;
    wait::until("the other bundle to be gone", async || Ok(served(OTHER).is_none().then_some(()))).await?;

    // What was read before this is not what is there when it is compiled.
    raise(&acme(&house), 2)?;
    drop(turn);
    let mut changes = running.await??;
    wait::until("the newest version", async || {
        changes.extend(registrar.run_once().await?);
        Ok((served(DESTINATION) == Some(3)).then_some(()))
    })
    .await?;
    let beta = Registered::Added { bundle: "beta".to_owned(), revision: 2 };
    assert_eq!(changes, [beta, removed("beta"), replaced("acme", 3)], "a version was served that is not there");
    Ok(())
}

#[tokio::test]
async fn plg_01_a_replaced_component_is_for_new_attempts_and_one_under_way_keeps_the_first() -> anyhow::Result<()> {
    let server = Sshd::start().await?;
    let (house, registrar) = house(&server).await?;
    let (_worker, _dispatcher) = (house.worker().await?, house.dispatcher().await?);
    let held = HeldBuilds::hold(&house).await?;
    let first = house.create().await?;
    held.reached_by(1).await?;
    std::fs::write(acme(&house).join("builder.wasm"), guest("json-lines-builder"))?;
    raise(&acme(&house), 1)?;
    assert_eq!(settled(&registrar).await?, [replaced("acme", 2)]);
    held.let_go().await?;
    house.until(first, Status::Completed).await?;
    let second = house.create().await?;
    house.until(second, Status::Completed).await?;
    let begin = |job| -> anyhow::Result<Vec<u8>> {
        let file = std::fs::read(server.files().join(House::final_name(job)))?;
        Ok(file.into_iter().take(2).collect())
    };
    assert_eq!((begin(first)?.as_slice(), begin(second)?.as_slice()), (b"id".as_slice(), b"{\"".as_slice()));
    Ok(())
}

#[tokio::test]
async fn plg_02_a_bundle_of_which_one_destination_is_refused_changes_no_row_and_its_revision_is_free()
-> anyhow::Result<()> {
    const SECOND: Uuid = Uuid::from_u128(0xde57_0003);
    let server = Sshd::start().await?;
    let (house, registrar) = house(&server).await?;
    another(&house, "beta", OTHER)?;
    assert_eq!(settled(&registrar).await?, [added("beta")]);
    let destinations = std::fs::read_to_string(acme(&house).join("destinations.toml"))?;
    let second = |name: &str| {
        let more = destinations.replace("'acme'", &format!("'{name}'"));
        format!("{destinations}{}", more.replace(&DESTINATION.to_string(), &SECOND.to_string()))
    };
    raise(&acme(&house), 1)?;
    std::fs::write(acme(&house).join("destinations.toml"), second("beta"))?;
    let changes = settled(&registrar).await?;
    let [Registered::Refused { why, serving: true, .. }] = changes.as_slice() else { panic!("{changes:?}") };
    assert!(why.contains("another destination named \"beta\""), "{why}");
    let revision = async |id| anyhow::Ok(store::destination_state(&house.api, id).await?.map(|state| state.revision));
    assert_eq!((revision(DESTINATION).await?, revision(SECOND).await?), (Some(1), None));

    // Corrected under the same revision.
    edit(&acme(&house), "partner.toml", |text| text.replace("publishes_whole = true\n", ""))?;
    std::fs::write(acme(&house).join("destinations.toml"), second("acme, two"))?;
    assert_eq!(settled(&registrar).await?, [replaced("acme", 2)]);
    assert_eq!((revision(DESTINATION).await?, revision(SECOND).await?), (Some(2), Some(2)));
    Ok(())
}

#[tokio::test]
async fn plg_02_an_error_of_the_moment_leaves_one_bundle_for_later_and_the_others_are_served() -> anyhow::Result<()> {
    let server = Sshd::start().await?;
    let (house, registrar) = house(&server).await?;
    for statement in [
        "CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
             RAISE EXCEPTION 'a moment' USING ERRCODE = '55P03'; END $$",
        "CREATE TRIGGER fails BEFORE INSERT ON destinations FOR EACH ROW WHEN (new.partner = 'aaa') EXECUTE FUNCTION fail()",
    ] {
        sqlx::query(statement).execute(&house.admin).await?;
    }
    another(&house, "aaa", OTHER)?;
    another(&house, "beta", Uuid::from_u128(0xde57_0003))?;
    assert_eq!(registrar.run_once().await?, []);
    for _ in 0..2 {
        assert!(registrar.run_once().await.is_err());
        let served = house.registry.bundles();
        assert_eq!(served.iter().map(|bundle| bundle.partner.as_str()).collect::<Vec<_>>(), ["acme", "beta"]);
    }
    sqlx::query("DROP TRIGGER fails ON destinations").execute(&house.admin).await?;
    assert_eq!(registrar.run_once().await?, [added("aaa")]);
    Ok(())
}

#[tokio::test]
async fn plg_01_bundles_that_change_names_all_at_once_are_served_under_the_new_ones() -> anyhow::Result<()> {
    let server = Sshd::start().await?;
    let (house, registrar) = house(&server).await?;
    another(&house, "beta", OTHER)?;
    another(&house, "gamma", Uuid::from_u128(0xde57_0003))?;
    assert_eq!(settled(&registrar).await?, [added("beta"), added("gamma")]);
    // Each directory becomes its neighbour.
    let at = |name: &str| house.partners().join(name);
    for (from, to) in [("acme", ".aside"), ("beta", "acme"), ("gamma", "beta"), (".aside", "gamma")] {
        std::fs::rename(at(from), at(to))?;
    }
    assert_eq!(settled(&registrar).await?, ["acme", "beta", "gamma"].map(|bundle| replaced(bundle, 1)));
    let served = || -> BTreeMap<String, String> {
        let bundles = house.registry.bundles();
        bundles.iter().map(|bundle| (bundle.directory.clone(), bundle.partner.clone())).collect()
    };
    let named = |pairs: [(&str, &str); 3]| -> BTreeMap<String, String> {
        pairs.map(|(at, partner)| (at.to_owned(), partner.to_owned())).into()
    };
    assert_eq!(served(), named([("acme", "beta"), ("beta", "gamma"), ("gamma", "acme")]));

    // A chain, against the order of names: the first waits for what the second gives up, and that for what is gone.
    for (from, to) in [("acme", ".away"), ("beta", "acme"), ("gamma", "beta")] {
        std::fs::rename(at(from), at(to))?;
    }
    assert_eq!(settled(&registrar).await?, [removed("gamma"), replaced("beta", 1), replaced("acme", 1)]);
    std::fs::rename(at(".away"), at("gamma"))?;
    assert_eq!(settled(&registrar).await?, [added("gamma")]);
    assert_eq!(served(), named([("acme", "gamma"), ("beta", "acme"), ("gamma", "beta")]));
    Ok(())
}

#[tokio::test]
async fn plg_01_a_graceful_stop_does_not_wait_for_a_compiler() -> anyhow::Result<()> {
    let server = Sshd::start().await?;
    let (house, _) = house(&server).await?;
    let directory = tempfile::tempdir()?;
    let mut config = Config::default();
    config.database.url = Some(house.database.url());
    config.directories.partners = directory.path().join("partners");
    config.directories.data = directory.path().join("data");
    config.plugins.every_seconds = 1;
    // Longer than the test waits.
    config.worker.shutdown_seconds = 3600;
    std::fs::create_dir(&config.directories.partners)?;
    let shutdown = tokio_util::sync::CancellationToken::new();
    let host = Host::start(&config, shutdown.clone()).await?;
    let data = config.directories.data.canonicalize()?;
    let told = async {
        // Its compiler waits for its turn, which never comes.
        let turn = std::fs::File::create(data.join("compiled/lock"))?;
        turn.lock()?;
        copy(&acme(&house), &config.directories.partners.join("acme"))?;
        let waiting = opened(&data.join("compiled/lock"), 2).await;
        shutdown.cancel();
        anyhow::Ok((waiting?, turn))
    };
    let bounded = tokio::time::timeout(wait::BOUND, async { tokio::join!(host.run(), told) });
    let (ended, told) = bounded.await.context("the host waits for its compiler")?;
    let ((), turn) = told?;
    drop(turn);
    assert!(ended, "it said that something was under way");
    Ok(())
}

#[tokio::test]
async fn plg_01_a_host_starts_without_what_is_not_compiled_and_serves_it_when_it_is() -> anyhow::Result<()> {
    let server = Sshd::start().await?;
    let (house, _) = house(&server).await?;
    let directory = tempfile::tempdir()?;
    let mut config = Config::default();
    config.database.url = Some(house.database.url());
    config.directories.partners = house.partners();
    config.directories.data = directory.path().join("data");
    config.plugins.every_seconds = 1;
    let compiled = config.directories.data.join("compiled");
    std::os::unix::fs::DirBuilderExt::mode(&mut std::fs::DirBuilder::new(), 0o700).recursive(true).create(&compiled)?;
    let turn = std::fs::File::create(compiled.join("lock"))?;
    turn.lock()?;
    let shutdown = tokio_util::sync::CancellationToken::new();
    let starting = tokio::time::timeout(wait::BOUND, Host::start(&config, shutdown.clone()));
    let host = starting.await.context("the start waits for a compiler")??;
    let summary = host.summary();
    assert!(summary.contains("serving 0 partners") && summary.contains("bundle acme is compiled first"), "{summary}");
    let told = async {
        let job = house.create().await?;
        drop(turn);
        let completed = house.until(job, Status::Completed).await;
        shutdown.cancel();
        completed
    };
    let (ended, told) = tokio::join!(host.run(), told);
    told?;
    assert!(ended, "something was under way");
    Ok(())
}

#[tokio::test]
async fn plg_01_a_compile_is_not_waited_for_once_its_bundle_is_gone() -> anyhow::Result<()> {
    let server = Sshd::start().await?;
    let (house, _) = house(&server).await?;
    let cache = tempfile::tempdir()?;
    let compiler = Plugins::open(&PluginSettings::new(cache.path().join("compiled")))?;
    let turn = std::fs::File::create(cache.path().join("compiled/lock"))?;
    turn.lock()?;
    let pool = house.database.store(Role::Worker).await?;
    let registrar =
        Registrar::new(pool, compiler, house.partners(), Registry::default()).looking_every(Duration::from_millis(20));
    assert_eq!(registrar.run_once().await?, []);
    let gone = async {
        opened(&cache.path().canonicalize()?.join("compiled/lock"), 2).await?;
        anyhow::Ok(std::fs::remove_dir_all(acme(&house))?)
    };
    let both = async { tokio::join!(registrar.run_once(), gone) };
    let (changes, gone) = tokio::time::timeout(wait::BOUND, both).await.context("the compile is waited for")?;
    gone?;
    assert_eq!((changes?, registrar.uncompiled().await), (Vec::new(), Vec::new()));
    drop(turn);
    Ok(())
}

#[tokio::test]
async fn plg_02_a_bundle_refused_for_a_destinations_name_is_served_once_that_is_given_up() -> anyhow::Result<()> {
    let server = Sshd::start().await?;
    let (house, registrar) = house(&server).await?;
    another(&house, "beta", OTHER)?;
    edit(&house.partners().join("beta"), "destinations.toml", |text| text.replace("'beta'", "'acme'"))?;
    let changes = settled(&registrar).await?;
    let [Registered::Refused { bundle, why, serving: false }] = changes.as_slice() else { panic!("{changes:?}") };
    assert!(bundle == "beta" && why.contains("another destination named \"acme\""), "{why}");
    assert_eq!(registrar.run_once().await?, [], "told again and again");
    edit(&acme(&house), "destinations.toml", |text| text.replace("'acme'", "'acme, moved'"))?;
    assert_eq!(settled(&registrar).await?, [replaced("acme", 1), added("beta")]);
    Ok(())
}
