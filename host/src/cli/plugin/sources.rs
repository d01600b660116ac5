//! A bundle's sources beside the components that were built from them.

use std::path::Path;
use std::time::SystemTime;

use super::template::{Language, Part};

/// What tools leave among the sources; it is none.
const MADE: [&str; 3] = ["target", "node_modules", "__pycache__"];

/// What a part is written in, by the file that its tool reads.
pub(super) fn language_of(sources: &Path) -> Option<Language> {
    [("Cargo.toml", Language::Rust), ("package.json", Language::Javascript), ("requirements.txt", Language::Python)]
        .into_iter()
        .find_map(|(file, language)| sources.join(file).is_file().then_some(language))
}

/// A sentence for each part whose component is not what its sources would make now. A component is tested and served as it
/// lies there, so that this is a warning and no fault.
pub(super) fn outdated(bundle: &Path) -> Vec<String> {
    let build = format!("run `waybill plugin build {}`", bundle.display());
    let mut said = Vec::new();
    for part in Part::ALL {
        let (sources, component) = (bundle.join(part.name()), part.component());
        if language_of(&sources).is_none() {
            continue;
        }
        match modified(&bundle.join(component)) {
            None => said.push(format!("{}/ is not built, and there is no {component}: {build}", part.name())),
            Some(built) if newest(&sources).is_some_and(|changed| changed > built) => {
                said.push(format!("{}/ is newer than {component}: {build}", part.name()));
            }
            Some(_) => {}
        }
    }
    said
}

/// The components of an earlier build that are there.
pub(super) fn built_before(bundle: &Path) -> Vec<&'static str> {
    Part::ALL.map(Part::component).into_iter().filter(|component| bundle.join(component).is_file()).collect()
}

fn newest(directory: &Path) -> Option<SystemTime> {
    // What cannot be read cannot be told to be newer; the build says what is wrong with it.
    let entries = std::fs::read_dir(directory).ok()?.flatten();
    let times = entries.filter_map(|entry| {
        let (path, name) = (entry.path(), entry.file_name());
        let name = name.to_string_lossy();
        if name.starts_with('.') || MADE.contains(&name.as_ref()) {
            return None;
        }
        if entry.file_type().ok()?.is_dir() { newest(&path) } else { modified(&path) }
    });
    times.max()
}

fn modified(path: &Path) -> Option<SystemTime> {
    std::fs::metadata(path).and_then(|metadata| metadata.modified()).ok()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_component_that_is_missing_or_older_than_its_sources_is_told() {
        let bundle = tempfile::tempdir().unwrap();
        let path = |name: &str| bundle.path().join(name);
        assert_eq!(outdated(bundle.path()), Vec::<String>::new(), "without sources there is nothing to build");
        std::fs::create_dir_all(path("builder/target")).unwrap();
        for file in ["builder/requirements.txt", "builder/builder.py", "builder/target/made"] {
            std::fs::write(path(file), "").unwrap();
        }
        let told = outdated(bundle.path());
        assert!(matches!(&told[..], [one] if one.contains("no builder.wasm: run `waybill plugin build")), "{told:?}");

        std::fs::write(path("builder.wasm"), "").unwrap();
        let set = |name: &str, seconds| {
            let time = SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
            std::fs::File::options().write(true).open(path(name)).unwrap().set_modified(time).unwrap();
        };
        set("builder/requirements.txt", 1);
        set("builder/builder.py", 2);
        set("builder.wasm", 3);
        assert_eq!(outdated(bundle.path()), Vec::<String>::new(), "what a tool made is no source");
        set("builder/builder.py", 4);
        let told = outdated(bundle.path());
        assert!(matches!(&told[..], [one] if one.starts_with("builder/ is newer than builder.wasm: run")), "{told:?}");
        assert_eq!(built_before(bundle.path()), ["builder.wasm"]);
    }
}
