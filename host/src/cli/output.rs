//! What commands print: text for people, JSON for scripts, one shape for errors.

use std::io::Write as _;

use serde::Serialize;

/// Where a command's answer goes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Output {
    json: bool,
}

impl Output {
    pub const fn new(json: bool) -> Self {
        Self { json }
    }

    /// True if the reader is a script.
    pub const fn is_json(self) -> bool {
        self.json
    }

    /// Prints the answer: the value for scripts, the text for people.
    pub fn answer<T: Serialize>(self, value: &T, text: impl FnOnce() -> String) -> anyhow::Result<()> {
        if self.json { line(&serde_json::to_string_pretty(value)?) } else { line(text().trim_end()) }
    }

    /// Prints one line for people only.
    pub fn say(self, text: &str) -> anyhow::Result<()> {
        if self.json { Ok(()) } else { line(text) }
    }

    /// Tells something beside the answer, on standard error. Nothing is left to do if that is closed.
    pub fn notice(self, text: &str) {
        let text = if self.json { serde_json::json!({ "notice": text }).to_string() } else { text.to_owned() };
        let _ = writeln!(std::io::stderr().lock(), "{text}");
    }

    /// Prints one of many answers, each in a line of its own. False once the reader has gone: then there is nobody to go on for.
    pub fn follow<T: Serialize>(self, value: &T, text: impl FnOnce() -> String) -> anyhow::Result<bool> {
        let text = if self.json { serde_json::to_string(value)? } else { text() };
        match written(&text) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Prints an error with its causes. Nothing is left to do if standard error is closed too.
    pub fn error(self, error: &anyhow::Error) {
        let mut causes: Vec<String> = error.chain().map(ToString::to_string).collect();
        // A library that repeats its cause in its own text would say everything twice.
        causes.dedup_by(|cause, before| before.ends_with(cause.as_str()));
        let text = if self.json {
            serde_json::json!({ "error": causes.join(": ") }).to_string()
        } else {
            format!("error: {}", causes.join(": "))
        };
        let _ = writeln!(std::io::stderr().lock(), "{text}");
    }
}

fn line(text: &str) -> anyhow::Result<()> {
    match written(text) {
        // The reader has gone, as `head` does; there is nobody to tell.
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        other => Ok(other?),
    }
}

fn written(text: &str) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{text}")?;
    out.flush()
}
