//! OpenSSH's own server for one test, on files of its own.

use std::path::{Path, PathBuf};

use anyhow::Context;
use waybill::embedded::openssh::{OpenSsh, Settings, end_left_behind};

use crate::operations::{Done, parse_openssh};
use crate::services::{self, TestDirectory};

/// The server with the directory that it serves. It ends before its directory goes, in the order of these fields.
#[derive(Debug)]
pub struct Sshd {
    server: OpenSsh,
    _directory: TestDirectory,
}

impl Sshd {
    pub async fn start() -> anyhow::Result<Self> {
        sweep()?;
        let directory = TestDirectory::new("sshd")?;
        let settings =
            Settings { directory: directory.path().join("server"), files: directory.path().join("files"), port: None };
        let server = OpenSsh::start(&settings).await.context("starting OpenSSH for a test")?;
        Ok(Self { server, _directory: directory })
    }

    pub fn port(&self) -> u16 {
        self.server.port()
    }

    pub fn user(&self) -> &str {
        self.server.user()
    }

    pub fn client_key(&self) -> PathBuf {
        self.server.client_key()
    }

    pub fn host_key(&self) -> anyhow::Result<String> {
        Ok(self.server.host_key()?)
    }

    /// The directory in which a session starts.
    pub fn files(&self) -> &Path {
        self.server.files()
    }

    /// All that clients did so far, stat calls excepted.
    pub fn operations(&self) -> anyhow::Result<Vec<Done>> {
        Ok(parse_openssh(&self.server.operations()?))
    }

    /// How often something was done that creates this name, answered or not.
    pub fn times_created(&self, path: &str) -> anyhow::Result<usize> {
        let wanted = self.files().join(path);
        let is_it = |name: &str| self.files().join(name) == wanted;
        Ok(self.operations()?.iter().filter(|done| done.operation.creates().is_some_and(is_it)).count())
    }

    pub async fn fetch(&self, remote: &str) -> anyhow::Result<Vec<u8>> {
        Ok(self.server.fetch(remote).await?)
    }

    /// The partner's outage: no server, no sessions.
    pub async fn stop(&mut self) -> anyhow::Result<()> {
        Ok(self.server.stop().await?)
    }

    /// And its end: the same port, keys and files.
    pub async fn start_again(&mut self) -> anyhow::Result<()> {
        Ok(self.server.start_again().await?)
    }
}

/// Ends the servers of killed test runs and removes their directories.
fn sweep() -> anyhow::Result<()> {
    for directory in services::left_behind("sshd")? {
        end_left_behind(&directory.join("server"))?;
        services::remove(&directory)?;
    }
    Ok(())
}
