//! The documents in `export_attempt_events.detail`: what was recorded about an attempt, by whom it was seen.
//!
//! Append-only and read for years: fields are only added, each new one optional. A guest's words stand in fields
//! named `reported`; everything else is what the host itself did or saw.

use serde::{Deserialize, Serialize};

use super::contract::Contract;
use super::facts::Listing;

/// How a final name comes into being.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PublishForm {
    /// A hard link (over SFTP `hardlink@openssh.com`) to the final name, seen there, then the temporary is removed.
    Link,
    /// RENAME on a server that was shown to refuse an existing name.
    Rename,
    /// Exclusive create of the final name plus a trigger file, by contract. There is no temporary.
    ExclusiveCreate,
    /// One request that creates the final name with its whole content, or nothing; for object stores. There is no temporary.
    CreateWhole,
    /// A POSIX rename (over SFTP `posix-rename@openssh.com`): overwrites, by agreement only.
    PosixRename,
    /// RENAME on a server that was shown to replace: overwrites, by agreement only.
    RenameOver,
}

impl PublishForm {
    /// True for the forms that replace an existing file.
    pub const fn overwrites(self) -> bool {
        match self {
            Self::PosixRename | Self::RenameOver => true,
            Self::Link | Self::Rename | Self::ExclusiveCreate | Self::CreateWhole => false,
        }
    }

    /// False for the forms that create the final name itself.
    pub const fn has_temporary(self) -> bool {
        match self {
            Self::ExclusiveCreate | Self::CreateWhole => false,
            Self::Link | Self::Rename | Self::PosixRename | Self::RenameOver => true,
        }
    }
}

/// What stands in the place of data in a guest's words.
pub const A_VALUE: &str = "(a value)";

/// What became of a request whose effect matters.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "answer")]
pub enum Answer {
    /// The partner's server said yes.
    Acknowledged,
    /// The partner's server said no; the raw status code of its protocol, and its words.
    Refused { code: Option<u32>, text: String },
    /// No answer that can be trusted: it may have taken effect.
    Unanswered { why: String },
}

/// The `detail` of a `DeliveryEvidence` event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "evidence")]
pub enum Evidence {
    /// The recorded baseline: the listing of the final name after cutoff 2 and before any byte is sent.
    Baseline {
        look: Listing,
        /// The name that the host minted for the temporary file. A form that needs none leaves it unused.
        temporary: Option<String>,
        /// Acknowledgment files that were there already; they say nothing of this attempt. `None`: none are agreed, or
        /// they could not be listed, so that none found later was shown to be new.
        #[serde(skip_serializing_if = "Option::is_none")]
        acknowledgments: Option<Vec<String>>,
        #[serde(skip_serializing_if = "Option::is_none")]
        reported: Option<Listing>,
        /// The contract that this attempt works under. Verdicts use the stricter of this one and the one of the look, and the partner's
        /// answers are read by both.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        contract: Option<Box<Contract>>,
    },
    /// The answer to the one publish request of this attempt.
    Publish {
        form: PublishForm,
        #[serde(flatten)]
        answer: Answer,
    },
    /// What the delivering attempt found at its end.
    Receipt(Receipt),
    /// What a later look found: by recovery, the reconciler, or for a late acknowledgment.
    Observation(Receipt),
    /// The reconciler, or the worker of a replacement, is about to remove the attempt's temporary file, so that it can no longer be
    /// published: committed before it asks.
    RemovalIntended { temporary: String },
    /// What became of that removal, or of one that needed no intention: of the temporary file of an attempt that is proven to have
    /// published nothing.
    RemovalAnswered {
        temporary: String,
        #[serde(flatten)]
        answer: Answer,
    },
}

impl Evidence {
    /// The look in it, at the end of an attempt or after it.
    pub const fn look(&self) -> Option<&Receipt> {
        match self {
            Self::Receipt(receipt) | Self::Observation(receipt) => Some(receipt),
            Self::Baseline { .. }
            | Self::Publish { .. }
            | Self::RemovalIntended { .. }
            | Self::RemovalAnswered { .. } => None,
        }
    }
}

/// A look at the end of an attempt or after it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Receipt {
    /// The final name, as the host saw it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub look: Option<Listing>,
    /// The temporary name, as the host saw it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temporary: Option<Listing>,
    /// The temporary file was closed, and this size was read back before the publish.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes_read_back: Option<u64>,
    /// Auxiliary files and what became of each.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub auxiliary: Vec<AuxiliaryPut>,
    /// Acknowledgments that the host read itself, those that speak against the delivery first.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub acknowledgments: Vec<Acknowledged>,
    /// Why the partner's answers could not all be listed or read: what they say is not known then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unread: Option<String>,
    /// Of a link that made the final name: whether the server confirmed that we removed the temporary one. False: it was gone, or
    /// its removal was not confirmed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temporary_removed: Option<bool>,
    /// How the plugin's call ended, where it did not return normally.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call: Option<String>,
    /// What the plugin reported, bounded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reported: Option<serde_json::Value>,
    /// Where report and look differ, in words; each alerts.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub differences: Vec<String>,
    /// What the host concluded and why.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conclusion: Option<String>,
}

/// One auxiliary file that was put beside the data file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuxiliaryPut {
    pub name: String,
    pub trigger: bool,
    #[serde(flatten)]
    pub answer: Answer,
}

/// An acknowledgment file, as the host matched it: by its bytes, or by its name where that alone is the answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Acknowledged {
    /// The file that carries it.
    pub name: String,
    /// `accepted`, `refused`, `duplicate`.
    pub says: String,
    /// What the expression captured, or what the file's name can only mean.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempt: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
}
