//! Small words that every sentence needs.

use std::time::Duration;

use time::OffsetDateTime;

use crate::cli::words::counted;
use crate::job::status::{FailureReason, Status};

/// A time of the database, in UTC to the second.
pub(in crate::cli) fn at(time: OffsetDateTime) -> String {
    let time = time.to_offset(time::UtcOffset::UTC);
    format!(
        "{:04}-{:02}-{:02} {:02}:{:02}:{:02}Z",
        time.year(),
        u8::from(time.month()),
        time.day(),
        time.hour(),
        time.minute(),
        time.second()
    )
}

/// `Failed/NotDelivered`, `Running`.
pub(in crate::cli) fn state(status: Status, reason: Option<FailureReason>) -> String {
    reason.map_or_else(|| status.to_string(), |reason| format!("{status}/{reason}"))
}

/// An error's text as a sentence.
pub(in crate::cli) fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    let Some(first) = letters.next() else { return String::new() };
    let rest = letters.as_str().trim_end_matches('.');
    format!("{}{rest}.", first.to_uppercase())
}

/// An agreed period, in the largest unit that has it whole.
pub(super) fn period(period: Duration) -> String {
    let seconds = period.as_secs();
    match (seconds % 86_400, seconds % 3_600) {
        (0, _) if seconds > 0 => counted(seconds / 86_400, "day"),
        (_, 0) if seconds > 0 => counted(seconds / 3_600, "hour"),
        _ => counted(seconds, "second"),
    }
}

/// The beginning of a digest.
pub(super) fn short(digest: &str) -> String {
    digest.chars().take(12).collect::<String>() + "…"
}

/// Others' words in one line of bounded length: a partner's server or a plugin may have written them, and a terminal
/// obeys what it is sent.
pub(super) fn bounded(text: &str, most: usize) -> String {
    let printable = |letter: char| if letter.is_control() { ' ' } else { letter };
    let mut short: String = text.chars().take(most).map(printable).collect();
    if text.chars().nth(most).is_some() {
        short.push('…');
    }
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn others_words_are_one_bounded_line() {
        assert_eq!(bounded("a\u{1b}[2Jb\nc", 80), "a [2Jb c");
        assert_eq!(bounded("abcdef", 3), "abc…");
        assert_eq!(bounded("äöü", 3), "äöü");
    }

    #[test]
    fn a_period_has_its_largest_whole_unit() {
        for (seconds, said) in [(1, "1 second"), (90, "90 seconds"), (3_600, "1 hour"), (172_800, "2 days")] {
            assert_eq!(period(Duration::from_secs(seconds)), said);
        }
    }

    #[test]
    fn an_errors_text_becomes_a_sentence() {
        assert_eq!(sentence("there is no such job"), "There is no such job.");
        assert_eq!(sentence("It stays."), "It stays.");
        assert_eq!(sentence(""), "");
    }
}
