//! The SSH half of the simulated servers: accepts connections on 127.0.0.1, lets one password and every key in, and
//! hands each SFTP channel to a function. It can cut a connection's TCP stream or close a channel at any moment.

use std::borrow::Cow;
use std::collections::HashMap;
use std::net::{Ipv4Addr, Shutdown};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use russh::keys::{Algorithm, PrivateKey};
use russh::server::{self, Auth, ChannelOpenHandle, Msg, Session, VerifiedPublicKey};
use russh::{Channel, ChannelId, ChannelStream, cipher};
use tokio::net::TcpListener;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::error::SimulatedError;

/// The one password that the simulated servers accept.
pub const PASSWORD: &str = "in-process-partner";
pub const USER: &str = "partner";

/// One SFTP channel, with the means to break it.
pub struct Opened {
    pub stream: ChannelStream<Msg>,
    pub line: Line,
}

/// The line under a channel.
#[derive(Clone)]
pub struct Line {
    /// Counts the connections of a server, from 1.
    pub connection: u64,
    tcp: Arc<std::net::TcpStream>,
    ssh: server::Handle,
    channel: ChannelId,
    server_ended: CancellationToken,
}

impl Line {
    /// Nothing more arrives in either direction, and no goodbye is said.
    pub fn cut(&self) {
        if let Err(error) = self.tcp.shutdown(Shutdown::Both) {
            tracing::debug!(%error, "the line was cut already");
        }
    }

    /// No answer until the server itself ends.
    pub async fn silence(&self) {
        self.server_ended.cancelled().await;
    }

    /// The channel ends; the SSH connection stays.
    pub async fn close_channel(&self) {
        if self.ssh.close(self.channel).await.is_err() {
            tracing::debug!("the connection had ended already");
        }
    }
}

/// A listening server. Dropping it cuts every connection.
pub struct SshServer {
    port: u16,
    host_key: String,
    _end: DropGuard,
}

impl SshServer {
    /// `serve` is called once an SFTP channel, and owns it.
    pub async fn start<Serve>(serve: Serve) -> Result<Self, SimulatedError>
    where
        Serve: Fn(Opened) + Clone + Send + Sync + 'static,
    {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let port = listener.local_addr()?.port();
        let key = PrivateKey::random(&mut rand::rng(), Algorithm::Ed25519)
            .map_err(|error| SimulatedError::HostKey { why: error.to_string() })?;
        let host_key =
            key.public_key().to_openssh().map_err(|error| SimulatedError::HostKey { why: error.to_string() })?;
        let mut config = server::Config {
            keys: vec![key],
            auth_rejection_time: Duration::from_millis(20),
            auth_rejection_time_initial: Some(Duration::ZERO),
            nodelay: true,
            ..server::Config::default()
        };
        config.preferred.cipher = Cow::Owned(vec![cipher::AES_256_GCM, cipher::AES_128_GCM, cipher::CHACHA20_POLY1305]);
        let ended = CancellationToken::new();
        tokio::spawn(ended.clone().run_until_cancelled_owned(accept(listener, Arc::new(config), serve, ended.clone())));
        Ok(Self { port, host_key, _end: ended.drop_guard() })
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// As it stands in a `known_hosts` line.
    pub fn host_key(&self) -> &str {
        &self.host_key
    }
}

async fn accept<Serve>(listener: TcpListener, config: Arc<server::Config>, serve: Serve, ended: CancellationToken)
where
    Serve: Fn(Opened) + Clone + Send + Sync + 'static,
{
    let connections = AtomicU64::new(0);
    loop {
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                tracing::warn!(%error, "accepting a connection failed");
                continue;
            }
        };
        let connection = connections.fetch_add(1, Ordering::Relaxed) + 1;
        let (config, serve, ended) = (config.clone(), serve.clone(), ended.clone());
        tokio::spawn(async move {
            if let Err(error) = run(stream, connection, config, serve, ended).await {
                tracing::debug!(%error, connection, "an SSH connection ended");
            }
        });
    }
}

async fn run<Serve>(
    stream: tokio::net::TcpStream,
    connection: u64,
    config: Arc<server::Config>,
    serve: Serve,
    ended: CancellationToken,
) -> Result<(), SimulatedError>
where
    Serve: Fn(Opened) + Clone + Send + Sync + 'static,
{
    stream.set_nodelay(true)?;
    let stream = stream.into_std()?;
    let tcp = Arc::new(stream.try_clone()?);
    let stream = tokio::net::TcpStream::from_std(stream)?;
    let handler =
        Handler { connection, tcp: tcp.clone(), channels: HashMap::new(), serve, server_ended: ended.clone() };
    let session = server::run_stream(config, stream, handler).await?;
    tokio::select! {
        ended = session => ended?,
        () = ended.cancelled() => tcp.shutdown(Shutdown::Both)?,
    }
    Ok(())
}

struct Handler<Serve> {
    connection: u64,
    tcp: Arc<std::net::TcpStream>,
    channels: HashMap<ChannelId, Channel<Msg>>,
    serve: Serve,
    server_ended: CancellationToken,
}

impl<Serve: Fn(Opened) + Send + Sync> server::Handler for Handler<Serve> {
    type Error = SimulatedError;

    async fn auth_password(&mut self, user: &str, password: &str) -> Result<Auth, SimulatedError> {
        Ok(if user == USER && password == PASSWORD { Auth::Accept } else { Auth::reject() })
    }

    async fn auth_publickey(&mut self, user: &str, _: VerifiedPublicKey<'_>) -> Result<Auth, SimulatedError> {
        Ok(if user == USER { Auth::Accept } else { Auth::reject() })
    }

    async fn channel_open_session(
        &mut self,
        channel: Channel<Msg>,
        reply: ChannelOpenHandle,
        _: &mut Session,
    ) -> Result<(), SimulatedError> {
        self.channels.insert(channel.id(), channel);
        reply.accept().await;
        Ok(())
    }

    async fn subsystem_request(
        &mut self,
        id: ChannelId,
        name: &str,
        session: &mut Session,
    ) -> Result<(), SimulatedError> {
        let Some(channel) = self.channels.remove(&id).filter(|_| name == "sftp") else {
            session.channel_failure(id)?;
            return Ok(());
        };
        session.channel_success(id)?;
        let line = Line {
            connection: self.connection,
            tcp: self.tcp.clone(),
            ssh: session.handle(),
            channel: channel.id(),
            server_ended: self.server_ended.clone(),
        };
        (self.serve)(Opened { stream: channel.into_stream(), line });
        Ok(())
    }

    async fn channel_eof(&mut self, id: ChannelId, session: &mut Session) -> Result<(), SimulatedError> {
        session.close(id)?;
        Ok(())
    }
}
