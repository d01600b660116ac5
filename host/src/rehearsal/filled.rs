//! Texts of a case with placeholders: the names of files, and what the partner answers.
//!
//! The words are those of a manifest's patterns ([`Placeholder`]), and `{sha256}`: the digest of our file. In a name nothing else
//! stands in braces. In a text a brace that is not part of `{word}` stands for itself, so that an answer can be JSON.

use std::fmt;

use crate::job::names::{Parts, Placeholder};
use crate::remote::Names;

/// A text, read and checked, before it is filled in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Filled {
    text: String,
    pieces: Vec<Piece>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Text(String),
    Placeholder(Placeholder),
    Sha256,
}

impl Filled {
    /// A text; the error says what is wrong with it.
    pub fn text(text: &str) -> Result<Self, String> {
        let mut pieces = Vec::new();
        let (mut literal, mut rest) = (String::new(), text);
        while let Some((before, after)) = rest.split_once('{') {
            literal.push_str(before);
            match after.split_once('}').filter(|(word, _)| is_word(word)) {
                Some((word, behind)) => {
                    pieces.push(Piece::Text(std::mem::take(&mut literal)));
                    pieces.push(Piece::named(word).ok_or_else(|| unknown(text, word))?);
                    rest = behind;
                }
                None => {
                    literal.push('{');
                    rest = after;
                }
            }
        }
        literal.push_str(rest);
        pieces.push(Piece::Text(literal));
        Ok(Self { text: text.to_owned(), pieces })
    }

    /// The name of one file.
    pub fn name(text: &str) -> Result<Self, String> {
        let name = Self::text(text)?;
        let literal = |piece: &Piece| matches!(piece, Piece::Text(text) if text.contains(['*', '{', '}']));
        if name.pieces.iter().any(literal) {
            return Err(format!(
                "{text:?} has to name one file: it has a `*`, or a brace that is not part of a placeholder"
            ));
        }
        Ok(name)
    }

    /// The text of one delivery.
    pub fn fill(&self, names: &Names, sha256: &str) -> String {
        let parts = Parts { key: &names.key, attempt: &names.attempt, final_name: &names.final_name };
        let filled = self.pieces.iter().map(|piece| match piece {
            Piece::Text(text) => text.as_str(),
            Piece::Placeholder(placeholder) => placeholder.stands_for(parts),
            Piece::Sha256 => sha256,
        });
        filled.collect()
    }
}

impl fmt::Display for Filled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Piece {
    fn named(word: &str) -> Option<Self> {
        match word {
            "sha256" => Some(Self::Sha256),
            word => Placeholder::named(word).map(Self::Placeholder),
        }
    }
}

fn is_word(inside: &str) -> bool {
    !inside.is_empty() && inside.chars().all(|char| char.is_ascii_alphanumeric() || matches!(char, '.' | '_'))
}

fn unknown(text: &str, word: &str) -> String {
    format!(
        "{text:?} has an unknown placeholder {{{word}}}; known are {{key}}, {{attempt}}, {{final}}, {{final.stem}}, {{final.extension}}, {{final.name}} and {{sha256}}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::contract::Contract;

    fn filled(text: &str) -> String {
        let names = Names::mint(&Contract::default(), None, "out/a.csv", "k-1", "a-9").unwrap();
        Filled::text(text).unwrap().fill(&names, "ab12")
    }

    #[test]
    fn plg_06_a_placeholder_means_what_it_means_in_a_manifest() {
        assert_eq!(filled("{key} {attempt} {sha256} {key}"), "k-1 a-9 ab12 k-1");
        assert_eq!(filled("{final} {final.stem}.ok {final.extension} {final.name}"), "out/a.csv out/a.ok csv a.csv");
    }

    #[test]
    fn plg_06_an_answer_in_json_keeps_its_braces() {
        assert_eq!(filled(r#"{"of": "{key}", "seen": {"at": {}}} * {"#), r#"{"of": "k-1", "seen": {"at": {}}} * {"#);
    }

    #[test]
    fn plg_06_what_no_placeholder_is_called_is_refused_and_a_name_is_one_file() {
        let why = Filled::text("ok {kee}").unwrap_err();
        assert!(why.starts_with("\"ok {kee}\" has an unknown placeholder {kee}; known are {key}, "), "{why}");
        for name in ["ack/*.txt", "ack/{key", "ack/{}.txt", "ack/key}.txt"] {
            assert!(Filled::name(name).unwrap_err().contains("has to name one file"), "{name}");
        }
        assert_eq!(Filled::name("ack/{final.name}.txt").unwrap().to_string(), "ack/{final.name}.txt");
    }
}
