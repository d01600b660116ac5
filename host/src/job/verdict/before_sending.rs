//! May this attempt send, in view of what stands under its final name?

use super::facts::Compared;
use crate::job::status::FailureReason;

/// The answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[must_use]
pub enum Before {
    /// Send, and publish with a form that refuses an existing name.
    Go,
    /// Send, and publish with the overwriting form.
    GoOver,
    /// Send nothing: the name is taken.
    FinalNameOccupied,
    /// Send nothing: the original of this replacement delivered after all.
    OriginalDelivered,
    /// Send nothing: what stands there is not known. This proves nothing, and another attempt may find out.
    CannotTell,
}

/// What kind of job asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Intent {
    Original,
    /// `overwrite_agreed`: its row records the partner's agreement.
    Replacement {
        overwrite_agreed: bool,
    },
}

/// What the host's own look showed at the final name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Standing {
    Absent,
    Present,
    NotVisible,
    Unknown,
}

/// How the file there compares with one that we know.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Likeness {
    pub size: Compared,
    pub checksum: Compared,
}

/// Everything that the answer rests on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(clippy::struct_excessive_bools, reason = "each is one recorded fact or one word of a contract")]
pub struct BeforeFacts {
    pub standing: Standing,
    pub intent: Intent,
    /// The partner accepted the original by an acknowledgment that is tied to it.
    pub original_acknowledged: bool,
    /// Against the original's expected file; nothing is shown where there is none.
    pub like_original: Likeness,
    /// Against the file that we delivered last under a reused name; nothing is shown where there is none.
    pub like_last: Likeness,
    /// The contract has a standing agreement to replace the file that we delivered last.
    pub overwrites_last: bool,
    pub name_and_size_identify: bool,
    pub listing_hidden: bool,
}

impl Likeness {
    /// For a file that there is nothing to compare with.
    pub const NOTHING: Self = Self { size: Compared::NotShown, checksum: Compared::NotShown };

    /// True if it is that file: by checksum, or by name and size where the contract makes these enough.
    pub const fn identifies(self, name_and_size_identify: bool) -> bool {
        match (self.size, self.checksum) {
            (Compared::Same | Compared::NotShown, Compared::Same) => true,
            (Compared::Same, Compared::NotShown) => name_and_size_identify,
            (Compared::Different, _) | (_, Compared::Different) | (Compared::NotShown, Compared::NotShown) => false,
        }
    }
}

/// Decides whether an attempt may send.
///
/// An acknowledgment tied to the original stops its replacement whatever stands under the name, and even where nothing
/// does: the partner has the delivery, and a second one would be ours. A file that is like the original's and like
/// the one delivered last is identified as neither.
pub const fn before_sending(facts: &BeforeFacts) -> Before {
    if matches!(facts.intent, Intent::Replacement { .. }) && facts.original_acknowledged {
        return Before::OriginalDelivered;
    }
    match facts.standing {
        Standing::Absent => Before::Go,
        Standing::NotVisible if facts.listing_hidden => Before::Go,
        Standing::NotVisible | Standing::Unknown => Before::CannotTell,
        Standing::Present => occupied(facts),
    }
}

const fn occupied(facts: &BeforeFacts) -> Before {
    let is_last = facts.like_last.identifies(facts.name_and_size_identify);
    match facts.intent {
        Intent::Original if is_last && facts.overwrites_last => Before::GoOver,
        Intent::Original => Before::FinalNameOccupied,
        Intent::Replacement { overwrite_agreed } => {
            let is_originals = facts.like_original.identifies(facts.name_and_size_identify);
            if is_originals && !is_last {
                Before::OriginalDelivered
            } else if overwrite_agreed || (is_last && !is_originals && facts.overwrites_last) {
                Before::GoOver
            } else {
                Before::FinalNameOccupied
            }
        }
    }
}

impl Before {
    /// The stable code.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Go => "go",
            Self::GoOver => "go_over",
            Self::FinalNameOccupied => "final_name_occupied",
            Self::OriginalDelivered => "original_delivered",
            Self::CannotTell => "cannot_tell",
        }
    }

    /// The same in plain words.
    pub const fn sentence(self) -> &'static str {
        match self {
            Self::Go => "Nothing stands in the way of the final name.",
            Self::GoOver => "A file is under the final name, and an agreement with the partner lets us replace it.",
            Self::FinalNameOccupied => "A file is under the final name that we may not replace; nothing was sent.",
            Self::OriginalDelivered => {
                "The original delivered after all; nothing was sent. A named person corrects it."
            }
            Self::CannotTell => "It could not be seen whether the final name is free; nothing was sent.",
        }
    }

    /// The failure that it ends an attempt with past cutoff 2, where it does.
    pub const fn failure(self) -> Option<FailureReason> {
        match self {
            Self::Go | Self::GoOver => None,
            Self::FinalNameOccupied => Some(FailureReason::FinalNameOccupied),
            Self::OriginalDelivered => Some(FailureReason::OriginalDelivered),
            // The publish was never sent. Before cutoff 2 the worker releases the job instead.
            Self::CannotTell => Some(FailureReason::NotDelivered),
        }
    }
}

/// Short, because the golden table prints it often: `size/checksum`.
impl std::fmt::Debug for Likeness {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}/{:?}", self.size, self.checksum)
    }
}
