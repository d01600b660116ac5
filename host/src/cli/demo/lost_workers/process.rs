//! A host in a process of its own: `waybill serve`, with a configuration and a log of its own.
//!
//! It can be killed and paused like any process. Dropping the handle kills it and waits until it is gone, so that a demo that
//! fails or is interrupted leaves none behind; one that a killed demo has left is ended by the next in the same directory.

use std::fs;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use anyhow::{Context as _, bail};
use rustix::process::Signal;
use tokio::process::{Child, Command};

use crate::embedded::process;

const CONFIGURATION: &str = "waybill.toml";
const LOG: &str = "log";
const PID: &str = "pid";

/// How long a process may take to end.
const GONE_WITHIN: Duration = Duration::from_secs(15);

/// A running `waybill serve`.
pub(in crate::cli::demo) struct HostProcess {
    child: Child,
    pid: u32,
    directory: PathBuf,
}

/// This program, as an operator or a service manager runs it with this configuration file.
fn waybill(configuration: &Path) -> anyhow::Result<Command> {
    let program = std::env::current_exe().context("this program's own file cannot be found")?;
    let mut command = Command::new(program);
    // The configuration file says it all.
    for name in ["CONFIG", "DATABASE_URL", "PARTNERS", "DATA", "TENANT", "AS", "LOG"] {
        command.env_remove(format!("WAYBILL_{name}"));
    }
    command.env("WAYBILL_CONFIG", configuration);
    // A group of its own: a terminal's Ctrl-C is for the demo, which then ends what it has started.
    command.process_group(0).stdin(Stdio::null()).kill_on_drop(true);
    Ok(command)
}

pub(super) fn configuration(directory: &Path) -> PathBuf {
    directory.join(CONFIGURATION)
}

impl HostProcess {
    /// Starts a host in its directory, where its configuration is.
    pub fn start(directory: &Path) -> anyhow::Result<Self> {
        let log = directory.join(LOG);
        let stdout = fs::File::create(&log).with_context(|| format!("{} cannot be made", log.display()))?;
        let stderr = stdout.try_clone().with_context(|| format!("{} cannot be written to", log.display()))?;
        let configuration = configuration(directory);
        let child = waybill(&configuration)?
            // Also as an argument, by which one that was left behind is known again.
            .arg("--config")
            .arg(&configuration)
            .arg("serve")
            .stdout(stdout)
            .stderr(stderr)
            .spawn()
            .context("a host could not be started")?;
        let pid = child.id().context("a host ended as it started")?;
        let started = Self { child, pid, directory: directory.to_owned() };
        let path = directory.join(PID);
        fs::write(&path, pid.to_string()).with_context(|| format!("{} cannot be written", path.display()))?;
        Ok(started)
    }

    pub const fn pid(&self) -> u32 {
        self.pid
    }

    pub fn log(&self) -> String {
        log_of(&self.directory)
    }

    /// Another command of this program, with this host's configuration; answers what it says to scripts.
    pub async fn ask(&self, arguments: &[&str]) -> anyhow::Result<serde_json::Value> {
        let mut command = waybill(&configuration(&self.directory))?;
        let output = command.arg("--json").args(arguments).output().await.context("a command could not be run")?;
        let (said, complaint) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        if !output.status.success() {
            bail!(
                "`waybill {}` ended with {}: {}{}",
                arguments.join(" "),
                output.status,
                said.trim(),
                complaint.trim()
            );
        }
        serde_json::from_str(&said).with_context(|| format!("`waybill {}` said {said:?}", arguments.join(" ")))
    }

    /// An error, with the end of its log, if the process has ended.
    pub fn still_runs(&self) -> anyhow::Result<()> {
        if process::exists(self.pid) && !process::is_zombie(self.pid) {
            return Ok(());
        }
        bail!("the host process {} has ended by itself; the end of its log:\n{}", self.pid, self.log())
    }

    /// SIGKILL: it cannot do or say anything any more.
    pub async fn kill(mut self) -> anyhow::Result<()> {
        self.still_runs()?;
        self.signal(Signal::KILL)?;
        let ended = self.wait().await?;
        if ended.signal() != Some(Signal::KILL.as_raw()) {
            bail!("the host process {} was to be killed, and ended with {ended}", self.pid);
        }
        Ok(())
    }

    /// SIGSTOP: it stands still, and does not know it.
    pub fn pause(&self) -> anyhow::Result<()> {
        self.still_runs()?;
        self.signal(Signal::STOP)
    }

    /// SIGCONT: it goes on where it stood.
    pub fn resume(&self) -> anyhow::Result<()> {
        self.still_runs()?;
        self.signal(Signal::CONT)
    }

    /// SIGTERM: it ends as a service manager ends it.
    pub async fn end(mut self) -> anyhow::Result<()> {
        self.still_runs()?;
        self.signal(Signal::TERM)?;
        let ended = self.wait().await?;
        if !ended.success() {
            bail!("the host process {} ended with {ended}; the end of its log:\n{}", self.pid, self.log());
        }
        Ok(())
    }

    async fn wait(&mut self) -> anyhow::Result<ExitStatus> {
        tokio::time::timeout(GONE_WITHIN, self.child.wait())
            .await
            .with_context(|| format!("the host process {} does not end", self.pid))?
            .with_context(|| format!("the host process {} cannot be waited for", self.pid))
    }

    fn signal(&self, signal: Signal) -> anyhow::Result<()> {
        process::signal(self.pid, signal)
            .with_context(|| format!("the host process {} cannot be sent a signal", self.pid))
    }
}

impl Drop for HostProcess {
    fn drop(&mut self) {
        // Waited for, it has no id any more, and its number may be another's.
        if self.child.id().is_none() {
            return;
        }
        let killed = process::signal(self.pid, Signal::KILL);
        if killed.is_err() || !process::wait_gone(self.pid, GONE_WITHIN) {
            tracing::error!(pid = self.pid, "a host of the demo was not ended");
        }
    }
}

/// The end of a host's log.
fn log_of(directory: &Path) -> String {
    process::last_lines(&directory.join(LOG))
}

/// Ends a host that a killed demo left behind in this directory.
pub(super) fn end_left_behind(directory: &Path) -> anyhow::Result<()> {
    let Ok(text) = fs::read_to_string(directory.join(PID)) else { return Ok(()) };
    let Ok(pid) = text.trim().parse::<u32>() else { return Ok(()) };
    // Process ids come again: only the host with this very configuration is ours.
    let command = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    if !String::from_utf8_lossy(&command).contains(&*configuration(directory).to_string_lossy()) {
        return Ok(());
    }
    process::signal(pid, Signal::KILL).with_context(|| format!("the host process {pid} cannot be ended"))?;
    if process::wait_gone(pid, GONE_WITHIN) { Ok(()) } else { bail!("the host process {pid} does not end") }
}
