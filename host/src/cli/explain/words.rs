//! Small words that every sentence needs.

use std::time::Duration;

use time::OffsetDateTime;

use crate::cli::words::counted;
use crate::job::status::{FailureReason, Status};
use crate::store::DestinationPause;

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
    stopped(&format!("{}{}", first.to_uppercase(), letters.as_str()))
}

/// Others' words with one mark at their end: their own, or a full stop.
pub(in crate::cli) fn stopped(text: &str) -> String {
    let text = text.trim_end_matches(['.', ' ']);
    let stop = if text.is_empty() || text.ends_with(['?', '!', '…']) { "" } else { "." };
    format!("{text}{stop}")
}

/// Several things in one sentence. After a question or an exclamation a new sentence begins.
pub(super) fn joined(things: &[String]) -> String {
    let mut said = String::new();
    for thing in things.iter().map(|thing| thing.trim_end_matches(['.', ' '])) {
        let new_sentence = said.ends_with(['?', '!']);
        let mut letters = thing.chars();
        match letters.next() {
            Some(first) if new_sentence => said.extend([' '].into_iter().chain(first.to_uppercase()).chain(letters)),
            Some(_) if said.is_empty() => said.push_str(thing),
            Some(_) => said.extend(["; ", thing]),
            None => {}
        }
    }
    stopped(&said)
}

/// Why the jobs of a paused destination wait. Which of the two was not reached is not recorded with it.
pub(in crate::cli) fn paused(pause: &DestinationPause) -> String {
    let left = pause.left.as_secs() + u64::from(pause.left.subsec_nanos() > 0);
    let again = if left == 0 { "tried again now".to_owned() } else { format!("tried again in {left} s") };
    format!("the partner or a query's database was not reached, {} in a row; {again}", counted(pause.failures, "time"))
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
pub(in crate::cli) fn bounded(text: &str, most: usize) -> String {
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
        assert_eq!(sentence("is it there?"), "Is it there?");
        assert_eq!(sentence(""), "");
    }

    #[test]
    fn cli_01_others_words_get_one_mark_and_no_second_one() {
        for (text, said) in [
            ("it is off", "it is off."),
            ("off.", "off."),
            ("off..", "off."),
            ("off?", "off?"),
            ("of…", "of…"),
            ("", ""),
        ] {
            assert_eq!(stopped(text), said);
        }
        let joined = |things: &[&str]| joined(&things.iter().map(|&thing| thing.to_owned()).collect::<Vec<_>>());
        assert_eq!(joined(&["one.", "two", "three."]), "one; two; three.");
        assert_eq!(joined(&["is it alive?", "then two", "three"]), "is it alive? Then two; three.");
        assert_eq!(joined(&["what is it?"]), "what is it?");
    }

    #[test]
    fn cli_01_a_pause_says_no_more_than_is_recorded_of_it() {
        let pause = |failures, left| DestinationPause { failures, since: Duration::ZERO, left, probing: None };
        let said = paused(&pause(1, Duration::from_millis(14_200)));
        assert_eq!(said, "the partner or a query's database was not reached, 1 time in a row; tried again in 15 s");
        assert!(paused(&pause(3, Duration::ZERO)).ends_with("3 times in a row; tried again now"));
    }
}
