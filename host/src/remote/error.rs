//! What can go wrong at a partner's server, sorted by what it means for the delivery.
//!
//! The sorting happens where the cause is known, in [`super::sftp`], [`super::directory`] and [`super::objects`]; nothing above reads an error's text to decide.

use super::endpoint::SecretRef;

/// A remote call that did not succeed. The variant says what is known about its effect.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RemoteError {
    /// The attempt was asked to stop; the call was not waited for.
    #[error("the attempt was asked to stop")]
    Stopped,
    /// The host's own rules refuse the call. Nothing was sent.
    #[error("the call is not allowed: {why}")]
    Forbidden { why: String },
    /// An argument makes no sense. Nothing was sent.
    #[error("the argument makes no sense: {why}")]
    Invalid { why: String },
    /// The request never reached the wire.
    #[error("nothing was sent: {why}")]
    NotSent { why: String },
    /// The partner's server answered no. `code` is the raw status code of SFTP, which the other kinds answer in too; `None`
    /// where the host itself found the server's work wanting, such as a size that differs.
    #[error("the partner's server refused{}: {text}", code_in_words(*.code))]
    Refused { code: Option<u32>, text: String },
    /// The request may have taken effect, now or later.
    #[error("whether it took effect is not known: {why}")]
    Unknown { why: String },
}

/// `SSH_FX_NO_SUCH_FILE`: the one answer that proves absence.
pub(super) const NO_SUCH_FILE: u32 = 2;
/// `SSH_FX_PERMISSION_DENIED`.
pub(super) const PERMISSION_DENIED: u32 = 3;
/// `SSH_FX_FAILURE`: all that protocol version 3 can say of most faults.
pub(super) const FAILURE: u32 = 4;
/// `SSH_FX_OP_UNSUPPORTED`.
pub(super) const OP_UNSUPPORTED: u32 = 8;
/// `SSH_FX_NO_SPACE_ON_FILESYSTEM` and `SSH_FX_QUOTA_EXCEEDED`, of later versions, which some servers send in version 3.
pub(super) const NO_SPACE: u32 = 14;
pub(super) const QUOTA_EXCEEDED: u32 = 15;
/// `SSH_FX_FILE_ALREADY_EXISTS`, likewise.
pub(super) const FILE_ALREADY_EXISTS: u32 = 11;

impl RemoteError {
    /// True if the server said that the name does not exist.
    pub fn says_absent(&self) -> bool {
        matches!(self, Self::Refused { code: Some(NO_SUCH_FILE), .. })
    }

    /// True if the server answered, and its answer was no.
    pub fn is_refusal(&self) -> bool {
        matches!(self, Self::Refused { .. })
    }

    /// A file that the place cannot take whole; nothing of it was sent.
    pub(super) fn too_large(bytes: u64, largest: u64) -> Self {
        Self::NotSent {
            why: format!(
                "the file has {bytes} bytes, and one request to this store carries at most {largest}; have less put into a file, or agree on another place with the partner"
            ),
        }
    }

    /// True if the server will say the same until someone changes something there: a folder is missing, or this account has
    /// no right, or the server cannot do it. A disk that is full may be emptied by the partner.
    pub fn needs_attention(&self) -> bool {
        matches!(self, Self::Refused { code: Some(NO_SUCH_FILE | PERMISSION_DENIED | OP_UNSUPPORTED), .. })
    }

    pub(super) fn forbidden(why: impl Into<String>) -> Self {
        Self::Forbidden { why: why.into() }
    }
}

fn code_in_words(code: Option<u32>) -> String {
    code.map_or_else(String::new, |code| format!(" with status {code}"))
}

/// Why no session could be had. Nothing was written at the partner.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConnectError {
    /// It may pass by itself: look again later.
    #[error("{server} cannot be reached: {why}; check the address in destinations.toml and the way there")]
    Unreachable { server: String, why: String },
    /// The server's key is none of those that are pinned.
    #[error(
        "{server} presented the host key {fingerprint}, which is not pinned; if the partner confirms it, add \
         \"{line}\" to `host_keys` of this destination in destinations.toml"
    )]
    HostKey { server: String, fingerprint: String, line: String },
    /// The server does not accept the credential.
    #[error(
        "{server} does not accept user {user:?} with the {secret}; it would take: {accepts}. Have the partner \
         check the account, or correct `user` or the secret in destinations.toml"
    )]
    Credential { server: String, user: String, secret: SecretRef, accepts: String },
    /// The secret could not be had on this host.
    #[error("the {secret} cannot be used: {why}")]
    SecretMissing { secret: SecretRef, why: String },
    /// The other side speaks, but not what was agreed.
    #[error("{server} cannot serve this destination: {why}")]
    Protocol { server: String, why: String },
}

impl ConnectError {
    /// True if a person must mend something; false if waiting may help.
    pub fn needs_attention(&self) -> bool {
        match self {
            Self::Unreachable { .. } => false,
            Self::HostKey { .. } | Self::Credential { .. } | Self::SecretMissing { .. } | Self::Protocol { .. } => true,
        }
    }
}
