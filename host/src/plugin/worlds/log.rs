//! `log`: a guest's messages, as the guest's, bounded in length and number.

use super::{About, State};
use crate::plugin::bindings::log::{Host, Level};

/// Messages of one call that are written.
const MESSAGES: u32 = 200;
/// A line of a standard stream that is longer is cut here.
const LINE_BYTES: usize = 8192;

/// What Python's runtime adds to a traceback: where it gave up itself, and advice that nobody can follow.
pub(super) const RUNTIMES_OWN: &str = "\nthread '<unnamed>' panicked at runtime/";

/// The log of one call.
pub(super) struct Log {
    about: About,
    written: u32,
    dropped: u64,
    last_error: Option<String>,
    /// What was said as an error past the last message that is written, as it came. Few of these are ever asked for.
    unsettled: Vec<String>,
    /// The beginning of a line of a standard stream.
    line: String,
}

impl Log {
    pub(super) fn new(about: About) -> Self {
        Self { about, written: 0, dropped: 0, last_error: None, unsettled: Vec::new(), line: String::new() }
    }

    pub(super) fn last_error(&self) -> Option<&str> {
        self.last_error.as_deref()
    }

    /// True if nothing more is written.
    fn is_full(&self) -> bool {
        self.written >= MESSAGES
    }

    /// The message is as it may be kept.
    fn write(&mut self, level: Level, message: String) {
        self.written += 1;
        self.emit(level, &message);
        if level == Level::Error {
            self.last_error = Some(message);
        }
    }

    /// A line of a standard stream. The lines of standard error are one message: a traceback says nothing by its last line.
    fn write_line(&mut self, level: Level, line: String) {
        let before = if level == Level::Error { self.last_error.take() } else { None };
        self.write(level, line);
        if let Some(before) = before {
            self.last_error = self.last_error.take().map(|last| joined(before, &last));
        }
    }

    /// Counts a message that is not written. Its text counts only as the last error, and is kept as it came.
    fn drop_message(&mut self, level: Level, message: &str, of_a_stream: bool) {
        self.dropped += 1;
        if level != Level::Error {
            return;
        }
        if !of_a_stream {
            self.last_error = None;
            self.unsettled.clear();
        }
        if self.unsettled.iter().map(String::len).sum::<usize>() < LINE_BYTES {
            let mut kept = super::beginning(message).to_owned();
            if kept.len() < message.len() {
                // So that it is seen again that it was cut.
                kept.push('…');
            }
            self.unsettled.push(kept);
        }
    }

    /// The whole lines of what a runtime wrote to a standard stream; it comes in pieces.
    pub(super) fn lines(&mut self, text: &str) -> Vec<String> {
        let mut lines = Vec::new();
        for piece in text.split_inclusive('\n') {
            self.line.push_str(piece);
            if piece.ends_with('\n') || self.line.len() > LINE_BYTES {
                lines.push(std::mem::take(&mut self.line));
            }
        }
        lines.retain(|line| !line.trim().is_empty());
        lines
    }

    fn emit(&self, level: Level, message: &str) {
        let About { partner, call, job, attempt } = &self.about;
        match level {
            Level::Debug => tracing::debug!(target: "guest", %partner, call, %job, %attempt, guest = message),
            Level::Info => tracing::info!(target: "guest", %partner, call, %job, %attempt, guest = message),
            Level::Warn => tracing::warn!(target: "guest", %partner, call, %job, %attempt, guest = message),
            Level::Error => tracing::error!(target: "guest", %partner, call, %job, %attempt, guest = message),
        }
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        if self.dropped > 0 {
            let About { partner, call, job, attempt } = &self.about;
            tracing::warn!(%partner, call, %job, %attempt, dropped = self.dropped, "a plugin logged more than {MESSAGES} messages in one call; the rest was dropped");
        }
    }
}

/// Lines of one message.
fn joined(before: String, last: &str) -> String {
    if before.len() < LINE_BYTES { format!("{before}\n{last}") } else { before }
}

impl State {
    /// A guest's message, or a line of its standard streams. Counted first: what is not written is not searched for data either, or
    /// a flood of messages would be the most expensive thing that a guest can do.
    pub(super) fn say(&mut self, level: Level, message: &str, of_a_stream: bool) {
        if self.log.is_full() {
            self.log.drop_message(level, message, of_a_stream);
            return;
        }
        let message = self.words(message);
        if of_a_stream {
            self.log.write_line(level, message);
        } else {
            self.log.write(level, message);
        }
    }

    /// Takes the data out of the last error, while that data is still remembered.
    pub(super) fn settle_last_error(&mut self) {
        for message in std::mem::take(&mut self.log.unsettled) {
            let message = self.words(&message);
            self.log.last_error = Some(match self.log.last_error.take() {
                Some(before) => joined(before, &message),
                None => message,
            });
        }
    }
}

impl Host for State {
    async fn write(&mut self, level: Level, message: String) -> wasmtime::Result<()> {
        self.usage.host_call("log.write");
        self.say(level, &message, false);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::source::Value;

    fn row(text: &str) -> Vec<Vec<Value>> {
        vec![vec![Value::Text(text.to_owned())]]
    }

    #[test]
    fn plg_08_the_last_error_is_free_of_data_also_past_the_last_message_that_is_written() {
        let mut state = State::of_a_test();
        Arc::make_mut(&mut state.handed).remember(&[], &row("Anna Lindqvist"));
        for _ in 0..MESSAGES {
            state.say(Level::Error, "what came before", false);
        }
        state.say(Level::Error, "not Anna Lindqvist", false);
        state.say(Level::Info, "and not this", false);
        assert_eq!(state.log.dropped, 2);
        // Once more is handed out than is remembered, nothing could be recognised any more.
        state.settle_last_error();
        Arc::make_mut(&mut state.handed).remember(&[], &row(&"x".repeat(2 << 20)));
        assert_eq!(state.last_error().as_deref(), Some("not (a value)"));
        for line in ["Traceback:", "Anna Lindqvist"] {
            state.say(Level::Error, line, true);
        }
        assert_eq!(state.last_error().as_deref(), Some("not (a value)\nTraceback:\nAnna Lindqvist"));
    }

    #[test]
    fn plg_07_of_a_traceback_the_runtimes_own_end_is_left_out() {
        let mut state = State::of_a_test();
        for line in [
            "Traceback (most recent call last):",
            "  File \"builder.py\", line 7, in build",
            "ValueError: no amount",
            "thread '<unnamed>' panicked at runtime/src/lib.rs:1293:29:",
            "Python function threw an unexpected exception",
            "note: run with `RUST_BACKTRACE=1` environment variable to display a backtrace",
        ] {
            state.say(Level::Error, line, true);
        }
        let kept = state.last_error().unwrap();
        assert!(kept.starts_with("Traceback") && kept.ends_with("\nValueError: no amount"), "{kept}");
    }

    #[test]
    fn plg_03_what_is_kept_of_a_flood_of_errors_is_bounded() {
        let mut state = State::of_a_test();
        for _ in 0..10_000 {
            state.say(Level::Error, &"x".repeat(10_000), true);
        }
        let bytes: usize = state.log.unsettled.iter().map(String::len).sum();
        assert!(bytes <= LINE_BYTES + 2000, "{bytes}");
    }

    #[test]
    fn plg_08_a_text_that_is_cut_shows_no_half_of_a_value() {
        let mut state = State::of_a_test();
        let value = (0..100).map(|number| format!("{number:02x}")).collect::<Vec<_>>().concat();
        Arc::make_mut(&mut state.handed).remember(&[], &row(&value));
        let kept = state.words(&format!("{}{value}", value.repeat(9)));
        assert_eq!(kept, "(a value)");
        let kept = state.words(&format!("{}{value}", "a".repeat(1900)));
        assert!(kept.starts_with("aaa") && !kept.contains("00"), "{kept}");
        let text = format!("{} {value}", value.repeat(9));
        assert_eq!(state.words(&text), "…");
        for _ in 0..=MESSAGES {
            state.say(Level::Error, &text, false);
        }
        assert_eq!(state.last_error().as_deref(), Some("…"));
    }
}
