//! What lies in the partners directory, by content. Names, sizes and times only say when to read again.
//!
//! A bundle is its `.toml` and `.wasm` files; the keys and passwords that an operator may keep beside them are never read
//! here. A file's digest is taken over until its stamp changes, but only once it was read twice under the same stamp:
//! a write within the clock's grain of the first reading leaves no other trace.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use sha2::Digest as _;

use super::error::PluginError;
use super::files::{self, ReadError};
use crate::job::facts::Sha256;

/// Each bundle's directory with a digest of its files' names and contents.
pub type Contents = BTreeMap<PathBuf, Sha256>;

/// Reads a partners directory again and again.
#[derive(Debug, Default)]
pub struct Scanner {
    read: HashMap<PathBuf, Read>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    device: u64,
    inode: u64,
    length: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

#[derive(Debug)]
struct Read {
    stamp: Stamp,
    digest: Sha256,
    /// Read twice, and the same.
    confirmed: bool,
}

impl Scanner {
    /// What is there now. It reads files: call it where blocking is allowed.
    pub fn scan(&mut self, partners_dir: &Path) -> Result<Contents, PluginError> {
        let mut contents = Contents::new();
        let mut present = HashSet::new();
        for directory in bundle_directories(partners_dir)? {
            let (digest, files) = self.digest_of(&directory);
            present.extend(files);
            contents.insert(directory, digest);
        }
        self.read.retain(|file, _| present.contains(file));
        Ok(contents)
    }

    /// The digest of one bundle's files, and which they are. What cannot be read is part of the content: it changes when
    /// it can be.
    pub fn digest_of(&mut self, directory: &Path) -> (Sha256, Vec<PathBuf>) {
        let mut whole = sha2::Sha256::new();
        let mut add = |text: &[u8]| {
            whole.update((text.len() as u64).to_be_bytes());
            whole.update(text);
        };
        let files = match files_of(directory) {
            Ok(files) => files,
            Err(error) => {
                add(error.to_string().as_bytes());
                Vec::new()
            }
        };
        for file in &files {
            add(file.as_os_str().as_encoded_bytes());
            match self.digest_of_file(file) {
                Ok(digest) => add(&digest.0),
                Err(error) => add(error.to_string().as_bytes()),
            }
        }
        (Sha256(whole.finalize().into()), files)
    }

    fn digest_of_file(&mut self, file: &Path) -> Result<Sha256, ReadError> {
        let metadata = std::fs::metadata(file)?;
        let stamp = Stamp {
            device: metadata.dev(),
            inode: metadata.ino(),
            length: metadata.len(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        };
        let before = self.read.get(file).filter(|read| read.stamp == stamp);
        if let Some(Read { digest, confirmed: true, .. }) = before {
            return Ok(*digest);
        }
        let digest = Sha256(sha2::Sha256::digest(files::read(file, files::limit(file))?).into());
        let confirmed = before.is_some_and(|before| before.digest == digest);
        self.read.insert(file.to_owned(), Read { stamp, digest, confirmed });
        Ok(digest)
    }
}

/// Hidden entries and plain files are not bundles.
pub(super) fn bundle_directories(partners_dir: &Path) -> Result<Vec<PathBuf>, PluginError> {
    let failed = |source| PluginError::Partners { directory: partners_dir.to_owned(), source };
    let mut directories = Vec::new();
    for entry in std::fs::read_dir(partners_dir).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path.is_dir() && !is_hidden(&path) {
            directories.push(path);
        }
    }
    directories.sort();
    Ok(directories)
}

fn files_of(directory: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(directory)? {
        let path = entry?.path();
        let part = path.extension().is_some_and(|extension| extension == "toml" || extension == "wasm");
        if part && !is_hidden(&path) {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

fn is_hidden(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plg_02_a_pipe_or_a_device_in_a_bundle_does_not_hold_the_scanner_up() {
        let directory = tempfile::tempdir().unwrap();
        let bundle = directory.path().join("acme");
        std::fs::create_dir(&bundle).unwrap();
        let made = std::process::Command::new("mkfifo").arg(bundle.join("partner.toml")).status().unwrap();
        assert!(made.success());
        std::os::unix::fs::symlink("/dev/zero", bundle.join("builder.wasm")).unwrap();
        let mut scanner = Scanner::default();
        let odd = scanner.scan(directory.path()).unwrap();
        assert_eq!(scanner.scan(directory.path()).unwrap(), odd);
        std::fs::remove_file(bundle.join("builder.wasm")).unwrap();
        std::fs::write(bundle.join("builder.wasm"), "a file").unwrap();
        assert_ne!(scanner.scan(directory.path()).unwrap(), odd, "what cannot be read is content too");
    }

    #[test]
    fn plg_01_content_counts_and_not_the_time_of_a_write() {
        let directory = tempfile::tempdir().unwrap();
        let bundle = directory.path().join("acme");
        std::fs::create_dir(&bundle).unwrap();
        std::fs::create_dir(directory.path().join(".acme.new")).unwrap();
        let manifest = bundle.join("partner.toml");
        std::fs::write(&manifest, "one").unwrap();
        let mut scanner = Scanner::default();
        let mut scan = || scanner.scan(directory.path()).unwrap();
        let first = scan();
        assert_eq!(first.keys().collect::<Vec<_>>(), [&bundle]);
        assert_eq!(scan(), first);
        // The same text again, a secret beside it, and something that is being written: nothing of the bundle.
        std::fs::write(&manifest, "one").unwrap();
        std::fs::write(bundle.join("password"), "hunter2").unwrap();
        std::fs::write(bundle.join(".partner.toml.swp"), "tw").unwrap();
        assert_eq!(scan(), first);
        // As many bytes in the same file, at the same time.
        let stamp = std::fs::metadata(&manifest).unwrap().modified().unwrap();
        let file = std::fs::OpenOptions::new().write(true).open(&manifest).unwrap();
        std::io::Write::write_all(&mut &file, b"two").unwrap();
        file.set_modified(stamp).unwrap();
        let second = scan();
        assert_ne!(second, first);
        std::fs::rename(&manifest, bundle.join("other.toml")).unwrap();
        assert_ne!(scan(), second, "names count");
        std::fs::remove_dir_all(&bundle).unwrap();
        assert!(scan().is_empty());
    }
}
