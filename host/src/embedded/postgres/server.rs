//! Start, readiness, death and stop of the private server.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};
use rustix::process::Signal;
use tokio::process::{Child, Command};

use super::account::{self, Account};
use super::postmaster::{self, Address};
use super::{PostgresError, SUPERUSER, binaries, socket};
use crate::embedded::process;

/// A fast shutdown ends sessions and writes a checkpoint; a big one takes its time.
const STOP_WITHIN: Duration = Duration::from_secs(60);
/// After that an immediate shutdown, whose next start replays the log. Nothing committed is lost by it.
const STOP_AT_ONCE_WITHIN: Duration = Duration::from_secs(10);

/// How careful the server is with what it acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// What is committed survives a power cut.
    Full,
    /// For tests: a power cut may destroy the data directory.
    None,
}

#[derive(Debug, Clone)]
pub struct Settings {
    /// Everything of this server is below it: data, socket, log, lock. Made when missing.
    pub directory: PathBuf,
    /// The directory of `initdb` and `postgres`; found by itself when `None`.
    pub programs: Option<PathBuf>,
    pub durability: Durability,
    pub max_connections: u32,
    /// How long a start may take. Replaying the log after a crash belongs to it.
    pub ready_within: Duration,
}

impl Settings {
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        Self {
            directory: directory.into(),
            programs: None,
            durability: Durability::Full,
            max_connections: 100,
            ready_within: Duration::from_secs(120),
        }
    }

    fn data(&self) -> PathBuf {
        self.directory.join("data")
    }

    fn log(&self) -> PathBuf {
        self.directory.join("log")
    }
}

/// A running server. Dropping it stops it and blocks for that time; [`Postgres::stop`] does the same and reports.
#[derive(Debug)]
#[must_use = "the server stops when this is dropped"]
pub struct Postgres {
    settings: Settings,
    address: Address,
    child: Child,
    pid: u32,
    stops_on_drop: bool,
    /// Held, not read: the kernel releases it with this process.
    _lock: fs::File,
}

impl Postgres {
    /// Starts the server of a directory, after ending one that a killed process left behind there.
    pub async fn start(settings: &Settings) -> Result<Self, PostgresError> {
        let mut settings = settings.clone();
        fs::create_dir_all(&settings.directory).map_err(PostgresError::io("make", &settings.directory))?;
        // An absolute path: the server changes its working directory, and its command line is how it is found again.
        settings.directory =
            fs::canonicalize(&settings.directory).map_err(PostgresError::io("resolve", &settings.directory))?;
        let account = account::for_this_process()?;
        process::private_directory(&settings.directory)
            .map_err(PostgresError::io("close to others", &settings.directory))?;
        if let Some(account) = &account {
            account.check_reaches(&settings.directory)?;
            account.give(&settings.directory)?;
        }
        let lock = lock(&settings.directory)?;
        stop_left_behind(&settings.directory)?;
        let programs = binaries::find(settings.programs.as_deref(), &settings.data())?;
        initialise(&settings, &programs, account.as_ref()).await?;
        let socket_directory = socket::prepare(&settings.directory, account.as_ref(), &std::env::temp_dir())?;
        let address = Address { socket_directory, port: socket::PORT };
        let child = spawn(&settings, &programs, account.as_ref(), &address)?;
        let pid = child.id().ok_or_else(|| PostgresError::Died {
            directory: settings.directory.clone(),
            how: "at once".to_owned(),
            log: process::last_lines(&settings.log()),
        })?;
        let mut server = Self { settings, address, child, pid, stops_on_drop: true, _lock: lock };
        server.wait_ready().await?;
        Ok(server)
    }

    pub fn address(&self) -> &Address {
        &self.address
    }

    /// Waits until the server ends by itself, and says how: what a host that cannot go on without it selects on.
    pub async fn died(&mut self) -> PostgresError {
        match self.child.wait().await {
            Ok(status) => self.death(&status.to_string()),
            Err(source) => PostgresError::Io { what: "wait for", path: self.settings.directory.clone(), source },
        }
    }

    /// A fast shutdown: sessions end, committed work is kept.
    pub async fn stop(mut self) -> Result<(), PostgresError> {
        self.stops_on_drop = false;
        let cannot = |source| PostgresError::Io { what: "stop", path: self.settings.directory.clone(), source };
        for (request, bound) in
            [(Signal::INT, STOP_WITHIN), (Signal::QUIT, STOP_AT_ONCE_WITHIN), (Signal::KILL, STOP_AT_ONCE_WITHIN)]
        {
            process::signal(self.pid, request).map_err(cannot)?;
            if let Ok(ended) = tokio::time::timeout(bound, self.child.wait()).await {
                ended.map_err(cannot)?;
                return Ok(());
            }
        }
        Err(PostgresError::LeftBehind { directory: self.settings.directory.clone(), pid: self.pid })
    }

    /// Lets the server outlive this process, for others that find it by [`running`].
    pub fn leave_running(mut self) -> Address {
        self.stops_on_drop = false;
        self.address.clone()
    }

    async fn wait_ready(&mut self) -> Result<(), PostgresError> {
        let start = Instant::now();
        loop {
            match self.child.try_wait() {
                Ok(None) => {}
                Ok(Some(status)) => return Err(self.death(&status.to_string())),
                Err(source) => {
                    return Err(PostgresError::Io { what: "wait for", path: self.settings.directory.clone(), source });
                }
            }
            let found = postmaster::find(&self.settings.data());
            if found.is_some_and(|found| found.pid == self.pid && found.ready) {
                return Ok(());
            }
            if start.elapsed() > self.settings.ready_within {
                return Err(PostgresError::NotReady {
                    directory: self.settings.directory.clone(),
                    bound: self.settings.ready_within,
                    log: process::last_lines(&self.settings.log()),
                });
            }
            tokio::time::sleep(process::LOOK_AGAIN).await;
        }
    }

    fn death(&self, how: &str) -> PostgresError {
        PostgresError::Died {
            directory: self.settings.directory.clone(),
            how: how.to_owned(),
            log: process::last_lines(&self.settings.log()),
        }
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        if !self.stops_on_drop || !matches!(self.child.try_wait(), Ok(None)) {
            return;
        }
        if let Err(error) = stop_process(&self.settings.directory, self.pid) {
            tracing::error!(error = &error as &dyn std::error::Error, "the private PostgreSQL was not stopped");
        }
    }
}

/// The ready server of a directory, whoever started it.
pub fn running(directory: &Path) -> Option<Address> {
    let data = fs::canonicalize(directory).ok()?.join("data");
    postmaster::find(&data).filter(|found| found.ready)?.address
}

/// Stops the server of a directory that was left running. Answers whether one ran.
pub fn stop_running(directory: &Path) -> Result<bool, PostgresError> {
    let Ok(directory) = fs::canonicalize(directory) else { return Ok(false) };
    let _lock = lock(&directory)?;
    stop_left_behind(&directory)
}

fn lock(directory: &Path) -> Result<fs::File, PostgresError> {
    let path = directory.join("lock");
    let file = fs::File::create(&path).map_err(PostgresError::io("open", &path))?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(file),
        Err(rustix::io::Errno::WOULDBLOCK) => Err(PostgresError::InUse { directory: directory.to_owned() }),
        Err(error) => Err(PostgresError::io("lock", path)(error.into())),
    }
}

/// Only with the lock in hand: then whoever started this server is gone, or has let it go.
fn stop_left_behind(directory: &Path) -> Result<bool, PostgresError> {
    let Some(found) = postmaster::find(&directory.join("data")) else { return Ok(false) };
    tracing::info!(pid = found.pid, directory = %directory.display(), "stopping the PostgreSQL that an earlier run left");
    stop_process(directory, found.pid)?;
    Ok(true)
}

fn stop_process(directory: &Path, pid: u32) -> Result<(), PostgresError> {
    for (request, bound) in
        [(Signal::INT, STOP_WITHIN), (Signal::QUIT, STOP_AT_ONCE_WITHIN), (Signal::KILL, STOP_AT_ONCE_WITHIN)]
    {
        process::signal(pid, request).map_err(PostgresError::io("stop the server in", directory))?;
        if process::wait_gone(pid, bound) {
            return Ok(());
        }
    }
    Err(PostgresError::LeftBehind { directory: directory.to_owned(), pid })
}

/// Made beside its place and moved there when whole, so that an interrupted first start leaves nothing half-made.
async fn initialise(settings: &Settings, programs: &Path, account: Option<&Account>) -> Result<(), PostgresError> {
    let data = settings.data();
    if data.join("PG_VERSION").is_file() {
        return Ok(());
    }
    let unfinished = settings.directory.join("data.unfinished");
    if unfinished.exists() {
        fs::remove_dir_all(&unfinished).map_err(PostgresError::io("remove", &unfinished))?;
    }
    let mut command = command(programs, "initdb", account);
    command.args(["--auth=trust", "--encoding=UTF8", "--locale=C", "--username", SUPERUSER, "--pgdata"]);
    command.arg(&unfinished);
    if settings.durability == Durability::None {
        command.arg("--no-sync");
    }
    let output = command.output().await.map_err(PostgresError::io("run", programs.join("initdb")))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        return Err(PostgresError::InitFailed { data, said });
    }
    fs::rename(&unfinished, &data).map_err(PostgresError::io("move into place", &data))
}

fn spawn(
    settings: &Settings,
    programs: &Path,
    account: Option<&Account>,
    address: &Address,
) -> Result<Child, PostgresError> {
    let log_path = settings.log();
    let mut log = fs::OpenOptions::new()
        .create(true)
        .append(true)
        .open(&log_path)
        .map_err(PostgresError::io("open", &log_path))?;
    writeln!(log, "-- started by waybill").map_err(PostgresError::io("write", &log_path))?;
    let errors = log.try_clone().map_err(PostgresError::io("open", &log_path))?;
    let mut command = command(programs, "postgres", account);
    command.arg("-D").arg(settings.data()).arg("-k").arg(&address.socket_directory);
    for (name, value) in [
        ("listen_addresses", String::new()),
        ("port", address.port.to_string()),
        ("unix_socket_permissions", "0700".to_owned()),
        ("max_connections", settings.max_connections.to_string()),
        ("log_line_prefix", "%m [%p] %q%u@%d ".to_owned()),
        ("timezone", "UTC".to_owned()),
    ] {
        command.arg("-c").arg(format!("{name}={value}"));
    }
    if settings.durability == Durability::None {
        command.args(["-c", "fsync=off", "-c", "synchronous_commit=off", "-c", "full_page_writes=off"]);
    }
    // A group of its own: a terminal's Ctrl-C is for the host, which stops the server last.
    command.process_group(0).stdout(log).stderr(errors);
    command.spawn().map_err(PostgresError::io("run", programs.join("postgres")))
}

fn command(programs: &Path, program: &str, account: Option<&Account>) -> Command {
    let mut command = Command::new(programs.join(program));
    command.current_dir("/").env("LC_ALL", "C").stdin(Stdio::null());
    for inherited in ["PGDATA", "PGHOST", "PGPORT", "PGUSER", "PGDATABASE", "PGOPTIONS"] {
        command.env_remove(inherited);
    }
    if let Some(account) = account {
        command.uid(account.uid).gid(account.gid);
    }
    command
}
