//! The files of a new bundle. The plugins in it are this repository's examples themselves, so that what an author starts
//! from is what our tests deliver with; the contract and the Rust library are embedded, because no registry has them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use anyhow::Context as _;
use clap::ValueEnum;

/// What a part is written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Language {
    Rust,
    Javascript,
    Python,
}

/// A bundle's two plugins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Part {
    Builder,
    Destination,
}

impl Part {
    pub const ALL: [Self; 2] = [Self::Builder, Self::Destination];

    /// Its directory, its module, its world.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Builder => "builder",
            Self::Destination => "destination",
        }
    }

    /// What `plugin build` makes of it.
    pub const fn component(self) -> &'static str {
        match self {
            Self::Builder => "builder.wasm",
            Self::Destination => "destination.wasm",
        }
    }
}

/// Embeds files of the repository: each with its path in the bundle.
macro_rules! files {
    ($from:literal: $($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("../../../../", $from, $name)))),*]
    };
}

type Files = &'static [(&'static str, &'static str)];

const CONTRACT: Files = files!("wit/0.2.0/": "partner.wit");
const GUEST: Files = files!("plugins/sdk/src/":
    "bindings.rs", "builder.rs", "destination.rs", "failure.rs", "lib.rs", "log.rs", "output.rs", "panics.rs", "rows.rs",
    "settings.rs", "template.rs", "testing.rs");
const GUEST_TABLE: Files = files!("plugins/sdk/src/table/":
    "charset.rs", "columns.rs", "compress.rs", "file.rs", "mod.rs", "query.rs", "words.rs");
const RUST_BUILDER: Files = files!("plugins/csv-builder/src/": "lib.rs", "options.rs", "table.rs");
const RUST_DESTINATION: Files = files!("plugins/sftp-destination/src/": "done.rs", "lib.rs", "names.rs");
const JAVASCRIPT: Files =
    files!("plugins/javascript/": "builder.js", "destination.js", "package.json", "package-lock.json");
const PYTHON: Files = files!("plugins/python/": "builder.py", "destination.py", "requirements.txt");
const LOCK: &str = include_str!("../../../../Cargo.lock");
/// Crates that the examples in Rust are built with, in the versions that they were tested with here.
const CRATES: [&str; 4] = ["wit-bindgen", "csv", "encoding_rs", "flate2"];

/// Every file of a new bundle, by its path in it.
pub(super) fn files(partner: &str, language: Language, parts: &[Part]) -> anyhow::Result<BTreeMap<PathBuf, String>> {
    let mut files = BTreeMap::new();
    let mut add = |path: &str, text: &str| {
        files.insert(PathBuf::from(path), text.replace("@PARTNER@", partner));
    };
    let alone = match parts {
        [part] => include_str!("template/alone.toml").replace("@PART@", part.name()),
        _ => String::new(),
    };
    add("partner.toml", &include_str!("template/partner.toml").replace("@ALONE@", &alone));
    let id = uuid::Uuid::new_v4().to_string();
    add("destinations.example.toml", &include_str!("template/destinations.example.toml").replace("@ID@", &id));
    add(".gitignore", include_str!("template/gitignore"));
    add("README.md", &readme(language, parts));
    let (builds, delivers) = (parts.contains(&Part::Builder), parts.contains(&Part::Destination));
    let mut case = include_str!("template/case.toml").to_owned();
    if builds {
        add("tests/rows/contacts.jsonl", include_str!("template/contacts.jsonl"));
    } else {
        // The file that a builder would make.
        let (before, _) = case.split_once("\n[rows]").context("the embedded case has no rows")?;
        case = before.replacen("golden = ", "file = ", 1);
    }
    if delivers {
        // The done-file, which is empty.
        add("tests/golden/contacts.csv.done", "");
    } else {
        let expects = case.find("\n[expects]").zip(case.find("\n[rows]"));
        let (from, to) = expects.context("the embedded case expects nothing")?;
        case.replace_range(from..to, "");
        case = case.split_inclusive('\n').filter(|line| !line.starts_with("final_name")).collect();
    }
    add("tests/contacts.toml", &case);
    add("tests/golden/contacts.csv", include_str!("template/contacts.csv"));
    for (name, text) in CONTRACT {
        add(&format!("wit/{name}"), text);
    }
    for part in parts {
        match language {
            Language::Rust => {
                let (manifest, sources) = match part {
                    Part::Builder => (include_str!("template/rust/builder.toml"), RUST_BUILDER),
                    Part::Destination => (include_str!("template/rust/destination.toml"), RUST_DESTINATION),
                };
                add(&format!("{}/Cargo.toml", part.name()), manifest);
                for (name, text) in sources {
                    add(&format!("{}/src/{name}", part.name()), text);
                }
            }
            Language::Javascript => add_part(&mut add, *part, JAVASCRIPT),
            Language::Python => add_part(&mut add, *part, PYTHON),
        }
    }
    if language == Language::Rust {
        let members: Vec<String> = parts.iter().map(|part| format!("\"{}\"", part.name())).collect();
        let members = format!("{}, \"waybill-guest\"", members.join(", "));
        add("Cargo.toml", &include_str!("template/rust/workspace.toml").replace("@MEMBERS@", &members));
        add("Cargo.lock", &lock()?);
        let manifest = include_str!("template/rust/guest.toml").replace("@VERSION@", env!("CARGO_PKG_VERSION"));
        add("waybill-guest/Cargo.toml", &manifest);
        for (name, text) in GUEST {
            // In the repository the contract lies two directories up, in one of its versions.
            add(&format!("waybill-guest/src/{name}"), &text.replace("../../wit/0.2.0", "../wit"));
        }
        for (name, text) in GUEST_TABLE {
            add(&format!("waybill-guest/src/table/{name}"), text);
        }
    }
    Ok(files)
}

/// The example's files, without the other part's module.
fn add_part(add: &mut impl FnMut(&str, &str), part: Part, files: Files) {
    for (name, text) in files {
        let stem = name.split('.').next().unwrap_or(name);
        if Part::ALL.iter().all(|other| *other == part || other.name() != stem) {
            add(&format!("{}/{name}", part.name()), text);
        }
    }
}

fn readme(language: Language, parts: &[Part]) -> String {
    let steps = match language {
        Language::Rust => include_str!("template/rust/steps.md"),
        Language::Javascript => include_str!("template/javascript.md"),
        Language::Python => include_str!("template/python.md"),
    };
    let rows = parts.iter().map(|part| match part {
        Part::Builder => "| `builder/` | the plugin that makes the file from rows |\n",
        Part::Destination => "| `destination/` | the plugin that names the file and puts it there |\n",
    });
    let components: Vec<&str> = parts.iter().map(|part| part.component()).collect();
    let tests = match parts {
        [Part::Builder] => "builds the file of each case of tests/ and compares it, without a database",
        _ => "delivers each case of tests/ under every fault, without a database and without a partner",
    };
    include_str!("template/README.md")
        .replace("@TESTS@", tests)
        .replace("@PARTS@", &rows.collect::<String>())
        .replace("@COMPONENTS@", &components.join(" and "))
        .replace("@STEPS@", steps)
}

/// The part of our own lock file that the examples need: cargo adds the bundle's crates to it.
fn lock() -> anyhow::Result<String> {
    let mut lock: toml::Table = LOCK.parse().context("the embedded lock file cannot be read")?;
    let Some(toml::Value::Array(packages)) = lock.get_mut("package") else {
        anyhow::bail!("the embedded lock file names no packages");
    };
    let mut wanted: BTreeSet<String> = CRATES.map(str::to_owned).into();
    let mut waiting: Vec<String> = wanted.iter().cloned().collect();
    while let Some(name) = waiting.pop() {
        for package in packages.iter().filter(|package| is_named(package, &name)) {
            let depends = package.get("dependencies").and_then(toml::Value::as_array).into_iter().flatten();
            for dependency in depends.filter_map(toml::Value::as_str) {
                if wanted.insert(dependency.to_owned()) {
                    waiting.push(dependency.to_owned());
                }
            }
        }
    }
    packages.retain(|package| wanted.iter().any(|name| is_named(package, name)));
    Ok(toml::to_string(&lock)?)
}

/// A dependency is written as a name, or as a name and a version where several versions are in the lock file.
fn is_named(package: &toml::Value, dependency: &str) -> bool {
    let field = |name| package.get(name).and_then(toml::Value::as_str);
    let mut words = dependency.split(' ');
    words.next() == field("name") && words.next().is_none_or(|version| Some(version) == field("version"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What stands in a folder of the repository and not in the list is missing from every new bundle.
    #[test]
    fn every_source_of_the_examples_is_embedded() {
        for (folder, embedded) in [
            ("wit/0.2.0", CONTRACT),
            ("plugins/sdk/src", GUEST),
            ("plugins/sdk/src/table", GUEST_TABLE),
            ("plugins/csv-builder/src", RUST_BUILDER),
            ("plugins/sftp-destination/src", RUST_DESTINATION),
            ("plugins/javascript", JAVASCRIPT),
            ("plugins/python", PYTHON),
        ] {
            let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(folder);
            let mut there: Vec<String> = std::fs::read_dir(path)
                .unwrap()
                .map(|entry| entry.unwrap())
                .filter(|entry| entry.file_type().unwrap().is_file())
                .map(|entry| entry.file_name().into_string().unwrap())
                .collect();
            there.sort();
            let mut names: Vec<&str> = embedded.iter().map(|(name, _)| *name).collect();
            names.sort_unstable();
            assert_eq!(there, names, "{folder}");
        }
    }

    #[test]
    fn crates_have_the_versions_and_features_of_this_workspace() {
        let table = |text: &str| text.parse::<toml::Table>().unwrap();
        let workspace = table(include_str!("../../../../Cargo.toml"))["workspace"]["dependencies"].clone();
        // A crate alone is its version; that it is optional is the example's own affair.
        let plain = |crate_: &toml::Value| {
            let mut whole = match crate_ {
                toml::Value::Table(whole) => whole.clone(),
                version => toml::Table::from_iter([("version".to_owned(), version.clone())]),
            };
            whole.remove("optional");
            whole
        };
        let mut compared = BTreeSet::new();
        for manifest in [include_str!("template/rust/builder.toml"), include_str!("template/rust/guest.toml")] {
            for (name, ours) in table(manifest)["dependencies"].as_table().unwrap() {
                if CRATES.contains(&name.as_str()) {
                    assert_eq!(plain(ours), plain(&workspace[name.as_str()]), "{name}");
                    compared.insert(name.clone());
                }
            }
        }
        assert_eq!(compared, CRATES.map(str::to_owned).into());
    }

    #[test]
    fn the_lock_file_holds_what_the_examples_need_and_nothing_else() {
        let lock = lock().unwrap();
        for name in ["wit-bindgen", "wit-bindgen-rust-macro", "csv-core", "encoding_rs"] {
            assert!(lock.contains(&format!("name = \"{name}\"")), "{name} is missing");
        }
        for name in ["wasmtime", "sqlx", "waybill"] {
            assert!(!lock.contains(&format!("name = \"{name}\"")), "{name} is not needed");
        }
    }

    #[test]
    fn nothing_is_left_to_fill_in_and_each_part_has_its_own_files() {
        for language in [Language::Rust, Language::Javascript, Language::Python] {
            let whole = files("acme", language, &Part::ALL).unwrap();
            for (path, text) in &whole {
                for placeholder in [
                    "@PARTNER@",
                    "@ALONE@",
                    "@PART@",
                    "@ID@",
                    "@PARTS@",
                    "@TESTS@",
                    "@COMPONENTS@",
                    "@STEPS@",
                    "@MEMBERS@",
                    "@VERSION@",
                ] {
                    assert!(!text.contains(placeholder), "{} has {placeholder}", path.display());
                }
            }
            let half = files("acme", language, &[Part::Builder]).unwrap();
            let case = &half[&PathBuf::from("tests/contacts.toml")];
            assert!(case.contains("[rows]") && !case.contains("[expects]") && !case.contains("[[beside]]"), "{case}");
            assert!(half.len() < whole.len() && half.keys().all(|path| whole.contains_key(path)), "{language:?}");
            assert!(!half.keys().any(|path| path.starts_with("destination")), "{language:?}");
        }
        let javascript = files("acme", Language::Javascript, &Part::ALL).unwrap();
        assert!(!javascript.contains_key(&PathBuf::from("builder/destination.js")));
        assert!(javascript.contains_key(&PathBuf::from("destination/package-lock.json")));
    }
}
