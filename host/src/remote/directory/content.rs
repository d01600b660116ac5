//! Content: files are created exclusively, written in order, brought to the disk with their names; and read back.

use std::fs::File;
use std::io::Write as _;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::{Stream, StreamExt as _};
use rustix::fs::{Mode, OFlags, fstat, openat};
use sha2::{Digest as _, Sha256 as Hasher};
use tokio::time::Instant;

use super::errno::{sorted, sorted_io};
use super::place::{Purpose, kind};
use super::session::{Inner, Session, on_disk};
use crate::job::facts::Sha256;
use crate::remote::error::{FAILURE, RemoteError};
use crate::remote::session::CreateError;

/// Written bytes are flushed this often: the flush of a large file at its end alone could outlast every bound.
const FLUSH_EVERY_BYTES: u64 = 64 * 1024 * 1024;
const READ_BYTES: usize = 256 * 1024;
/// Owner and group, as for folders. The process's umask may take more away.
const FILE_MODE: Mode = Mode::RUSR.union(Mode::WUSR).union(Mode::RGRP);

impl Session {
    /// Creates a file that must not exist yet: written, flushed, and its name brought to the disk.
    pub(in crate::remote) async fn create_from(
        &self,
        name: &str,
        blocks: impl Stream<Item = Result<Bytes, RemoteError>> + Send + 'static,
    ) -> Result<(), CreateError> {
        let name = name.to_owned();
        // It may take as long as it makes progress; each step has its own bound inside.
        let ran = self
            .run("an upload", Duration::MAX, |inner| async move { Ok(inner.create_and_write(name, blocks).await) })
            .await;
        match ran {
            Ok(result) => result,
            Err(error) => Err(CreateError { may_exist: !matches!(error, RemoteError::NotSent { .. }), error }),
        }
    }

    pub async fn read(&self, name: &str, offset: u64, most: u32) -> Result<Vec<u8>, RemoteError> {
        let name = name.to_owned();
        self.ask("reading", move |inner| {
            let file = inner.open_to_read(&name)?;
            let mut content = vec![0; most as usize];
            let read = read_at(&file, &mut content, offset)?;
            content.truncate(read);
            Ok(content)
        })
        .await
    }

    pub async fn read_digest(&self, name: &str, most: u64) -> Result<(Sha256, u64), RemoteError> {
        let name = name.to_owned();
        self.ask_within("reading back", self.inner.limits.reading_back(), move |inner| {
            let began = Instant::now();
            let file = inner.open_to_read(&name)?;
            let (mut hash, mut bytes, mut block) = (Hasher::new(), 0, vec![0; READ_BYTES]);
            loop {
                let read = read_at(&file, &mut block, bytes)?;
                hash.update(block.get(..read).unwrap_or_default());
                bytes += read as u64;
                if bytes > most {
                    return Err(RemoteError::Invalid { why: format!("the file is longer than {most} bytes") });
                }
                if read < READ_BYTES {
                    return Ok((Sha256(hash.finalize().into()), bytes));
                }
                inner.limits.check_reading_back(began)?;
                // Nobody waits any more for a reading that was late.
                if !inner.line.is_up() {
                    return Err(RemoteError::Unknown { why: inner.line.cause().to_owned() });
                }
            }
        })
        .await
    }
}

impl Inner {
    async fn create_and_write(
        self: Arc<Self>,
        name: String,
        blocks: impl Stream<Item = Result<Bytes, RemoteError>> + Send,
    ) -> Result<(), CreateError> {
        let created = self
            .within("creating a file", self.limits.request, move |inner| {
                let (folder, last) = inner.root().folder_of(&name, Purpose::ListOrChange)?;
                let how = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                let file = openat(&folder, last, how, FILE_MODE).map_err(sorted)?;
                Ok((Arc::new(File::from(file)), folder))
            })
            .await;
        let (file, folder) = match created {
            Ok(created) => created,
            Err(error) => {
                return Err(CreateError { may_exist: matches!(error, RemoteError::Unknown { .. }), error });
            }
        };
        self.write(&file, folder, blocks).await.map_err(|error| CreateError { may_exist: true, error })
    }

    async fn write(
        self: &Arc<Self>,
        file: &Arc<File>,
        folder: OwnedFd,
        blocks: impl Stream<Item = Result<Bytes, RemoteError>> + Send,
    ) -> Result<(), RemoteError> {
        let mut blocks = std::pin::pin!(blocks);
        let mut unflushed = 0;
        while let Some(block) = blocks.next().await {
            let block = block?;
            unflushed += block.len() as u64;
            let flush = unflushed >= FLUSH_EVERY_BYTES;
            if flush {
                unflushed = 0;
            }
            let file = Arc::clone(file);
            self.within("writing", self.limits.stall, move |_| {
                (&*file).write_all(&block).map_err(|error| sorted_io(&error))?;
                if flush { file.sync_data().map_err(|error| sorted_io(&error)) } else { Ok(()) }
            })
            .await?;
        }
        let file = Arc::clone(file);
        self.within("flushing", self.limits.stall, move |_| {
            file.sync_all().map_err(|error| sorted_io(&error))?;
            on_disk(&folder)
        })
        .await
    }

    /// One step of an upload. A late one ends the session: it may still happen.
    async fn within<T: Send + 'static>(
        self: &Arc<Self>,
        what: &str,
        bound: Duration,
        step: impl FnOnce(&Self) -> Result<T, RemoteError> + Send + 'static,
    ) -> Result<T, RemoteError> {
        let Ok(result) = tokio::time::timeout(bound, Arc::clone(self).blocking(step)).await else {
            let why = format!("{what} did not end within {} s", bound.as_secs_f32());
            self.line.fail(why.clone());
            return Err(RemoteError::Unknown { why });
        };
        result
    }

    /// A regular file. One that somebody made a pipe or a device is refused, and waits for nobody.
    fn open_to_read(&self, name: &str) -> Result<File, RemoteError> {
        let (folder, last) = self.root().folder_of(name, Purpose::Look)?;
        let how = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let file = openat(&folder, last, how, Mode::empty()).map_err(sorted)?;
        if kind(fstat(&file).map_err(sorted)?.st_mode) != "file" {
            return Err(RemoteError::Refused { code: Some(FAILURE), text: "it is not a regular file".to_owned() });
        }
        Ok(File::from(file))
    }
}

/// Fills the block as far as the file reaches.
fn read_at(file: &File, block: &mut [u8], offset: u64) -> Result<usize, RemoteError> {
    let mut filled = 0;
    while let Some(rest) = block.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        match file.read_at(rest, offset + filled as u64) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(sorted_io(&error)),
        }
    }
    Ok(filled)
}
