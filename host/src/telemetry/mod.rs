//! Logs: one line a transition, after its commit. Text for people at a terminal, JSON for collectors.

use std::io::IsTerminal as _;

use tracing_subscriber::EnvFilter;

/// How logs are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    Text,
    Json,
}

/// Starts logging to standard error. `filter` is in the syntax of `RUST_LOG`; an unusable one is reported and `info` taken.
pub fn start(format: LogFormat, filter: &str) {
    // Host keys, handshakes and statements of the libraries are noise at `info`.
    let quiet = "russh=warn,russh_sftp=off,sqlx=warn,wasmtime=warn,cranelift=warn";
    let (filter, wrong) = match EnvFilter::try_new(format!("{quiet},{filter}")) {
        Ok(filter) => (filter, None),
        Err(error) => (EnvFilter::new(format!("{quiet},info")), Some(error)),
    };
    let colours = std::io::stderr().is_terminal();
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_ansi(colours).with_writer(std::io::stderr);
    let started = match format {
        LogFormat::Text => builder.try_init(),
        LogFormat::Json => builder.json().flatten_event(true).try_init(),
    };
    if let (Ok(()), Some(error)) = (started, wrong) {
        tracing::warn!(%error, "the log filter cannot be used; logging at info");
    }
}
