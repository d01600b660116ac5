//! Start, stop, start again, and what the server has to tell.

use std::fs;
use std::io;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use tokio::io::AsyncReadExt;
use tokio::process::{Child, Command};

use super::{OpenSshError, client, configuration};
use crate::embedded::process;

const READY_WITHIN: Duration = Duration::from_secs(20);
const GONE_WITHIN: Duration = Duration::from_secs(10);
/// Between choosing a free port and binding it another process may take it.
const PORTS_TO_TRY: u32 = 8;

#[derive(Debug, Clone)]
pub struct Settings {
    /// Keys, configuration and logs. Made when missing, closed to others.
    pub directory: PathBuf,
    /// Where a session starts: what relative names are relative to. Made when missing.
    pub files: PathBuf,
    /// A free one is chosen when `None`.
    pub port: Option<u16>,
}

/// A server, up or down. Dropping it ends the server and every session.
#[derive(Debug)]
#[must_use = "the server ends when this is dropped"]
pub struct OpenSsh {
    settings: Settings,
    user: String,
    port: u16,
    up: Option<Child>,
}

impl OpenSsh {
    /// Starts the server, after ending one that a killed process left in the same directory.
    pub async fn start(settings: &Settings) -> Result<Self, OpenSshError> {
        let mut settings = settings.clone();
        process::private_directory(&settings.directory).map_err(OpenSshError::io("make", &settings.directory))?;
        fs::create_dir_all(&settings.files).map_err(OpenSshError::io("make", &settings.files))?;
        for path in [&mut settings.directory, &mut settings.files] {
            *path = fs::canonicalize(&*path).map_err(OpenSshError::io("resolve", &*path))?;
        }
        end_left_behind(&settings.directory)?;
        configuration::make_keys(&settings.directory).await?;
        let fixed = settings.port;
        let user = configuration::own_user()?;
        let mut server = Self { settings, user, port: fixed.unwrap_or_default(), up: None };
        for _ in 0..PORTS_TO_TRY {
            if fixed.is_none() {
                server.port = free_port()?;
            }
            match server.start_again().await {
                Err(OpenSshError::PortTaken { .. }) if fixed.is_none() => {}
                Err(error) => return Err(error),
                Ok(()) => return Ok(server),
            }
        }
        Err(OpenSshError::NoPort { tries: PORTS_TO_TRY })
    }

    /// Up again, on the same port, with the same keys and files.
    pub async fn start_again(&mut self) -> Result<(), OpenSshError> {
        if self.up.is_some() {
            return Ok(());
        }
        configuration::write(&self.settings, self.port)?;
        let log = self.log();
        fs::write(&log, "").map_err(OpenSshError::io("empty", &log))?;
        let sshd = configuration::sshd()?;
        let child = Command::new(&sshd)
            .args(["-D", "-f"])
            .arg(configuration::path(&self.settings.directory))
            .arg("-E")
            .arg(&log)
            // A group of its own: a terminal's Ctrl-C is for whoever holds the handle.
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(OpenSshError::io("run", sshd))?;
        if let Some(pid) = child.id() {
            let path = pid_file(&self.settings.directory);
            fs::write(&path, pid.to_string()).map_err(OpenSshError::io("write", path))?;
        }
        self.up = Some(child);
        self.wait_ready().await
    }

    /// Down, with every session: what a partner's outage looks like.
    pub async fn stop(&mut self) -> Result<(), OpenSshError> {
        let Some(mut child) = self.up.take() else { return Ok(()) };
        let Some(pid) = child.id() else { return Ok(()) };
        process::kill_tree(pid).map_err(OpenSshError::io("end the server of", &self.settings.directory))?;
        match tokio::time::timeout(GONE_WITHIN, child.wait()).await {
            Ok(ended) => ended.map(drop).map_err(OpenSshError::io("wait for the server of", &self.settings.directory)),
            Err(_) => Err(OpenSshError::DoesNotEnd { directory: self.settings.directory.clone(), pid }),
        }
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// The account that a client logs in to: the one that runs this process.
    pub fn user(&self) -> &str {
        &self.user
    }

    /// Where a session starts.
    pub fn files(&self) -> &Path {
        &self.settings.files
    }

    /// The private key of the one client that the server lets in.
    pub fn client_key(&self) -> PathBuf {
        self.settings.directory.join(configuration::CLIENT_KEY)
    }

    /// The server's public key as it stands in a `known_hosts` line: algorithm and key.
    pub fn host_key(&self) -> Result<String, OpenSshError> {
        configuration::public_key(&self.settings.directory.join(configuration::HOST_KEY))
    }

    /// What `sftp-server` says that clients did, one line an operation, in the order in which it did them.
    pub fn operations(&self) -> Result<String, OpenSshError> {
        let path = self.settings.directory.join(configuration::OPERATIONS);
        fs::read(&path)
            .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
            .map_err(OpenSshError::io("read", path))
    }

    /// A file's bytes, fetched by OpenSSH's own client: proof that does not rest on our own code.
    pub async fn fetch(&self, remote: &str) -> Result<Vec<u8>, OpenSshError> {
        client::fetch(self, remote).await
    }

    /// Puts a file there with OpenSSH's own client, as somebody else would.
    pub async fn put(&self, bytes: &[u8], remote: &str) -> Result<(), OpenSshError> {
        client::put(self, bytes, remote).await
    }

    /// Whole directories, hidden files too, fetched by OpenSSH's own client in one session.
    pub async fn mirror(&self, remote: &[&str], local: &Path) -> Result<(), OpenSshError> {
        client::mirror(self, remote, local).await
    }

    fn log(&self) -> PathBuf {
        self.settings.directory.join("sshd.log")
    }

    /// Its own log says that it listens, so what answers on the port is this server; then the banner must come.
    async fn wait_ready(&mut self) -> Result<(), OpenSshError> {
        let start = Instant::now();
        let listens = format!("Server listening on 127.0.0.1 port {}", self.port);
        loop {
            let log = process::last_lines(&self.log());
            if log.contains(&listens) && banner(self.port).await {
                return Ok(());
            }
            let ended = match self.up.as_mut().map(Child::try_wait) {
                Some(Ok(Some(status))) => Some(status.to_string()),
                Some(Ok(None)) => None,
                Some(Err(error)) => Some(error.to_string()),
                None => Some("it was stopped".to_owned()),
            };
            if let Some(how) = ended {
                self.up = None;
                let log = process::last_lines(&self.log());
                return Err(if log.contains("Address already in use") {
                    OpenSshError::PortTaken { port: self.port }
                } else {
                    OpenSshError::NotStarted { how, log }
                });
            }
            if start.elapsed() > READY_WITHIN {
                let how = format!("not ready within {} seconds", READY_WITHIN.as_secs());
                return Err(OpenSshError::NotStarted { how, log });
            }
            tokio::time::sleep(process::LOOK_AGAIN).await;
        }
    }
}

impl Drop for OpenSsh {
    fn drop(&mut self) {
        let Some(mut child) = self.up.take() else { return };
        let Some(pid) = child.id() else { return };
        let killed = process::kill_tree(pid);
        let gone = process::wait_gone(pid, GONE_WITHIN);
        if killed.is_err() || !gone || child.try_wait().is_err() {
            tracing::error!(pid, "the private sshd was not ended");
        }
    }
}

/// Ends the server that a killed process left behind in a directory.
pub fn end_left_behind(directory: &Path) -> Result<(), OpenSshError> {
    let path = pid_file(directory);
    let Ok(text) = fs::read_to_string(&path) else { return Ok(()) };
    let Ok(pid) = text.trim().parse::<u32>() else { return Ok(()) };
    // Process ids come again: only the sshd with this very configuration is ours.
    let command = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let command = String::from_utf8_lossy(&command);
    if !command.contains(&*configuration::path(directory).to_string_lossy()) {
        return Ok(());
    }
    process::kill_tree(pid).map_err(OpenSshError::io("end the server of", directory))?;
    if process::wait_gone(pid, GONE_WITHIN) {
        Ok(())
    } else {
        Err(OpenSshError::DoesNotEnd { directory: directory.to_owned(), pid })
    }
}

fn pid_file(directory: &Path) -> PathBuf {
    directory.join("sshd.pid")
}

fn free_port() -> Result<u16, OpenSshError> {
    std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
        .and_then(|listener| listener.local_addr())
        .map(|address| address.port())
        .map_err(OpenSshError::io("bind a port on", "127.0.0.1"))
}

async fn banner(port: u16) -> bool {
    let read = async {
        let mut stream = tokio::net::TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await?;
        let mut start = [0_u8; 8];
        stream.read_exact(&mut start).await?;
        io::Result::Ok(start == *b"SSH-2.0-")
    };
    matches!(tokio::time::timeout(READY_WITHIN, read).await, Ok(Ok(true)))
}
