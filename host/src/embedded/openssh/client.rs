//! OpenSSH's own client, for proof that does not rest on our code.

use std::process::Stdio;

use tokio::io::AsyncWriteExt;
use tokio::process::Command;

use super::{OpenSsh, OpenSshError};

pub async fn fetch(server: &OpenSsh, remote: &str) -> Result<Vec<u8>, OpenSshError> {
    let said = |said: String| OpenSshError::NotFetched { remote: remote.to_owned(), said };
    if remote.contains(['"', '\\', '\n', '*', '?', '[']) {
        return Err(said("the name has characters that mean something to sftp".to_owned()));
    }
    let directory = tempfile::tempdir().map_err(OpenSshError::io("make a directory in", std::env::temp_dir()))?;
    let local = directory.path().join("fetched");
    let mut client = Command::new("sftp")
        .args(["-q", "-b", "-", "-F", "none", "-P", &server.port().to_string(), "-i"])
        .arg(server.client_key())
        .args(["-o", "IdentitiesOnly=yes", "-o", "StrictHostKeyChecking=yes", "-o"])
        .arg(format!("UserKnownHostsFile={}", known_hosts(server, directory.path())?))
        .arg(format!("{}@127.0.0.1", server.user()))
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .map_err(|_| OpenSshError::NotInstalled { program: "sftp", package: "openssh-client" })?;
    if let Some(mut stdin) = client.stdin.take() {
        let batch = format!("get \"{remote}\" \"{}\"\n", local.display());
        stdin.write_all(batch.as_bytes()).await.map_err(|error| said(error.to_string()))?;
    }
    let output = client.wait_with_output().await.map_err(|error| said(error.to_string()))?;
    if !output.status.success() {
        return Err(said(String::from_utf8_lossy(&output.stderr).trim().to_owned()));
    }
    std::fs::read(&local).map_err(OpenSshError::io("read", local))
}

fn known_hosts(server: &OpenSsh, directory: &std::path::Path) -> Result<String, OpenSshError> {
    let path = directory.join("known_hosts");
    let line = format!("[127.0.0.1]:{} {}\n", server.port(), server.host_key()?);
    std::fs::write(&path, line).map_err(OpenSshError::io("write", &path))?;
    Ok(path.display().to_string())
}
