//! TOML documents that people write: every fault comes with its file, its line, what is wrong and the fix.
//!
//! The text of a value never enters a message of a document that may hold a secret by mistake.

use std::ops::Range;

use serde::de::DeserializeOwned;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// A fault in a document.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file} line {line}: {what}")]
pub struct DocumentError {
    pub file: &'static str,
    /// Counted from 1.
    pub line: usize,
    pub what: String,
}

/// A document's text, read far enough that lines can be found.
pub(super) struct Document<'t> {
    file: &'static str,
    text: &'t str,
    tree: Spanned<DeTable<'t>>,
    /// False: values are left out of messages.
    quotes_values: bool,
}

impl<'t> Document<'t> {
    pub(super) fn parse(file: &'static str, text: &'t str, quotes_values: bool) -> Result<Self, DocumentError> {
        let tree = DeTable::parse(text).map_err(|error| DocumentError {
            file,
            line: line_at(text, error.span().map_or(0, |span| span.start)),
            what: format!("this is not TOML: {}", one_line(error.message())),
        })?;
        let document = Self { file, text, tree, quotes_values };
        match refused_in(document.tree.get_ref(), false) {
            Some((offset, what)) => Err(document.at_offset(offset, what)),
            None => Ok(document),
        }
    }

    /// Reads the document into its type.
    pub(super) fn read<T: DeserializeOwned>(&self) -> Result<T, DocumentError> {
        toml::from_str(self.text).map_err(|error| {
            let message = one_line(error.message());
            let message = if self.quotes_values { message } else { without_values(&message) };
            let span = error.span().unwrap_or_default();
            let found = found_at(self.tree.get_ref(), &span);
            let what =
                found.and_then(|(path, value)| mend(&path, value, &message)).unwrap_or_else(|| with_fix(&message));
            self.at_offset(span.start, what)
        })
    }

    /// Refuses `[[table]]` where there is one table: read as a type it would be told in words about sequences.
    pub(super) fn is_one_table(&self, path: &[&str], what: &str) -> Result<(), DocumentError> {
        match self.value_at(path) {
            Some(value) if matches!(value.get_ref(), DeValue::Array(_)) => {
                let table = spelt(path);
                Err(self.fault(path, format!("`{table}` is one table: write `[{table}]`, with single brackets{what}")))
            }
            _ => Ok(()),
        }
    }

    /// A fault at the value under a path of keys and array positions, or at the nearest part of it that exists.
    pub(super) fn fault(&self, path: &[&str], what: impl Into<String>) -> DocumentError {
        self.at_offset(self.offset_of(path), what.into())
    }

    /// Where the value under a path of keys is written.
    pub(super) fn span(&self, path: &[&str]) -> Option<Range<usize>> {
        let (last, tables) = path.split_last()?;
        let table = tables.iter().try_fold(self.tree.get_ref(), |table, key| match entry(table, key)?.get_ref() {
            DeValue::Table(inner) => Some(inner),
            _ => None,
        });
        Some(entry(table?, last)?.span())
    }

    /// The top level of the document.
    pub(super) fn table(&self) -> &DeTable<'t> {
        self.tree.get_ref()
    }

    fn at_offset(&self, offset: usize, what: String) -> DocumentError {
        DocumentError { file: self.file, line: line_at(self.text, offset), what }
    }

    fn offset_of(&self, path: &[&str]) -> usize {
        let Some((first, rest)) = path.split_first() else { return 0 };
        let Some(mut value) = entry(self.tree.get_ref(), first) else { return 0 };
        for part in rest {
            match inside(value, part) {
                Some(inner) => value = inner,
                None => break,
            }
        }
        value.span().start
    }

    fn value_at(&self, path: &[&str]) -> Option<&Spanned<DeValue<'t>>> {
        let (first, rest) = path.split_first()?;
        rest.iter().try_fold(entry(self.tree.get_ref(), first)?, |value, part| inside(value, part))
    }
}

fn inside<'a, 't>(value: &'a Spanned<DeValue<'t>>, part: &str) -> Option<&'a Spanned<DeValue<'t>>> {
    match value.get_ref() {
        DeValue::Table(table) => entry(table, part),
        DeValue::Array(array) => part.parse::<usize>().ok().and_then(|position| array.get(position)),
        _ => None,
    }
}

/// The value that lies exactly there, with the keys that lead to it.
fn found_at<'a, 't>(table: &'a DeTable<'t>, span: &Range<usize>) -> Option<(Vec<String>, &'a DeValue<'t>)> {
    table.iter().find_map(|(key, value)| {
        let (mut path, found) = within(value, span)?;
        path.insert(0, key.get_ref().as_ref().to_owned());
        Some((path, found))
    })
}

fn within<'a, 't>(value: &'a Spanned<DeValue<'t>>, span: &Range<usize>) -> Option<(Vec<String>, &'a DeValue<'t>)> {
    let deeper = match value.get_ref() {
        DeValue::Table(table) => found_at(table, span),
        DeValue::Array(array) => array.iter().find_map(|value| within(value, span)),
        _ => None,
    };
    deeper.or_else(|| (value.span() == *span).then(|| (Vec::new(), value.get_ref())))
}

/// A path as people write it: which one of a list is meant is told by its line.
fn spelt<Key: AsRef<str>>(path: &[Key]) -> String {
    let keys = path.iter().map(AsRef::as_ref).filter(|key| key.parse::<usize>().is_err());
    keys.collect::<Vec<_>>().join(".")
}

/// Says of a value of the wrong type which key it is, what the key takes, and how to write it. The value is not repeated.
fn mend(path: &[String], value: &DeValue<'_>, message: &str) -> Option<String> {
    let (key, whole) = (path.last()?, spelt(path));
    if message.starts_with("UUID parsing failed") {
        return Some(format!("`{whole}` is a UUID, 32 hexadecimal digits in five groups, as `uuidgen` prints one"));
    }
    let expected = message.strip_prefix("invalid type: ").or_else(|| message.strip_prefix("invalid value: "))?;
    let (_, expected) = expected.rsplit_once("expected ")?;
    let how = match (expected, value) {
        ("a string" | "path string", DeValue::Boolean(_)) => {
            format!("a text, and an option too is \"yes\" or \"no\": write it in quotes, `{key} = \"…\"`")
        }
        ("a string" | "path string", DeValue::Array(_)) => {
            format!("one text, and not a list: write `{key} = \"first, second\"`, with commas between names")
        }
        ("a string" | "path string", DeValue::Table(_)) => format!("one text, and not a table: write `{key} = \"…\"`"),
        ("a string" | "path string", _) => format!("a text: write it in quotes, `{key} = \"…\"`"),
        ("a UUID string", _) => format!("a UUID in quotes, as `uuidgen` prints one: write `{key} = \"…\"`"),
        ("a boolean", _) => format!("yes or no: write `{key} = true` or `{key} = false`, without quotes"),
        ("u16" | "u32" | "u64" | "i32" | "i64" | "usize", _) => {
            format!("a whole number, not below 0 and not too large: write `{key} = 1`, without quotes")
        }
        ("a sequence", _) => format!("a list: write `{key} = [\"…\"]`"),
        (expected, _) if expected == "a map" || expected.starts_with("struct ") => {
            format!("a table: write its keys below `[{whole}]`")
        }
        _ => return Some(format!("`{whole}` cannot be read: {message}")),
    };
    Some(format!("`{whole}` is {how}"))
}

/// The tables whose values are for the plugins, such as a delimiter: of control characters only U+0000 is refused there.
const FREE: [&str; 2] = ["options", "settings"];

/// Where a key or a value has a character that it may not have, and what to do. U+0000 is in no value that PostgreSQL holds;
/// of the other control characters only tabs and ends of lines mean something in what is written here.
fn refused_in(table: &DeTable<'_>, free: bool) -> Option<(usize, String)> {
    table.iter().find_map(|(key, value)| {
        let name: &str = key.get_ref();
        if let Some(control) = name.chars().find(|character| character.is_control()) {
            return Some((key.span().start, refusal("this key", control)));
        }
        refused_value(value, free || FREE.contains(&name))
    })
}

fn refused_value(value: &Spanned<DeValue<'_>>, free: bool) -> Option<(usize, String)> {
    let allowed = |character: char| match character {
        '\0' => false,
        '\t' | '\n' | '\r' => true,
        other => free || !other.is_control(),
    };
    match value.get_ref() {
        DeValue::String(text) => {
            let control = text.chars().find(|character| !allowed(*character))?;
            Some((value.span().start, refusal("this value", control)))
        }
        DeValue::Array(array) => array.iter().find_map(|value| refused_value(value, free)),
        DeValue::Table(table) => refused_in(table, free),
        _ => None,
    }
}

fn refusal(what: &str, control: char) -> String {
    format!("{what} has the control character U+{:04X}; take it out", u32::from(control))
}

fn entry<'a, 't>(table: &'a DeTable<'t>, key: &str) -> Option<&'a Spanned<DeValue<'t>>> {
    table.iter().find(|(name, _)| name.get_ref().as_ref() == key).map(|(_, value)| value)
}

fn line_at(text: &str, offset: usize) -> usize {
    text.bytes().take(offset).filter(|byte| *byte == b'\n').count() + 1
}

fn one_line(message: &str) -> String {
    message.lines().map(str::trim).collect::<Vec<_>>().join(", ")
}

/// Leaves out what serde quotes of a value: `invalid type: string "…", expected u16`.
fn without_values(message: &str) -> String {
    match (message.find('"'), message.rfind('"')) {
        (Some(first), Some(last)) if first < last => {
            format!("{}(not shown){}", message.get(..first).unwrap_or(""), message.get(last + 1..).unwrap_or(""))
        }
        _ => message.to_owned(),
    }
}

/// Adds what to do to serde's words for the two mistakes that people make most.
pub fn with_fix(message: &str) -> String {
    let quoted: Vec<&str> = message.split('`').skip(1).step_by(2).collect();
    if message.starts_with("unknown field") {
        let Some((unknown, known)) = quoted.split_first() else { return message.to_owned() };
        return match nearest(unknown, known) {
            Some(nearest) => format!("the key `{unknown}` is not known here; did you mean `{nearest}`?"),
            None if known.is_empty() => format!("the key `{unknown}` is not known here; remove it"),
            None => format!("the key `{unknown}` is not known here; known are {}", known.join(", ")),
        };
    }
    if message.starts_with("missing field")
        && let Some(missing) = quoted.first()
    {
        return format!("the key `{missing}` is missing here; add it");
    }
    message.to_owned()
}

/// The known key that takes the fewest edits, where they are few enough for a typing mistake.
fn nearest<'a>(unknown: &str, known: &[&'a str]) -> Option<&'a str> {
    let most = (unknown.chars().count() / 3).max(1);
    known
        .iter()
        .map(|key| (edits(unknown, key), *key))
        .filter(|(edits, _)| *edits <= most)
        .min_by_key(|(edits, _)| *edits)
        .map(|(_, key)| key)
}

/// The Levenshtein distance.
pub fn edits(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (index, left) in from.chars().enumerate() {
        let mut next = vec![index + 1];
        for (pair, right) in row.windows(2).zip(&to) {
            let &[diagonal, above] = pair else { continue };
            let before = next.last().copied().unwrap_or(0);
            next.push((before + 1).min(above + 1).min(diagonal + usize::from(left != *right)));
        }
        row = next;
    }
    row.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "only the reading is tested")]
    struct Sample {
        publishes_whole: bool,
        port: u16,
    }

    #[derive(Debug, serde::Deserialize)]
    #[expect(dead_code, reason = "only the reading is tested")]
    struct Nested {
        inner: Inner,
    }

    #[derive(Debug, serde::Deserialize)]
    #[expect(dead_code, reason = "only the reading is tested")]
    struct Inner {
        word: String,
        words: Vec<String>,
        flag: bool,
        id: uuid::Uuid,
    }

    fn fault(text: &str, quotes_values: bool) -> DocumentError {
        Document::parse("a.toml", text, quotes_values).unwrap().read::<Sample>().unwrap_err()
    }

    #[test]
    fn a_misspelt_key_is_told_with_its_line_and_the_nearest_known_one() {
        let error = fault("port = 22\npublishes_hole = true\n", true);
        assert_eq!(
            error.to_string(),
            "a.toml line 2: the key `publishes_hole` is not known here; did you mean `publishes_whole`?"
        );
    }

    #[test]
    fn plg_02_a_control_character_is_refused_with_its_line_and_what_it_is_in() {
        let fault = |text: &str| Document::parse("a.toml", text, false).err().map(|error| (error.line, error.what));
        for (text, line, part) in [
            ("a = 1\nname = \"a\\u0000\"", 2, "this value has the control character U+0000"),
            ("a = 1\n[options]\ndelimiter = \"\\u0000\"", 3, "U+0000"),
            ("[[destination]]\na = [1, { b = \"\\u001b[2J\" }]", 2, "U+001B"),
            ("a = 1\n\"b\\u0007\" = 1", 2, "this key has the control character U+0007"),
        ] {
            let (at, what) = fault(text).unwrap();
            assert!(at == line && what.contains(part), "line {at}: {what}\nfor\n{text}");
        }
        // A query has lines, and a delimiter may be what separated fields before there were commas.
        assert_eq!(fault("sql = \"a\\n\\tb\"\n[options]\nd = \"\\u001f\"\n[x.settings]\ne = \"\\u0001\""), None);
    }

    #[test]
    fn a_key_like_no_other_is_told_with_all_known_ones() {
        assert!(fault("colour = 1", true).what.contains("known are publishes_whole, port"));
    }

    #[test]
    fn a_missing_key_is_told() {
        assert_eq!(fault("port = 22", true).what, "the key `publishes_whole` is missing here; add it");
    }

    #[test]
    fn a_value_that_may_be_a_secret_is_not_repeated() {
        let error = fault("publishes_whole = true\nport = \"hunter2\"", false);
        assert_eq!(error.line, 2);
        assert!(!error.what.contains("hunter2") && error.what.contains("`port` is a whole number"), "{error}");
    }

    #[test]
    fn a_value_of_the_wrong_type_is_told_with_its_key_and_how_to_write_it() {
        const INNER: &str =
            "[inner]\nword = 'a'\nwords = ['a']\nflag = true\nid = '018f0000-0000-7000-8000-000000000001'\n";
        for (right, wrong, line, part) in [
            ("'a'\nwords", "5\nwords", 2, "`inner.word` is a text: write it in quotes, `word = \"…\"`"),
            ("'a'\nwords", "true\nwords", 2, "`inner.word` is a text, and an option too is \"yes\" or \"no\""),
            ("'a'\nwords", "['a', 'b']\nwords", 2, "`inner.word` is one text, and not a list"),
            ("'a'\nwords", "{ a = 1 }\nwords", 2, "`inner.word` is one text, and not a table"),
            ("'a'\nwords", "2026-03-02\nwords", 2, "`inner.word` is a text: write it in quotes"),
            ("['a']", "'a'", 3, "`inner.words` is a list"),
            ("['a']", "['a', 1]", 3, "`inner.words` is a text: write it in quotes"),
            ("true", "'yes'", 4, "`inner.flag` is yes or no: write `flag = true`"),
            ("018f", "18f", 5, "`inner.id` is a UUID"),
        ] {
            let text = INNER.replacen(right, wrong, 1);
            let error = Document::parse("a.toml", &text, true).unwrap().read::<Nested>().unwrap_err();
            assert!(error.line == line && error.what.contains(part), "{error}\nfor\n{text}");
        }
    }

    #[test]
    fn a_table_that_is_written_as_a_list_is_told() {
        let document = Document::parse("a.toml", "[a]\nx = 1\n[[a.b]]\nx = 1\n", true).unwrap();
        let error = document.is_one_table(&["a", "b"], "; and no more").unwrap_err();
        let told = "a.toml line 3: `a.b` is one table: write `[a.b]`, with single brackets; and no more";
        assert_eq!(error.to_string(), told);
        assert!(document.is_one_table(&["a"], "").is_ok() && document.is_one_table(&["c", "d"], "").is_ok());
    }

    #[test]
    fn lines_are_found_by_path_down_to_what_exists() {
        let document = Document::parse("a.toml", "x = 1\n[[list]]\na = 1\n[[list]]\nb = 2\n", true).unwrap();
        assert_eq!(document.fault(&["list", "1", "b"], "no").line, 5);
        assert_eq!(document.fault(&["nowhere"], "no").line, 1);
    }

    #[test]
    fn what_is_not_toml_is_told_with_its_line() {
        let error = Document::parse("a.toml", "x = 1\ny = \n", true).err().unwrap();
        assert_eq!(error.line, 2);
    }

    #[test]
    fn edits_are_counted() {
        assert_eq!(edits("kitten", "sitting"), 3);
        assert_eq!(edits("", "ab"), 2);
    }
}
