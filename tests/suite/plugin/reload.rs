//! PLG-01 and PLG-02 while the host runs: what is dropped in, replaced, broken, or taken away.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;
use waybill::app::Host;
use waybill::config::Config;
use waybill::job::model::Digests;
use waybill::job::status::{EventKind, Status};
use waybill::store::{self, NewJob};
use waybill::upkeep::{Registered, Registrar};
use waybill_tests::house::{DESTINATION, TENANT};
use waybill_tests::{House, Plan, Reach, Sshd, wait};

use super::fixture::guest;
use super::refused::{component_importing, patched};
use crate::delivery::HeldBuilds;

pub(super) fn acme(house: &House) -> PathBuf {
    house.partners().join("acme")
}

/// Rewrites a file of a bundle.
pub(super) fn edit(bundle: &Path, file: &str, change: impl Fn(&str) -> String) -> anyhow::Result<()> {
    let path = bundle.join(file);
    let text = std::fs::read_to_string(&path)?;
    let changed = change(&text);
    anyhow::ensure!(changed != text, "{file} has nothing to change");
    Ok(std::fs::write(path, changed)?)
}

pub(super) fn copy(from: &Path, to: &Path) -> anyhow::Result<()> {
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        std::fs::copy(entry.path(), to.join(entry.file_name()))?;
    }
    Ok(())
}

/// Two looks: one that notices, one that finds it settled.
pub(super) async fn settled(registrar: &Registrar) -> anyhow::Result<Vec<Registered>> {
    assert_eq!(registrar.run_once().await?, [], "it was taken in before it was settled");
    Ok(registrar.run_once().await?)
}

pub(super) fn added(bundle: &str) -> Registered {
    Registered::Added { bundle: bundle.to_owned(), revision: 1 }
}

pub(super) fn replaced(bundle: &str, revision: u32) -> Registered {
    Registered::Replaced { bundle: bundle.to_owned(), revision }
}

pub(super) fn removed(bundle: &str) -> Registered {
    Registered::Removed { bundle: bundle.to_owned() }
}

/// A house whose registrar has taken its bundle in.
pub(super) async fn house(server: &Sshd) -> anyhow::Result<(House, Registrar)> {
    let house = House::before(&Reach::openssh(server)?, Plan::default()).await?;
    let registrar = house.registrar().await?;
    assert_eq!(settled(&registrar).await?, [added("acme")]);
    Ok((house, registrar))
}

/// The digests that the claim of a job's first attempt recorded.
async fn claimed_with(house: &House, job: Uuid) -> anyhow::Result<Digests> {
    let events = house.events(job).await?;
    let claim = events.into_iter().find(|event| event.kind == EventKind::Claimed).context("no claim")?;
    Ok(serde_json::from_value(claim.detail.context("no detail")?)?)
}

#[tokio::test]
async fn plg_01_a_bundle_dropped_into_a_running_host_is_served_without_a_restart() -> anyhow::Result<()> {
    let server = Sshd::start().await?;
    let house = House::before(&Reach::openssh(&server)?, Plan::default()).await?;
    let directory = tempfile::tempdir()?;
    let mut config = Config::default();
    config.database.url = Some(house.database.url());
    config.directories.partners = directory.path().join("partners");
    config.directories.data = directory.path().join("data");
    config.plugins.every_seconds = 1;
    std::fs::create_dir(&config.directories.partners)?;
    let shutdown = CancellationToken::new();
    let host = Host::start(&config, shutdown.clone()).await?;
    assert!(host.summary().contains("nothing can be delivered until a bundle is put there"), "{}", host.summary());
    let told = async {
        let told = onboarded(&house, &config.directories.partners).await;
        shutdown.cancel();
        told
    };
    let (ended, told) = tokio::join!(host.run(), told);
    assert!(ended, "something was under way");
    told
}

/// Puts the house's bundle before a running host, and then a newer revision of it.
async fn onboarded(house: &House, partners: &Path) -> anyhow::Result<()> {
    let first = house.create().await?;
    copy(&acme(house), &partners.join("acme"))?;
    house.until(first, Status::Completed).await?;
    edit(&partners.join("acme"), "partner.toml", |text| text.replace("revision = 1", "revision = 2"))?;
    wait::until("the new revision", async || {
        let state = store::destination_state(&house.api, DESTINATION).await?;
        Ok(state.filter(|state| state.revision == 2))
    })
    .await?;
    let second = house.create().await?;
    house.until(second, Status::Completed).await?;
    assert_ne!(claimed_with(house, first).await?.manifest, claimed_with(house, second).await?.manifest);
    Ok(())
}

#[tokio::test]
async fn plg_01_a_replacement_is_for_new_attempts_and_one_under_way_keeps_what_it_started_with() -> anyhow::Result<()> {
    let server = Sshd::start().await?;
    let (house, registrar) = house(&server).await?;
    let (_worker, _dispatcher) = (house.worker().await?, house.dispatcher().await?);
    let held = HeldBuilds::hold(&house).await?;
    let first = house.create().await?;
    held.reached_by(1).await?;

    edit(&acme(&house), "partner.toml", |text| {
        text.replace("revision = 1", "revision = 2").replace("'contacts-{key}.csv'", "'second-{key}.csv'")
    })?;
    edit(&acme(&house), "destinations.toml", |text| {
        text.replace("name = 'contacts-{key}.csv'", "name = 'second-{key}.csv'")
    })?;
    assert_eq!(settled(&registrar).await?, [replaced("acme", 2)]);
    let now = house.registry.find(DESTINATION).context("it is not served")?;
    assert_eq!((now.bundle.manifest.revision, house.job(first).await?.status), (2, Status::Running));
    held.let_go().await?;

    house.until(first, Status::Completed).await?;
    let second = house.create().await?;
    house.until(second, Status::Completed).await?;
    let (old, new) = (house.bundle.destinations[0].digests.clone(), now.destination.digests.clone());
    assert_eq!((claimed_with(&house, first).await?, claimed_with(&house, second).await?), (old, new));
    assert_eq!(server.times_created(&House::final_name(first))?, 1, "its name is of the bundle that it started with");
    assert_eq!(server.times_created(&format!("second-{}.csv", second.simple()))?, 1);
    Ok(())
}

#[tokio::test]
async fn plg_01_a_removed_bundle_leaves_its_jobs_queued_and_they_run_when_it_is_back() -> anyhow::Result<()> {
    const OTHER: Uuid = Uuid::from_u128(0xde57_0002);
    let server = Sshd::start().await?;
    let (house, registrar) = house(&server).await?;
    let other = house.partners().join("beta");
    copy(&acme(&house), &other)?;
    edit(&other, "partner.toml", |text| text.replace("'acme'", "'beta'"))?;
    edit(&other, "destinations.toml", |text| {
        text.replace("'acme'", "'beta'").replace(&DESTINATION.to_string(), &OTHER.to_string())
    })?;
    assert_eq!(settled(&registrar).await?, [added("beta")]);
    let aside = house.partners().join(".acme");
    std::fs::rename(acme(&house), &aside)?;
    assert_eq!(settled(&registrar).await?, [removed("acme")]);

    let (_worker, _dispatcher) = (house.worker().await?, house.dispatcher().await?);
    let waiting = house.create().await?;
    let woken = async || -> anyhow::Result<Option<i32>> {
        let row = sqlx::query_scalar("SELECT deliveries FROM wakeups WHERE job_id = $1").bind(waiting);
        Ok(row.fetch_optional(&house.admin).await?)
    };
    wait::until("its wake-up", async || woken().await).await?;
    // A later job of a bundle that is served runs past it.
    let id = house.create_job(NewJob { destination: OTHER, ..House::new_job() }).await?;
    house.until(id, Status::Completed).await?;
    let left = house.job(waiting).await?;
    assert_eq!((left.status, left.attempt_count), (Status::Queued, 0));
    assert_eq!(woken().await?, Some(0), "a host received what it does not serve");

    std::fs::rename(&aside, acme(&house))?;
    assert_eq!(settled(&registrar).await?, [added("acme")]);
    house.until(waiting, Status::Completed).await?;
    Ok(())
}

#[tokio::test]
async fn plg_01_a_write_counts_only_when_it_is_settled() -> anyhow::Result<()> {
    let server = Sshd::start().await?;
    let (house, registrar) = house(&server).await?;
    for revision in 2..5 {
        edit(&acme(&house), "partner.toml", |text| {
            text.replace(&format!("revision = {}", revision - 1), &format!("revision = {revision}"))
        })?;
        assert_eq!(registrar.run_once().await?, [], "revision {revision} was taken in at once");
    }
    assert_eq!(registrar.run_once().await?, [replaced("acme", 4)]);
    assert_eq!(house.registry.bundles()[0].manifest.revision, 4);
    assert_eq!(registrar.run_once().await?, []);
    // A directory that cannot be read, as a mount that is away, takes nothing away.
    let aside = house.partners().with_file_name("aside");
    std::fs::rename(house.partners(), &aside)?;
    for _ in 0..3 {
        assert!(registrar.run_once().await.is_err());
    }
    assert_eq!(house.registry.destinations(), [DESTINATION]);
    std::fs::rename(&aside, house.partners())?;
    assert_eq!(registrar.run_once().await?, []);
    Ok(())
}

#[tokio::test]
async fn plg_02_a_broken_replacement_is_told_in_one_sentence_and_the_old_version_serves() -> anyhow::Result<()> {
    let server = Sshd::start().await?;
    let (house, registrar) = house(&server).await?;
    let no_tenant = "[destination.queries.all]\nsql = 'select 1'\nurl_env = 'URL'\n";
    let manifest = std::fs::read_to_string(acme(&house).join("partner.toml"))?;
    let destinations = std::fs::read_to_string(acme(&house).join("destinations.toml"))?;
    let (good_builder, destination) = (guest("csv-builder"), DESTINATION.to_string());
    let foreign = [destination.as_str(), "belongs to another tenant"];
    let broken: Vec<(&str, Vec<u8>, &[&str])> = vec![
        ("partner.toml", b"partner = ".to_vec(), &["partner.toml line 1", "not TOML"]),
        ("partner.toml", format!("{manifest}publishes_hole = true\n").into(), &["did you mean `publishes_whole`"]),
        ("builder.wasm", b"#!/bin/sh\n".to_vec(), &["builder.wasm", "not WebAssembly"]),
        ("builder.wasm", guest("sftp-destination"), &["builder.wasm", "is a destination plugin"]),
        ("destination.wasm", b"\0asm\x0d\0\x01\0".to_vec(), &["destination.wasm", "does not export `final-name`"]),
        ("destination.wasm", component_importing("wasi:http/types@0.2.0"), &["destination.wasm", "WASI"]),
        ("builder.wasm", patched(&good_builder, "@0.2.0", "@0.9.0"), &["builder.wasm", "0.9.0", "serves 0.1.0, 0.2.0"]),
        (
            "partner.toml",
            format!("{manifest}[builder]\nfile = 'builder.wasm'\nsha256 = '{}'\n", "0".repeat(64)).into(),
            &["builder.wasm", "pins 0000"],
        ),
        ("destinations.toml", format!("{destinations}{no_tenant}").into(), &["destinations.toml line", ":tenant"]),
        // Whole, and other than what the database has under this revision.
        (
            "partner.toml",
            format!("{manifest}collects = true\n").into(),
            &["revision 1 of acme", "another partner.toml", "raise `revision`"],
        ),
        (
            "builder.wasm",
            guest("misbehaving-builder"),
            &["revision 1 of acme", "another builder.wasm", "raise `revision`"],
        ),
        (
            "destinations.toml",
            destinations.replace(&TENANT.to_string(), &Uuid::from_u128(9).to_string()).into(),
            &foreign,
        ),
    ];
    for (file, bytes, parts) in &broken {
        let path = acme(&house).join(file);
        let good = std::fs::read(&path)?;
        std::fs::write(&path, bytes)?;
        let changes = settled(&registrar).await?;
        let [Registered::Refused { bundle, why, serving: true }] = changes.as_slice() else { panic!("{changes:?}") };
        assert_eq!((bundle.as_str(), why.lines().count()), ("acme", 1), "{why}");
        for part in *parts {
            assert!(why.contains(part), "{part:?} is not in: {why}");
        }
        let served = house.registry.find(DESTINATION).context("the old version is gone")?;
        assert_eq!(served.destination.digests, house.bundle.destinations[0].digests, "{why}");
        assert_eq!(registrar.run_once().await?, [], "told again and again");
        std::fs::write(&path, good)?;
        assert_eq!(settled(&registrar).await?, [replaced("acme", 1)]);
    }
    std::fs::remove_file(acme(&house).join("destination.wasm"))?;
    let changes = settled(&registrar).await?;
    assert!(matches!(changes.as_slice(), [Registered::Refused { serving: true, .. }]), "{changes:?}");
    // And it delivers, with files that are no longer there.
    let (_worker, _dispatcher) = (house.worker().await?, house.dispatcher().await?);
    let job = house.create().await?;
    house.until(job, Status::Completed).await?;
    Ok(())
}

#[tokio::test]
async fn plg_01_what_the_operator_writes_takes_effect_under_the_same_revision() -> anyhow::Result<()> {
    let server = Sshd::start().await?;
    let (house, registrar) = house(&server).await?;
    std::fs::create_dir(server.files().join("elsewhere"))?;
    edit(&acme(&house), "destinations.toml", |text| {
        text.replace("directory = '.'", "directory = 'elsewhere'").replace("name = 'acme'", "name = 'acme, moved'")
    })?;
    assert_eq!(settled(&registrar).await?, [replaced("acme", 1)]);
    let state = store::destination_state(&house.api, DESTINATION).await?.context("it is gone")?;
    assert_eq!((state.name.as_str(), state.revision), ("acme, moved", 1));
    let (_worker, _dispatcher) = (house.worker().await?, house.dispatcher().await?);
    let job = house.create().await?;
    house.until(job, Status::Completed).await?;
    assert_eq!(server.times_created(&format!("elsewhere/{}", House::final_name(job)))?, 1);
    Ok(())
}

/// Two hosts share a database, and one of them has the newer bundle: the other goes on with the one that it has, and what is
/// in force stays.
#[tokio::test]
async fn plg_01_a_host_with_an_older_manifest_serves_it_and_leaves_the_newer_one_in_force() -> anyhow::Result<()> {
    let server = Sshd::start().await?;
    let (house, registrar) = house(&server).await?;
    let aside = house.partners().join(".older");
    copy(&acme(&house), &aside)?;
    edit(&acme(&house), "partner.toml", |text| {
        format!("{}collects = true\n", text.replace("revision = 1", "revision = 2"))
    })?;
    assert_eq!(settled(&registrar).await?, [replaced("acme", 2)]);
    let row = async || -> anyhow::Result<serde_json::Value> {
        let row = sqlx::query_scalar("SELECT to_jsonb(one) FROM destinations AS one WHERE id = $1").bind(DESTINATION);
        Ok(row.fetch_one(&house.admin).await?)
    };
    let in_force = row().await?;
    let contract = serde_json::to_value(&house.registry.bundles()[0].manifest.contract)?;
    assert_eq!((&in_force["revision"], &in_force["contract"]), (&2.into(), &contract));
    assert_ne!(serde_json::to_value(&house.bundle.manifest.contract)?, contract, "the new contract is the old one");

    // This host is the other one now: its bundle is of the first revision, with an edit of its operator's.
    std::fs::remove_dir_all(acme(&house))?;
    std::fs::rename(&aside, acme(&house))?;
    edit(&acme(&house), "destinations.toml", |text| text.replace("name = 'acme'", "name = 'acme, older'"))?;
    let older = Registered::Older { bundle: "acme".to_owned(), revision: 1, in_database: 2 };
    assert_eq!(settled(&registrar).await?, [older], "it was refused, or called newer than it is");
    let served = house.registry.find(DESTINATION).context("it is not served")?;
    assert_eq!((served.bundle.manifest.revision, served.destination.name.as_str()), (1, "acme, older"));
    assert_eq!(row().await?, in_force, "what is in force was changed by an older bundle");
    let (_worker, _dispatcher) = (house.worker().await?, house.dispatcher().await?);
    let job = house.create().await?;
    house.until(job, Status::Completed).await?;
    assert_eq!(claimed_with(&house, job).await?, served.destination.digests);
    // What it was delivered under is the older contract, and the attempt says so.
    let events = house.events(job).await?;
    let baseline =
        events.iter().filter_map(|event| event.detail.as_ref()).find(|detail| detail["evidence"] == "baseline");
    let own = serde_json::to_value(&served.bundle.manifest.contract)?;
    assert_eq!(baseline.context("no baseline")?["contract"], own);
    Ok(())
}

#[tokio::test]
async fn plg_02_a_bundle_refused_for_what_another_holds_is_served_once_that_is_gone() -> anyhow::Result<()> {
    let server = Sshd::start().await?;
    let (house, registrar) = house(&server).await?;
    // Earlier in the order of names, and still the second to come.
    copy(&acme(&house), &house.partners().join("aaa"))?;
    let changes = settled(&registrar).await?;
    let [Registered::Refused { bundle, why, serving: false }] = changes.as_slice() else { panic!("{changes:?}") };
    assert!(bundle == "aaa" && why.contains("already used by bundle acme"), "{why}");
    let served = house.registry.bundles();
    assert_eq!(served.iter().map(|bundle| bundle.directory.as_str()).collect::<Vec<_>>(), ["acme"]);
    std::fs::remove_dir_all(acme(&house))?;
    assert_eq!(settled(&registrar).await?, [removed("acme"), added("aaa")]);
    assert_eq!(Arc::strong_count(&served[0]), 1, "the old bundle is held by nobody but this test");
    Ok(())
}
