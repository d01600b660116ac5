//! Where PostgreSQL's programs are: a configured directory, Debian's, or PATH.

use std::fs;
use std::path::{Path, PathBuf};

use super::PostgresError;

const DEBIAN: &str = "/usr/lib/postgresql";

/// The directory with `initdb` and `postgres`. Data that exists asks for the version that made it; new data gets the
/// newest one.
pub fn find(configured: Option<&Path>, data: &Path) -> Result<PathBuf, PostgresError> {
    if let Some(directory) = configured {
        return if holds_server(directory) {
            Ok(directory.to_owned())
        } else {
            Err(PostgresError::NoServerIn { directory: directory.to_owned() })
        };
    }
    let made_by = fs::read_to_string(data.join("PG_VERSION")).ok().map(|text| text.trim().to_owned());
    let debian = debian_versions();
    if let Some(made_by) = made_by {
        let same = debian.iter().find(|(version, _)| version.to_string() == made_by).map(|(_, bin)| bin.clone());
        // Outside Debian's layout the version is not in the path; the server itself refuses data that is not its own.
        return match same.or_else(|| if debian.is_empty() { on_path() } else { None }) {
            Some(directory) => Ok(directory),
            None => Err(PostgresError::OtherVersion { data: data.to_owned(), made_by }),
        };
    }
    debian.into_iter().next().map(|(_, bin)| bin).or_else(on_path).ok_or(PostgresError::NotInstalled)
}

/// Newest first.
fn debian_versions() -> Vec<(u32, PathBuf)> {
    let Ok(entries) = fs::read_dir(DEBIAN) else { return Vec::new() };
    let mut found: Vec<(u32, PathBuf)> = entries
        .filter_map(Result::ok)
        .filter_map(|entry| Some((entry.file_name().to_str()?.parse().ok()?, entry.path().join("bin"))))
        .filter(|(_, bin)| holds_server(bin))
        .collect();
    found.sort_by_key(|(version, _)| std::cmp::Reverse(*version));
    found
}

#[expect(clippy::disallowed_methods, reason = "PATH is how a program is found; it configures nothing of the host")]
fn on_path() -> Option<PathBuf> {
    std::env::split_paths(&std::env::var_os("PATH")?).find(|directory| holds_server(directory))
}

fn holds_server(directory: &Path) -> bool {
    directory.join("initdb").is_file() && directory.join("postgres").is_file()
}
