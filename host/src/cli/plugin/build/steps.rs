//! Running the languages' own tools: a line that says what is under way, and their output only when they fail.

use std::process::Stdio;
use std::time::Duration;

use anyhow::Context as _;
use indicatif::{ProgressBar, ProgressStyle};
use tokio::process::Command;

use crate::cli::output::Output;

/// Lines of a tool that could not install something; why is among the last.
const LINES: usize = 60;

/// Why a part was not built.
#[derive(Debug)]
pub(super) enum Fault {
    /// The author's to mend: what, and what the tool said.
    Sources { what: String, said: String },
    /// A tool is missing, or could not be installed or run.
    Tools(anyhow::Error),
}

impl From<anyhow::Error> for Fault {
    fn from(error: anyhow::Error) -> Self {
        Self::Tools(error)
    }
}

/// Shows what is under way, where a person looks.
pub(super) struct Steps {
    bar: ProgressBar,
}

impl Steps {
    pub fn new(output: Output) -> Self {
        // Drawn on standard error, and only on a terminal.
        let bar = if output.is_json() { ProgressBar::hidden() } else { ProgressBar::new_spinner() };
        if let Ok(style) = ProgressStyle::with_template("{spinner} {msg} ({elapsed})") {
            bar.set_style(style);
        }
        Self { bar }
    }

    pub fn begin(&self, what: &str) {
        self.bar.reset_elapsed();
        self.bar.set_message(what.to_owned());
        self.bar.enable_steady_tick(Duration::from_millis(120));
    }

    pub fn end(&self) {
        self.bar.finish_and_clear();
    }

    /// Runs a tool to its end. `None`: it succeeded; else what it said.
    pub async fn run(&self, what: &str, command: &mut Command) -> anyhow::Result<Option<String>> {
        self.begin(what);
        let program = command.as_std().get_program().to_string_lossy().into_owned();
        let done = command
            .stdin(Stdio::null())
            .kill_on_drop(true)
            .output()
            .await
            .with_context(|| format!("{program} cannot be run"))?;
        if done.status.success() {
            return Ok(None);
        }
        let said = [done.stdout, done.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
        let lines: Vec<&str> = said.lines().filter(|line| !line.trim().is_empty()).collect();
        Ok(Some(lines.join("\n")))
    }
}

/// The end of what a tool said.
pub(super) fn end_of(said: &str) -> String {
    let lines: Vec<&str> = said.lines().collect();
    lines.get(lines.len().saturating_sub(LINES)..).unwrap_or_default().join("\n")
}

/// True if the program is there and answers.
pub(super) async fn answers(program: &str, arguments: &[&str]) -> bool {
    says(program, arguments).await.is_some()
}

/// What the program prints, without white space around it; `None` if it is not there, or fails.
pub(super) async fn says(program: &str, arguments: &[&str]) -> Option<String> {
    let done = Command::new(program).args(arguments).stdin(Stdio::null()).kill_on_drop(true).output().await.ok()?;
    done.status.success().then(|| String::from_utf8_lossy(&done.stdout).trim().to_owned())
}
