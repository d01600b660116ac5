//! The data that a guest was handed lately, so that its words can be kept free of it.
//!
//! An honest builder says which value it could not write, and its words go into the log and the job's events, where no
//! personal data belongs. Not promised: that a guest cannot smuggle data out in words of its own making (a part of a value, a
//! value in another form or that it was handed long ago); it is bounded, and marked as the guest's.

use std::collections::{BTreeSet, VecDeque};
use std::ops::Range;

use crate::job::evidence::A_VALUE;
use crate::source::Value;

/// Bytes of values that are remembered, the newest; a batch of a thousand rows has about a quarter of that.
const MOST_BYTES: usize = 1 << 20;
/// Shorter values are words and codes like any other: a country, a yes.
const SHORTEST_CHARACTERS: usize = 4;

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

    /// The text without the values. One that lies within a name of the host's own (`own`) stays: it says nothing that the host
    /// does not say itself, and a name that is compared must stay what it is.
    pub(super) fn without(&self, text: &str, own: &[String]) -> String {
        let own: Vec<Range<usize>> = own.iter().flat_map(|name| places(text, name)).collect();
        let is_own = |place: &Range<usize>| own.iter().any(|own| own.start <= place.start && place.end <= own.end);
        // Each once: a column that holds the same in every row must not cost the host a list of all of them.
        let values: BTreeSet<&str> =
            self.values.iter().map(String::as_str).filter(|value| text.contains(value)).collect();
        let of = |value| places(text, value).filter(move |place| !is_in_a_number(text, value, place));
        let mut found: Vec<Range<usize>> = values.into_iter().flat_map(of).filter(|place| !is_own(place)).collect();
        found.sort_by_key(|place| place.start);
        let mut kept = String::with_capacity(text.len());
        // Values that overlap or follow each other at once are taken out as one.
        let mut end = None;
        for place in found {
            if end.is_none_or(|end| end < place.start) {
                kept.push_str(text.get(end.unwrap_or(0)..place.start).unwrap_or_default());
                kept.push_str(A_VALUE);
            }
            end = end.max(Some(place.end));
        }
        kept + text.get(end.unwrap_or(0)..).unwrap_or_default()
    }
}

fn places(text: &str, part: &str) -> impl Iterator<Item = Range<usize>> {
    text.match_indices(part).map(|(at, found)| at..at + found.len())
}

/// A number within a longer one is another number: the size of a file must stay readable beside a column of small ids.
fn is_in_a_number(text: &str, value: &str, place: &Range<usize>) -> bool {
    let is_number = value.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let before = text.get(..place.start).and_then(|before| before.chars().next_back());
    let after = text.get(place.end..).and_then(|after| after.chars().next());
    is_number && [before, after].into_iter().flatten().any(|beside| beside.is_ascii_digit())
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

    /// A column of placeholders, and a line of the same: places times rows would be gigabytes.
    #[test]
    fn plg_03_what_a_text_costs_does_not_grow_with_how_often_a_value_was_handed() {
        let mut handed = Handed::default();
        handed.remember(&[], &vec![vec![Value::Text("----".to_owned())]; MOST_BYTES / 4]);
        assert_eq!(handed.values.len(), MOST_BYTES / 4);
        assert_eq!(handed.without(&"-".repeat(40_000), &[]), A_VALUE);
    }

    #[test]
    fn plg_08_values_are_taken_out_of_a_guests_words_whole() {
        let handed = handed(&["Anna", "Anna Lindqvist", "anna@example.com", "SE"]);
        let text = "row 3: \"Anna Lindqvist\" <anna@example.com> of SE is not windows-1252";
        assert_eq!(handed.without(text, &[]), "row 3: \"(a value)\" <(a value)> of SE is not windows-1252");
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
            assert_eq!(handed.without(text, &[]), kept);
        }
        handed.remember(&[false], &[vec![Value::Text("{\"a\": \"kept as it stands\"}".to_owned())]]);
        assert_eq!(handed.without("kept as it stands", &[]), "kept as it stands");
    }

    #[test]
    fn plg_08_a_value_within_a_name_of_the_hosts_own_stays_and_a_name_within_a_value_does_not() {
        let handed = handed(&["2026-03", "contacts", "accepted", "Ada1 Lovelace"]);
        let own = ["contacts-2026-03.csv", "2026-03", "accepted", "1"].map(str::to_owned);
        for (text, kept) in [
            ("contacts-2026-03.csv", "contacts-2026-03.csv"),
            ("contacts-2026-03.csv.done", "contacts-2026-03.csv.done"),
            ("answers/2026-03.txt", "answers/2026-03.txt"),
            ("accepted", "accepted"),
            ("contacts of 2026-03", "(a value) of 2026-03"),
            ("not Ada1 Lovelace, 1", "not (a value), 1"),
        ] {
            assert_eq!(handed.without(text, &own), kept);
        }
    }

    #[test]
    fn plg_08_the_beginning_of_a_long_value_is_found_and_so_is_all_of_it() {
        let long = (0..PIECE).map(|number| format!("{number:03}-")).collect::<Vec<_>>().concat();
        let handed = handed(&[&long]);
        assert_eq!(handed.without(&format!("it is {long}"), &[]), "it is (a value)");
        let beginning: String = long.chars().take(PIECE + 10).collect();
        assert_eq!(handed.without(&beginning, &[]), format!("(a value){}", &beginning[PIECE..]));
    }

    #[test]
    fn plg_08_what_is_remembered_is_bounded_and_the_newest_stays() {
        let mut handed = handed(&["the first value"]);
        let row = vec![Value::Text("x".repeat(MOST_BYTES)), Value::Text("the last value".to_owned())];
        handed.remember(&[], &[row]);
        assert_eq!(handed.without("the first value, the last value", &[]), "the first value, (a value)");
        assert!(handed.bytes <= MOST_BYTES);
    }
}
