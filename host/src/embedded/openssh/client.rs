//! OpenSSH's own client, for proof that does not rest on our code.

use std::path::Path;
use std::process::Stdio;

use tokio::io::AsyncWriteExt;
use tokio::process::Command;

use super::{OpenSsh, OpenSshError};

pub async fn fetch(server: &OpenSsh, remote: &str) -> Result<Vec<u8>, OpenSshError> {
    let directory = private_directory()?;
    let local = directory.path().join("fetched");
    batch(server, &format!("get {} \"{}\"\n", quoted(remote)?, local.display())).await?;
    std::fs::read(&local).map_err(OpenSshError::io("read", local))
}

pub async fn put(server: &OpenSsh, bytes: &[u8], remote: &str) -> Result<(), OpenSshError> {
    let directory = private_directory()?;
    let local = directory.path().join("put");
    std::fs::write(&local, bytes).map_err(OpenSshError::io("write", &local))?;
    batch(server, &format!("put \"{}\" {}\n", local.display(), quoted(remote)?)).await.map(drop)
}

pub async fn mirror(server: &OpenSsh, remote: &[&str], local: &Path) -> Result<(), OpenSshError> {
    std::fs::create_dir_all(local).map_err(OpenSshError::io("make", local))?;
    let mut commands = String::new();
    for directory in remote {
        commands.push_str(&format!("get -r {} \"{}\"\n", quoted(directory)?, local.display()));
    }
    batch(server, &commands).await.map(drop)
}

/// Runs commands of sftp's batch language; the first that fails ends it.
async fn batch(server: &OpenSsh, commands: &str) -> Result<String, OpenSshError> {
    let said = |said: String| OpenSshError::ClientRefused { commands: commands.trim_end().to_owned(), said };
    let directory = private_directory()?;
    let mut client = Command::new("sftp")
        .args(["-q", "-b", "-", "-F", "none", "-P", &server.port().to_string(), "-i"])
        .arg(server.client_key())
        .args(["-o", "IdentitiesOnly=yes", "-o", "StrictHostKeyChecking=yes", "-o"])
        .arg(format!("UserKnownHostsFile={}", known_hosts(server, directory.path())?))
        .arg(format!("{}@127.0.0.1", server.user()))
        // A group of its own: a terminal's Ctrl-C is for whoever waits for it.
        .process_group(0)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .map_err(|_| OpenSshError::NotInstalled { program: "sftp", package: "openssh-client" })?;
    if let Some(mut stdin) = client.stdin.take() {
        stdin.write_all(commands.as_bytes()).await.map_err(|error| said(error.to_string()))?;
    }
    let output = client.wait_with_output().await.map_err(|error| said(error.to_string()))?;
    if !output.status.success() {
        return Err(said(String::from_utf8_lossy(&output.stderr).trim().to_owned()));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn private_directory() -> Result<tempfile::TempDir, OpenSshError> {
    tempfile::tempdir().map_err(OpenSshError::io("make a directory in", std::env::temp_dir()))
}

/// A name as a batch command reads it, if it means only itself there.
fn quoted(remote: &str) -> Result<String, OpenSshError> {
    if remote.contains(['"', '\\', '\n', '*', '?', '[']) {
        let said = "the name has characters that mean something to sftp".to_owned();
        return Err(OpenSshError::ClientRefused { commands: remote.to_owned(), said });
    }
    Ok(format!("\"{remote}\""))
}

fn known_hosts(server: &OpenSsh, directory: &Path) -> Result<String, OpenSshError> {
    let path = directory.join("known_hosts");
    let line = format!("[127.0.0.1]:{} {}\n", server.port(), server.host_key()?);
    std::fs::write(&path, line).map_err(OpenSshError::io("write", &path))?;
    Ok(path.display().to_string())
}
