//! The data that a guest was handed lately, so that its words can be kept free of it.
//!
//! An honest builder says which value it could not write, and its words go into the log and the job's events, where no
//! personal data belongs. Not promised: that a guest cannot smuggle data out in words of its own making (a part of a value, a
//! value in another form or that it was handed long ago); it is bounded, and marked as the guest's.

use std::collections::VecDeque;

use crate::source::Value;

/// Bytes of values that are remembered, the newest; a batch of a thousand rows has about a quarter of that.
const MOST_BYTES: usize = 1 << 20;
/// Shorter values are words and codes like any other: a country, a yes.
const SHORTEST_CHARACTERS: usize = 4;
/// What stands in a value's place.
const INSTEAD: &str = "(a value)";

/// Characters that are looked for at once. A longer value is looked for in pieces of so many, so that the beginning of one is found
/// in a text that holds no more of it.
pub(super) const PIECE: usize = 256;

/// What a builder was handed. Nothing of it can be read, only taken out of a text.
#[derive(Clone, Default)]
pub struct Handed {
    values: VecDeque<String>,
    bytes: usize,
}

impl Handed {
    /// `json` says which columns hold documents: a guest's words quote what is in them.
    pub(super) fn remember(&mut self, json: &[bool], batch: &[Vec<Value>]) {
        for row in batch {
            for (at, value) in row.iter().enumerate() {
                match value {
                    Value::Null | Value::Boolean(_) => {}
                    Value::Integer(number) => self.keep_number(&number.to_string()),
                    Value::Float(number) => self.keep_number(&number.to_string()),
                    Value::Bytes(bytes) => self.keep(std::str::from_utf8(bytes).unwrap_or_default()),
                    Value::Text(text) => {
                        self.keep(text);
                        if json.get(at).is_some_and(|json| *json) {
                            // One that is nested too deeply to be read is looked for as it stands.
                            self.keep_within(&serde_json::from_str(text).unwrap_or_default());
                        }
                    }
                }
            }
        }
    }

    fn keep_within(&mut self, document: &serde_json::Value) {
        match document {
            serde_json::Value::Null | serde_json::Value::Bool(_) => {}
            serde_json::Value::Number(number) => self.keep_number(&number.to_string()),
            serde_json::Value::String(text) => self.keep(text),
            serde_json::Value::Array(items) => items.iter().for_each(|item| self.keep_within(item)),
            serde_json::Value::Object(fields) => fields.values().for_each(|value| self.keep_within(value)),
        }
    }

    /// A telephone's or an account's number, by its digits.
    fn keep_number(&mut self, number: &str) {
        if number.chars().filter(char::is_ascii_digit).count() >= SHORTEST_CHARACTERS {
            self.keep(number.trim_start_matches('-'));
        }
    }

    fn keep(&mut self, text: &str) {
        let mut rest = text.trim();
        while rest.chars().nth(SHORTEST_CHARACTERS - 1).is_some() {
            let end = rest.char_indices().nth(PIECE).map_or(rest.len(), |(end, _)| end);
            let (piece, later) = rest.split_at(end);
            self.bytes += piece.len();
            self.values.push_back(piece.to_owned());
            rest = later;
        }
        while self.bytes > MOST_BYTES
            && let Some(oldest) = self.values.pop_front()
        {
            self.bytes -= oldest.len();
        }
    }

    /// The text without the values.
    pub(super) fn without(&self, text: &str) -> String {
        let mut found: Vec<&str> =
            self.values.iter().map(String::as_str).filter(|value| text.contains(value)).collect();
        // A value may be part of another one.
        found.sort_by_key(|value| std::cmp::Reverse(value.len()));
        found.dedup();
        let mut text = found.into_iter().fold(text.to_owned(), |text, value| replaced(&text, value));
        let pieces = [INSTEAD, INSTEAD].concat();
        while text.contains(&pieces) {
            text = text.replace(&pieces, INSTEAD);
        }
        text
    }
}

/// A number within a longer one is another number: the size of a file must stay readable beside a column of small ids.
fn replaced(text: &str, value: &str) -> String {
    if !value.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') {
        return text.replace(value, INSTEAD);
    }
    let is_digit = |character: Option<char>| character.is_some_and(|character| character.is_ascii_digit());
    let mut kept = String::with_capacity(text.len());
    let mut rest = text;
    let mut before = None;
    while let Some((head, tail)) = rest.split_once(value) {
        kept.push_str(head);
        before = head.chars().next_back().or(before);
        kept.push_str(if is_digit(before) || is_digit(tail.chars().next()) { value } else { INSTEAD });
        before = value.chars().next_back();
        rest = tail;
    }
    kept + rest
}

impl std::fmt::Debug for Handed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Handed").field("bytes", &self.bytes).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn handed(values: &[&str]) -> Handed {
        let mut handed = Handed::default();
        handed.remember(&[], &[values.iter().map(|value| Value::Text((*value).to_owned())).collect()]);
        handed
    }

    #[test]
    fn plg_08_values_are_taken_out_of_a_guests_words_whole() {
        let handed = handed(&["Anna", "Anna Lindqvist", "anna@example.com", "SE"]);
        let text = "row 3: \"Anna Lindqvist\" <anna@example.com> of SE is not windows-1252";
        assert_eq!(handed.without(text), "row 3: \"(a value)\" <(a value)> of SE is not windows-1252");
    }

    #[test]
    fn plg_08_numbers_bytes_and_what_documents_hold_are_taken_out_too() {
        let mut handed = Handed::default();
        let document = r#"{"name":"Anna \"Ann\" Lindqvist","at":[{"phone":46701234567,"no":7}],"member":true}"#;
        let row = [
            Value::Integer(-4_670_123),
            Value::Integer(123),
            Value::Integer(3355),
            Value::Float(52.520_008),
            Value::Float(1.5),
            Value::Bytes(b"anna@example.com".to_vec()),
            Value::Bytes(vec![0xff, 0xfe, 0xfd, 0xfc]),
            Value::Text(document.to_owned()),
            Value::Boolean(true),
            Value::Null,
        ];
        handed.remember(&[false, false, false, false, false, false, false, true, false, false], &[row.to_vec()]);
        for (text, kept) in [
            ("number -4670123 of 123", "number -(a value) of 123"),
            ("row 3355 of 33554432, 13355 and 3355", "row (a value) of 33554432, 13355 and (a value)"),
            ("at 52.520008, 1.5 true", "at (a value), 1.5 true"),
            ("to anna@example.com", "to (a value)"),
            ("Anna \"Ann\" Lindqvist, 46701234567, 7", "(a value), (a value), 7"),
            (document, "(a value)"),
            ("name, phone, member: null", "name, phone, member: null"),
        ] {
            assert_eq!(handed.without(text), kept);
        }
        handed.remember(&[false], &[vec![Value::Text("{\"a\": \"kept as it stands\"}".to_owned())]]);
        assert_eq!(handed.without("kept as it stands"), "kept as it stands");
    }

    #[test]
    fn plg_08_the_beginning_of_a_long_value_is_found_and_so_is_all_of_it() {
        let long = (0..PIECE).map(|number| format!("{number:03}-")).collect::<Vec<_>>().concat();
        let handed = handed(&[&long]);
        assert_eq!(handed.without(&format!("it is {long}")), "it is (a value)");
        let beginning: String = long.chars().take(PIECE + 10).collect();
        assert_eq!(handed.without(&beginning), format!("(a value){}", &beginning[PIECE..]));
    }

    #[test]
    fn plg_08_what_is_remembered_is_bounded_and_the_newest_stays() {
        let mut handed = handed(&["the first value"]);
        let row = vec![Value::Text("x".repeat(MOST_BYTES)), Value::Text("the last value".to_owned())];
        handed.remember(&[], &[row]);
        assert_eq!(handed.without("the first value, the last value"), "the first value, (a value)");
        assert!(handed.bytes <= MOST_BYTES);
    }
}
