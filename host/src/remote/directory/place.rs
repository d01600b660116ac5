//! From a name to its folder, without ever leaving the destination's directory.
//!
//! Folders are entered one part at a time, each from the one above, and no part may be a symbolic link; the last part is never
//! resolved here, and the calls that take it follow no link either. So a link that somebody plants below the directory leads
//! nowhere, at any moment.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, fstat, openat, stat, statat};
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
    /// A file that is there while what belongs there is mounted, on the directory itself or on a folder below it.
    marker: Option<String>,
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
    pub(super) fn open(path: &Path, marker: Option<String>) -> std::io::Result<Self> {
        let path = std::fs::canonicalize(path)?;
        let directory = openat(CWD, &path, ENTER, Mode::empty())?;
        let found = fstat(&directory)?;
        Ok(Self { path, directory, identity: (found.st_dev, found.st_ino), marker })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn directory(&self) -> &OwnedFd {
        &self.directory
    }

    /// The path still leads to the directory that was opened, and its marker is there. One that was moved away, removed or
    /// unmounted answers as if it were empty.
    pub(super) fn still_there(&self) -> Result<(), String> {
        match stat(&self.path) {
            Ok(found) if (found.st_dev, found.st_ino) == self.identity => self.marked(),
            Ok(_) => {
                Err(format!("{} is another directory now; it was moved, or its share unmounted", self.path.display()))
            }
            Err(errno) => {
                Err(format!("{} cannot be reached any more ({})", self.path.display(), std::io::Error::from(errno)))
            }
        }
    }

    fn marked(&self) -> Result<(), String> {
        let Some(marker) = &self.marker else { return Ok(()) };
        let found = self
            .folder_of(marker, Purpose::Look)
            .and_then(|(folder, last)| statat(&folder, last, AtFlags::SYMLINK_NOFOLLOW).map_err(sorted));
        match found {
            Ok(_) => Ok(()),
            Err(refusal) if refusal.says_absent() => Err(format!(
                "it does not hold the file {marker:?}, so what belongs there is not mounted (or the file is missing: create it there, or take `marker` out of destinations.toml)"
            )),
            Err(error) => Err(format!("its file {marker:?} cannot be looked at: {error}")),
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
    fn plg_04_no_name_and_no_symbolic_link_leads_out_of_the_directory() {
        let around = tempfile::tempdir().unwrap();
        let inside = around.path().join("inside");
        std::fs::create_dir_all(inside.join("in/deep")).unwrap();
        std::os::unix::fs::symlink(around.path(), inside.join("out")).unwrap();
        std::os::unix::fs::symlink("in", inside.join("also-in")).unwrap();
        let root = Root::open(&inside, None).unwrap();
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
        let root = Root::open(&path, None).unwrap();
        assert_eq!(root.still_there(), Ok(()));
        std::fs::rename(&path, &moved).unwrap();
        assert!(root.still_there().unwrap_err().contains("cannot be reached"));
        std::fs::create_dir(&path).unwrap();
        assert!(root.still_there().unwrap_err().contains("another directory"));
    }

    #[test]
    fn del_09_a_marker_below_the_directory_is_looked_at_each_time() {
        let around = tempfile::tempdir().unwrap();
        let (path, marker) = (around.path(), "share/.mounted");
        std::fs::create_dir(path.join("share")).unwrap();
        let root = Root::open(path, Some(marker.to_owned())).unwrap();
        assert!(root.still_there().unwrap_err().contains("is not mounted"));
        std::fs::write(path.join(marker), "").unwrap();
        assert_eq!(root.still_there(), Ok(()));
        std::fs::remove_file(path.join(marker)).unwrap();
        assert!(root.still_there().unwrap_err().contains("is not mounted"));
    }
}
