//! PostgreSQL's own client: it fills the customer database, holds a lock in it, and computes what must have been
//! delivered. What it says does not rest on the host's code.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context as _, bail};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::{Child, ChildStdin, Command};

use crate::embedded::postgres::{Address, SUPERUSER};

/// One database, as `psql` reaches it.
#[derive(Debug, Clone)]
pub(super) struct Psql {
    program: PathBuf,
    address: Address,
    database: String,
}

impl Psql {
    pub fn new(address: Address, database: &str) -> Self {
        Self { program: program(), address, database: database.to_owned() }
    }

    /// Another database of the same server.
    pub fn on(&self, database: &str) -> Self {
        Self { database: database.to_owned(), ..self.clone() }
    }

    /// Runs a script and returns what it printed: rows as lines, fields separated by tabs. In the script `:'name'` is a
    /// variable's value, quoted.
    pub async fn run(&self, script: &str, variables: &[(&str, &str)]) -> anyhow::Result<String> {
        let mut child = self.start(variables)?;
        let mut stdin = child.stdin.take().context("psql has no standard input")?;
        let feed = async move {
            // psql that stops at an error closes its end; its own message is the one that counts.
            let _ = stdin.write_all(script.as_bytes()).await;
            drop(stdin);
        };
        let ((), output) = tokio::join!(feed, child.wait_with_output());
        let output = output.context("psql was lost")?;
        if !output.status.success() {
            bail!("psql refused a script: {}", String::from_utf8_lossy(&output.stderr).trim());
        }
        Ok(String::from_utf8_lossy(&output.stdout).trim_end_matches('\n').to_owned())
    }

    /// A session that keeps what the script locked, until it is released or dropped.
    pub async fn hold(&self, script: &str) -> anyhow::Result<Held> {
        let mut child = self.start(&[])?;
        let mut stdin = child.stdin.take().context("psql has no standard input")?;
        stdin.write_all(format!("BEGIN;\n{script}\nSELECT 'held';\n").as_bytes()).await.context("psql was lost")?;
        let stdout = child.stdout.take().context("psql has no standard output")?;
        let mut lines = BufReader::new(stdout).lines();
        match lines.next_line().await.context("psql was lost")? {
            Some(line) if line == "held" => Ok(Held { child, stdin }),
            other => bail!("psql could not take a lock; it said {other:?}"),
        }
    }

    fn start(&self, variables: &[(&str, &str)]) -> anyhow::Result<Child> {
        let mut command = Command::new(&self.program);
        command.args(["-X", "-q", "-A", "-t", "-F", "\t", "-v", "ON_ERROR_STOP=1", "-f", "-"]);
        for (name, value) in variables {
            command.arg("-v").arg(format!("{name}={value}"));
        }
        command.arg("-h").arg(&self.address.socket_directory).arg("-p").arg(self.address.port.to_string());
        command.args(["-U", SUPERUSER, "-d", &self.database]);
        for inherited in ["PGOPTIONS", "PGSERVICE", "PGDATABASE", "PGHOST", "PGPORT", "PGUSER"] {
            command.env_remove(inherited);
        }
        command.env("PGCLIENTENCODING", "UTF8").current_dir("/").process_group(0).kill_on_drop(true);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().with_context(|| {
            format!("{} could not be run; install it (Debian, Ubuntu: `apt-get install postgresql-client`)", self.program.display())
        })
    }
}

/// A session of `psql` in a transaction.
pub(super) struct Held {
    child: Child,
    stdin: ChildStdin,
}

impl Held {
    /// Commits, and lets go of the locks.
    pub async fn release(mut self) -> anyhow::Result<()> {
        self.stdin.write_all(b"COMMIT;\n").await.context("psql was lost")?;
        drop(self.stdin);
        let ended = self.child.wait().await.context("psql was lost")?;
        if !ended.success() {
            bail!("psql ended with {ended} while it held a lock");
        }
        Ok(())
    }
}

/// Debian's newest, which lies beside the server; elsewhere the one on PATH.
fn program() -> PathBuf {
    let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().filter_map(Result::ok);
    versions
        .filter_map(|entry| Some((entry.file_name().to_str()?.parse::<u32>().ok()?, entry.path().join("bin/psql"))))
        .filter(|(_, program)| program.is_file())
        .max_by_key(|(version, _)| *version)
        .map_or_else(|| Path::new("psql").to_owned(), |(_, program)| program)
}
