//! PLG-02: a broken bundle is refused with one sentence that says what and where; the others are served.

use std::path::Path;

use anyhow::Context as _;
use waybill::job::status::Role;
use waybill::plugin::{Limits, PluginSettings, Plugins, Registry};
use waybill::upkeep::{Registered, Registrar};
use waybill_tests::Database;
use waybill_tests::house::{compiled, compiling};

use super::fixture::{HOST_KEY, Partners, destination_of, guest, manifest};

/// A registrar over this directory, and what it serves.
async fn registrar(database: &Database, partners: &Path) -> anyhow::Result<(Registrar, Registry)> {
    let plugins = Plugins::open(&PluginSettings::new(compiled()))?;
    let registry = Registry::default();
    let pool = database.store(Role::Worker).await?;
    Ok((Registrar::new(pool, plugins, partners.to_owned(), registry.clone()), registry))
}

/// Two looks: one is not enough.
async fn twice(registrar: &Registrar) -> anyhow::Result<Vec<Registered>> {
    let turn = compiling().await?;
    assert_eq!(registrar.run_once().await?, []);
    let changes = registrar.run_once().await?;
    drop(turn);
    Ok(changes)
}

/// A component that imports one interface and has nothing else, in the component model's binary form.
pub(super) fn component_importing(name: &str) -> Vec<u8> {
    let mut import = vec![1, 0, u8::try_from(name.len()).unwrap()];
    import.extend(name.as_bytes());
    import.extend([5, 0]);
    let mut bytes = b"\0asm\x0d\0\x01\0".to_vec();
    // One type: an instance that exports nothing.
    bytes.extend([7, 3, 1, 0x42, 0]);
    bytes.extend([10, u8::try_from(import.len()).unwrap()]);
    bytes.extend(import);
    bytes
}

/// The same bytes with every occurrence of a text replaced by one of the same length.
pub(super) fn patched(bytes: &[u8], from: &str, to: &str) -> Vec<u8> {
    assert_eq!(from.len(), to.len());
    let mut bytes = bytes.to_vec();
    let mut at = 0;
    while let Some(found) = bytes[at..].windows(from.len()).position(|window| window == from.as_bytes()) {
        at += found;
        bytes[at..at + to.len()].copy_from_slice(to.as_bytes());
    }
    bytes
}

#[tokio::test]
async fn plg_03_a_manifest_that_asks_for_more_than_the_operator_allows_is_refused() -> anyhow::Result<()> {
    let partners = Partners::new()?;
    let load = async |most: Limits| {
        let settings = PluginSettings { most: Some(most), ..PluginSettings::new(partners.cache()) };
        anyhow::Ok(Plugins::open(&settings)?.load_one(&partners.path().join("bad")).await)
    };
    partners.bundle("bad", "misbehaving-builder", "misbehaving-destination", "[limits]\nmemory_mib = 2048\n")?;
    for (most, parts) in [
        (Limits::most(), ["line 6", "memory_mib is 2048 and this host allows 1024", "[plugins.limits]"]),
        (
            Limits { build_seconds: 60, memory_mib: 4096, ..Limits::most() },
            ["line 5", "build_seconds is 900, the default, and this host allows 60", "ask for less"],
        ),
    ] {
        let sentence = load(most).await?.err().context("it was loaded")?.to_string();
        for part in parts {
            assert!(sentence.contains(part), "{sentence}");
        }
    }
    load(Limits { memory_mib: 2048, ..Limits::most() }).await??;
    Ok(())
}

#[tokio::test]
async fn plg_02_each_broken_bundle_is_refused_with_one_sentence_and_the_others_are_served() -> anyhow::Result<()> {
    let good_builder = guest("misbehaving-builder");
    let good_destination = guest("misbehaving-destination");
    let no_tenant = "[destination.queries.all]\nsql = 'select * from contacts'\nurl_env = 'URL'\n";
    // Name, the file that is broken, its bytes, and what the sentence must say.
    let broken: Vec<(&str, &str, Vec<u8>, &[&str])> = vec![
        (
            "manifest",
            "partner.toml",
            manifest("manifest", "[contract]\npublishes_hole = true\n").into(),
            &["partner.toml line 6", "did you mean `publishes_whole`"],
        ),
        ("no-toml", "partner.toml", b"partner = ".to_vec(), &["partner.toml line 1", "not TOML"]),
        ("not-wasm", "builder.wasm", b"#!/bin/sh\n".to_vec(), &["builder.wasm", "not WebAssembly"]),
        ("native", "builder.wasm", b"\x7fELF\x02\x01\x01\0\0\0".to_vec(), &["builder.wasm", "compiled code"]),
        (
            "truncated",
            "destination.wasm",
            good_destination[..good_destination.len() / 2].to_vec(),
            &["destination.wasm"],
        ),
        ("plain-module", "builder.wasm", b"\0asm\x01\0\0\0".to_vec(), &["builder.wasm"]),
        (
            "wrong-world",
            "builder.wasm",
            good_destination.clone(),
            &["builder.wasm", "is a destination plugin", "[builder]"],
        ),
        (
            "missing-export",
            "destination.wasm",
            b"\0asm\x0d\0\x01\0".to_vec(),
            &["destination.wasm", "does not export `final-name`"],
        ),
        (
            "wasi",
            "builder.wasm",
            component_importing("wasi:http/types@0.2.0"),
            &["builder.wasm", "imports `wasi:http/types@0.2.0`"],
        ),
        (
            "other-import",
            "destination.wasm",
            component_importing("acme:net/http@1.0.0"),
            &["destination.wasm", "`acme:net/http@1.0.0`", "waybill:partner"],
        ),
        (
            "builder-writes",
            "builder.wasm",
            component_importing("waybill:partner/remote@0.1.0"),
            &["builder.wasm", "`waybill:partner/remote@0.1.0`", "does not have it"],
        ),
        (
            "version",
            "builder.wasm",
            patched(&good_builder, "@0.2.0", "@0.9.0"),
            &["builder.wasm", "waybill:partner 0.9.0", "serves 0.1.0, 0.2.0"],
        ),
        (
            "changed-types",
            "builder.wasm",
            patched(&good_builder, "delivery-key", "delivery-kez"),
            &["builder.wasm", "changed copy of the contract"],
        ),
        (
            "digest",
            "partner.toml",
            manifest("digest", &format!("[builder]\nfile = 'builder.wasm'\nsha256 = '{}'\n", "0".repeat(64))).into(),
            &["builder.wasm", "pins 0000", "raise the revision"],
        ),
        (
            "tenant",
            "destinations.toml",
            format!("{}{no_tenant}", destination_of("tenant", 22, HOST_KEY)).into(),
            &["destinations.toml line 12", ":tenant"],
        ),
        (
            "secret",
            "destinations.toml",
            format!("{}password = 'canary-7'\n", destination_of("secret", 22, HOST_KEY)).into(),
            &["destinations.toml line 11", "password_file"],
        ),
        (
            "nul",
            "partner.toml",
            manifest("nul", "[options]\ndelimiter = \"\\u0000\"\n").into(),
            &["partner.toml line 6", "U+0000"],
        ),
        (
            "nul-name",
            "destinations.toml",
            destination_of("nul-name", 22, HOST_KEY).replace("'nul-name'", "\"a\\u0000\"").into(),
            &["destinations.toml line 3", "U+0000"],
        ),
        // Whole as a file, and more than an index of PostgreSQL takes.
        (
            "long-name",
            "destinations.toml",
            destination_of("long-name", 22, HOST_KEY).replace("'long-name'", &format!("'{}'", unlike(9000))).into(),
            &["the database cannot hold", "very long"],
        ),
        (
            "huge",
            "partner.toml",
            vec![b'#'; (1 << 20) + 1],
            &["partner.toml has 1048577 bytes", "1048576 are the most"],
        ),
        // After `healthy` in the order of names.
        (
            "same-id",
            "destinations.toml",
            destination_of("healthy", 22, HOST_KEY).into(),
            &["already served by bundle healthy"],
        ),
        ("same-name", "partner.toml", manifest("healthy", "").into(), &["already used by bundle healthy"]),
    ];
    let partners = Partners::new()?;
    partners.bundle("healthy", "csv-builder", "sftp-destination", "")?;
    let database = Database::fresh().await?;
    let (registrar, registry) = registrar(&database, &partners.path()).await?;
    assert_eq!(twice(&registrar).await?, [Registered::Added { bundle: "healthy".to_owned(), revision: 1 }]);
    for (name, file, bytes, _) in &broken {
        partners.bundle(name, "misbehaving-builder", "misbehaving-destination", "")?;
        partners.write(name, file, bytes)?;
    }
    partners.bundle("missing-file", "misbehaving-builder", "misbehaving-destination", "")?;
    std::fs::remove_file(partners.path().join("missing-file/destination.wasm"))?;
    // Neither is a bundle.
    std::fs::write(partners.path().join("README"), "not a bundle")?;
    std::fs::create_dir(partners.path().join(".hidden"))?;

    let changes = twice(&registrar).await?;
    assert_eq!(served(&registry), ["healthy"]);
    assert_eq!(changes.len(), broken.len() + 1, "{changes:?}");
    let missing: (&str, &str, Vec<u8>, &[&str]) =
        ("missing-file", "", Vec::new(), &["destination.wasm cannot be read"]);
    for (name, _, _, parts) in broken.iter().chain([&missing]) {
        let refused: Vec<&String> = changes
            .iter()
            .filter_map(|change| match change {
                Registered::Refused { bundle, why, serving: false } if bundle == name => Some(why),
                _ => None,
            })
            .collect();
        let [sentence] = refused.as_slice() else { panic!("{name} is refused {} times", refused.len()) };
        for part in *parts {
            assert!(sentence.contains(part), "{part:?} is not in: {sentence}");
        }
        assert_eq!(sentence.lines().count(), 1, "{sentence}");
        assert!(!sentence.contains("canary-7"), "{sentence}");
    }
    Ok(())
}

fn served(registry: &Registry) -> Vec<String> {
    registry.bundles().iter().map(|bundle| bundle.directory.clone()).collect()
}

/// A text in which nothing repeats.
fn unlike(length: usize) -> String {
    use sha2::Digest as _;
    let blocks = (0..=length / 64).map(|block| sha2::Sha256::digest(block.to_be_bytes()));
    let text: String = blocks.map(|block| data_encoding::BASE64.encode(&block)).collect();
    text.chars().take(length).collect()
}

#[tokio::test]
async fn plg_02_a_pipe_and_a_device_in_a_bundle_are_refused_and_the_others_are_served() -> anyhow::Result<()> {
    let partners = Partners::new()?;
    for name in ["device", "healthy", "pipe"] {
        partners.bundle(name, "csv-builder", "sftp-destination", "")?;
    }
    let (pipe, device) = (partners.path().join("pipe/partner.toml"), partners.path().join("device/builder.wasm"));
    std::fs::remove_file(&pipe)?;
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status()?.success());
    std::fs::remove_file(&device)?;
    std::os::unix::fs::symlink("/dev/zero", &device)?;
    let database = Database::fresh().await?;
    let (registrar, registry) = registrar(&database, &partners.path()).await?;
    let changes = twice(&registrar).await?;
    assert_eq!(served(&registry), ["healthy"]);
    for (name, file) in [("pipe", "partner.toml"), ("device", "builder.wasm")] {
        let told = format!("bundle {name} is refused: {file} is no regular file; put a file there, or a link to one");
        let refused = Registered::Refused { bundle: name.to_owned(), why: told, serving: false };
        assert!(changes.contains(&refused), "{changes:?}");
    }
    Ok(())
}

#[tokio::test]
async fn plg_02_a_pinned_component_is_served() -> anyhow::Result<()> {
    use sha2::Digest as _;
    let digest = data_encoding::HEXLOWER.encode(&sha2::Sha256::digest(guest("csv-builder")));
    let partners = Partners::new()?;
    partners.bundle("pinned", "csv-builder", "sftp-destination", &format!("[builder]\nsha256 = '{digest}'\n"))?;
    let bundle = partners.load_only().await?;
    assert_eq!(bundle.destinations[0].digests.builder, digest);
    Ok(())
}
