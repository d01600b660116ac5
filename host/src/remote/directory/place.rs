//! From a name to its folder, without ever leaving the destination's directory.
//!
//! Folders are entered one part at a time, each from the one above, and no part may be a symbolic link; the last part is never
//! resolved here, and the calls that take it follow no link either. So a link that somebody plants below the directory leads
//! nowhere, at any moment.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode, OFlags, fstat, openat, stat};
use rustix::io::Errno;

use super::errno::sorted;
use crate::remote::error::RemoteError;

/// The destination's directory, held open.
#[derive(Debug)]
pub(super) struct Root {
    /// Without a symbolic link in it.
    path: PathBuf,
    directory: OwnedFd,
    /// File system and file: what the path led to when it was opened.
    identity: (u64, u64),
}

/// What a folder is entered for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    /// The right to pass through is enough.
    Look,
    /// It is listed or changed. A change is brought to the disk through a folder that may be read, so one that may not is
    /// refused before anything is done.
    ListOrChange,
}

impl Root {
    /// Opens the directory; the last part of the path may be a symbolic link, which is the operator's.
    pub(super) fn open(path: &Path) -> std::io::Result<Self> {
        let path = std::fs::canonicalize(path)?;
        let directory = openat(CWD, &path, ENTER, Mode::empty())?;
        let found = fstat(&directory)?;
        Ok(Self { path, directory, identity: (found.st_dev, found.st_ino) })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn directory(&self) -> &OwnedFd {
        &self.directory
    }

    /// The path still leads to the directory that was opened. One that was moved away, removed or unmounted answers as if it
    /// were empty.
    pub(super) fn still_there(&self) -> Result<(), String> {
        match stat(&self.path) {
            Ok(found) if (found.st_dev, found.st_ino) == self.identity => Ok(()),
            Ok(_) => {
                Err(format!("{} is another directory now; it was moved, or its share unmounted", self.path.display()))
            }
            Err(errno) => {
                Err(format!("{} cannot be reached any more ({})", self.path.display(), std::io::Error::from(errno)))
            }
        }
    }

    /// The folder of a name, and the name in it.
    pub(super) fn folder_of<'a>(&self, name: &'a str, purpose: Purpose) -> Result<(OwnedFd, &'a str), RemoteError> {
        let (folder, last) = match name.rsplit_once('/') {
            None => (".", name),
            // Only a name without a folder lies in the directory itself.
            Some(("" | ".", _)) => return Err(invalid(name)),
            Some(split) => split,
        };
        if !is_plain(last) {
            return Err(invalid(name));
        }
        Ok((self.folder(folder, purpose)?, last))
    }

    /// A folder by its own name; the directory itself is empty or `.`.
    pub(super) fn folder(&self, name: &str, purpose: Purpose) -> Result<OwnedFd, RemoteError> {
        let mut parts = match name {
            "" | "." => Vec::new(),
            name => name.split('/').collect(),
        };
        if !parts.iter().all(|part| is_plain(part)) {
            return Err(invalid(name));
        }
        let last = parts.pop().unwrap_or(".");
        let mut above = None;
        for part in parts {
            above = Some(enter(above.as_ref().unwrap_or(&self.directory), part, ENTER)?);
        }
        let how = match purpose {
            Purpose::Look => ENTER,
            Purpose::ListOrChange => READ,
        };
        enter(above.as_ref().unwrap_or(&self.directory), last, how)
    }
}

const ENTER: OFlags = OFlags::PATH.union(READ);
const READ: OFlags = OFlags::DIRECTORY.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

fn enter(above: &OwnedFd, part: &str, how: OFlags) -> Result<OwnedFd, RemoteError> {
    openat(above, part, how, Mode::empty()).map_err(|errno| match errno {
        Errno::NOTDIR | Errno::LOOP => match sorted(errno) {
            RemoteError::Refused { code, .. } => RemoteError::Refused {
                code,
                text: format!(
                    "{part:?} is no directory; a symbolic link is not followed below the destination's directory"
                ),
            },
            other => other,
        },
        errno => sorted(errno),
    })
}

fn is_plain(part: &str) -> bool {
    !matches!(part, "" | "." | "..") && !part.contains(['/', '\0'])
}

fn invalid(name: &str) -> RemoteError {
    RemoteError::Invalid { why: format!("{name:?} is no name below the destination's directory") }
}

/// What a file's mode says that it is, in the words of a listing.
pub(super) fn kind(mode: u32) -> &'static str {
    match FileType::from_raw_mode(mode) {
        FileType::RegularFile => "file",
        FileType::Directory => "directory",
        _ => "other",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_and_no_symbolic_link_leads_out_of_the_directory() {
        let around = tempfile::tempdir().unwrap();
        let inside = around.path().join("inside");
        std::fs::create_dir_all(inside.join("in/deep")).unwrap();
        std::os::unix::fs::symlink(around.path(), inside.join("out")).unwrap();
        std::os::unix::fs::symlink("in", inside.join("also-in")).unwrap();
        let root = Root::open(&inside).unwrap();
        for purpose in [Purpose::Look, Purpose::ListOrChange] {
            for (name, last) in [("k.csv", "k.csv"), ("in/k.csv", "k.csv"), ("in/deep/k.csv", "k.csv")] {
                assert_eq!(root.folder_of(name, purpose).unwrap().1, last);
            }
            for name in ["", ".", "..", "../k.csv", "/k.csv", "in/../../k.csv", "in//k.csv", "in/", "./k.csv", "a\0b"] {
                assert!(matches!(root.folder_of(name, purpose), Err(RemoteError::Invalid { .. })), "{name}");
            }
            for name in ["out/k.csv", "out/inside/in/k.csv", "also-in/k.csv", "also-in/deep/k.csv"] {
                let error = root.folder_of(name, purpose).unwrap_err();
                assert!(error.is_refusal() && error.to_string().contains("symbolic link"), "{name}: {error}");
            }
        }
    }

    #[test]
    fn a_directory_that_was_moved_or_replaced_is_no_longer_there() {
        let around = tempfile::tempdir().unwrap();
        let (path, moved) = (around.path().join("outbox"), around.path().join("moved"));
        std::fs::create_dir(&path).unwrap();
        let root = Root::open(&path).unwrap();
        assert_eq!(root.still_there(), Ok(()));
        std::fs::rename(&path, &moved).unwrap();
        assert!(root.still_there().unwrap_err().contains("cannot be reached"));
        std::fs::create_dir(&path).unwrap();
        assert!(root.still_there().unwrap_err().contains("another directory"));
    }
}
