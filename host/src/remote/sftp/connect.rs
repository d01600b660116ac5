//! From an endpoint to a session: address, host key, credential, SFTP subsystem, directory.
//!
//! Every step has a bound, and every failure is a [`ConnectError`] that names what to mend. Nothing is written at
//! the partner here.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::Display;
use std::future::Future;
use std::sync::{Arc, Mutex, OnceLock};

use russh::keys::{PrivateKeyWithHashAlg, PublicKey, PublicKeyOrCertificate};
use russh::{ChannelId, ChannelMsg, Disconnect, cipher, client, compression};
use russh_sftp::client::RawSftpSession;
use russh_sftp::client::rawsession::Limits;
use tokio::net::TcpStream;
use tracing::debug;

use super::cancel::Cancellable;
use super::normalise::{ESCAPED, Normalised};
use super::pins::{Pins, fingerprint};
use super::session::{Session, Sftp};
use crate::remote::endpoint::{Secret, SftpEndpoint};
use crate::remote::error::{ConnectError, RemoteError};
use crate::remote::line::Line;
use crate::remote::session::{ServerFacts, SessionLimits};

/// Keepalives that may go unanswered before the connection counts as lost.
const KEEPALIVES: usize = 3;
/// The library's own timer for a request, in seconds. It starts when a request is queued, so that a slow line with
/// many writes in flight would trip it; the session's own timers are the ones that count.
const LIBRARY_TIMER_SECONDS: u64 = 24 * 60 * 60;

/// AES-GCM first: with the processor's AES it is the fastest here, and the library's own order puts `ChaCha` first.
const CIPHERS: &[cipher::Name] = &[
    cipher::AES_256_GCM,
    cipher::AES_128_GCM,
    cipher::CHACHA20_POLY1305,
    cipher::AES_256_CTR,
    cipher::AES_192_CTR,
    cipher::AES_128_CTR,
];

impl Session {
    /// Opens a session at the endpoint's directory.
    pub async fn connect(endpoint: &SftpEndpoint, limits: &SessionLimits) -> Result<Self, ConnectError> {
        let opening = Opening { endpoint, limits };
        let secret = endpoint.secret.fetch()?;
        let pins = Pins::parse(&endpoint.host_keys).map_err(|why| opening.protocol(why))?;
        let line = Arc::new(Line::default());
        let (mut handle, banner) = opening.handshake(pins, &line).await?;
        opening.authenticate(&mut handle, secret).await?;
        let stream = opening.subsystem(&handle).await?;
        // Dropping the handle would leave the connection open: the token's firing is what ends it, from any side.
        tokio::spawn(disconnect_when_down(handle, Arc::clone(&line), *limits));
        let ended_early = EndOnDrop(Some(Arc::clone(&line)));
        let stream = Normalised::new(Cancellable::new(stream, line.down()), Arc::clone(&line));
        let mut raw = RawSftpSession::new(stream);
        raw.set_timeout(LIBRARY_TIMER_SECONDS);
        let version = opening.within("the SFTP greeting", raw.init()).await?;
        let extensions: BTreeMap<_, _> = version.extensions.into_iter().collect();
        let (mut write_length, mut read_length) = (None, None);
        if extensions.contains_key("limits@openssh.com") {
            let told = Limits::from(opening.within("the SFTP limits", raw.limits()).await?);
            (write_length, read_length) = (told.write_len, told.read_len);
            raw.set_limits(told);
        }
        let directory = opening.directory(&raw).await?;
        let facts = ServerFacts { banner, extensions, directory };
        ended_early.disarm();
        Ok(Self::new(Sftp { raw, write_length, read_length }, line, facts, *limits))
    }
}

/// One attempt to open a session: what all its steps share.
struct Opening<'a> {
    endpoint: &'a SftpEndpoint,
    limits: &'a SessionLimits,
}

impl Opening<'_> {
    async fn handshake(&self, pins: Pins, line: &Arc<Line>) -> Result<(client::Handle<Handler>, String), ConnectError> {
        let address = (self.endpoint.host.as_str(), self.endpoint.port);
        let socket = self.within("a TCP connection", TcpStream::connect(address)).await?;
        if let Err(error) = socket.set_nodelay(true) {
            debug!(%error, "the socket keeps Nagle's algorithm; small requests will be slower");
        }
        let seen = Arc::new(Seen::default());
        let config = Arc::new(self.config(&pins));
        let handler = Handler { line: Arc::clone(line), pins, seen: Arc::clone(&seen) };
        let greeted = tokio::time::timeout(self.limits.connect, client::connect_stream(config, socket, handler)).await;
        let handle = match greeted {
            Err(_) => return Err(self.unreachable(self.late("the SSH handshake"))),
            Ok(Ok(handle)) => handle,
            Ok(Err(russh::Error::UnknownKey)) => {
                let presented = seen.presented.lock().ok().and_then(|key| key.clone());
                return Err(self.host_key(presented.as_ref()));
            }
            Ok(Err(error)) if is_transport(&error) => {
                return Err(self.unreachable(format!("the SSH handshake was cut short ({error})")));
            }
            Ok(Err(error)) => return Err(self.protocol(format!("the SSH handshake failed: {error}"))),
        };
        Ok((handle, seen.banner.get().cloned().unwrap_or_default()))
    }

    fn config(&self, pins: &Pins) -> client::Config {
        let mut config = client::Config {
            nodelay: true,
            keepalive_interval: Some(self.limits.keepalive),
            keepalive_max: KEEPALIVES,
            // The one timer that still runs while a write is blocked.
            inactivity_timeout: Some(self.limits.inactivity),
            ..client::Config::default()
        };
        config.preferred.cipher = Cow::Borrowed(CIPHERS);
        config.preferred.compression = Cow::Borrowed(&[compression::NONE]);
        config.preferred.key = Cow::Owned(pins.order(&config.preferred.key));
        config
    }

    async fn authenticate(&self, handle: &mut client::Handle<Handler>, secret: Secret) -> Result<(), ConnectError> {
        let user = self.endpoint.user.clone();
        let result = match secret {
            Secret::Password(password) => {
                self.within("an answer to the login", handle.authenticate_password(user, password)).await?
            }
            Secret::Key(text) => {
                let key = russh::keys::decode_secret_key(&text, None).map_err(|_| ConnectError::SecretMissing {
                    secret: self.endpoint.secret.clone(),
                    why: "it is no private key without passphrase in OpenSSH, PEM or PuTTY format".to_owned(),
                })?;
                let hash = if key.algorithm().is_rsa() {
                    let known = handle.best_supported_rsa_hash();
                    // A server that does not tell takes SHA-512, as those of the last decade do; SHA-1 only when named.
                    self.within("the server's signature algorithms", known)
                        .await?
                        .unwrap_or(Some(russh::keys::HashAlg::Sha512))
                } else {
                    None
                };
                let key = PrivateKeyWithHashAlg::new(Arc::new(key), hash);
                self.within("an answer to the login", handle.authenticate_publickey(user, key)).await?
            }
        };
        match result {
            client::AuthResult::Success => Ok(()),
            client::AuthResult::Failure { remaining_methods, partial_success } => {
                let names: Vec<&'static str> = remaining_methods.iter().map(Into::into).collect();
                let accepts = match (names.is_empty(), partial_success) {
                    (true, _) => "nothing else".to_owned(),
                    (false, false) => names.join(", "),
                    (false, true) => format!("{} in addition to it", names.join(", ")),
                };
                Err(ConnectError::Credential {
                    server: self.server(),
                    user: self.endpoint.user.clone(),
                    secret: self.endpoint.secret.clone(),
                    accepts,
                })
            }
        }
    }

    /// Opens the SFTP channel and waits for the server's word: the request itself returns before the answer.
    async fn subsystem(
        &self,
        handle: &client::Handle<Handler>,
    ) -> Result<russh::ChannelStream<client::Msg>, ConnectError> {
        let mut channel = self.within("an SSH channel", handle.channel_open_session()).await?;
        self.within("the SFTP subsystem", channel.request_subsystem(true, "sftp")).await?;
        let answer = async {
            loop {
                match channel.wait().await {
                    Some(ChannelMsg::Success) => return Ok(()),
                    Some(ChannelMsg::Failure | ChannelMsg::Close) | None => {
                        return Err(
                            "the server refused the SFTP subsystem; have the partner enable SFTP for this user",
                        );
                    }
                    Some(_) => {}
                }
            }
        };
        match tokio::time::timeout(self.limits.connect, answer).await {
            Err(_) => Err(self.unreachable(self.late("the SFTP subsystem"))),
            Ok(Err(why)) => Err(self.protocol(why)),
            Ok(Ok(())) => Ok(channel.into_stream()),
        }
    }

    /// The directory as the server resolves it. REALPATH alone does not prove that it exists.
    async fn directory(&self, raw: &RawSftpSession) -> Result<String, ConnectError> {
        let wanted = &self.endpoint.directory;
        let missing = |why: String| {
            self.protocol(format!(
                "the directory {wanted:?} {why}; create it at the partner or correct `directory` in destinations.toml"
            ))
        };
        let asked = if wanted.is_empty() { "." } else { wanted.as_str() };
        let resolved = match self.answered("REALPATH", raw.realpath(asked)).await? {
            Ok(names) => names.files.into_iter().next().ok_or_else(|| missing("cannot be resolved".to_owned()))?,
            Err(refusal) => return Err(missing(format!("cannot be resolved: {refusal}"))),
        };
        let path = &resolved.filename;
        if resolved.longname == ESCAPED || !path.starts_with('/') || path.chars().any(char::is_control) {
            return Err(missing(format!("resolves to {path:?}, which is no absolute path in readable UTF-8")));
        }
        match self.answered("STAT", raw.stat(resolved.filename.clone())).await? {
            Ok(found) if found.attrs.permissions.is_some() && !found.attrs.is_dir() => {
                Err(missing("is not a directory".to_owned()))
            }
            Ok(_) => Ok(resolved.filename),
            Err(RemoteError::Refused { code: Some(code), .. }) if code == crate::remote::error::PERMISSION_DENIED => {
                Ok(resolved.filename)
            }
            Err(refusal) if refusal.says_absent() => Err(missing("does not exist".to_owned())),
            Err(refusal) => Err(missing(format!("cannot be examined: {refusal}"))),
        }
    }

    /// Bounds a step; its failure, or its lateness, means that the server cannot be reached.
    async fn within<T, E: Display>(
        &self,
        what: &str,
        step: impl Future<Output = Result<T, E>>,
    ) -> Result<T, ConnectError> {
        match tokio::time::timeout(self.limits.connect, step).await {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(error)) => Err(self.unreachable(format!("{what} could not be had ({error})"))),
            Err(_) => Err(self.unreachable(self.late(what))),
        }
    }

    /// The same for a request that the server may refuse in words.
    async fn answered<T>(
        &self,
        what: &str,
        request: impl Future<Output = Result<T, russh_sftp::client::error::Error>>,
    ) -> Result<Result<T, RemoteError>, ConnectError> {
        let answer = async {
            match request.await {
                Ok(value) => Ok(Ok(value)),
                Err(russh_sftp::client::error::Error::Status(status)) => Ok(Err(super::session::refused(&status))),
                Err(error) => Err(error),
            }
        };
        self.within(&format!("an answer to {what}"), answer).await
    }

    fn server(&self) -> String {
        self.endpoint.server()
    }

    fn late(&self, what: &str) -> String {
        format!("{what} did not come within {} s", self.limits.connect.as_secs())
    }

    fn unreachable(&self, why: String) -> ConnectError {
        ConnectError::Unreachable { server: self.server(), why }
    }

    fn protocol(&self, why: impl Into<String>) -> ConnectError {
        ConnectError::Protocol { server: self.server(), why: why.into() }
    }

    fn host_key(&self, presented: Option<&PublicKey>) -> ConnectError {
        ConnectError::HostKey {
            server: self.server(),
            fingerprint: presented.map_or_else(|| "(none)".to_owned(), fingerprint),
            line: presented.and_then(|key| key.to_openssh().ok()).unwrap_or_default(),
        }
    }
}

/// True for failures that say nothing about the other side's configuration.
fn is_transport(error: &russh::Error) -> bool {
    use russh::Error as E;
    matches!(
        error,
        E::IO(_)
            | E::Disconnect
            | E::HUP
            | E::ConnectionTimeout
            | E::KeepaliveTimeout
            | E::InactivityTimeout
            | E::SendError
    )
}

async fn disconnect_when_down(handle: client::Handle<Handler>, line: Arc<Line>, limits: SessionLimits) {
    line.down().cancelled().await;
    let goodbye = handle.disconnect(Disconnect::ByApplication, "", "en");
    match tokio::time::timeout(limits.goodbye, goodbye).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => debug!(%error, "the connection was gone before it was closed"),
        Err(_) => debug!("the connection did not take the goodbye; its inactivity limit ends it"),
    }
}

/// Ends the line when opening fails half-way.
struct EndOnDrop(Option<Arc<Line>>);

impl EndOnDrop {
    fn disarm(mut self) {
        self.0 = None;
    }
}

impl Drop for EndOnDrop {
    fn drop(&mut self) {
        if let Some(line) = &self.0 {
            line.fail("the session could not be opened");
        }
    }
}

/// What the handshake showed of the server.
#[derive(Default)]
struct Seen {
    presented: Mutex<Option<PublicKey>>,
    banner: OnceLock<String>,
}

/// Listens to the SSH layer: the host key, the banner, and the true cause of every end.
struct Handler {
    line: Arc<Line>,
    pins: Pins,
    seen: Arc<Seen>,
}

impl client::Handler for Handler {
    type Error = russh::Error;

    async fn check_server_key(&mut self, presented: &PublicKeyOrCertificate) -> Result<bool, Self::Error> {
        let key = presented.public_key();
        let held = self.pins.hold(&key);
        if let Ok(mut seen) = self.seen.presented.lock() {
            *seen = Some(key);
        }
        Ok(held)
    }

    async fn kex_done(
        &mut self,
        _shared_secret: Option<&[u8]>,
        _names: &russh::Names,
        session: &mut client::Session,
    ) -> Result<(), Self::Error> {
        self.seen.banner.get_or_init(|| String::from_utf8_lossy(session.remote_sshid()).trim_end().to_owned());
        Ok(())
    }

    async fn channel_close(&mut self, _channel: ChannelId, _session: &mut client::Session) -> Result<(), Self::Error> {
        self.line.fail("the server closed the SFTP channel");
        Ok(())
    }

    async fn exit_status(
        &mut self,
        _channel: ChannelId,
        status: u32,
        _session: &mut client::Session,
    ) -> Result<(), Self::Error> {
        self.line.fail(format!("the server's SFTP process ended with status {status}"));
        Ok(())
    }

    async fn exit_signal(
        &mut self,
        _channel: ChannelId,
        signal: russh::Sig,
        _core_dumped: bool,
        _message: &str,
        _language: &str,
        _session: &mut client::Session,
    ) -> Result<(), Self::Error> {
        self.line.fail(format!("the server's SFTP process was ended by the signal {signal:?}"));
        Ok(())
    }

    async fn disconnected(&mut self, reason: client::DisconnectReason<Self::Error>) -> Result<(), Self::Error> {
        match reason {
            client::DisconnectReason::ReceivedDisconnect(goodbye) => {
                let words: String = goodbye.message.chars().take(200).collect();
                self.line.fail(format!("the server ended the connection ({:?}: {words:?})", goodbye.reason_code));
                Ok(())
            }
            client::DisconnectReason::Error(error) => {
                self.line.fail(format!("the connection broke: {error}"));
                Err(error)
            }
        }
    }
}
