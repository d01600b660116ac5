//! One SFTP session: single requests.
//!
//! A failure is sorted here: an answer of the server is [`RemoteError::Refused`] with the raw code; what never left is
//! [`RemoteError::NotSent`]; everything else is [`RemoteError::Unknown`], and ends the session.

use std::future::Future;

use russh_sftp::client::RawSftpSession;
use russh_sftp::client::error::Error as SftpError;
use russh_sftp::extensions::HardlinkExtension;
use russh_sftp::protocol::{FileAttributes, FileMode, Packet, Status, StatusCode};

use super::normalise::{ESCAPED, raw_code};
use crate::job::facts::{Entry, Found};
use crate::remote::error::{PERMISSION_DENIED, RemoteError};
use crate::remote::opened::{self, Opened};

/// A session at one destination's directory on an SFTP server.
pub type Session = Opened<Sftp>;

pub(super) type Inner = opened::Inner<Sftp>;

pub struct Sftp {
    pub(super) raw: RawSftpSession,
    /// The most data that the server takes in one write, where it tells.
    pub(super) write_length: Option<u64>,
    /// The most that it returns in one answer, likewise.
    pub(super) read_length: Option<u64>,
}

impl Session {
    /// Asks the server for any answer at all.
    pub(in crate::remote) async fn ping(&self) -> Result<(), RemoteError> {
        let directory = self.inner.facts.directory.clone();
        self.request("REALPATH", |inner| async move { inner.ask(inner.own.raw.realpath(directory)).await.map(drop) })
            .await
    }

    /// Looks at a name, and changes nothing. Absent only if the server said so.
    pub async fn stat(&self, name: &str) -> Result<Found, RemoteError> {
        let (path, name) = (self.path(name), name.to_owned());
        let answer = self.request("STAT", |inner| async move { inner.ask(inner.own.raw.stat(path)).await }).await;
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
            let handle = inner.ask(inner.own.raw.opendir(path)).await?.handle;
            let mut entries = Vec::new();
            let read = loop {
                if entries.len() >= most {
                    break Ok(());
                }
                match inner.ask(inner.own.raw.readdir(handle.clone())).await {
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
        self.request("MKDIR", |inner| async move {
            inner.ask(inner.own.raw.mkdir(path, FileAttributes::empty())).await.map(drop)
        })
        .await
    }

    /// Bytes that this account may still write in the destination's directory; `None` where the server does not tell.
    pub async fn free_bytes(&self) -> Result<Option<u64>, RemoteError> {
        if !self.offers("statvfs@openssh.com") {
            return Ok(None);
        }
        let path = self.path("");
        let told = self.request("STATVFS", |inner| async move { inner.ask(inner.own.raw.statvfs(path)).await }).await;
        match told {
            Ok(told) => Ok(Some(told.blocks_avail.saturating_mul(told.fragment_size))),
            Err(error) if error.is_refusal() => Ok(None),
            Err(error) => Err(error),
        }
    }

    pub async fn remove(&self, name: &str) -> Result<(), RemoteError> {
        let path = self.path(name);
        self.request("REMOVE", |inner| async move { inner.ask(inner.own.raw.remove(path)).await.map(drop) }).await
    }

    /// `SSH_FXP_RENAME`: what it does to an existing target differs from server to server.
    pub async fn rename(&self, from: &str, to: &str) -> Result<(), RemoteError> {
        let (from, to) = (self.path(from), self.path(to));
        self.request("RENAME", |inner| async move { inner.ask(inner.own.raw.rename(from, to)).await.map(drop) }).await
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
        self.request(extension, move |inner| async move {
            match inner.ask(inner.own.raw.extended(extension, data)).await? {
                Packet::Status(status) if status.status_code == StatusCode::Ok => Ok(()),
                Packet::Status(status) => Err(inner.answered_no(&status).await),
                _ => Err(inner.lost("the server answered with a packet of another kind").await),
            }
        })
        .await
    }

    /// `why` if the server does not offer the extension.
    pub(in crate::remote) fn lacks(&self, extension: &str, why: &'static str) -> Option<&'static str> {
        (!self.offers(extension)).then_some(why)
    }

    fn offers(&self, extension: &str) -> bool {
        self.inner.facts.extensions.contains_key(extension)
    }

    pub(super) fn path(&self, name: &str) -> String {
        match name {
            "" | "." => self.inner.facts.directory.clone(),
            name => format!("{}/{name}", self.inner.facts.directory.trim_end_matches('/')),
        }
    }
}

/// `SSH_FX_EOF`.
pub(super) const END: u32 = 1;
/// `SSH_FX_NO_CONNECTION` and `SSH_FX_CONNECTION_LOST`, which a gateway sends for a server behind it.
const NO_CONNECTION: u32 = 6;
const CONNECTION_LOST: u32 = 7;

impl Inner {
    /// Waits for one answer and sorts its failure.
    pub(super) async fn ask<T>(&self, request: impl Future<Output = Result<T, SftpError>>) -> Result<T, RemoteError> {
        match request.await {
            Ok(answer) => Ok(answer),
            Err(SftpError::Status(status)) => Err(self.answered_no(&status).await),
            // These two are raised before the request is queued.
            Err(SftpError::Limited(why)) => Err(RemoteError::NotSent { why }),
            Err(SftpError::UnexpectedBehavior(text)) if text == "session closed" => {
                self.line.fail("the SFTP channel is closed");
                Err(RemoteError::NotSent { why: self.line.cause().to_owned() })
            }
            Err(error) => Err(self.lost(&error.to_string()).await),
        }
    }

    /// The server's no. Two of its codes are none: what stands behind the server may have done the request.
    async fn answered_no(&self, status: &Status) -> RemoteError {
        match refused(status) {
            RemoteError::Refused { code: Some(NO_CONNECTION | CONNECTION_LOST), text } => {
                self.lost(&format!("the server lost what stands behind it: {text}")).await
            }
            refusal => refusal,
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
        if let Err(error) = self.ask(self.own.raw.close(handle)).await {
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
