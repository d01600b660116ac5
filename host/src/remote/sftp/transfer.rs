//! Content: files are created exclusively, written in order with many writes in flight, closed; and read back.

use std::collections::VecDeque;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::stream::{self, FuturesOrdered};
use futures::{FutureExt, StreamExt};
use russh_sftp::protocol::{FileAttributes, OpenFlags};
use sha2::{Digest, Sha256 as Hasher};
use tokio::time::Instant;

use super::normalise::handle_length;
use super::session::{END, Inner, Session};
use crate::job::facts::Sha256;
use crate::remote::error::{FAILURE, NO_SPACE, OP_UNSUPPORTED, QUOTA_EXCEEDED, RemoteError};
use crate::remote::session::CreateError;

/// Writes in flight: about 1 MiB, half of OpenSSH's window, so that the library's writer never waits for window.
const WRITES_IN_FLIGHT: usize = 32;
/// Bytes of a WRITE packet beside its handle and data; with them it is 32 KiB, one SSH packet of OpenSSH's.
const WRITE_OVERHEAD: usize = 25;
const SSH_PACKET: usize = 32 * 1024;
const READS_IN_FLIGHT: usize = 16;
/// Every server returns at least this much in one answer, or says that the file ends.
const READ_BYTES: u32 = 32 * 1024;

impl Session {
    /// Creates a file that must not exist yet: many writes in flight, flushed to disk where the server offers it, and closed.
    pub(in crate::remote) async fn create_from(
        &self,
        name: &str,
        blocks: impl stream::Stream<Item = Result<Bytes, RemoteError>> + Send + 'static,
    ) -> Result<(), CreateError> {
        let path = self.path(name);
        // An upload may take as long as it makes progress; each answer has its own bound inside.
        let ran = self
            .run("an upload", Duration::MAX, |inner| async move { Ok(inner.create_and_write(path, blocks).await) })
            .await;
        match ran {
            Ok(result) => result,
            Err(error) => Err(CreateError { may_exist: !matches!(error, RemoteError::NotSent { .. }), error }),
        }
    }

    /// At most `most` bytes from `offset`.
    pub async fn read(&self, name: &str, offset: u64, most: u32) -> Result<Vec<u8>, RemoteError> {
        let path = self.path(name);
        self.request("READ", move |inner| async move {
            let handle = inner.ask(inner.own.raw.open(path, OpenFlags::READ, FileAttributes::empty())).await?.handle;
            let content = inner.read_whole(&handle, offset, most).await;
            inner.close_quietly(handle).await;
            content
        })
        .await
    }

    /// The digest and the length of a file's content, by reading it back; gives up past `most` bytes.
    pub async fn read_digest(&self, name: &str, most: u64) -> Result<(Sha256, u64), RemoteError> {
        let path = self.path(name);
        self.run("READ", self.inner.limits.reading_back(), move |inner| async move {
            let handle = inner.ask(inner.own.raw.open(path, OpenFlags::READ, FileAttributes::empty())).await?.handle;
            let digest = inner.digest(&handle, most).await;
            inner.close_quietly(handle).await;
            digest
        })
        .await
    }
}

impl Inner {
    async fn create_and_write(
        self: Arc<Self>,
        path: String,
        blocks: impl stream::Stream<Item = Result<Bytes, RemoteError>> + Send,
    ) -> Result<(), CreateError> {
        let flags = OpenFlags::WRITE | OpenFlags::CREATE | OpenFlags::EXCLUDE;
        let opened = self.answer("OPEN", self.own.raw.open(path, flags, FileAttributes::empty())).await;
        let handle = match opened {
            Ok(opened) => opened.handle,
            Err(error) => {
                return Err(CreateError { may_exist: matches!(error, RemoteError::Unknown { .. }), error });
            }
        };
        let exists = |error| CreateError { may_exist: true, error };
        let written = self.write_blocks(&handle, blocks).await;
        let flushed = match written {
            Ok(()) => self.flush(&handle).await,
            Err(error) => Err(error),
        };
        // On a line that is down nothing can be closed, and an answer would be waited for in vain.
        if flushed.is_err() && !self.line.is_up() {
            return flushed.map_err(exists);
        }
        // The handle is closed also after a refused write: no write may arrive later.
        let closed = self.answer("CLOSE", self.own.raw.close(handle)).await.map(drop);
        flushed.and(closed).map_err(exists)
    }

    /// Writes in order. After the first refusal nothing more is sent, but every answer is still waited for.
    async fn write_blocks(
        &self,
        handle: &str,
        blocks: impl stream::Stream<Item = Result<Bytes, RemoteError>> + Send,
    ) -> Result<(), RemoteError> {
        let piece = SSH_PACKET.saturating_sub(WRITE_OVERHEAD + handle_length(handle));
        let piece = self
            .own
            .write_length
            .and_then(|most| usize::try_from(most).ok())
            .map_or(piece, |most| piece.min(most))
            .max(1);
        let mut blocks = std::pin::pin!(blocks.fuse());
        let mut in_flight = FuturesOrdered::new();
        let mut offset = 0;
        let mut failed = None;
        let mut waiting: VecDeque<Bytes> = VecDeque::new();
        let mut carried = Bytes::new();
        loop {
            // Full pieces only, except for the last: a block's end is no reason for a short packet.
            while waiting.is_empty() && failed.is_none() {
                match blocks.next().await {
                    Some(Ok(block)) => carried = cut(&carried, block, piece, &mut waiting),
                    Some(Err(error)) => failed = Some(error),
                    None => {
                        let last = std::mem::take(&mut carried);
                        if last.is_empty() {
                            break;
                        }
                        waiting.push_back(last);
                    }
                }
            }
            if failed.is_some() {
                waiting.clear();
            }
            while in_flight.len() < WRITES_IN_FLIGHT {
                let Some(data) = waiting.pop_front() else { break };
                let at = offset;
                offset += data.len() as u64;
                let mut write = self.own.raw.write(handle, at, data.to_vec()).boxed();
                // Queued now, so that the order of the packets is the order of the offsets: one server refuses another.
                in_flight.push_back(match (&mut write).now_or_never() {
                    None => write,
                    Some(done) => std::future::ready(done).boxed(),
                });
            }
            if in_flight.is_empty() {
                break;
            }
            if in_flight.len() < WRITES_IN_FLIGHT && failed.is_none() && !waiting.is_empty() {
                continue;
            }
            let next =
                async { in_flight.next().await.unwrap_or(Err(russh_sftp::client::error::Error::UnexpectedPacket)) };
            if let Err(error) = self.answer_within("WRITE", self.limits.stall, next).await {
                let ended = matches!(error, RemoteError::Unknown { .. });
                failed.get_or_insert_with(|| while_writing(error));
                if ended {
                    break;
                }
            }
        }
        failed.map_or(Ok(()), Err)
    }

    /// Asks the server to bring the content to its disk. One that offers it and then does not support it is let off.
    async fn flush(&self, handle: &str) -> Result<(), RemoteError> {
        if !self.facts.extensions.contains_key("fsync@openssh.com") {
            return Ok(());
        }
        match self.answer_within("fsync", self.limits.stall, self.own.raw.fsync(handle)).await {
            Err(RemoteError::Refused { code: Some(OP_UNSUPPORTED), .. }) | Ok(_) => Ok(()),
            Err(error) => Err(error),
        }
    }

    async fn read_whole(&self, handle: &str, offset: u64, most: u32) -> Result<Vec<u8>, RemoteError> {
        let mut content = Vec::new();
        while content.len() < most as usize {
            let left = u32::try_from(most as usize - content.len()).unwrap_or(u32::MAX);
            let told = self.own.read_length.and_then(|most| u32::try_from(most).ok()).unwrap_or(READ_BYTES);
            let at_once = left.min(READ_BYTES).min(told.max(1));
            let read = self.own.raw.read(handle, offset + content.len() as u64, at_once);
            match self.ask(read).await {
                Ok(data) if data.data.is_empty() => break,
                Ok(data) => content.extend_from_slice(&data.data),
                Err(RemoteError::Refused { code: Some(END), .. }) => break,
                Err(error) => return Err(error),
            }
        }
        content.truncate(most as usize);
        Ok(content)
    }

    async fn digest(&self, handle: &str, most: u64) -> Result<(Sha256, u64), RemoteError> {
        let began = Instant::now();
        let mut hash = Hasher::new();
        let mut bytes: u64 = 0;
        let mut pieces = stream::iter((0..=most).step_by(READ_BYTES as usize))
            .map(|offset| self.read_whole(handle, offset, READ_BYTES))
            .buffered(READS_IN_FLIGHT);
        while let Some(piece) = pieces.next().await {
            let piece = piece?;
            hash.update(&piece);
            bytes += piece.len() as u64;
            if piece.len() < READ_BYTES as usize {
                break;
            }
            self.limits.check_reading_back(began)?;
        }
        if bytes > most {
            return Err(RemoteError::Invalid { why: format!("the file is longer than {most} bytes") });
        }
        Ok((Sha256(hash.finalize().into()), bytes))
    }

    async fn answer<T>(
        &self,
        what: &str,
        request: impl Future<Output = Result<T, russh_sftp::client::error::Error>>,
    ) -> Result<T, RemoteError> {
        self.answer_within(what, self.limits.request, request).await
    }

    async fn answer_within<T>(
        &self,
        what: &str,
        bound: Duration,
        request: impl Future<Output = Result<T, russh_sftp::client::error::Error>>,
    ) -> Result<T, RemoteError> {
        let Ok(result) = tokio::time::timeout(bound, self.ask(request)).await else {
            let why = format!("no answer to {what} within {} s", bound.as_secs_f32());
            self.line.fail(why.clone());
            return Err(RemoteError::Unknown { why });
        };
        result
    }
}

/// Servers say of a full disk only that the write failed, so the words name the most likely cause.
fn while_writing(error: RemoteError) -> RemoteError {
    match error {
        RemoteError::Refused { code: code @ Some(FAILURE | NO_SPACE | QUOTA_EXCEEDED), text } => RemoteError::Refused {
            code,
            text: format!(
                "{text} (while the content was written: its disk or our quota there may be full; ask the partner)"
            ),
        },
        other => other,
    }
}

/// Cuts a block, after what the last one left over, into whole pieces; returns what is left over now.
fn cut(carried: &Bytes, block: Bytes, piece: usize, into: &mut VecDeque<Bytes>) -> Bytes {
    let mut block = block;
    if !carried.is_empty() {
        let missing = block.split_to(block.len().min(piece.saturating_sub(carried.len())));
        let joined = Bytes::from([carried.as_ref(), missing.as_ref()].concat());
        if joined.len() < piece {
            return joined;
        }
        into.push_back(joined);
    }
    while block.len() >= piece {
        into.push_back(block.split_to(piece));
    }
    block
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_whole_and_nothing_is_lost() {
        let content: Vec<u8> = (0..=255).cycle().take(1000).collect();
        for (piece, block) in [(7, 64), (64, 7), (64, 64), (1000, 1), (1, 1000)] {
            let (mut into, mut carried) = (VecDeque::new(), Bytes::new());
            for block in content.chunks(block) {
                carried = cut(&carried, Bytes::copy_from_slice(block), piece, &mut into);
            }
            assert!(into.iter().all(|bytes| bytes.len() == piece) && carried.len() < piece);
            into.push_back(carried);
            assert_eq!(into.iter().flatten().copied().collect::<Vec<u8>>(), content);
        }
    }
}
