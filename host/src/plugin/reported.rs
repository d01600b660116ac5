//! What a destination plugin reported: a guest's words, bounded, kept beside what the host saw itself. No proof.

use serde::Serialize;

use crate::job::facts::Listing;

/// A receipt or an observation.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Reported {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub listing: Option<Listing>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub acknowledgment: Option<ReportedAcknowledgment>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub auxiliary: Vec<String>,
    /// When the plugin thinks that looking again is worth it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub again_after_seconds: Option<u32>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub extra: Vec<(String, String)>,
}

/// An acknowledgment as the plugin read it; the host reads and matches the file again by itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ReportedAcknowledgment {
    pub name: String,
    pub delivery_key: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempt: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
    pub says: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub extra: Vec<(String, String)>,
}

/// Characters of a guest's text that are kept.
const TEXT_CHARACTERS: usize = 500;
/// Bytes of a name that are kept: twice what any file system takes for a part of one.
const NAME_CHARACTERS: usize = 512;
/// Entries of a list that are kept; the contract says so to authors.
pub(super) const ENTRIES: usize = 16;

/// A guest's text: one line, without control characters, of bounded length.
pub(super) fn bounded(text: &str) -> String {
    shorten(text, TEXT_CHARACTERS)
}

/// The same for a name.
pub(super) fn bounded_name(name: &str) -> String {
    shorten(name, NAME_CHARACTERS)
}

/// The first entries of a list.
pub(super) fn bounded_list<T, U>(list: Vec<T>, convert: impl FnMut(T) -> U) -> Vec<U> {
    list.into_iter().take(ENTRIES).map(convert).collect()
}

fn shorten(text: &str, most: usize) -> String {
    let mut characters = text.chars().map(|c| if c.is_control() { ' ' } else { c });
    let mut kept: String = characters.by_ref().take(most).collect();
    if characters.next().is_some() {
        kept.push('…');
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guests_text_is_one_bounded_line() {
        assert_eq!(bounded("a\nb\u{1b}[31m"), "a b [31m");
        let long = bounded(&"ä".repeat(10_000));
        assert_eq!(long.chars().count(), TEXT_CHARACTERS + 1);
        assert!(long.ends_with('…'));
        assert_eq!(bounded_list((0..100).collect(), |n| n).len(), ENTRIES);
    }
}
