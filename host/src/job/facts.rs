//! What can be compared about a file, and what a look at the partner found.

use serde::{Deserialize, Serialize};

/// A file by what can be compared.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileFacts {
    /// The final name, relative to the destination's directory.
    pub name: String,
    pub bytes: u64,
    pub sha256: Sha256,
}

/// A SHA-256 digest; lower-case hex in documents and messages.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Sha256(pub [u8; 32]);

impl std::fmt::Display for Sha256 {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(&data_encoding::HEXLOWER.encode(&self.0))
    }
}

impl std::fmt::Debug for Sha256 {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Display::fmt(self, f)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a SHA-256 is 32 bytes, 64 digits in lower-case hex")]
pub struct NotASha256;

impl TryFrom<String> for Sha256 {
    type Error = NotASha256;
    fn try_from(text: String) -> Result<Self, NotASha256> {
        let bytes = data_encoding::HEXLOWER.decode(text.as_bytes()).map_err(|_| NotASha256)?;
        Self::try_from(bytes.as_slice())
    }
}

impl TryFrom<&[u8]> for Sha256 {
    type Error = NotASha256;
    fn try_from(bytes: &[u8]) -> Result<Self, NotASha256> {
        bytes.try_into().map(Self).map_err(|_| NotASha256)
    }
}

impl From<Sha256> for String {
    fn from(digest: Sha256) -> Self {
        digest.to_string()
    }
}

/// An entry in the partner's listing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    pub name: String,
    /// `file`, `directory`, `other`. An open set.
    pub kind: String,
    /// `None`: the server did not tell.
    pub bytes: Option<u64>,
    /// Seconds since 1970-01-01T00:00:00Z by the partner's clock; compared only with the partner's own times.
    pub modified: Option<u64>,
}

/// What one look at one name found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "found")]
pub enum Found {
    Absent,
    Present(Entry),
    /// The server does not let us see; not the same as absent.
    NotVisible {
        why: String,
    },
    /// The look itself failed; nothing is known.
    Unknown {
        why: String,
    },
}

/// A look at one name, with the content's digest where it could be had.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Listing {
    /// The name that was looked at.
    pub at: String,
    #[serde(flatten)]
    pub found: Found,
    /// By reading the file back, or computed by the server (`read_back`, `server`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sha256: Option<Sha256>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hashed_by: Option<String>,
}
