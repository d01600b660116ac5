//! Names and small texts made from a pattern with placeholders in braces: `contacts-{key}-{date}.csv`. A brace that is doubled
//! stands for itself: `{{"file": "{final.name}"}}`.
//!
//! The placeholders of auxiliary names are written as in the manifest, so that the pattern there and the setting of a plugin
//! can be the same text.

use crate::Failure;

/// A text with placeholders. Parsed once, so that a mistake shows before anything is sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template {
    pieces: Vec<Piece>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Text(String),
    Placeholder(String),
}

impl Template {
    /// Parses the value of a setting. Only the known placeholders may occur in it.
    pub fn parse(setting: &str, text: &str, known: &[&str]) -> Result<Self, Failure> {
        let wrong = |why: String| Failure::Invalid(format!("the setting {setting:?} is {text:?}: {why}"));
        let mut pieces = Vec::new();
        let mut rest = text;
        while let Some((before, tail)) = rest.split_once('{') {
            if let Some(after) = tail.strip_prefix('{') {
                pieces.push(Piece::Text(format!("{}{{", plain(before))));
                rest = after;
                continue;
            }
            let Some((name, after)) = tail.split_once('}') else {
                return Err(wrong("a brace is not closed".to_owned()));
            };
            if !known.contains(&name) {
                return Err(wrong(format!("there is no placeholder {{{name}}}; known are {{{}}}", known.join("}, {"))));
            }
            pieces.push(Piece::Text(plain(before)));
            pieces.push(Piece::Placeholder(name.to_owned()));
            rest = after;
        }
        pieces.push(Piece::Text(plain(rest)));
        Ok(Self { pieces })
    }

    /// True if the placeholder occurs.
    pub fn has(&self, placeholder: &str) -> bool {
        self.pieces.iter().any(|piece| matches!(piece, Piece::Placeholder(name) if name == placeholder))
    }

    /// The text with each placeholder replaced by what the function says.
    pub fn fill<'a>(&self, value: impl Fn(&str) -> &'a str) -> String {
        self.pieces
            .iter()
            .map(|piece| match piece {
                Piece::Text(text) => text.as_str(),
                Piece::Placeholder(name) => value(name),
            })
            .collect()
    }
}

fn plain(text: &str) -> String {
    text.replace("}}", "}")
}

/// The last part of a name: `a.csv` of `out/a.csv`.
pub fn base_name(name: &str) -> &str {
    name.rsplit_once('/').map_or(name, |(_, last)| last)
}

/// A name without its extension, and the extension without its dot: `out/a` and `csv` of `out/a.csv`. A name whose only dot is its
/// first character has no extension.
pub fn split_extension(name: &str) -> (&str, &str) {
    match base_name(name).rsplit_once('.') {
        Some((stem, extension)) if !stem.is_empty() => {
            (name.strip_suffix(extension).and_then(|name| name.strip_suffix('.')).unwrap_or(name), extension)
        }
        _ => (name, ""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::refusal;

    const KNOWN: [&str; 2] = ["key", "date"];

    #[test]
    fn placeholders_are_filled() {
        let template = Template::parse("name", "{date}/contacts-{key}.csv", &KNOWN).unwrap();
        assert!(template.has("key") && !template.has("tenant"));
        let name = template.fill(|placeholder| if placeholder == "key" { "k-1" } else { "20260302" });
        assert_eq!(name, "20260302/contacts-k-1.csv");
    }

    #[test]
    fn doubled_braces_stand_for_themselves() {
        let fill = |text: &str| Template::parse("text", text, &KNOWN).unwrap().fill(|_| "k-1");
        assert_eq!(fill("{{\"key\": \"{key}\", \"in\": {{{key}}}}}"), "{\"key\": \"k-1\", \"in\": {k-1}}");
        assert_eq!(fill("a}b{{"), "a}b{");
    }

    #[test]
    fn mistakes_name_the_setting_and_what_is_known() {
        let text = |text| refusal(Template::parse("name", text, &KNOWN));
        assert!(text("{kee}.csv").contains("\"name\"") && text("{kee}.csv").ends_with("known are {key}, {date}"));
        assert!(text("{key.csv").ends_with("a brace is not closed"));
    }

    #[test]
    fn extensions_are_of_the_last_part() {
        assert_eq!(split_extension("out.d/a.tar.gz"), ("out.d/a.tar", "gz"));
        assert_eq!(split_extension("out.d/a"), ("out.d/a", ""));
        assert_eq!(split_extension("out.d/.a"), ("out.d/.a", ""));
        assert_eq!(base_name("out.d/a"), "a");
    }
}
