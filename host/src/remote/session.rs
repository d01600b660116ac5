//! A session at one destination's directory, whatever serves it: the few requests that a delivery needs.
//!
//! Gate, writer, reader, look and proof know only these requests; what is below them differs. Each kind keeps the same
//! promises: names are relative to the destination's directory and never lead out of it; a failure's type says what is known of
//! its effect, and a refusal's code is one of SFTP's, in which the other kinds answer too; whatever is not a clear answer
//! ends the session; a request that nobody waits for any more still runs to its end.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt;
use futures::stream;
use sha2::{Digest, Sha256 as Hasher};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::endpoint::Endpoint;
use super::error::{ConnectError, RemoteError};
use super::{directory, objects, recorded, sftp};
use crate::job::facts::{Entry, Found, Sha256};
use crate::spool::SpoolFile;

/// Bounds of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionLimits {
    /// Each step of connecting.
    pub connect: Duration,
    /// Each request.
    pub request: Duration,
    /// An upload or a read-back without any progress.
    pub stall: Duration,
    /// Reading a whole file back, or listing a directory.
    pub look: Duration,
    /// Idle time before a keepalive is sent.
    pub keepalive: Duration,
    /// Silence that ends the connection; longer than all keepalives together, so that a healthy idle one survives.
    pub inactivity: Duration,
    /// Taking leave.
    pub goodbye: Duration,
    /// The bytes of a file that is created by one request of an object store.
    pub largest_object: u64,
}

impl SessionLimits {
    /// When a reading back is late: after it should have been given up, and no answer came for that.
    pub(super) fn reading_back(&self) -> Duration {
        self.look.saturating_add(self.stall)
    }

    /// Gives up a reading back that takes too long. The session goes on: every answer came.
    pub(super) fn check_reading_back(&self, began: Instant) -> Result<(), RemoteError> {
        if began.elapsed() < self.look {
            return Ok(());
        }
        Err(RemoteError::Invalid { why: format!("reading it back takes longer than {} s", self.look.as_secs_f32()) })
    }
}

impl Default for SessionLimits {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(20),
            request: Duration::from_secs(30),
            stall: Duration::from_secs(60),
            look: Duration::from_secs(300),
            keepalive: Duration::from_secs(15),
            inactivity: Duration::from_secs(90),
            goodbye: Duration::from_secs(3),
            largest_object: objects::LARGEST_BYTES,
        }
    }
}

/// What a server told about itself when the session was opened.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct ServerFacts {
    /// The SSH identification string; for a directory, the kind of its file system; for an object store, its software.
    pub banner: String,
    /// SFTP extensions and their versions.
    pub extensions: BTreeMap<String, String>,
    /// The destination's directory, absolute, as the server resolves it.
    pub directory: String,
}

impl ServerFacts {
    /// Changes when the server's software or its extensions change; a proof about a server is kept under it.
    pub fn fingerprint(&self) -> String {
        let mut hash = Hasher::new();
        let mut add = |text: &str| {
            hash.update((text.len() as u64).to_be_bytes());
            hash.update(text);
        };
        add(&self.banner);
        for (name, version) in &self.extensions {
            add(name);
            add(version);
        }
        data_encoding::HEXLOWER.encode(&hash.finalize())
    }
}

/// A file that could not be created whole.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{error}")]
pub struct CreateError {
    /// False only if it is certain that this request created nothing.
    pub may_exist: bool,
    pub error: RemoteError,
}

/// A session. Clones share the connection, which ends with the last of them.
#[derive(Debug, Clone)]
pub enum Session {
    Sftp(sftp::Session),
    Directory(directory::Session),
    Objects(objects::Session),
    Recorded(recorded::Session),
}

pub(super) const NO_LINKS: &str = "an object store has no links and no renames";

/// Bytes taken from the spool at once.
const SPOOL_BLOCK: usize = 512 * 1024;

impl Session {
    /// Opens a session at the endpoint's directory. Nothing is written there.
    pub async fn connect(endpoint: &Endpoint, limits: &SessionLimits) -> Result<Self, ConnectError> {
        match endpoint {
            Endpoint::Sftp(endpoint) => sftp::Session::connect(endpoint, limits).await.map(Self::Sftp),
            Endpoint::Directory(endpoint) => directory::Session::open(endpoint, limits).await.map(Self::Directory),
            Endpoint::Objects(endpoint) => objects::Session::connect(endpoint, limits).await.map(Self::Objects),
        }
    }

    pub fn server(&self) -> &ServerFacts {
        match self {
            Self::Sftp(session) => session.server(),
            Self::Directory(session) => session.server(),
            Self::Objects(session) => session.server(),
            Self::Recorded(session) => session.server(),
        }
    }

    /// False from the first lost, late or unreadable answer on.
    pub fn is_usable(&self) -> bool {
        match self {
            Self::Sftp(session) => session.is_usable(),
            Self::Directory(session) => session.is_usable(),
            Self::Objects(session) => session.is_usable(),
            Self::Recorded(session) => session.is_usable(),
        }
    }

    /// Waits for requests in flight, within the bound for taking leave, and ends the connection.
    pub async fn close(&self) {
        match self {
            Self::Sftp(session) => session.close().await,
            Self::Directory(session) => session.close().await,
            Self::Objects(session) => session.close().await,
            // It belongs to whoever records or replays.
            Self::Recorded(_) => {}
        }
    }

    /// True if no clone and no request of this session is alive elsewhere.
    pub(super) fn is_sole(&self) -> bool {
        match self {
            Self::Sftp(session) => session.is_sole(),
            Self::Directory(session) => session.is_sole(),
            Self::Objects(session) => session.is_sole(),
            // The same: its other clone is there to be read.
            Self::Recorded(_) => true,
        }
    }

    /// Asks for any answer at all.
    pub(super) async fn ping(&self) -> Result<(), RemoteError> {
        match self {
            Self::Sftp(session) => session.ping().await,
            Self::Directory(session) => session.ping().await,
            Self::Objects(session) => session.ping().await,
            Self::Recorded(session) => session.ping().await,
        }
    }

    /// Looks at a name, and changes nothing. Absent only if the server said so.
    pub async fn stat(&self, name: &str) -> Result<Found, RemoteError> {
        match self {
            Self::Sftp(session) => session.stat(name).await,
            Self::Directory(session) => session.stat(name).await,
            Self::Objects(session) => session.stat(name).await,
            Self::Recorded(session) => session.stat(name).await,
        }
    }

    /// At most `most` entries of a directory whose own names begin with `prefix` and that `wanted` lets pass. Names
    /// are relative to the session's directory. A name that is not UTF-8 is shown escaped, as kind `other`.
    pub async fn list(
        &self,
        directory: &str,
        prefix: &str,
        most: usize,
        wanted: impl Fn(&str) -> bool + Send + 'static,
    ) -> Result<Vec<Entry>, RemoteError> {
        match self {
            Self::Sftp(session) => session.list(directory, prefix, most, wanted).await,
            Self::Directory(session) => session.list(directory, prefix, most, wanted).await,
            Self::Objects(session) => session.list(directory, prefix, most, wanted).await,
            Self::Recorded(session) => session.list(directory, prefix, most, Box::new(wanted)).await,
        }
    }

    /// Creates a directory.
    pub async fn make_directory(&self, name: &str) -> Result<(), RemoteError> {
        match self {
            Self::Sftp(session) => session.make_directory(name).await,
            Self::Directory(session) => session.make_directory(name).await,
            Self::Objects(session) => session.make_directory(name),
            Self::Recorded(session) => session.make_directory(name).await,
        }
    }

    /// Bytes that this account may still write in the destination's directory; `None` where the server does not tell.
    pub async fn free_bytes(&self) -> Result<Option<u64>, RemoteError> {
        match self {
            Self::Sftp(session) => session.free_bytes().await,
            Self::Directory(session) => session.free_bytes().await,
            Self::Objects(_) => Ok(None),
            Self::Recorded(session) => session.free_bytes().await,
        }
    }

    pub async fn remove(&self, name: &str) -> Result<(), RemoteError> {
        match self {
            Self::Sftp(session) => session.remove(name).await,
            Self::Directory(session) => session.remove(name).await,
            Self::Objects(session) => session.remove(name).await,
            Self::Recorded(session) => session.remove(name).await,
        }
    }

    /// RENAME: what it does to an existing target differs from server to server. A directory's refuses one.
    pub async fn rename(&self, from: &str, to: &str) -> Result<(), RemoteError> {
        match self {
            Self::Sftp(session) => session.rename(from, to).await,
            Self::Directory(session) => session.rename(from, to).await,
            Self::Objects(_) => Err(objects::Session::not_offered()),
            Self::Recorded(session) => session.rename(from, to).await,
        }
    }

    /// A hard link: a second name, never over an existing one; some servers say yes and make none.
    pub async fn hardlink(&self, from: &str, to: &str) -> Result<(), RemoteError> {
        match self {
            Self::Sftp(session) => session.hardlink(from, to).await,
            Self::Directory(session) => session.hardlink(from, to).await,
            Self::Objects(_) => Err(objects::Session::not_offered()),
            Self::Recorded(session) => session.hardlink(from, to).await,
        }
    }

    /// A rename as POSIX has it: replaces an existing target.
    pub async fn posix_rename(&self, from: &str, to: &str) -> Result<(), RemoteError> {
        match self {
            Self::Sftp(session) => session.posix_rename(from, to).await,
            Self::Directory(session) => session.posix_rename(from, to).await,
            Self::Objects(_) => Err(objects::Session::not_offered()),
            Self::Recorded(session) => session.posix_rename(from, to).await,
        }
    }

    /// Why a hard link is not even asked for; `None` if it can be.
    pub(super) fn lacks_hardlink(&self) -> Option<&'static str> {
        match self {
            Self::Sftp(session) => {
                session.lacks("hardlink@openssh.com", "the server does not offer hardlink@openssh.com")
            }
            Self::Directory(_) => None,
            Self::Objects(_) => Some(NO_LINKS),
            Self::Recorded(session) => session.lacks_hardlink(),
        }
    }

    /// Why a rename is not even asked for; `None` if it can be.
    pub(super) fn lacks_rename(&self) -> Option<&'static str> {
        match self {
            Self::Sftp(_) | Self::Directory(_) => None,
            Self::Recorded(session) => session.lacks_rename(),
            Self::Objects(_) => Some(NO_LINKS),
        }
    }

    /// Why a POSIX rename is not even asked for; `None` if it can be.
    pub(super) fn lacks_posix_rename(&self) -> Option<&'static str> {
        match self {
            Self::Sftp(session) => {
                session.lacks("posix-rename@openssh.com", "the server does not offer posix-rename@openssh.com")
            }
            Self::Directory(_) => None,
            Self::Objects(_) => Some(NO_LINKS),
            Self::Recorded(session) => session.lacks_posix_rename(),
        }
    }

    /// True if a file that is created appears whole or not at all: nobody ever sees it grow.
    pub(super) fn creates_whole(&self) -> bool {
        match self {
            Self::Sftp(_) | Self::Directory(_) => false,
            Self::Recorded(session) => session.creates_whole(),
            Self::Objects(_) => true,
        }
    }

    /// The largest file that can be created, where a single request carries it whole.
    pub(super) fn largest_bytes(&self) -> Option<u64> {
        match self {
            Self::Sftp(_) | Self::Directory(_) => None,
            Self::Recorded(session) => session.largest_bytes(),
            Self::Objects(session) => Some(session.largest_bytes()),
        }
    }

    /// Creates a file that must not exist yet, with a small content.
    pub async fn create(&self, name: &str, content: Vec<u8>) -> Result<(), CreateError> {
        if let Self::Recorded(session) = self {
            return session.create(name, content).await;
        }
        let known = (content.len() as u64, Sha256(Hasher::digest(&content).into()));
        self.create_from(name, known, stream::iter([Ok(Bytes::from(content))])).await
    }

    /// Creates a file that must not exist yet from a built file, and brings it to the disk where that can be asked for. A yes
    /// proves nothing on a full disk: read the size back. When `lost` fires, no further block is sent.
    pub async fn upload(&self, name: &str, file: &SpoolFile, lost: &CancellationToken) -> Result<(), CreateError> {
        if let Self::Recorded(session) = self {
            return session.upload(name, file, lost).await;
        }
        let known = (file.bytes(), file.sha256());
        let (file, lost) = (file.clone(), lost.clone());
        let offsets = (0..file.bytes()).step_by(SPOOL_BLOCK);
        // One block is read ahead while the last one is sent.
        let blocks = stream::iter(offsets)
            .map(move |offset| {
                let (file, lost) = (file.clone(), lost.clone());
                async move {
                    if lost.is_cancelled() {
                        return Err(RemoteError::NotSent { why: "the attempt lost the job".to_owned() });
                    }
                    file.read_at(offset, SPOOL_BLOCK)
                        .await
                        .map_err(|error| RemoteError::NotSent { why: error.to_string() })
                }
            })
            .buffered(2);
        self.create_from(name, known, blocks).await
    }

    /// `known`: how many bytes come, and their digest. Only an object store asks for it.
    async fn create_from(
        &self,
        name: &str,
        known: (u64, Sha256),
        blocks: impl stream::Stream<Item = Result<Bytes, RemoteError>> + Send + 'static,
    ) -> Result<(), CreateError> {
        match self {
            Self::Sftp(session) => session.create_from(name, blocks).await,
            Self::Directory(session) => session.create_from(name, blocks).await,
            Self::Objects(session) => {
                let (bytes, sha256) = known;
                session.create_from(name, bytes, sha256, blocks).await
            }
            Self::Recorded(_) => Err(CreateError {
                may_exist: false,
                error: RemoteError::NotSent { why: "a recorded session is given files whole".to_owned() },
            }),
        }
    }

    /// At most `most` bytes from `offset`.
    pub async fn read(&self, name: &str, offset: u64, most: u32) -> Result<Vec<u8>, RemoteError> {
        match self {
            Self::Sftp(session) => session.read(name, offset, most).await,
            Self::Directory(session) => session.read(name, offset, most).await,
            Self::Objects(session) => session.read(name, offset, most).await,
            Self::Recorded(session) => session.read(name, offset, most).await,
        }
    }

    /// The digest and the length of a file's content, by reading it back; gives up past `most` bytes.
    pub async fn read_digest(&self, name: &str, most: u64) -> Result<(Sha256, u64), RemoteError> {
        match self {
            Self::Sftp(session) => session.read_digest(name, most).await,
            Self::Directory(session) => session.read_digest(name, most).await,
            Self::Objects(session) => session.read_digest(name, most).await,
            Self::Recorded(session) => session.read_digest(name, most).await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn del_05_another_banner_or_extension_is_another_server() {
        let server = |banner: &str, extensions: &[(&str, &str)]| ServerFacts {
            banner: banner.to_owned(),
            extensions: extensions.iter().map(|(name, version)| ((*name).to_owned(), (*version).to_owned())).collect(),
            directory: "/".to_owned(),
        };
        let links = ("hardlink@openssh.com", "1");
        let first = server("SSH-2.0-A_1", &[links]).fingerprint();
        assert_eq!(ServerFacts { directory: "/in".to_owned(), ..server("SSH-2.0-A_1", &[links]) }.fingerprint(), first);
        for other in [
            server("SSH-2.0-A_2", &[links]),
            server("SSH-2.0-A_1", &[("hardlink@openssh.com", "2")]),
            server("SSH-2.0-A_1", &[]),
            server("SSH-2.0-A_1", &[links, ("fsync@openssh.com", "1")]),
        ] {
            assert_ne!(other.fingerprint(), first, "{other:?}");
        }
    }
}
