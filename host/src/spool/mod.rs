//! The built file, between the builder and the partner: a file without a name.
//!
//! It holds contact data, so a crash must leave nothing behind: it is unlinked from the moment it exists
//! (`O_TMPFILE`, mode 0600; where a file system lacks that, created and unlinked at once). The host counts and
//! hashes what is written here; nobody else's count is used. It does not promise to survive the process.

mod draft;
mod file;

use std::path::{Path, PathBuf};

pub use draft::Draft;
pub use file::SpoolFile;
use rustix::fs::{Mode, OFlags};

/// The directory in whose file system built files live.
#[derive(Debug, Clone)]
pub struct Spool {
    directory: PathBuf,
}

/// What can go wrong with a built file.
#[derive(Debug, thiserror::Error)]
pub enum SpoolError {
    #[error(
        "the built file would be larger than its limit of {limit_bytes} bytes; raise limits.output_mib in partner.toml if that is right"
    )]
    TooLarge { limit_bytes: u64 },
    #[error(
        "no space is left in the spool directory {directory}; free some there, or move the data directory ([directories] data) to a larger file system"
    )]
    Full { directory: PathBuf },
    #[error("the spool directory {directory} cannot be used for {doing}: {source}")]
    Io { directory: PathBuf, doing: &'static str, source: std::io::Error },
}

impl Spool {
    /// Opens the directory, creates it with mode 0700 where it is missing, and proves that it takes a file.
    pub fn open(directory: &Path) -> Result<Self, SpoolError> {
        use std::os::unix::fs::DirBuilderExt;
        let spool = Self { directory: directory.to_owned() };
        std::fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(directory)
            .map_err(|source| spool.error("creating the directory", source))?;
        spool.unnamed()?;
        Ok(spool)
    }

    /// A new, empty file that takes at most `limit_bytes`.
    pub fn create(&self, limit_bytes: u64) -> Result<Draft, SpoolError> {
        Ok(Draft::new(self.clone(), self.unnamed()?, limit_bytes))
    }

    fn unnamed(&self) -> Result<std::fs::File, SpoolError> {
        let mode = Mode::RUSR | Mode::WUSR;
        match rustix::fs::open(&self.directory, OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC, mode) {
            Ok(file) => Ok(file.into()),
            // The file system has no O_TMPFILE (NFS, some overlays): create and unlink at once.
            Err(rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::ISDIR | rustix::io::Errno::INVAL) => {
                tempfile::tempfile_in(&self.directory).map_err(|source| self.error("creating a file", source))
            }
            Err(errno) => Err(self.error("creating a file", errno.into())),
        }
    }

    pub(crate) fn error(&self, doing: &'static str, source: std::io::Error) -> SpoolError {
        match source.kind() {
            std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded => {
                SpoolError::Full { directory: self.directory.clone() }
            }
            _ => SpoolError::Io { directory: self.directory.clone(), doing, source },
        }
    }
}

#[cfg(test)]
mod tests {
    use sha2::Digest;

    use super::*;

    #[tokio::test]
    async fn what_was_written_is_read_counted_and_hashed() {
        let dir = tempfile::tempdir().unwrap();
        let spool = Spool::open(dir.path()).unwrap();
        let mut draft = spool.create(1 << 20).unwrap();
        let chunk = vec![7_u8; 100_000];
        for _ in 0..3 {
            draft.write(&chunk).await.unwrap();
        }
        let file = draft.finish().await.unwrap();
        assert_eq!(file.bytes(), 300_000);
        assert_eq!(file.sha256().0[..], sha2::Sha256::digest(vec![7_u8; 300_000])[..]);
        assert_eq!(file.read_at(299_990, 100).await.unwrap(), vec![7_u8; 10]);
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "the file must never have a name");
    }

    #[tokio::test]
    async fn the_limit_is_a_typed_error_and_nothing_past_it_is_kept() {
        let dir = tempfile::tempdir().unwrap();
        let mut draft = Spool::open(dir.path()).unwrap().create(10).unwrap();
        draft.write(b"0123456789").await.unwrap();
        assert!(matches!(draft.write(b"x").await, Err(SpoolError::TooLarge { limit_bytes: 10 })));
        assert_eq!(draft.bytes(), 10);
    }

    #[test]
    fn a_directory_that_cannot_be_made_says_which() {
        let error = Spool::open(Path::new("/proc/waybill-spool")).unwrap_err();
        assert!(error.to_string().contains("/proc/waybill-spool"), "{error}");
    }
}
