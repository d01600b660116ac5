//! `waybill plugin new`: a bundle to start from, which builds and passes its test as it stands.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use clap::ValueEnum;

use super::template::{self, Language, Part};
use crate::cli::Ended;
use crate::cli::output::Output;

pub(super) const HELP: &str = "\
Examples:
  waybill plugin new acme --language python
  waybill plugin new partners/acme --language rust --part destination --partner acme
  mkdir acme && cd acme && waybill plugin new . --language rust

Then: waybill plugin build acme && waybill plugin test acme

Exit code 0: the bundle is there; 1: it could not be written; 4: DIR is not empty, or the partner's name cannot be used.";

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct New {
    /// Where the bundle is made: a directory that is empty, or not there yet.
    #[arg(value_name = "DIR")]
    directory: PathBuf,
    /// What its plugins are written in.
    #[arg(long, value_enum)]
    language: Language,
    /// Which of the two plugins. One alone is tested as far as it goes, and is served once the other lies beside it.
    #[arg(long, value_enum, default_value_t = Parts::Both)]
    part: Parts,
    /// The partner's name in the manifest: lower-case letters, digits and hyphens. As long as nothing is said, DIR's name.
    #[arg(long, value_name = "NAME")]
    partner: Option<String>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Parts {
    Builder,
    Destination,
    Both,
}

impl New {
    pub fn run(self, output: Output) -> anyhow::Result<Ended> {
        let directory = self.directory;
        let parts: &[Part] = match self.part {
            Parts::Builder => &[Part::Builder],
            Parts::Destination => &[Part::Destination],
            Parts::Both => &Part::ALL,
        };
        let partner = self.partner.or_else(|| name_of(&directory)).unwrap_or_default();
        let refused = if is_usable(&partner) {
            occupied(&directory)?
        } else {
            Some(format!(
                "{partner:?} cannot be a partner's name: use lower-case letters, digits and hyphens, beginning with a letter (--partner NAME)"
            ))
        };
        if let Some(why) = refused {
            let document = serde_json::json!({ "bundle": directory, "outcome": "Refused", "why": why });
            output.answer(&document, || format!("Refused: {why}"))?;
            return Ok(Ended::Refused);
        }
        let files = template::files(&partner, self.language, parts)?;
        write_whole(&directory, &files)?;
        let shown = directory.display().to_string();
        let document = serde_json::json!({
            "bundle": directory, "outcome": "Created", "partner": partner, "language": self.language, "parts": parts,
            "files": files.keys().collect::<Vec<_>>(),
        });
        output.answer(&document, || told(&shown, &files, parts))?;
        Ok(Ended::Done)
    }
}

/// The directory's own name, of `.` too.
fn name_of(directory: &Path) -> Option<String> {
    let name = |path: &Path| path.file_name().map(|name| name.to_string_lossy().into_owned());
    // Of `..` the name is known once it is looked up; what is not there yet has the name that was given.
    name(directory).or_else(|| name(&directory.canonicalize().ok()?))
}

fn told(shown: &str, files: &BTreeMap<PathBuf, String>, parts: &[Part]) -> String {
    let next = format!("  waybill plugin build {shown}\n  waybill plugin test {shown}");
    let missing = Part::ALL.iter().find(|part| !parts.contains(part));
    let other = missing.map_or(String::new(), |part| {
        format!(
            "\nIt is tested alone. A host serves a bundle of two plugins: put {} beside partner.toml, and take `part` out of it.",
            part.component()
        )
    });
    format!("Created: {shown}, {} files; its README.md says what each is. Next:\n{next}{other}", files.len())
}

/// A name that is a word in file names, crate names and host names alike.
fn is_usable(partner: &str) -> bool {
    partner.len() <= 40
        && partner.starts_with(|first: char| first.is_ascii_lowercase())
        && !partner.ends_with('-')
        && partner.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
}

/// Why nothing can be made there, if so.
fn occupied(directory: &Path) -> anyhow::Result<Option<String>> {
    let shown = directory.display();
    match std::fs::read_dir(directory) {
        Ok(mut entries) => Ok(entries.next().is_some().then(|| {
            format!("{shown} is not empty; name a directory that is empty or not there yet, since nothing is ever overwritten")
        })),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) if error.kind() == std::io::ErrorKind::NotADirectory => Ok(Some(format!("{shown} is a file"))),
        Err(error) => Err(error).with_context(|| format!("{shown} cannot be looked into")),
    }
}

/// Writes the files beside the directory and renames: it is whole or not there. An empty directory, which may be a mount or
/// somebody's working directory, stays, and what is in the bundle is moved into it.
fn write_whole(directory: &Path, files: &BTreeMap<PathBuf, String>) -> anyhow::Result<()> {
    let absolute = std::path::absolute(directory).context("the directory's place cannot be told")?;
    let parent = absolute.parent().context("the file system's root cannot be a bundle")?;
    std::fs::create_dir_all(parent).with_context(|| format!("{} cannot be made", parent.display()))?;
    let beside = tempfile::Builder::new()
        .prefix(".waybill-new-")
        .tempdir_in(parent)
        .with_context(|| format!("nothing can be written into {}", parent.display()))?;
    let bundle = beside.path().join("bundle");
    for (path, text) in files {
        let path = bundle.join(path);
        let failed = || format!("{} cannot be written", path.display());
        std::fs::create_dir_all(path.parent().unwrap_or(&bundle)).with_context(failed)?;
        std::fs::write(&path, text).with_context(failed)?;
    }
    let failed = || format!("the bundle cannot be moved to {}", absolute.display());
    if !absolute.exists() {
        return std::fs::rename(&bundle, &absolute).with_context(failed);
    }
    if let Some(why) = occupied(&absolute)? {
        bail!(why);
    }
    for entry in std::fs::read_dir(&bundle).with_context(failed)? {
        let entry = entry.with_context(failed)?;
        std::fs::rename(entry.path(), absolute.join(entry.file_name())).with_context(failed)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_partners_name_is_a_plain_word() {
        for (name, usable) in [
            ("acme", true),
            ("acme-2", true),
            ("", false),
            ("Acme", false),
            ("2acme", false),
            ("a/b", false),
            ("acme-", false),
        ] {
            assert_eq!(is_usable(name), usable, "{name}");
        }
    }

    #[test]
    fn what_cannot_be_finished_leaves_nothing_behind() {
        let parent = tempfile::tempdir().unwrap();
        let directory = parent.path().join("acme");
        std::fs::create_dir(&directory).unwrap();
        std::fs::write(directory.join("kept"), "kept").unwrap();
        let files = BTreeMap::from([(PathBuf::from("partner.toml"), "new".to_owned())]);
        assert!(write_whole(&directory, &files).is_err(), "a directory that filled meanwhile is not replaced");
        assert_eq!(std::fs::read(directory.join("kept")).unwrap(), b"kept");
        assert_eq!(std::fs::read_dir(parent.path()).unwrap().count(), 1, "what was written beside is gone");
    }

    #[test]
    fn an_empty_directory_stays_the_one_it_was() {
        use std::os::unix::fs::MetadataExt as _;
        let parent = tempfile::tempdir().unwrap();
        let directory = parent.path().join("acme");
        std::fs::create_dir(&directory).unwrap();
        let inode = std::fs::metadata(&directory).unwrap().ino();
        let files = [("partner.toml", "new"), ("tests/case.toml", "case")]
            .map(|(path, text)| (PathBuf::from(path), text.to_owned()));
        write_whole(&directory, &BTreeMap::from(files)).unwrap();
        assert_eq!(
            std::fs::metadata(&directory).unwrap().ino(),
            inode,
            "a shell that stands in it goes on standing there"
        );
        assert_eq!(std::fs::read(directory.join("tests/case.toml")).unwrap(), b"case");
        assert_eq!(std::fs::read_dir(parent.path()).unwrap().count(), 1);
    }
}
