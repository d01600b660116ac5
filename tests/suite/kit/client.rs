//! A plain SFTP client for the fixtures' own tests: russh and russh-sftp as they are, nothing of the host.

use std::sync::Arc;

use anyhow::{Context, ensure};
use russh::client;
use russh::keys::{PrivateKeyWithHashAlg, PublicKeyOrCertificate, load_secret_key};
use russh_sftp::client::{Config, RawSftpSession};
use russh_sftp::protocol::{FileAttributes, OpenFlags};
use waybill_tests::sftp_server::SftpServer;
use waybill_tests::{Sshd, ssh};

/// A session with the connection under it.
pub struct Client {
    pub sftp: RawSftpSession,
    _ssh: client::Handle<TrustsAll>,
}

struct TrustsAll;

impl client::Handler for TrustsAll {
    type Error = russh::Error;

    async fn check_server_key(&mut self, _: &PublicKeyOrCertificate) -> Result<bool, russh::Error> {
        Ok(true)
    }
}

impl Client {
    pub async fn to(server: &SftpServer) -> anyhow::Result<Self> {
        Self::with_password(server.port()).await
    }

    pub async fn with_password(port: u16) -> anyhow::Result<Self> {
        let mut ssh = client::connect(Arc::default(), ("127.0.0.1", port), TrustsAll).await?;
        ensure!(ssh.authenticate_password(ssh::USER, ssh::PASSWORD).await?.success(), "the password was refused");
        Self::open(ssh).await
    }

    pub async fn to_sshd(server: &Sshd) -> anyhow::Result<Self> {
        let key = Arc::new(load_secret_key(server.client_key(), None)?);
        let mut ssh = client::connect(Arc::default(), ("127.0.0.1", server.port()), TrustsAll).await?;
        let answer = ssh.authenticate_publickey(server.user(), PrivateKeyWithHashAlg::new(key, None)).await?;
        ensure!(answer.success(), "the key was refused");
        Self::open(ssh).await
    }

    async fn open(ssh: client::Handle<TrustsAll>) -> anyhow::Result<Self> {
        let channel = ssh.channel_open_session().await?;
        channel.request_subsystem(true, "sftp").await?;
        let config = Config { request_timeout_secs: 30, ..Config::default() };
        let sftp = RawSftpSession::new_with_config(channel.into_stream(), config);
        sftp.init().await.context("the server did not greet")?;
        Ok(Self { sftp, _ssh: ssh })
    }

    /// Creates a file and writes it, in one request.
    pub async fn put(&self, path: &str, bytes: &[u8]) -> anyhow::Result<()> {
        let flags = OpenFlags::WRITE | OpenFlags::CREATE | OpenFlags::EXCLUDE;
        let handle = self.sftp.open(path, flags, FileAttributes::empty()).await?.handle;
        self.sftp.write(handle.clone(), 0, bytes.to_vec()).await?;
        self.sftp.close(handle).await?;
        Ok(())
    }
}
