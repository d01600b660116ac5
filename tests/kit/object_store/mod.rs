//! An object store in this process: as much of S3 as a delivery asks for, over HTTP on loopback, or over TLS.
//!
//! It checks the signature of every request and the digest of every body by itself, remembers what it was asked, keeps the
//! condition of a create or ignores it, and breaks where it is told. A connection serves one request.

mod s3;
mod signature;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;

use crate::partner_server::private;

pub const BUCKET: &str = "deliveries";
pub const REGION: &str = "us-east-1";
/// The part of the bucket that a destination is.
pub const PREFIX: &str = "in";
/// Both keys are easily found where they do not belong.
pub const ACCESS_KEY: &str = "canary-access-5f1e";
pub const SECRET_KEY: &str = "canary-secret-9b7c";

/// What becomes of one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// It is done, and the connection ends without an answer.
    CutAfter,
    /// It was read whole, is not done, and the connection ends without an answer.
    CutBefore,
    /// It is not done; this is the answer.
    Answer(u16),
    /// It is done; this is the answer.
    AnswerAfter(u16),
}

/// How a store is.
#[derive(Debug, Clone, Copy)]
pub struct Manners {
    /// It keeps `If-None-Match: *`.
    pub keeps_condition: bool,
    pub may_list: bool,
    pub has_bucket: bool,
}

impl Default for Manners {
    fn default() -> Self {
        Self { keeps_condition: true, may_list: true, has_bucket: true }
    }
}

/// One request, in the order of their ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    pub method: String,
    /// Empty for the bucket itself.
    pub key: String,
    /// It said `If-None-Match: *`.
    pub conditional: bool,
    /// None: no answer was sent.
    pub status: Option<u16>,
}

/// The two keys, each in a file of its own.
#[derive(Debug)]
pub struct KeyFiles(TempDir);

/// A store with one bucket. It ends when it is dropped.
pub struct ObjectStore {
    port: u16,
    secure: bool,
    state: Arc<Mutex<State>>,
    keys: KeyFiles,
    serving: JoinHandle<()>,
}

#[derive(Default)]
struct State {
    manners: Manners,
    objects: BTreeMap<String, Object>,
    /// What happens to the first request of this method for a key that ends so.
    faults: Vec<(&'static str, String, Fault)>,
    log: Vec<Asked>,
    /// Its clock counts writes.
    writes: u64,
}

#[derive(Clone)]
struct Object {
    content: Vec<u8>,
    written: u64,
}

impl KeyFiles {
    pub fn write() -> anyhow::Result<Self> {
        let keys = Self(tempfile::tempdir()?);
        private(&keys.access(), &format!("{ACCESS_KEY}\n"))?;
        private(&keys.secret(), &format!("{SECRET_KEY}\n"))?;
        Ok(keys)
    }

    pub fn access(&self) -> PathBuf {
        self.0.path().join("access_key")
    }

    pub fn secret(&self) -> PathBuf {
        self.0.path().join("secret_key")
    }

    /// The lines of `destinations.toml` that name a store with them.
    pub fn place(&self, store: &str) -> String {
        let (access, secret) = (self.access(), self.secret());
        format!(
            "bucket = '{BUCKET}'\nstore = '{store}'\nprefix = '{PREFIX}'\naccess_key_file = '{}'\nsecret_key_file = '{}'",
            access.display(),
            secret.display()
        )
    }
}

impl ObjectStore {
    pub async fn start() -> anyhow::Result<Self> {
        Self::start_with(None).await
    }

    /// Over TLS, with this certificate.
    pub async fn start_secure(config: Arc<ServerConfig>) -> anyhow::Result<Self> {
        Self::start_with(Some(config.into())).await
    }

    async fn start_with(tls: Option<TlsAcceptor>) -> anyhow::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let port = listener.local_addr()?.port();
        let (secure, keys) = (tls.is_some(), KeyFiles::write()?);
        let state = Arc::new(Mutex::new(State::default()));
        let shared = Arc::clone(&state);
        let serving = tokio::spawn(async move {
            while let Ok((line, _)) = listener.accept().await {
                let (state, tls) = (Arc::clone(&shared), tls.clone());
                tokio::spawn(async move {
                    let served = match tls {
                        None => s3::serve(line, &state).await,
                        Some(tls) => match tls.accept(line).await {
                            Ok(line) => s3::serve(line, &state).await,
                            Err(error) => Err(error.into()),
                        },
                    };
                    if let Err(error) = served {
                        tracing::debug!(%error, "a request to the object store ended early");
                    }
                });
            }
        });
        Ok(Self { port, secure, state, keys, serving })
    }

    /// By name where a certificate has one.
    pub fn url(&self) -> String {
        let (scheme, host) = if self.secure { ("https", "localhost") } else { ("http", "127.0.0.1") };
        format!("{scheme}://{host}:{}", self.port)
    }

    pub fn key_files(&self) -> &KeyFiles {
        &self.keys
    }

    /// The lines of `destinations.toml` that name it.
    pub fn place(&self) -> String {
        self.keys.place(&self.url())
    }

    pub fn set_manners(&self, manners: Manners) {
        self.state().manners = manners;
    }

    /// Breaks the first request of this method for a key that ends so.
    pub fn once(&self, method: &'static str, key_ends: &str, fault: Fault) {
        self.state().faults.push((method, key_ends.to_owned(), fault));
    }

    /// The keys of all objects, in order.
    pub fn keys(&self) -> Vec<String> {
        self.state().objects.keys().cloned().collect()
    }

    pub fn content(&self, key: &str) -> Option<Vec<u8>> {
        self.state().objects.get(key).map(|object| object.content.clone())
    }

    /// As somebody else puts an object there.
    pub fn put(&self, key: &str, content: &[u8]) {
        self.state().write(key, content.to_vec());
    }

    /// Requests of this method for a key that ends so.
    pub fn asked(&self, method: &str, key_ends: &str) -> Vec<Asked> {
        let fits = |one: &&Asked| one.method == method && one.key.ends_with(key_ends);
        self.log().iter().filter(fits).cloned().collect()
    }

    /// All requests.
    pub fn log(&self) -> Vec<Asked> {
        self.state().log.clone()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        whole(&self.state)
    }
}

impl Drop for ObjectStore {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

/// Every change under this lock is whole, so a panic elsewhere leaves the state usable.
fn whole(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl State {
    fn write(&mut self, key: &str, content: Vec<u8>) {
        self.writes += 1;
        self.objects.insert(key.to_owned(), Object { content, written: self.writes });
    }

    fn fault(&mut self, method: &str, key: &str) -> Option<Fault> {
        let at = self.faults.iter().position(|(of, ends, _)| *of == method && key.ends_with(ends.as_str()))?;
        Some(self.faults.remove(at).2)
    }
}
