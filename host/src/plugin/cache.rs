//! Compiled components, kept in a private directory between starts.
//!
//! Compiled code is trusted: wasmtime accepts an artefact with a flipped byte. So only this process's user can reach
//! the directory, every file carries the digest of the artefact, and the very bytes that were hashed are the bytes that
//! are loaded. Whatever does not fit exactly (another component, another engine, a changed byte) is compiled again.
//! Files are written beside and renamed, never in place. Nothing that an author supplies is ever loaded from here
//! by name: the key is the digest of the component's bytes.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use sha2::Digest as _;
use wasmtime::Engine;
use wasmtime::component::Component;

use super::error::PluginError;
use crate::job::facts::Sha256;

/// Length of the digest before the artefact.
const DIGEST_BYTES: usize = 32;

/// The private directory.
#[derive(Debug, Clone)]
pub(super) struct Cache {
    directory: PathBuf,
}

impl Cache {
    /// Opens the directory, creates it with mode 0700 where it is missing, and refuses one that others can reach.
    pub(super) fn open(directory: &Path) -> Result<Self, PluginError> {
        let failed = |source| PluginError::Cache { directory: directory.to_owned(), source };
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(directory).map_err(failed)?;
        let metadata = std::fs::metadata(directory).map_err(failed)?;
        let mode = metadata.mode() & 0o777;
        if mode & 0o077 != 0 || metadata.uid() != rustix::process::geteuid().as_raw() {
            return Err(PluginError::CacheOpen { directory: directory.to_owned(), mode, owner: metadata.uid() });
        }
        Ok(Self { directory: directory.to_owned() })
    }

    /// The compiled component from the directory, or compiled now and kept.
    pub(super) fn compile(&self, engine: &Engine, digest: Sha256, component: &[u8]) -> wasmtime::Result<Component> {
        let path = self.path(engine, digest);
        if let Some(compiled) = load(engine, &path) {
            return Ok(compiled);
        }
        let compiled = Component::from_binary(engine, component)?;
        if let Err(error) = self.keep(&path, &compiled) {
            // The plugin works without; only the next start is slower.
            tracing::warn!(path = %path.display(), error = %error, "a compiled component could not be kept");
        }
        Ok(compiled)
    }

    fn path(&self, engine: &Engine, digest: Sha256) -> PathBuf {
        let mut hasher = DefaultHasher::new();
        engine.precompile_compatibility_hash().hash(&mut hasher);
        self.directory.join(format!("{digest}-{:016x}.compiled", hasher.finish()))
    }

    fn keep(&self, path: &Path, compiled: &Component) -> Result<(), Box<dyn std::error::Error>> {
        let artefact = compiled.serialize()?;
        // Created with mode 0600.
        let mut file = tempfile::NamedTempFile::new_in(&self.directory)?;
        file.write_all(&sha2::Sha256::digest(&artefact))?;
        file.write_all(&artefact)?;
        file.as_file().sync_all()?;
        file.persist(path)?;
        Ok(())
    }
}

/// The artefact, if the file is there, whole and unchanged.
fn load(engine: &Engine, path: &Path) -> Option<Component> {
    let bytes = std::fs::read(path).ok()?;
    let (digest, artefact) = bytes.split_at_checked(DIGEST_BYTES)?;
    if sha2::Sha256::digest(artefact)[..] != *digest {
        tracing::warn!(path = %path.display(), "a compiled component was changed on disk; it is compiled again");
        return None;
    }
    match deserialize(engine, artefact) {
        Ok(compiled) => Some(compiled),
        Err(error) => {
            tracing::debug!(path = %path.display(), error = %error, "a compiled component does not fit this engine; it is compiled again");
            None
        }
    }
}

#[expect(
    unsafe_code,
    reason = "the bytes were written by this module into a directory that only this user can reach, and their digest was just checked"
)]
fn deserialize(engine: &Engine, artefact: &[u8]) -> wasmtime::Result<Component> {
    // SAFETY: `deserialize` demands bytes that `serialize` made; see the reason above. The bytes are copied, not mapped.
    unsafe { Component::deserialize(engine, artefact) }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    /// The smallest component.
    const EMPTY: &[u8] = b"\0asm\x0d\0\x01\0";

    fn one_file(directory: &Path) -> PathBuf {
        let mut files = std::fs::read_dir(directory).unwrap();
        let only = files.next().unwrap().unwrap().path();
        assert!(files.next().is_none());
        only
    }

    #[test]
    fn a_flipped_byte_is_compiled_again_and_never_loaded() {
        let directory = tempfile::tempdir().unwrap();
        let cache = Cache::open(&directory.path().join("cache")).unwrap();
        let engine = super::super::engine::start().unwrap();
        let digest = Sha256([7; 32]);
        cache.compile(&engine, digest, EMPTY).unwrap();
        let path = one_file(&cache.directory);
        let good = std::fs::read(&path).unwrap();
        assert!(load(&engine, &path).is_some());
        for at in [0, DIGEST_BYTES, good.len() / 2, good.len() - 1] {
            let mut bad = good.clone();
            bad[at] ^= 1;
            std::fs::write(&path, &bad).unwrap();
            assert!(load(&engine, &path).is_none(), "byte {at}");
            cache.compile(&engine, digest, EMPTY).unwrap();
            assert_eq!(std::fs::read(&path).unwrap(), good, "byte {at} was mended");
        }
        std::fs::write(&path, &good[..10]).unwrap();
        assert!(load(&engine, &path).is_none());
    }

    #[test]
    fn the_directory_is_private_or_refused() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("cache");
        Cache::open(&path).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o700);
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o750)).unwrap();
        let error = Cache::open(&path).unwrap_err();
        assert!(error.to_string().contains("chmod 700"), "{error}");
    }
}
