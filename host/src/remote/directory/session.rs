//! One session in a directory: single requests, each made by blocking calls on a thread of its own.

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use rustix::fs::{
    AtFlags, Dir, Mode, RenameFlags, Stat, fstatfs, fstatvfs, fsync, linkat, mkdirat, renameat, renameat_with, statat,
    unlinkat,
};
use rustix::io::Errno;

use super::errno::sorted;
use super::lane::Lane;
use super::place::{Purpose, Root, kind};
use crate::job::facts::{Entry, Found};
use crate::remote::endpoint::DirectoryEndpoint;
use crate::remote::error::{ConnectError, PERMISSION_DENIED, RemoteError};
use crate::remote::line::Line;
use crate::remote::opened::{self, Opened};
use crate::remote::readable::readable;
use crate::remote::session::{ServerFacts, SessionLimits};

/// A session in a destination's directory.
pub type Session = Opened<Directory>;

pub(super) type Inner = opened::Inner<Directory>;

pub struct Directory {
    root: Root,
    lane: Lane,
}

/// A name in its folder.
type Named<'a> = (&'a OwnedFd, &'a str);

impl Session {
    /// Opens the directory. Nothing is written there.
    pub async fn open(endpoint: &DirectoryEndpoint, limits: &SessionLimits) -> Result<Self, ConnectError> {
        let server = endpoint.path.display().to_string();
        let lane = Lane::of(&endpoint.path);
        let place = match lane.enter(limits.connect).await {
            Ok(place) => place,
            Err(why) => return Err(ConnectError::Unreachable { server, why }),
        };
        let wanted = endpoint.clone();
        let opening = tokio::task::spawn_blocking(move || {
            let opened = open(&wanted);
            drop(place);
            opened
        });
        let opened = match tokio::time::timeout(limits.connect, opening).await {
            Ok(Ok(opened)) => opened,
            Ok(Err(error)) => Err(Closed::ForNow(format!("opening it did not end: {error}"))),
            Err(_) => Err(Closed::ForNow(format!("it did not answer within {} s", limits.connect.as_secs()))),
        };
        match opened {
            Ok((root, facts)) => Ok(Self::new(Directory { root, lane }, Arc::new(Line::default()), facts, *limits)),
            Err(Closed::ForNow(why)) => Err(ConnectError::Unreachable { server, why }),
            Err(Closed::UntilMended(why)) => Err(ConnectError::Protocol { server, why }),
        }
    }

    pub(in crate::remote) async fn ping(&self) -> Result<(), RemoteError> {
        self.ask("a look at the directory", |_| Ok(())).await
    }

    pub async fn stat(&self, name: &str) -> Result<Found, RemoteError> {
        let wanted = name.to_owned();
        let looked = self.ask("a look", move |inner| inner.seen(&wanted)).await;
        match looked {
            Ok(found) => Ok(Found::Present(entry(name.to_owned(), &found))),
            Err(refusal) if refusal.says_absent() => Ok(Found::Absent),
            Err(RemoteError::Refused { code: Some(PERMISSION_DENIED), text }) => Ok(Found::NotVisible { why: text }),
            Err(error) => Err(error),
        }
    }

    pub async fn list(
        &self,
        directory: &str,
        prefix: &str,
        most: usize,
        wanted: impl Fn(&str) -> bool + Send + 'static,
    ) -> Result<Vec<Entry>, RemoteError> {
        let (directory, prefix) = (directory.trim_end_matches('/').to_owned(), prefix.to_owned());
        self.ask_within("a listing", self.inner.limits.look, move |inner| {
            let folder = inner.own.root.folder(&directory, Purpose::ListOrChange)?;
            let mut entries = Vec::new();
            for listed in Dir::read_from(&folder).map_err(sorted)? {
                if entries.len() >= most {
                    break;
                }
                let listed = listed.map_err(sorted)?;
                let raw = listed.file_name();
                let own = readable(raw.to_bytes());
                if own == "." || own == ".." || !own.starts_with(&prefix) {
                    continue;
                }
                let name = match directory.as_str() {
                    "" | "." => own.clone().into_owned(),
                    directory => format!("{directory}/{own}"),
                };
                if !wanted(&name) {
                    continue;
                }
                let mut entry = match statat(&folder, raw, AtFlags::SYMLINK_NOFOLLOW) {
                    Ok(found) => entry(name, &found),
                    // It went away since it was listed.
                    Err(Errno::NOENT) => continue,
                    Err(errno) => return Err(sorted(errno)),
                };
                if matches!(own, std::borrow::Cow::Owned(_)) {
                    "other".clone_into(&mut entry.kind);
                }
                entries.push(entry);
            }
            Ok(entries)
        })
        .await
    }

    pub async fn make_directory(&self, name: &str) -> Result<(), RemoteError> {
        let name = name.to_owned();
        self.ask("making a directory", move |inner| {
            let (folder, last) = inner.own.root.folder_of(&name, Purpose::ListOrChange)?;
            mkdirat(&folder, last, FOLDER_MODE).map_err(sorted)?;
            on_disk(&folder)
        })
        .await
    }

    pub async fn free_bytes(&self) -> Result<Option<u64>, RemoteError> {
        let told = self.ask("its free space", |inner| fstatvfs(inner.own.root.directory()).map_err(sorted)).await;
        match told {
            Ok(told) => Ok(Some(told.f_bavail.saturating_mul(told.f_frsize))),
            Err(error) if error.is_refusal() => Ok(None),
            Err(error) => Err(error),
        }
    }

    pub async fn remove(&self, name: &str) -> Result<(), RemoteError> {
        let name = name.to_owned();
        self.ask("a removal", move |inner| {
            let (folder, last) = inner.own.root.folder_of(&name, Purpose::ListOrChange)?;
            unlinkat(&folder, last, AtFlags::empty()).map_err(sorted)?;
            on_disk(&folder)
        })
        .await
    }

    /// A rename that refuses an existing target, in one step; not every file system knows it.
    pub async fn rename(&self, from: &str, to: &str) -> Result<(), RemoteError> {
        self.two_names("a rename", from, to, |[(above, from), (below, to)]| {
            renameat_with(above, from, below, to, RenameFlags::NOREPLACE)
        })
        .await
    }

    /// The same file under a second name; an existing one is refused.
    pub async fn hardlink(&self, from: &str, to: &str) -> Result<(), RemoteError> {
        self.two_names("a hard link", from, to, |[(above, from), (below, to)]| {
            linkat(above, from, below, to, AtFlags::empty())
        })
        .await
    }

    /// A rename that replaces an existing target, in one step.
    pub async fn posix_rename(&self, from: &str, to: &str) -> Result<(), RemoteError> {
        self.two_names("a rename over", from, to, |[(above, from), (below, to)]| renameat(above, from, below, to)).await
    }

    async fn two_names(
        &self,
        what: &'static str,
        from: &str,
        to: &str,
        request: fn([Named<'_>; 2]) -> Result<(), Errno>,
    ) -> Result<(), RemoteError> {
        let (from, to) = (from.to_owned(), to.to_owned());
        self.ask(what, move |inner| {
            let (above, from) = inner.own.root.folder_of(&from, Purpose::ListOrChange)?;
            let (below, to) = inner.own.root.folder_of(&to, Purpose::ListOrChange)?;
            request([(&above, from), (&below, to)]).map_err(sorted)?;
            // The new name first: a power cut between the two leaves both, and not neither.
            on_disk(&below)?;
            on_disk(&above)
        })
        .await
    }

    /// One request within the usual bound.
    pub(super) async fn ask<T: Send + 'static>(
        &self,
        what: &'static str,
        request: impl FnOnce(&Inner) -> Result<T, RemoteError> + Send + 'static,
    ) -> Result<T, RemoteError> {
        self.ask_within(what, self.inner.limits.request, request).await
    }

    pub(super) async fn ask_within<T: Send + 'static>(
        &self,
        what: &'static str,
        bound: Duration,
        request: impl FnOnce(&Inner) -> Result<T, RemoteError> + Send + 'static,
    ) -> Result<T, RemoteError> {
        self.run(what, bound, |inner| inner.blocking(request)).await
    }
}

/// Owner and group: what is delivered holds personal data, and the directory's group is who may have it.
const FOLDER_MODE: Mode = Mode::RWXU.union(Mode::RGRP).union(Mode::XGRP);

impl Inner {
    pub(super) const fn root(&self) -> &Root {
        &self.own.root
    }

    /// Makes a request where blocking is allowed. What is no clear answer ends the session.
    pub(super) async fn blocking<T: Send + 'static>(
        self: Arc<Self>,
        request: impl FnOnce(&Self) -> Result<T, RemoteError> + Send + 'static,
    ) -> Result<T, RemoteError> {
        let line = Arc::clone(&self.line);
        let place = match self.own.lane.enter(self.limits.connect).await {
            Ok(place) => place,
            Err(why) => {
                line.fail(why.clone());
                return Err(RemoteError::NotSent { why });
            }
        };
        let asked = tokio::task::spawn_blocking(move || {
            let _place = place;
            self.own.root.still_there().map_err(|why| {
                self.line.fail(why.clone());
                RemoteError::NotSent { why }
            })?;
            request(&self)
        });
        let answer = asked.await.unwrap_or_else(|error| Err(RemoteError::Unknown { why: error.to_string() }));
        if let Err(RemoteError::Unknown { why }) = &answer {
            line.fail(why.clone());
        }
        answer
    }

    fn seen(&self, name: &str) -> Result<Stat, RemoteError> {
        let looked = self
            .own
            .root
            .folder_of(name, Purpose::Look)
            .and_then(|(folder, last)| statat(&folder, last, AtFlags::SYMLINK_NOFOLLOW).map_err(sorted));
        match looked {
            // It may have been unmounted since the request began; then its absence says nothing.
            Err(refusal) if refusal.says_absent() => match self.own.root.still_there() {
                Ok(()) => Err(refusal),
                Err(why) => Err(RemoteError::Unknown { why }),
            },
            looked => looked,
        }
    }
}

/// Brings a folder's names to the disk. After a change this is no refusal any more: the change may have taken effect.
pub(super) fn on_disk(folder: &OwnedFd) -> Result<(), RemoteError> {
    match fsync(folder) {
        // A file system that has no such thing keeps names by itself, or not at all: its operator was told.
        Ok(()) | Err(Errno::INVAL | Errno::OPNOTSUPP) => Ok(()),
        Err(errno) => {
            let why = format!("it was done and could not be brought to the disk: {}", std::io::Error::from(errno));
            Err(RemoteError::Unknown { why })
        }
    }
}

fn entry(name: String, found: &Stat) -> Entry {
    Entry {
        name,
        kind: kind(found.st_mode).to_owned(),
        bytes: u64::try_from(found.st_size).ok(),
        modified: u64::try_from(found.st_mtime).ok(),
    }
}

/// Why the directory cannot be used.
enum Closed {
    /// Waiting may help.
    ForNow(String),
    UntilMended(String),
}

fn open(endpoint: &DirectoryEndpoint) -> Result<(Root, ServerFacts), Closed> {
    use std::io::ErrorKind;
    let root = Root::open(&endpoint.path, endpoint.marker.clone()).map_err(|error| match error.kind() {
        ErrorKind::NotFound => Closed::UntilMended(
            "it does not exist; create it, mount what belongs there, or correct `path` in destinations.toml".to_owned(),
        ),
        ErrorKind::NotADirectory => {
            Closed::UntilMended("it is not a directory; correct `path` in destinations.toml".to_owned())
        }
        ErrorKind::PermissionDenied => {
            Closed::UntilMended("this process may not enter it; give its user the right to".to_owned())
        }
        _ => Closed::ForNow(error.to_string()),
    })?;
    root.still_there().map_err(Closed::ForNow)?;
    let Some(directory) = root.path().to_str().map(str::to_owned) else {
        return Err(Closed::UntilMended("its path is not UTF-8, in which names are recorded".to_owned()));
    };
    let told = fstatfs(root.directory()).map_err(|errno| Closed::ForNow(std::io::Error::from(errno).to_string()))?;
    let banner = format!("a directory on {}", file_system(i128::from(told.f_type)));
    Ok((root, ServerFacts { banner, extensions: BTreeMap::new(), directory }))
}

/// The name of a kind of file system by the number that the kernel tells.
fn file_system(number: i128) -> String {
    let name = match number {
        0xEF53 => "ext4",
        0x5846_5342 => "XFS",
        0x9123_683E => "Btrfs",
        0x2FC1_2FC1 => "ZFS",
        0x0102_1994 => "tmpfs",
        0x794C_7630 => "overlayfs",
        0x6969 => "NFS",
        0xFF53_4D42 | 0xFE53_4D42 | 0x517B => "SMB",
        0x00C3_6400 => "CephFS",
        0x0102_1997 => "9p",
        0x6573_5546 => "FUSE",
        0x4D44 => "FAT",
        0x2011_BAB0 => "exFAT",
        number => return format!("a file system of kind {number:#x}"),
    };
    name.to_owned()
}
