//! What sshd reads: its keys and its configuration file, and where its programs are.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use tokio::process::Command;

use super::{OpenSshError, Settings};

pub const HOST_KEY: &str = "host_key";
pub const CLIENT_KEY: &str = "client_key";
pub const OPERATIONS: &str = "operations.log";

/// sshd starts itself again for each connection, and insists on an absolute path.
pub fn sshd() -> Result<PathBuf, OpenSshError> {
    installed("sshd", "openssh-server", &["/usr/sbin/sshd", "/usr/local/sbin/sshd", "/sbin/sshd"])
}

fn sftp_server() -> Result<PathBuf, OpenSshError> {
    let known = ["/usr/lib/openssh/sftp-server", "/usr/libexec/openssh/sftp-server", "/usr/lib/ssh/sftp-server"];
    installed("sftp-server", "openssh-sftp-server", &known)
}

fn installed(program: &'static str, package: &'static str, known: &[&str]) -> Result<PathBuf, OpenSshError> {
    known.iter().map(PathBuf::from).find(|path| path.is_file()).ok_or(OpenSshError::NotInstalled { program, package })
}

pub fn path(directory: &Path) -> PathBuf {
    directory.join("sshd_config")
}

/// Host key and client key, made once a directory.
pub async fn make_keys(directory: &Path) -> Result<(), OpenSshError> {
    for name in [HOST_KEY, CLIENT_KEY] {
        let key = directory.join(name);
        // The public half is written last, so a pair with it is whole.
        if key.with_extension("pub").is_file() {
            continue;
        }
        if key.exists() {
            fs::remove_file(&key).map_err(OpenSshError::io("remove", &key))?;
        }
        let output = Command::new("ssh-keygen")
            .args(["-q", "-t", "ed25519", "-N", "", "-C", "waybill", "-f"])
            .arg(&key)
            .stdin(Stdio::null())
            .output()
            .await
            .map_err(|_| OpenSshError::NotInstalled { program: "ssh-keygen", package: "openssh-client" })?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
            return Err(OpenSshError::KeyFailed { key, said });
        }
    }
    let authorized = directory.join("authorized_keys");
    fs::copy(directory.join(CLIENT_KEY).with_extension("pub"), &authorized)
        .map(drop)
        .map_err(OpenSshError::io("write", authorized))
}

pub fn public_key(private: &Path) -> Result<String, OpenSshError> {
    let path = private.with_extension("pub");
    let text = fs::read_to_string(&path).map_err(OpenSshError::io("read", path))?;
    Ok(text.split_whitespace().take(2).collect::<Vec<_>>().join(" "))
}

pub fn own_user() -> Result<String, OpenSshError> {
    let uid = rustix::process::geteuid().as_raw().to_string();
    let passwd = fs::read_to_string("/etc/passwd").map_err(OpenSshError::io("read", "/etc/passwd"))?;
    Ok(passwd
        .lines()
        .find(|line| line.split(':').nth(2) == Some(&uid))
        .and_then(|line| line.split(':').next())
        .unwrap_or("root")
        .to_owned())
}

pub fn write(settings: &Settings, port: u16) -> Result<(), OpenSshError> {
    if rustix::process::geteuid().is_root() {
        // Debian's sshd, started as root, wants its empty directory, which only its service makes.
        fs::create_dir_all("/run/sshd").map_err(OpenSshError::io("make", "/run/sshd"))?;
    }
    let directory = plain(&settings.directory)?;
    let files = plain(&settings.files)?;
    let server = sftp_server()?;
    let server = plain(&server)?;
    // `-e` sends the operations to standard error; the shell appends them, one write a line.
    let text = format!(
        "ListenAddress 127.0.0.1\n\
         Port {port}\n\
         HostKey \"{directory}/{HOST_KEY}\"\n\
         AuthorizedKeysFile \"{directory}/authorized_keys\"\n\
         PidFile none\n\
         StrictModes no\n\
         UsePAM no\n\
         PubkeyAuthentication yes\n\
         PasswordAuthentication no\n\
         KbdInteractiveAuthentication no\n\
         PermitRootLogin prohibit-password\n\
         PrintMotd no\n\
         PrintLastLog no\n\
         MaxStartups 200\n\
         MaxSessions 100\n\
         LogLevel VERBOSE\n\
         Subsystem sftp {server}\n\
         ForceCommand exec '{server}' -e -l VERBOSE -d '{files}' 2>>'{directory}/{OPERATIONS}'\n"
    );
    let operations = settings.directory.join(OPERATIONS);
    fs::OpenOptions::new()
        .create(true)
        .append(true)
        .open(&operations)
        .map(drop)
        .map_err(OpenSshError::io("make", operations))?;
    let path = path(&settings.directory);
    fs::write(&path, text).map_err(OpenSshError::io("write", path))
}

/// A path that means itself in a configuration line, in the shell, and to `sftp-server -d`, which expands `%`.
fn plain(path: &Path) -> Result<&str, OpenSshError> {
    path.to_str()
        .filter(|text| !text.contains(['"', '\'', '%', '\\', '\n', '\r', '\t', '$']))
        .ok_or_else(|| OpenSshError::Unquotable { path: path.to_owned() })
}
