//! A file under construction: counted, hashed and bounded as it is written.

use std::fs::File;
use std::io::{BufWriter, Write as _};

use sha2::Digest as _;

use super::{Spool, SpoolError, SpoolFile};
use crate::job::facts::Sha256;

/// Bytes gathered before the file system is asked.
const BUFFER_BYTES: usize = 256 * 1024;

/// A file under construction.
#[derive(Debug)]
pub struct Draft {
    spool: Spool,
    /// Absent while a write is under way on the blocking pool, and for good after one that was abandoned there or failed: what
    /// such a write left in the file and in the digest is not known, and a chunk that is missing must not pass for a whole file.
    inner: Option<Inner>,
    bytes: u64,
    limit_bytes: u64,
}

#[derive(Debug)]
struct Inner {
    file: BufWriter<File>,
    hash: sha2::Sha256,
}

impl Draft {
    pub(super) fn new(spool: Spool, file: File, limit_bytes: u64) -> Self {
        let file = BufWriter::with_capacity(BUFFER_BYTES, file);
        Self { spool, inner: Some(Inner { file, hash: sha2::Sha256::new() }), bytes: 0, limit_bytes }
    }

    /// Bytes written so far.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Appends bytes, all or (past the limit) none of them.
    pub async fn write(&mut self, bytes: &[u8]) -> Result<(), SpoolError> {
        let after = self.bytes.saturating_add(bytes.len() as u64);
        if after > self.limit_bytes {
            return Err(SpoolError::TooLarge { limit_bytes: self.limit_bytes });
        }
        let owned = bytes.to_vec();
        self.with_file("writing", move |inner| {
            inner.hash.update(&owned);
            inner.file.write_all(&owned)
        })
        .await?;
        self.bytes = after;
        Ok(())
    }

    /// Ends construction. The size is read back from the file system: a short write must not pass for a whole file.
    pub async fn finish(mut self) -> Result<SpoolFile, SpoolError> {
        let length = self
            .with_file("finishing", |inner| inner.file.flush().and_then(|()| inner.file.get_ref().metadata()))
            .await?;
        if length.len() != self.bytes {
            let short = std::io::Error::other(format!("{} bytes were written, {} are there", self.bytes, length.len()));
            return Err(self.spool.error("finishing", short));
        }
        let Some(inner) = self.inner.take() else {
            return Err(self.spool.error("finishing", spoilt()));
        };
        let file = inner.file.into_inner().map_err(|error| self.spool.error("finishing", error.into_error()))?;
        Ok(SpoolFile::new(self.spool, file, self.bytes, Sha256(inner.hash.finalize().into())))
    }

    /// Runs file work on the blocking pool: a slow disk must not hold up the runtime's other tasks.
    async fn with_file<T: Send + 'static>(
        &mut self,
        doing: &'static str,
        work: impl FnOnce(&mut Inner) -> std::io::Result<T> + Send + 'static,
    ) -> Result<T, SpoolError> {
        let Some(mut inner) = self.inner.take() else {
            return Err(self.spool.error(doing, spoilt()));
        };
        let done = tokio::task::spawn_blocking(move || work(&mut inner).map(|result| (inner, result))).await;
        match done {
            Ok(Ok((inner, result))) => {
                self.inner = Some(inner);
                Ok(result)
            }
            Ok(Err(source)) => Err(self.spool.error(doing, source)),
            Err(join) => Err(self.spool.error(doing, std::io::Error::other(join))),
        }
    }
}

fn spoilt() -> std::io::Error {
    std::io::Error::other("an earlier write failed or was abandoned")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A disk that is always full takes what fits into the buffer, as one that was full for a moment takes everything later.
    #[tokio::test]
    async fn plg_03_after_a_write_that_failed_nothing_more_is_taken() {
        let directory = tempfile::tempdir().unwrap();
        let full = File::options().write(true).open("/dev/full").unwrap();
        let mut draft = Draft::new(Spool::open(directory.path()).unwrap(), full, u64::MAX);
        let failed = draft.write(&vec![b'x'; BUFFER_BYTES + 1]).await;
        assert!(matches!(failed, Err(SpoolError::Full { .. })), "{failed:?}");
        let later = draft.write(b"y").await;
        assert!(matches!(later, Err(SpoolError::Io { .. })), "{later:?}");
        let finished = draft.finish().await;
        assert!(matches!(finished, Err(SpoolError::Io { doing: "finishing", .. })), "{finished:?}");
    }
}
