//! The data that a guest was handed lately, so that its words can be kept free of it.
//!
//! An honest builder says which value it could not write, and its words go into the log and the job's events, where no
//! personal data belongs. Not promised: that a guest cannot smuggle data out in words of its own making; it is bounded,
//! and marked as the guest's.

use std::collections::VecDeque;

use crate::source::Value;

/// Bytes of values that are remembered, the newest; a batch of a thousand rows has about a quarter of that.
const MOST_BYTES: usize = 1 << 20;
/// Shorter values are words and codes like any other: a country, a yes.
const SHORTEST_CHARACTERS: usize = 4;
/// What stands in a value's place.
const INSTEAD: &str = "(a value)";

#[derive(Debug, Default)]
pub(super) struct Handed {
    values: VecDeque<String>,
    bytes: usize,
}

impl Handed {
    pub(super) fn remember(&mut self, batch: &[Vec<Value>]) {
        for value in batch.iter().flatten() {
            let Value::Text(text) = value else { continue };
            let text = text.trim();
            if text.chars().nth(SHORTEST_CHARACTERS - 1).is_none() {
                continue;
            }
            self.bytes += text.len();
            self.values.push_back(text.to_owned());
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
        found.into_iter().fold(text.to_owned(), |text, value| text.replace(value, INSTEAD))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn handed(values: &[&str]) -> Handed {
        let mut handed = Handed::default();
        handed.remember(&[values.iter().map(|value| Value::Text((*value).to_owned())).collect()]);
        handed
    }

    #[test]
    fn plg_08_values_are_taken_out_of_a_guests_words_whole() {
        let handed = handed(&["Anna", "Anna Lindqvist", "anna@example.com", "SE"]);
        let text = "row 3: \"Anna Lindqvist\" <anna@example.com> of SE is not windows-1252";
        assert_eq!(handed.without(text), "row 3: \"(a value)\" <(a value)> of SE is not windows-1252");
    }

    #[test]
    fn plg_08_what_is_remembered_is_bounded_and_the_newest_stays() {
        let mut handed = handed(&["the first value"]);
        handed.remember(&[vec![Value::Text("x".repeat(MOST_BYTES)), Value::Text("the last value".to_owned())]]);
        assert_eq!(handed.without("the first value, the last value"), "the first value, (a value)");
        assert!(handed.bytes <= MOST_BYTES);
    }
}
