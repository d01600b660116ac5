//! What became of a conditional write.

use super::found::Found;

/// The answer to a conditional write. A refused write is a value, not an error.
#[must_use = "a write that was refused changed nothing; its caller must look"]
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Write<T> {
    /// It committed.
    Written(T),
    /// Its conditions did not hold, and nothing was written. What a second statement then found: a report, not a proof,
    /// since the row may have moved between the two.
    Refused(Found),
    /// There is no such row, or none that the caller may see.
    Absent,
}

impl<T> Write<T> {
    /// The value of a committed write.
    pub fn written(self) -> Option<T> {
        match self {
            Self::Written(value) => Some(value),
            Self::Refused(_) | Self::Absent => None,
        }
    }

    /// True if it committed.
    pub const fn is_written(&self) -> bool {
        matches!(self, Self::Written(_))
    }

    /// The same answer about another value.
    pub fn map<U>(self, convert: impl FnOnce(T) -> U) -> Write<U> {
        match self {
            Self::Written(value) => Write::Written(convert(value)),
            Self::Refused(found) => Write::Refused(found),
            Self::Absent => Write::Absent,
        }
    }
}
