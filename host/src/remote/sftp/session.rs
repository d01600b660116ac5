//! One SFTP session: single requests, each bounded, each finished even when nobody waits for it any more.
//!
//! A request runs in a task of its own, so that dropping its caller leaves no half-sent request and no unread
//! answer. Its failure is sorted here: an answer of the server is [`RemoteError::Refused`] with the raw code; what
//! never left is [`RemoteError::NotSent`]; everything else is [`RemoteError::Unknown`], and ends the session.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use russh_sftp::client::RawSftpSession;
use russh_sftp::client::error::Error as SftpError;
use russh_sftp::extensions::HardlinkExtension;
use russh_sftp::protocol::{FileAttributes, FileMode, Packet, Status, StatusCode};
use sha2::{Digest, Sha256};
use tokio_util::task::TaskTracker;

use super::line::Line;
use super::normalise::{ESCAPED, raw_code};
use crate::job::facts::{Entry, Found};
use crate::remote::error::{PERMISSION_DENIED, RemoteError};

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
        }
    }
}

/// What a server told about itself when the session was opened.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct ServerFacts {
    /// The SSH identification string.
    pub banner: String,
    /// SFTP extensions and their versions.
    pub extensions: BTreeMap<String, String>,
    /// The destination's directory, absolute, as the server resolves it.
    pub directory: String,
}

impl ServerFacts {
    /// Changes when the server's software or its extensions change; a proof about a server is kept under it.
    pub fn fingerprint(&self) -> String {
        let mut hash = Sha256::new();
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

/// A session at one destination's directory. Names are relative to it. Clones share the connection, which ends with
/// the last of them.
#[derive(Clone)]
pub struct Session {
    pub(super) inner: Arc<Inner>,
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session").field("server", &self.inner.facts).field("usable", &self.is_usable()).finish()
    }
}

pub(super) struct Inner {
    pub(super) raw: RawSftpSession,
    pub(super) line: Arc<Line>,
    pub(super) facts: ServerFacts,
    pub(super) limits: SessionLimits,
    /// The most data that the server takes in one write, where it tells.
    pub(super) write_length: Option<u64>,
    tasks: TaskTracker,
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.line.fail("the session was closed");
    }
}

impl Session {
    pub(super) fn new(
        raw: RawSftpSession,
        line: Arc<Line>,
        facts: ServerFacts,
        limits: SessionLimits,
        write_length: Option<u64>,
    ) -> Self {
        Self { inner: Arc::new(Inner { raw, line, facts, limits, write_length, tasks: TaskTracker::new() }) }
    }

    pub fn server(&self) -> &ServerFacts {
        &self.inner.facts
    }

    /// False from the first lost, late or unreadable answer on.
    pub fn is_usable(&self) -> bool {
        self.inner.line.is_up()
    }

    /// Waits for requests in flight, within the bound for taking leave, and ends the connection.
    pub async fn close(&self) {
        self.inner.tasks.close();
        if tokio::time::timeout(self.inner.limits.goodbye, self.inner.tasks.wait()).await.is_err() {
            tracing::debug!("the session is closed with requests in flight");
        }
        self.inner.line.fail("the session was closed");
    }

    /// True if no clone and no request of this session is alive elsewhere.
    pub(super) fn is_sole(&self) -> bool {
        Arc::strong_count(&self.inner) == 1
    }

    /// Asks the server for any answer at all.
    pub(super) async fn ping(&self) -> Result<(), RemoteError> {
        let directory = self.inner.facts.directory.clone();
        self.run("REALPATH", self.inner.limits.request, |inner| async move {
            inner.ask(inner.raw.realpath(directory)).await.map(drop)
        })
        .await
    }

    /// Looks at a name, and changes nothing. Absent only if the server said so.
    pub async fn stat(&self, name: &str) -> Result<Found, RemoteError> {
        let (path, name) = (self.path(name), name.to_owned());
        let answer = self
            .run("STAT", self.inner.limits.request, |inner| async move { inner.ask(inner.raw.stat(path)).await })
            .await;
        match answer {
            Ok(found) => Ok(Found::Present(entry(name, &found.attrs))),
            Err(refusal) if refusal.says_absent() => Ok(Found::Absent),
            Err(RemoteError::Refused { code: Some(PERMISSION_DENIED), text }) => Ok(Found::NotVisible { why: text }),
            Err(error) => Err(error),
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
        let path = self.path(directory);
        let (directory, prefix) = (directory.trim_end_matches('/').to_owned(), prefix.to_owned());
        self.run("READDIR", self.inner.limits.look, move |inner| async move {
            let handle = inner.ask(inner.raw.opendir(path)).await?.handle;
            let mut entries = Vec::new();
            let read = loop {
                if entries.len() >= most {
                    break Ok(());
                }
                match inner.ask(inner.raw.readdir(handle.clone())).await {
                    Ok(names) => entries.extend(names.files.into_iter().filter_map(|file| {
                        if file.filename == "." || file.filename == ".." || !file.filename.starts_with(&prefix) {
                            return None;
                        }
                        let name = match directory.as_str() {
                            "" | "." => file.filename,
                            directory => format!("{directory}/{}", file.filename),
                        };
                        let mut entry = entry(name, &file.attrs);
                        if file.longname == ESCAPED {
                            entry.kind = String::from("other");
                        }
                        wanted(&entry.name).then_some(entry)
                    })),
                    Err(RemoteError::Refused { code: Some(END), .. }) => break Ok(()),
                    Err(error) => break Err(error),
                }
            };
            inner.close_quietly(handle).await;
            entries.truncate(most);
            read.map(|()| entries)
        })
        .await
    }

    /// Creates a directory.
    pub async fn make_directory(&self, name: &str) -> Result<(), RemoteError> {
        let path = self.path(name);
        self.run("MKDIR", self.inner.limits.request, |inner| async move {
            inner.ask(inner.raw.mkdir(path, FileAttributes::empty())).await.map(drop)
        })
        .await
    }

    /// Bytes that this account may still write in the destination's directory; `None` where the server does not tell.
    pub async fn free_bytes(&self) -> Result<Option<u64>, RemoteError> {
        if !self.offers("statvfs@openssh.com") {
            return Ok(None);
        }
        let path = self.path("");
        let told = self
            .run("STATVFS", self.inner.limits.request, |inner| async move { inner.ask(inner.raw.statvfs(path)).await })
            .await;
        match told {
            Ok(told) => Ok(Some(told.blocks_avail.saturating_mul(told.fragment_size))),
            Err(error) if error.is_refusal() => Ok(None),
            Err(error) => Err(error),
        }
    }

    pub async fn remove(&self, name: &str) -> Result<(), RemoteError> {
        let path = self.path(name);
        self.run("REMOVE", self.inner.limits.request, |inner| async move {
            inner.ask(inner.raw.remove(path)).await.map(drop)
        })
        .await
    }

    /// `SSH_FXP_RENAME`: what it does to an existing target differs from server to server.
    pub async fn rename(&self, from: &str, to: &str) -> Result<(), RemoteError> {
        let (from, to) = (self.path(from), self.path(to));
        self.run("RENAME", self.inner.limits.request, |inner| async move {
            inner.ask(inner.raw.rename(from, to)).await.map(drop)
        })
        .await
    }

    /// `hardlink@openssh.com`: a second name, never over an existing one; some servers say yes and make none.
    pub async fn hardlink(&self, from: &str, to: &str) -> Result<(), RemoteError> {
        self.two_names("hardlink@openssh.com", from, to).await
    }

    /// `posix-rename@openssh.com`: replaces an existing target.
    pub async fn posix_rename(&self, from: &str, to: &str) -> Result<(), RemoteError> {
        self.two_names("posix-rename@openssh.com", from, to).await
    }

    /// Both extensions have the same layout: two names, answered by a status.
    async fn two_names(&self, extension: &'static str, from: &str, to: &str) -> Result<(), RemoteError> {
        if !self.offers(extension) {
            return Err(RemoteError::NotSent { why: format!("the server does not offer {extension}") });
        }
        let names = HardlinkExtension { oldpath: self.path(from), newpath: self.path(to) };
        let data = match TryInto::<Vec<u8>>::try_into(names) {
            Ok(data) => data,
            Err(error) => return Err(RemoteError::NotSent { why: error.to_string() }),
        };
        self.run(extension, self.inner.limits.request, move |inner| async move {
            match inner.ask(inner.raw.extended(extension, data)).await? {
                Packet::Status(status) if status.status_code == StatusCode::Ok => Ok(()),
                Packet::Status(status) => Err(refused(&status)),
                _ => Err(inner.lost("the server answered with a packet of another kind").await),
            }
        })
        .await
    }

    pub(in crate::remote) fn offers(&self, extension: &str) -> bool {
        self.inner.facts.extensions.contains_key(extension)
    }

    pub(super) fn path(&self, name: &str) -> String {
        match name {
            "" | "." => self.inner.facts.directory.clone(),
            name => format!("{}/{name}", self.inner.facts.directory.trim_end_matches('/')),
        }
    }

    /// Runs an operation to its end in a task of its own. Lateness ends the session: what was asked may still happen.
    pub(super) async fn run<T, F>(
        &self,
        what: &'static str,
        bound: Duration,
        operation: impl FnOnce(Arc<Inner>) -> F,
    ) -> Result<T, RemoteError>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, RemoteError>> + Send + 'static,
    {
        if !self.is_usable() {
            return Err(RemoteError::NotSent { why: self.inner.line.cause().to_owned() });
        }
        let line = Arc::clone(&self.inner.line);
        let operation = operation(Arc::clone(&self.inner));
        let task = self.inner.tasks.spawn(async move {
            let Ok(result) = tokio::time::timeout(bound, operation).await else {
                let why = format!("no answer to {what} within {} s", bound.as_secs_f32());
                line.fail(why.clone());
                return Err(RemoteError::Unknown { why });
            };
            result
        });
        task.await.unwrap_or_else(|error| Err(RemoteError::Unknown { why: format!("{what} did not end: {error}") }))
    }
}

/// `SSH_FX_EOF`.
pub(super) const END: u32 = 1;

impl Inner {
    /// Waits for one answer and sorts its failure.
    pub(super) async fn ask<T>(&self, request: impl Future<Output = Result<T, SftpError>>) -> Result<T, RemoteError> {
        match request.await {
            Ok(answer) => Ok(answer),
            Err(SftpError::Status(status)) => Err(refused(&status)),
            // These two are raised before the request is queued.
            Err(SftpError::Limited(why)) => Err(RemoteError::NotSent { why }),
            Err(SftpError::UnexpectedBehavior(text)) if text == "session closed" => {
                self.line.fail("the SFTP channel is closed");
                Err(RemoteError::NotSent { why: self.line.cause().to_owned() })
            }
            Err(error) => Err(self.lost(&error.to_string()).await),
        }
    }

    /// An answer that will not come, or cannot be read.
    pub(super) async fn lost(&self, noticed: &str) -> RemoteError {
        let why = self.line.cause_or(noticed).await;
        self.line.fail(why.clone());
        RemoteError::Unknown { why }
    }

    /// Closes a handle whose closing proves nothing.
    pub(super) async fn close_quietly(&self, handle: String) {
        // On a line that is down an answer would be waited for in vain.
        if !self.line.is_up() {
            return;
        }
        if let Err(error) = self.ask(self.raw.close(handle)).await {
            tracing::debug!(%error, "a handle that was only read from was not closed");
        }
    }
}

/// The server's no, with the raw code that the normaliser kept.
pub(super) fn refused(status: &Status) -> RemoteError {
    let code = raw_code(&status.language_tag).unwrap_or(status.status_code as u32);
    let words: String = status.error_message.chars().filter(|char| !char.is_control()).take(300).collect();
    RemoteError::Refused {
        code: Some(code),
        text: if words.is_empty() { status.status_code.to_string() } else { words },
    }
}

fn entry(name: String, attributes: &FileAttributes) -> Entry {
    let kind = attributes.permissions.map(|mode| mode & 0xF000).unwrap_or_default();
    let kind = match kind {
        kind if kind == FileMode::REG.bits() => "file",
        kind if kind == FileMode::DIR.bits() => "directory",
        // The server tells no type; what can be read will show.
        0 => "unknown",
        _ => "other",
    };
    Entry { name, kind: kind.to_owned(), bytes: attributes.size, modified: attributes.mtime.map(u64::from) }
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
