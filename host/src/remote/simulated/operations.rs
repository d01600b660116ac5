//! What a client did at an SFTP server, in the server's own words.

/// How a file was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[expect(clippy::struct_excessive_bools, reason = "the flags of an OPEN, which clients set independently")]
pub struct Mode {
    pub read: bool,
    pub write: bool,
    pub create: bool,
    pub truncate: bool,
    pub exclusive: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Operation {
    Open { path: String, mode: Mode },
    Close { path: String, read: u64, written: u64 },
    Rename { from: String, to: String },
    PosixRename { from: String, to: String },
    Link { from: String, to: String },
    Remove { path: String },
    MakeDirectory { path: String },
    List { path: String },
    Stat { path: String },
    SetStat { path: String },
    Fsync { path: String },
}

impl Operation {
    /// The name that exists, or may exist, because of this operation: what the publish fence guards.
    pub fn creates(&self) -> Option<&str> {
        match self {
            Self::Open { path, mode } if mode.create => Some(path),
            Self::Rename { to, .. } | Self::PosixRename { to, .. } | Self::Link { to, .. } => Some(to),
            Self::Open { .. }
            | Self::Close { .. }
            | Self::Remove { .. }
            | Self::MakeDirectory { .. }
            | Self::List { .. }
            | Self::Stat { .. }
            | Self::SetStat { .. }
            | Self::Fsync { .. } => None,
        }
    }
}

/// An operation with what the server answered to it: `None` while it did not answer, else the status code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Done {
    pub operation: Operation,
    pub answer: Option<Answer>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    Ok,
    Refused(String),
}
