//! Name patterns: the temporary name, the final name, auxiliary names and acknowledgments.
//!
//! A pattern is text with placeholders in braces: `{key}`, `{attempt}`, `{final}`, its parts `{final.stem}`,
//! `{final.extension}` and `{final.name}` (without its folder), and `*` for any run of characters but `/`. A pattern without `*` mints names; any pattern can be matched against.
//! Names are relative to the destination's directory; `..`, absolute paths and control characters do not exist.

use serde::{Deserialize, Serialize};

/// A word in braces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Placeholder {
    Key,
    Attempt,
    Final,
    FinalStem,
    FinalExtension,
    FinalName,
}

/// One piece of a pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Text(String),
    Placeholder(Placeholder),
    Any,
}

/// A parsed name pattern.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct NamePattern {
    text: String,
    pieces: Vec<Piece>,
}

/// What the placeholders of a pattern stand for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Parts<'a> {
    pub key: &'a str,
    pub attempt: &'a str,
    pub final_name: &'a str,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    #[error(
        "the pattern {pattern:?} has an unknown placeholder {{{placeholder}}}; known are {{key}}, {{attempt}}, {{final}}, {{final.stem}}, {{final.extension}} and {{final.name}}"
    )]
    UnknownPlaceholder { pattern: String, placeholder: String },
    #[error("the pattern {pattern:?} has a brace that is not closed")]
    UnclosedBrace { pattern: String },
    #[error("the name {name:?} is not usable: {why}")]
    Unusable { name: String, why: &'static str },
    #[error("the pattern {pattern:?} has a `*`, so it cannot name one file")]
    NotOneName { pattern: String },
}

impl TryFrom<String> for NamePattern {
    type Error = NameError;
    fn try_from(text: String) -> Result<Self, NameError> {
        let mut pieces = Vec::new();
        let mut rest = text.as_str();
        while let Some(at) = rest.find(['{', '*']) {
            let (before, tail) = rest.split_at(at);
            if !before.is_empty() {
                pieces.push(Piece::Text(before.to_owned()));
            }
            if let Some(after) = tail.strip_prefix('*') {
                pieces.push(Piece::Any);
                rest = after;
                continue;
            }
            let inside = tail.strip_prefix('{').unwrap_or(tail);
            let Some((name, after)) = inside.split_once('}') else {
                return Err(NameError::UnclosedBrace { pattern: text.clone() });
            };
            pieces.push(match Placeholder::named(name) {
                Some(placeholder) => Piece::Placeholder(placeholder),
                None => {
                    return Err(NameError::UnknownPlaceholder { pattern: text.clone(), placeholder: name.to_owned() });
                }
            });
            rest = after;
        }
        if !rest.is_empty() {
            pieces.push(Piece::Text(rest.to_owned()));
        }
        Ok(Self { text, pieces })
    }
}

impl From<NamePattern> for String {
    fn from(pattern: NamePattern) -> Self {
        pattern.text
    }
}

impl std::fmt::Display for NamePattern {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text)
    }
}

impl NamePattern {
    /// Parses a pattern.
    pub fn parse(text: &str) -> Result<Self, NameError> {
        Self::try_from(text.to_owned())
    }

    /// True if names of different attempts differ.
    pub fn names_the_attempt(&self) -> bool {
        self.pieces.contains(&Piece::Placeholder(Placeholder::Attempt))
    }

    /// True if names of different delivery keys differ: it carries the key, or the whole final name. A part of that may be without
    /// the key.
    pub fn names_the_key(&self) -> bool {
        self.pieces.iter().any(|piece| matches!(piece, Piece::Placeholder(Placeholder::Key | Placeholder::Final)))
    }

    /// True if a name that the pattern stands for can be about this delivery key only: the key is in it, by itself or within the
    /// final name, and no star beside it leaves room for a longer one (`{key}.*` of `A-7` is also `A-7.1.ok`).
    pub fn ties_the_key(&self, parts: Parts<'_>) -> bool {
        let (mut folder, mut starred, mut keyed) = (0, Vec::new(), Vec::new());
        for piece in &self.pieces {
            let value = piece.stands_for(parts);
            let within = folder..=folder + value.matches('/').count();
            folder = *within.end();
            match piece {
                Piece::Any => starred.push(folder),
                Piece::Placeholder(Placeholder::Key | Placeholder::Final) => keyed.extend(within),
                Piece::Placeholder(Placeholder::FinalStem | Placeholder::FinalName) => {
                    keyed.extend(within.filter(|_| !parts.key.is_empty() && value.contains(parts.key)));
                }
                Piece::Text(_) | Piece::Placeholder(_) => {}
            }
        }
        !keyed.is_empty() && !keyed.iter().any(|folder| starred.contains(folder))
    }

    /// A name that the pattern stands for, with something in place of each star.
    pub fn example(&self, parts: Parts<'_>) -> String {
        let piece =
            |piece: &Piece| if *piece == Piece::Any { "x".to_owned() } else { piece.stands_for(parts).to_owned() };
        self.pieces.iter().map(piece).collect()
    }

    /// The one name that the pattern stands for.
    pub fn mint(&self, parts: Parts<'_>) -> Result<String, NameError> {
        let mut name = String::new();
        for piece in &self.pieces {
            match piece {
                Piece::Text(text) => name.push_str(text),
                Piece::Any => return Err(NameError::NotOneName { pattern: self.text.clone() }),
                Piece::Placeholder(placeholder) => name.push_str(placeholder.stands_for(parts)),
            }
        }
        check_name(&name)?;
        Ok(name)
    }

    /// The pattern of the folders that its names lie in: without pieces where that is the destination's directory itself.
    #[must_use]
    pub fn folder(&self, parts: Parts<'_>) -> Self {
        let mut pieces: Vec<Piece> = self.pieces.iter().map(|piece| piece.filled(parts)).collect();
        while let Some(last) = pieces.pop() {
            if let Piece::Text(text) = last
                && let Some((above, _)) = text.rsplit_once('/')
            {
                pieces.extend((!above.is_empty()).then(|| Piece::Text(above.to_owned())));
                break;
            }
        }
        let text = pieces.iter().map(|piece| if let Piece::Text(text) = piece { text } else { "*" }).collect();
        Self { text, pieces }
    }

    /// True if it stands for no name at all, as the folder of names without one.
    pub fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// True if the name is one that the pattern stands for, or that of the directory itself. One that no file may have is none.
    pub fn matches(&self, name: &str, parts: Parts<'_>) -> bool {
        (name.is_empty() || check_name(name).is_ok()) && matches_pieces(&self.pieces, name, parts)
    }
}

impl Piece {
    /// The same with the text that it stands for.
    fn filled(&self, parts: Parts<'_>) -> Self {
        match self {
            Self::Any => Self::Any,
            other => Self::Text(other.stands_for(parts).to_owned()),
        }
    }

    fn stands_for<'a>(&'a self, parts: Parts<'a>) -> &'a str {
        match self {
            Self::Text(text) => text,
            Self::Placeholder(placeholder) => placeholder.stands_for(parts),
            Self::Any => "",
        }
    }
}

impl Placeholder {
    /// The one that is written so between braces.
    pub fn named(word: &str) -> Option<Self> {
        match word {
            "key" => Some(Self::Key),
            "attempt" => Some(Self::Attempt),
            "final" => Some(Self::Final),
            "final.stem" => Some(Self::FinalStem),
            "final.extension" => Some(Self::FinalExtension),
            "final.name" => Some(Self::FinalName),
            _ => None,
        }
    }

    /// What it is replaced by.
    pub fn stands_for(self, parts: Parts<'_>) -> &str {
        match self {
            Self::Key => parts.key,
            Self::Attempt => parts.attempt,
            Self::Final => parts.final_name,
            Self::FinalStem => split_extension(parts.final_name).0,
            Self::FinalExtension => split_extension(parts.final_name).1,
            Self::FinalName => parts.final_name.rsplit_once('/').map_or(parts.final_name, |(_, last)| last),
        }
    }
}

/// Goes back to the last star only: an earlier one that took more would leave less for what follows it. So a partner's or a
/// guest's name costs its length times the pattern's, whatever both are.
fn matches_pieces(pieces: &[Piece], name: &str, parts: Parts<'_>) -> bool {
    let (mut left, mut to_match) = (name, pieces);
    // What follows the last star, and what is left of the name where that star ends.
    let mut star: Option<(&[Piece], &str)> = None;
    loop {
        match to_match.split_first() {
            None if left.is_empty() => return true,
            Some((Piece::Any, rest)) => {
                star = Some((rest, left));
                to_match = rest;
                continue;
            }
            Some((piece, rest)) => {
                if let Some(tail) = left.strip_prefix(piece.stands_for(parts)) {
                    (left, to_match) = (tail, rest);
                    continue;
                }
            }
            None => {}
        }
        // A star takes one character more, but no folder's end.
        let Some((after, ends)) = star else { return false };
        let mut characters = ends.chars();
        if characters.next().is_none_or(|character| character == '/') {
            return false;
        }
        (left, to_match) = (characters.as_str(), after);
        star = Some((after, left));
    }
}

/// Stem and extension (without the dot) of the last part of a name.
fn split_extension(name: &str) -> (&str, &str) {
    let start = name.rfind('/').map_or(0, |at| at + 1);
    match name.get(start..).and_then(|last| last.rfind('.')).filter(|at| *at > 0) {
        Some(at) => (name.get(..start + at).unwrap_or(name), name.get(start + at + 1..).unwrap_or("")),
        None => (name, ""),
    }
}

/// Refuses names that leave the directory or that servers read differently.
///
/// 255 bytes is the longest file name of the common file systems (ext4, XFS, NTFS).
pub fn check_name(name: &str) -> Result<(), NameError> {
    let unusable = |why| Err(NameError::Unusable { name: name.to_owned(), why });
    if name.is_empty() {
        return unusable("it is empty");
    }
    if name.starts_with('/') {
        return unusable("it is absolute; names are relative to the destination's directory");
    }
    if name.contains('\\') {
        return unusable("it has a backslash, which some servers read as a folder");
    }
    if name.chars().any(char::is_control) {
        return unusable("it has a control character");
    }
    for part in name.split('/') {
        match part {
            "" => return unusable("it has an empty part"),
            "." | ".." => return unusable("it has a `.` or `..` part"),
            long if long.len() > 255 => return unusable("a part of it is longer than 255 bytes"),
            _ => {}
        }
    }
    Ok(())
}

/// Bytes of a delivery key: with folder, prefix and extension it still makes a name.
const MOST_KEY_BYTES: usize = 200;

/// Refuses a delivery key that cannot be a part of a file's name, as every partner's pattern makes it. The reason continues a
/// sentence that begins with the key.
pub fn check_delivery_key(key: &str) -> Result<(), String> {
    let why = match key {
        "" => "is empty",
        "." | ".." => "is the name of a folder",
        _ if key.len() > MOST_KEY_BYTES => {
            return Err(format!("has {} bytes, and may have {MOST_KEY_BYTES}", key.len()));
        }
        _ if key.contains(['/', '\\']) => "has a slash or a backslash, which parts folders",
        _ if key.chars().any(char::is_control) => "has a control character",
        _ => return Ok(()),
    };
    Err(why.to_owned())
}

/// The form in which two final names are compared: case folded, so that servers that ignore case hold no surprise.
pub fn fold_name(name: &str) -> String {
    caseless::default_case_fold_str(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARTS: Parts<'static> = Parts { key: "k-1", attempt: "a-9", final_name: "out/contacts-k-1.csv" };

    #[test]
    fn patterns_mint_over_the_final_names_parts() {
        let mint = |text: &str| NamePattern::parse(text).unwrap().mint(PARTS).unwrap();
        assert_eq!(mint(".{attempt}.part"), ".a-9.part");
        assert_eq!(mint("{final}.done"), "out/contacts-k-1.csv.done");
        assert_eq!(mint("{final.stem}.sha256"), "out/contacts-k-1.sha256");
        assert_eq!(mint("done/{key}.{final.extension}"), "done/k-1.csv");
        assert_eq!(mint("done/{final.name}.ok"), "done/contacts-k-1.csv.ok");
    }

    #[test]
    fn patterns_match_only_what_they_stand_for() {
        let ack = NamePattern::parse("ack/{key}-*.txt").unwrap();
        assert!(ack.matches("ack/k-1-accepted.txt", PARTS));
        assert!(!ack.matches("ack/k-2-accepted.txt", PARTS));
        assert!(!ack.matches("ack/k-1-a/b.txt", PARTS), "a star does not cross folders");
        for (pattern, name, matches) in [
            ("*", "a", true),
            ("*", "", true),
            ("*/*", "a/b", true),
            ("*/*", "a", false),
            ("a*b*c", "a-b-b-c", true),
            ("a*b*c", "abc", true),
            ("a*b*c", "a-c-b", false),
            ("*b", "abab", true),
            ("*ab/*", "ab-ab/x", true),
            ("*ab/*b", "ab/ab/b", false),
            ("ü*ö", "üäö", true),
        ] {
            assert_eq!(NamePattern::parse(pattern).unwrap().matches(name, PARTS), matches, "{pattern:?} {name:?}");
        }
    }

    #[test]
    fn bad_input_a_name_costs_its_length_however_many_stars_there_are() {
        let many = NamePattern::parse("ack/*_*_*_*_*_*_*_*.xml").unwrap();
        // With every star tried at every place this would take longer than anybody waits.
        let long = format!("ack/{}", "_".repeat(250));
        assert!(!many.matches(&long, PARTS) && many.matches(&format!("{long}.xml"), PARTS));
        // What no file may be called is no answer of a partner's, and is not even looked through.
        for name in [format!("ack/{}.xml", "_".repeat(1 << 20)), "ack/_______\0.xml".to_owned()] {
            assert!(!many.matches(&name, PARTS), "{} bytes", name.len());
        }
    }

    #[test]
    fn del_10_a_name_ties_a_key_only_where_no_star_leaves_room_for_a_longer_one() {
        let ties = |text: &str| NamePattern::parse(text).unwrap().ties_the_key(PARTS);
        for text in [
            "ack/{key}.txt",
            "{final}.ok",
            "{final.stem}.ok",
            "ack/{final.name}.ok",
            "ack/*/{key}.txt",
            "{attempt}/{key}.x",
        ] {
            assert!(ties(text), "{text}");
        }
        for text in [
            "ack/*.txt",
            "ack/{key}.*",
            "ack/*_{key}.ok",
            "{final}.*.ack",
            "{final.stem}*",
            "{final.extension}.ok",
            "{attempt}.ok",
        ] {
            assert!(!ties(text), "{text}");
        }
        let elsewhere = Parts { final_name: "k-1/contacts.csv", ..PARTS };
        assert!(
            !NamePattern::parse("ack/{final.name}.ok").unwrap().ties_the_key(elsewhere),
            "the key is in its folder only"
        );
    }

    #[test]
    fn del_10_the_folder_of_a_pattern_is_that_of_its_names() {
        let folder = |text: &str| NamePattern::parse(text).unwrap().folder(PARTS);
        for (text, at) in [("{final}.ok", "out"), ("{final.stem}.*", "out"), ("ack/{key}/*.txt", "ack/k-1")] {
            assert_eq!(folder(text).mint(Parts::default()).as_deref(), Ok(at), "{text}");
        }
        assert!(folder("{key}.ack").is_empty() && folder("*.ack").is_empty() && folder("{key}.ack").matches("", PARTS));
        let dated = folder("ack/*/{key}.txt");
        assert!(
            dated.matches("ack/20260302", PARTS) && !dated.matches("ack", PARTS) && !dated.matches("ack/a/b", PARTS)
        );
        assert!(matches!(dated.mint(PARTS), Err(NameError::NotOneName { .. })));
    }

    #[test]
    fn bad_patterns_and_names_say_why() {
        assert!(matches!(NamePattern::parse("{kee}"), Err(NameError::UnknownPlaceholder { .. })));
        assert!(matches!(NamePattern::parse("{key"), Err(NameError::UnclosedBrace { .. })));
        assert!(matches!(NamePattern::parse("*.csv").unwrap().mint(PARTS), Err(NameError::NotOneName { .. })));
        for name in ["", "/etc/passwd", "../x", "a/./b", "a//b", "a\\b", "a\nb", "a\u{7f}"] {
            assert!(check_name(name).is_err(), "{name:?}");
        }
    }

    #[test]
    fn folding_ignores_case_beyond_ascii() {
        assert_eq!(fold_name("STRASSE-Ä.CSV"), fold_name("straße-ä.csv"));
    }

    #[test]
    fn a_delivery_key_is_what_a_file_name_can_hold() {
        let longest = "k".repeat(MOST_KEY_BYTES);
        for fine in ["K-1001", "Lieferung 8 für Ada", ".hidden", "a..b", longest.as_str()] {
            assert_eq!(check_delivery_key(fine), Ok(()), "{fine}");
        }
        let longer = format!("{longest}k");
        for (key, part) in [
            ("", "empty"),
            (".", "folder"),
            ("..", "folder"),
            ("LF 8/../x", "slash"),
            ("a\\b", "backslash"),
            ("a\nb", "control"),
            (longer.as_str(), "201 bytes"),
        ] {
            assert!(check_delivery_key(key).is_err_and(|why| why.contains(part)), "{key:?}");
        }
    }
}
