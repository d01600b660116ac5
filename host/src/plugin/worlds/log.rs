//! `log`: a guest's messages, as the guest's, bounded in length and number.

use super::{About, State};
use crate::plugin::bindings::log::{Host, Level};

/// Messages of one call that are written.
const MESSAGES: u32 = 200;
/// A line of a standard stream that is longer is cut here.
const LINE_BYTES: usize = 8192;

/// The log of one call.
pub(super) struct Log {
    about: About,
    written: u32,
    dropped: u64,
    last_error: Option<String>,
    /// The beginning of a line of a standard stream.
    line: String,
}

impl Log {
    pub(super) fn new(about: About) -> Self {
        Self { about, written: 0, dropped: 0, last_error: None, line: String::new() }
    }

    pub(super) fn last_error(&self) -> Option<&str> {
        self.last_error.as_deref()
    }

    /// The message is as it may be kept.
    pub(super) fn write(&mut self, level: Level, message: String) {
        if self.written < MESSAGES {
            self.written += 1;
            self.emit(level, &message);
        } else {
            self.dropped += 1;
        }
        if level == Level::Error {
            self.last_error = Some(message);
        }
    }

    /// A line of a standard stream. The lines of standard error are one message: a traceback says nothing by its last line.
    pub(super) fn write_line(&mut self, level: Level, line: String) {
        let before = if level == Level::Error { self.last_error.take() } else { None };
        self.write(level, line);
        if let (Some(before), Some(last)) = (before, &mut self.last_error) {
            *last = if before.len() < LINE_BYTES { format!("{before}\n{last}") } else { before };
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

impl Host for State {
    async fn write(&mut self, level: Level, message: String) -> wasmtime::Result<()> {
        self.usage.host_call("log.write");
        let message = self.words(&message);
        self.log.write(level, message);
        Ok(())
    }
}
