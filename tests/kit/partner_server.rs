//! SFTP servers of other makers, for one test each: their own programs on loopback, before a directory of the test's own.
//!
//! `tests/setup.sh` installs them. None is a service of the machine: each runs with a configuration written here, and ends
//! with its handle, or with the thread that started it.

use std::ffi::OsStr;
use std::fs;
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context, bail};
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;
use tokio::process::{Child, Command};

use crate::services::{self, TestDirectory};
use crate::{Reach, ssh, wait};

/// Between choosing a free port and binding it another process may take it.
const PORTS_TO_TRY: u32 = 8;
/// `ssh::PASSWORD` as crypt(3) hashes it, for `ProFTPD`'s list of accounts.
const HASHED_PASSWORD: &str = "$5$waybill$m2yRHhaBc6eE8zeza7EF00xsOVo6CsywB8wPM3yJL74";

/// Whose server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Product {
    /// With `mod_sftp`, and `AllowOverwrite` as Debian has it.
    ProFtpd,
    AsyncSsh,
    /// The stub server that Paramiko's own tests began with, as the package `sftpserver` has it.
    ParamikoStub,
    /// `rclone serve sftp`, before a local directory.
    Rclone,
}

/// A server with the directory that it serves. It ends before its directory goes, in the order of these fields.
#[derive(Debug)]
pub struct PartnerServer {
    _server: Child,
    port: u16,
    host_key: String,
    files: PathBuf,
    password: PathBuf,
    _directory: TestDirectory,
}

impl PartnerServer {
    pub async fn start(product: Product) -> anyhow::Result<Self> {
        for directory in services::left_behind("partner")? {
            services::remove(&directory)?;
        }
        let directory = TestDirectory::new("partner")?;
        let own = fs::canonicalize(directory.path())?;
        let files = own.join("files");
        fs::create_dir(&files)?;
        let host_key = make_host_key(&own).await?;
        let password = own.join("password");
        private(&password, ssh::PASSWORD)?;
        for _ in 0..PORTS_TO_TRY {
            let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port();
            let log = fs::File::create(own.join("log"))?;
            let mut server = product
                .command(&own, &files, port)?
                .env("PARTNER_USER", ssh::USER)
                .env("PARTNER_PASSWORD", ssh::PASSWORD)
                .current_dir(&own)
                .process_group(0)
                .stdin(Stdio::null())
                .stdout(log.try_clone()?)
                .stderr(log)
                .kill_on_drop(true)
                .spawn()
                .context("running setpriv, which is in Debian's util-linux")?;
            if greets(&mut server, port).await.with_context(|| format!("starting {product:?}"))? {
                return Ok(Self { _server: server, port, host_key, files, password, _directory: directory });
            }
        }
        bail!("{product:?} does not start: {}; is it installed (tests/setup.sh)?", fs::read_to_string(own.join("log"))?)
    }

    pub fn reach(&self) -> Reach {
        Reach {
            port: self.port,
            user: ssh::USER.to_owned(),
            host_key: self.host_key.clone(),
            directory: ".".to_owned(),
            secret: format!("password_file = '{}'", self.password.display()),
        }
    }

    /// The directory in which a session starts.
    pub fn files(&self) -> &Path {
        &self.files
    }
}

impl Product {
    fn command(self, own: &Path, files: &Path, port: u16) -> anyhow::Result<Command> {
        let key = own.join("host_key");
        Ok(match self {
            Self::ProFtpd => {
                let configuration = proftpd(own, files, port)?;
                let mut command = bound_to_the_test("/usr/sbin/proftpd");
                command.args(["--nodaemon", "--quiet", "--config"]).arg(configuration);
                command
            }
            Self::AsyncSsh | Self::ParamikoStub => {
                let mut command =
                    python(if self == Self::AsyncSsh { "asyncssh_partner.py" } else { "paramiko_partner.py" });
                command.arg(port.to_string()).arg(key).arg(files);
                command
            }
            Self::Rclone => {
                let mut command = bound_to_the_test("rclone");
                command.env("RCLONE_USER", ssh::USER).env("RCLONE_PASS", ssh::PASSWORD);
                command.args(["serve", "sftp"]).arg(files).args(["--addr", &format!("127.0.0.1:{port}")]);
                command.arg("--key").arg(key).arg("--config").arg(own.join("rclone.conf"));
                // Without it the keys of whoever runs the test would be let in.
                command.args(["--authorized-keys", ""]).arg("--cache-dir").arg(own.join("cache"));
                command
            }
        })
    }
}

/// A program that ends with the thread that starts it, also where a test is killed.
fn bound_to_the_test(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL", "--"]).arg(program);
    command
}

/// A script of `tests/servers`, with the packages that `tests/setup.sh` installs.
pub(crate) fn python(script: &str) -> Command {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut command = bound_to_the_test(tests.with_file_name("target/servers/python/bin/python"));
    command.arg("-B").arg(tests.join("servers").join(script));
    command
}

/// One account, with the rights of whoever runs the test.
fn proftpd(own: &Path, files: &Path, port: u16) -> anyhow::Result<PathBuf> {
    let (uid, gid) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    let accounts = own.join("accounts");
    private(&accounts, &format!("{}:{HASHED_PASSWORD}:{uid}:{gid}::{}:/bin/sh\n", ssh::USER, files.display()))?;
    let groups = own.join("groups");
    private(&groups, &format!("partner:x:{gid}:\n"))?;
    let configuration = own.join("proftpd.conf");
    let own = own.display();
    fs::write(
        &configuration,
        format!(
            "ModulePath /usr/lib/proftpd\nLoadModule mod_sftp.c\nServerName partner\nServerType standalone\n\
             UseIPv6 off\nDefaultAddress 127.0.0.1\nSocketBindTight on\nPort {port}\nRootLogin on\n\
             RequireValidShell off\nUseFtpUsers off\nAuthOrder mod_auth_file.c\nAuthUserFile {own}/accounts\n\
             AuthGroupFile {own}/groups\nWtmpLog off\nUseReverseDNS off\nAllowOverwrite on\nTransferLog none\n\
             SystemLog {own}/system.log\nPidFile {own}/pid\nScoreboardFile {own}/scoreboard\nDelayEngine off\nControlsEngine off\n\
             SFTPEngine on\nSFTPHostKey {own}/host_key\nSFTPAuthMethods password\nSFTPLog {own}/sftp.log\n"
        ),
    )?;
    Ok(configuration)
}

/// Waits for the server's greeting. False: it ended before it gave one.
async fn greets(server: &mut Child, port: u16) -> anyhow::Result<bool> {
    wait::until("the server's greeting", async || {
        if server.try_wait()?.is_some() {
            return Ok(Some(false));
        }
        let Ok(mut line) = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await else { return Ok(None) };
        let mut greeting = [0; 4];
        Ok((line.read_exact(&mut greeting).await.is_ok() && &greeting == b"SSH-").then_some(true))
    })
    .await
}

async fn make_host_key(own: &Path) -> anyhow::Result<String> {
    let key = own.join("host_key");
    let made =
        Command::new("ssh-keygen").args(["-q", "-t", "ed25519", "-N", "", "-C", "partner", "-f"]).arg(&key).output();
    let made = made.await.context("running ssh-keygen")?;
    anyhow::ensure!(made.status.success(), "ssh-keygen failed: {}", String::from_utf8_lossy(&made.stderr));
    let text = fs::read_to_string(key.with_extension("pub"))?;
    Ok(text.split_whitespace().take(2).collect::<Vec<_>>().join(" "))
}

/// A file for its owner's eyes only.
pub(crate) fn private(path: &Path, text: &str) -> anyhow::Result<()> {
    fs::write(path, text)?;
    Ok(fs::set_permissions(path, fs::Permissions::from_mode(0o600))?)
}
