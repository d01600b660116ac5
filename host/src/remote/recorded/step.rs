//! One request with its answer, as it is written down.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::job::facts::{Entry, Sha256};
use crate::remote::error::RemoteError;

/// A request and the answer to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    pub request: Request,
    pub answer: Answer,
}

/// What was asked. Names are relative to the destination's directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Request {
    Stat { name: String },
    List { directory: String, prefix: String, most: usize },
    MakeDirectory { name: String },
    Remove { name: String },
    Rename { from: String, to: String },
    Hardlink { from: String, to: String },
    PosixRename { from: String, to: String },
    Create { name: String, content: Content },
    Read { name: String, offset: u64, most: u32 },
    Digest { name: String, most: Size },
    FreeBytes,
}

/// A file's content, by what can be compared.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Content {
    /// The file that the attempt built.
    Built,
    Other {
        bytes: u64,
        sha256: Sha256,
    },
}

/// A length.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Size {
    /// That of the file that the attempt built.
    Built,
    Bytes(u64),
}

/// A file that was seen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Seen {
    pub name: String,
    pub kind: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<Size>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub modified: Option<u64>,
}

/// Bytes that were read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Kept {
    /// What the file that the attempt built has there.
    Built,
    Text(String),
    Base64(String),
}

/// What was answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Answer {
    Done,
    Absent,
    Present(Seen),
    NotVisible {
        why: String,
    },
    Unknown {
        why: String,
    },
    Entries(Vec<Seen>),
    Read(Kept),
    Digest(Content),
    FreeBytes(Option<u64>),
    Refused {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        code: Option<u32>,
        text: String,
        /// Of a creation: it is not certain that nothing was created.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        may_exist: bool,
    },
    NotSent {
        why: String,
    },
}

impl Step {
    /// False if no request of its kind is answered so.
    fn fits(&self) -> bool {
        match (&self.request, &self.answer) {
            (_, Answer::Refused { .. } | Answer::NotSent { .. }) => true,
            (Request::Stat { .. }, answer) => matches!(
                answer,
                Answer::Absent | Answer::Present(_) | Answer::NotVisible { .. } | Answer::Unknown { .. }
            ),
            (Request::List { .. }, answer) => matches!(answer, Answer::Entries(_)),
            (Request::Read { .. }, answer) => matches!(answer, Answer::Read(_)),
            (Request::Digest { .. }, answer) => matches!(answer, Answer::Digest(_)),
            (Request::FreeBytes, answer) => matches!(answer, Answer::FreeBytes(_)),
            (
                Request::MakeDirectory { .. }
                | Request::Remove { .. }
                | Request::Rename { .. }
                | Request::Hardlink { .. }
                | Request::PosixRename { .. }
                | Request::Create { .. },
                answer,
            ) => matches!(answer, Answer::Done),
        }
    }

    fn sends_the_file(&self) -> bool {
        matches!(self.request, Request::Create { content: Content::Built, .. })
    }

    fn speaks_of_the_file(&self) -> bool {
        let request = matches!(self.request, Request::Digest { most: Size::Built, .. });
        let built = |seen: &Seen| seen.size == Some(Size::Built);
        request
            || match &self.answer {
                Answer::Present(seen) => built(seen),
                Answer::Entries(entries) => entries.iter().any(built),
                Answer::Read(kept) => *kept == Kept::Built,
                Answer::Digest(content) => *content == Content::Built,
                Answer::Done
                | Answer::Absent
                | Answer::NotVisible { .. }
                | Answer::Unknown { .. }
                | Answer::FreeBytes(_)
                | Answer::Refused { .. }
                | Answer::NotSent { .. } => false,
            }
    }
}

/// The position of the first step that no session could hold, and why; of a record that somebody wrote in.
pub fn unfounded(steps: &[Step]) -> Option<(usize, &'static str)> {
    let mut sent = false;
    for (at, step) in steps.iter().enumerate() {
        if !step.fits() {
            return Some((at, "a request of this kind has no such answer"));
        }
        sent |= step.sends_the_file();
        if step.speaks_of_the_file() && !sent {
            return Some((at, "it speaks of the built file, which no request before it has sent"));
        }
        if let Answer::Read(Kept::Base64(text)) = &step.answer
            && data_encoding::BASE64.decode(text.as_bytes()).is_err()
        {
            return Some((at, "what was read is not base64"));
        }
    }
    None
}

impl Answer {
    /// What a server said in its own words; it may name the account, a path or a host.
    pub fn words_mut(&mut self) -> Option<&mut String> {
        match self {
            Self::NotVisible { why } | Self::Unknown { why } | Self::NotSent { why } => Some(why),
            Self::Refused { text, .. } => Some(text),
            Self::Done
            | Self::Absent
            | Self::Present(_)
            | Self::Entries(_)
            | Self::Read(_)
            | Self::Digest(_)
            | Self::FreeBytes(_) => None,
        }
    }

    /// The answer to a request that failed. An error: it can have no place in a record, for this reason.
    pub(super) fn failed(error: &RemoteError, may_exist: bool) -> Result<Self, String> {
        match error {
            RemoteError::Refused { code, text } => Ok(Self::Refused { code: *code, text: text.clone(), may_exist }),
            RemoteError::NotSent { why } if !may_exist => Ok(Self::NotSent { why: why.clone() }),
            RemoteError::NotSent { .. }
            | RemoteError::Stopped
            | RemoteError::Forbidden { .. }
            | RemoteError::Invalid { .. }
            | RemoteError::Unknown { .. } => Err(format!("a request had no clear answer: {error}")),
        }
    }

    /// The failure that it stands for; any other answer does not belong here, and [`unfounded`] has told so before.
    pub(super) fn into_error(self) -> RemoteError {
        match self {
            Self::Refused { code, text, .. } => RemoteError::Refused { code, text },
            Self::NotSent { why } => RemoteError::NotSent { why },
            other => RemoteError::Unknown { why: format!("the record answers a request with {other:?}") },
        }
    }
}

impl Seen {
    pub(super) fn of(entry: Entry, size: impl FnOnce(&str, u64) -> Size) -> Self {
        let Entry { name, kind, bytes, modified } = entry;
        let size = bytes.map(|bytes| size(&name, bytes));
        Self { name, kind, size, modified }
    }

    pub(super) fn into_entry(self, built: Option<u64>) -> Entry {
        let bytes = self.size.and_then(|size| match size {
            Size::Built => built,
            Size::Bytes(bytes) => Some(bytes),
        });
        Entry { name: self.name, kind: self.kind, bytes, modified: self.modified }
    }
}

impl Kept {
    pub(super) fn of(bytes: &[u8]) -> Self {
        match std::str::from_utf8(bytes) {
            Ok(text) => Self::Text(text.to_owned()),
            Err(_) => Self::Base64(data_encoding::BASE64.encode(bytes)),
        }
    }
}

/// As a person reads it where a request differs.
impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stat { name } => write!(f, "a look at {name:?}"),
            Self::List { directory, prefix, most } => {
                write!(f, "a listing of {directory:?}, names that begin with {prefix:?}, at most {most}")
            }
            Self::MakeDirectory { name } => write!(f, "making the directory {name:?}"),
            Self::Remove { name } => write!(f, "removing {name:?}"),
            Self::Rename { from, to } => write!(f, "renaming {from:?} to {to:?}"),
            Self::Hardlink { from, to } => write!(f, "linking {from:?} to {to:?}"),
            Self::PosixRename { from, to } => write!(f, "renaming {from:?} over {to:?}"),
            Self::Create { name, content: Content::Built } => write!(f, "sending the built file as {name:?}"),
            Self::Create { name, content: Content::Other { bytes, sha256 } } => {
                write!(f, "creating {name:?} with {bytes} bytes of SHA-256 {sha256}")
            }
            Self::Read { name, offset, most } => write!(f, "reading {name:?} from byte {offset}, at most {most}"),
            Self::Digest { name, .. } => write!(f, "reading {name:?} back"),
            Self::FreeBytes => write!(f, "asking for the free space"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(text: &str) -> Step {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn plg_06_a_record_in_which_somebody_wrote_nonsense_is_found_out() {
        let sent = r#"{"request":{"create":{"name":"t","content":"built"}},"answer":"done"}"#;
        let seen =
            r#"{"request":{"stat":{"name":"t"}},"answer":{"present":{"name":"t","kind":"file","size":"built"}}}"#;
        let odd = r#"{"request":{"remove":{"name":"t"}},"answer":"absent"}"#;
        let read = r#"{"request":{"read":{"name":"a","offset":0,"most":9}},"answer":{"read":{"base64":"%"}}}"#;
        assert_eq!(unfounded(&[step(sent), step(seen)]), None);
        assert_eq!(unfounded(&[step(seen), step(sent)]).map(|(at, _)| at), Some(0));
        assert_eq!(unfounded(&[step(sent), step(odd)]).map(|(at, _)| at), Some(1));
        assert_eq!(unfounded(&[step(read)]), Some((0, "what was read is not base64")));
        assert!(serde_json::from_str::<Step>(r#"{"request":"stat","answer":"done"}"#).is_err());
    }
}
