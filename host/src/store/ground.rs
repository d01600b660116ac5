//! What a Completed rests on, as far as other attempts of the key could undo it.

/// Evidence by what it can be mistaken for. The statement that records Completed asks for it again.
///
/// Other attempts of the key are those of other jobs, since a job is never claimed again past cutoff 2. One that is
/// authorized after the statement began sends after the look that the evidence comes from, so it undoes nothing. A
/// reused name cannot have gone to another key either: it is handed on only when its holder is settled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Ground {
    /// It names this attempt: an acknowledgment tied to it.
    Attempt,
    /// A checksum: no other attempt of the key may have been authorized with the same content.
    Content,
    /// A listing, or an acknowledgment that names only the key: no other attempt of the key may have been authorized.
    Listing,
}

impl Ground {
    /// The name that the statements compare with.
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Attempt => "attempt",
            Self::Content => "content",
            Self::Listing => "listing",
        }
    }
}
