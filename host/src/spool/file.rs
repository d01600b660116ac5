//! A finished file: read at any offset, as often as needed, until its last owner lets go.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;

use bytes::Bytes;

use super::{Spool, SpoolError};
use crate::job::facts::Sha256;

/// A finished file. Clones share it; its space is freed with the last one.
#[derive(Debug, Clone)]
pub struct SpoolFile {
    spool: Spool,
    file: Arc<File>,
    bytes: u64,
    sha256: Sha256,
}

impl SpoolFile {
    pub(super) fn new(spool: Spool, file: File, bytes: u64, sha256: Sha256) -> Self {
        Self { spool, file: Arc::new(file), bytes, sha256 }
    }

    /// Length in bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Digest of the whole content.
    pub fn sha256(&self) -> Sha256 {
        self.sha256
    }

    /// At most `length` bytes from `offset`; fewer only at the end.
    pub async fn read_at(&self, offset: u64, length: usize) -> Result<Bytes, SpoolError> {
        let left = usize::try_from(self.bytes.saturating_sub(offset)).unwrap_or(usize::MAX);
        let mut buffer = vec![0_u8; length.min(left)];
        let file = Arc::clone(&self.file);
        let read = tokio::task::spawn_blocking(move || file.read_exact_at(&mut buffer, offset).map(|()| buffer)).await;
        match read {
            Ok(result) => result.map(Bytes::from).map_err(|source| self.spool.error("reading", source)),
            Err(join) => Err(self.spool.error("reading", std::io::Error::other(join))),
        }
    }
}
