//! Reading a bundle's files: only what is one, and only so much of it.
//!
//! A partners directory is other people's: a pipe in it would be waited for, and a link to a device read without end.

use std::fs::{File, OpenOptions};
use std::io::Read as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

/// The longest document. Real ones have some hundred lines.
pub(super) const DOCUMENT_BYTES: u64 = 1 << 20;
/// The largest component, which also bounds how long a compile takes. Python guests, the largest seen, have 18 MiB.
pub(super) const COMPONENT_BYTES: u64 = 64 << 20;

/// Why a file was not read.
#[derive(Debug, thiserror::Error)]
pub(super) enum ReadError {
    #[error(transparent)]
    Io(#[from] std::io::Error),
    #[error("is no regular file; put a file there, or a link to one")]
    NoFile,
    #[error("has {length} bytes, and {limit} are the most")]
    TooLarge { length: u64, limit: u64 },
}

/// The most bytes that a file of this name has.
pub(super) fn limit(file: &Path) -> u64 {
    if file.extension().is_some_and(|extension| extension == "toml") { DOCUMENT_BYTES } else { COMPONENT_BYTES }
}

/// A whole file of at most so many bytes.
pub(super) fn read(file: &Path, limit: u64) -> Result<Vec<u8>, ReadError> {
    let opened = open(file)?;
    let length = opened.metadata()?.len();
    if length > limit {
        return Err(ReadError::TooLarge { length, limit });
    }
    let mut bytes = Vec::new();
    // It may grow meanwhile.
    opened.take(limit + 1).read_to_end(&mut bytes)?;
    let length = bytes.len() as u64;
    if length > limit { Err(ReadError::TooLarge { length, limit }) } else { Ok(bytes) }
}

/// Opens a regular file. It is asked of the handle, because the name may have come to mean another file.
fn open(file: &Path) -> Result<File, ReadError> {
    let without_waiting = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
    let opened = OpenOptions::new().read(true).custom_flags(without_waiting).open(file)?;
    if opened.metadata()?.is_file() { Ok(opened) } else { Err(ReadError::NoFile) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plg_02_a_pipe_a_device_and_what_is_too_large_are_not_read() {
        let directory = tempfile::tempdir().unwrap();
        let pipe = directory.path().join("partner.toml");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status().unwrap();
        assert!(made.success());
        assert!(matches!(read(&pipe, 10), Err(ReadError::NoFile)));
        let endless = directory.path().join("builder.wasm");
        std::os::unix::fs::symlink("/dev/zero", &endless).unwrap();
        assert!(matches!(read(&endless, 10), Err(ReadError::NoFile)));
        let file = directory.path().join("file");
        std::fs::write(&file, "0123456789").unwrap();
        assert_eq!(read(&file, 10).unwrap(), b"0123456789");
        assert!(matches!(read(&file, 9), Err(ReadError::TooLarge { length: 10, limit: 9 })));
        let linked = directory.path().join("linked");
        std::os::unix::fs::symlink(&file, &linked).unwrap();
        assert_eq!(read(&linked, 10).unwrap(), b"0123456789", "a link to a file is one");
        assert_eq!((limit(&pipe), limit(&endless)), (DOCUMENT_BYTES, COMPONENT_BYTES));
    }
}
