//! In what the simulated server differs from the ideal one: what was seen at real servers, switch by switch.

use std::collections::BTreeMap;
use std::sync::Arc;

/// What RENAME does when the new name exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RenameOver {
    /// OpenSSH, `ProFTPD`, AsyncSSH.
    Refuses,
    /// Servers on Go's pkg/sftp, Paramiko's stub, rclone.
    Replaces,
}

/// How many steps a RENAME takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RenameSteps {
    One,
    /// OpenSSH: a link, then a removal of the old name; when that fails, the new name is removed again. The
    /// hook [`super::When::Between`] runs between the two.
    LinkThenRemove,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HardLink {
    Honest,
    /// rclone: answers OK and makes nothing.
    Lies,
    NotOffered,
}

/// What stat and listing show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Listing {
    Shown,
    /// Every stat and every listing is refused.
    Forbidden,
    /// A file has size 0 until it is closed.
    SizeAfterClose,
}

pub type NamePredicate = Arc<dyn Fn(&str) -> bool + Send + Sync>;

#[derive(Clone)]
#[expect(clippy::struct_excessive_bools, reason = "each switch is a feature that a server has or lacks by itself")]
pub struct Behaviour {
    pub rename_over: RenameOver,
    pub rename_steps: RenameSteps,
    /// Off: RENAME is not supported at all.
    pub rename_offered: bool,
    pub hard_link: HardLink,
    pub posix_rename: bool,
    pub fsync: bool,
    pub limits: bool,
    /// Advertised beside what the switches above offer: name and version.
    pub extensions: BTreeMap<String, String>,
    pub listing: Listing,
    /// Names that the partner takes at the moment at which they appear whole.
    pub collects: Option<NamePredicate>,
    /// The disk: a write that would go beyond it is refused.
    pub capacity_bytes: Option<usize>,
    /// Off: OPEN ignores EXCL and opens what exists, as rclone does.
    pub exclusive_create: bool,
    /// Off: nothing tells a file from a directory, for permissions are optional in version 3.
    pub permissions: bool,
    /// Off: nothing tells how long a file is, which is optional too.
    pub sizes: bool,
    /// Off: nothing tells when a file was changed; optional likewise.
    pub times: bool,
    /// The most that one READ returns.
    pub read_bytes: u32,
}

impl Default for Behaviour {
    /// A server as OpenSSH's, with a RENAME in one step.
    fn default() -> Self {
        Self {
            rename_over: RenameOver::Refuses,
            rename_steps: RenameSteps::One,
            rename_offered: true,
            hard_link: HardLink::Honest,
            posix_rename: true,
            fsync: true,
            limits: true,
            extensions: BTreeMap::new(),
            listing: Listing::Shown,
            collects: None,
            capacity_bytes: None,
            exclusive_create: true,
            permissions: true,
            sizes: true,
            times: true,
            read_bytes: 261_120,
        }
    }
}

impl Behaviour {
    /// Collects every name that matches.
    #[must_use]
    pub fn collecting(mut self, matches: impl Fn(&str) -> bool + Send + Sync + 'static) -> Self {
        self.collects = Some(Arc::new(matches));
        self
    }
}
