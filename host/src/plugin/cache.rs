//! Compiled components, kept in a private directory between starts.
//!
//! Compiled code is trusted: wasmtime accepts an artefact with a flipped byte. So only this process's user can reach
//! the directory, every file carries the digest of the artefact, and the very bytes that were hashed are the bytes that
//! are loaded. Whatever does not fit exactly (another component, another engine, a changed byte) is compiled again.
//! Files are written beside and renamed, never in place. Nothing that an author supplies is ever loaded from here
//! by name: the key is the digest of the component's bytes.
//!
//! One process compiles at a time in a directory, under a lock that ends with it: a host that starts while another one
//! compiles takes over what that one made. Whoever has compiled tidies up: what nobody used for a month, and what a
//! process left half-written.

use std::collections::HashSet;
use std::fs::File;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use rustix::fs::{Timespec, Timestamps, UTIME_NOW};
use sha2::Digest as _;
use wasmtime::Engine;
use wasmtime::component::Component;

use super::error::PluginError;
use crate::job::facts::Sha256;

/// Length of the digest before the artefact.
const DIGEST_BYTES: usize = 32;
/// How long an artefact is kept that nobody uses.
const UNUSED: Duration = Duration::from_hours(30 * 24);
/// Held while something is compiled.
const LOCK: &str = "lock";
const COMPILED: &str = "compiled";
const TEMPORARY: &str = "temporary";

/// The private directory.
#[derive(Debug)]
pub(super) struct Cache {
    directory: PathBuf,
    /// Of this process.
    used: Mutex<HashSet<PathBuf>>,
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
        Ok(Self { directory: directory.to_owned(), used: Mutex::default() })
    }

    /// The compiled component from the directory, if it is there.
    pub(super) fn find(&self, engine: &Engine, digest: Sha256) -> Option<Component> {
        let path = self.path(engine, digest);
        let compiled = load(engine, &path)?;
        self.uses(path);
        Some(compiled)
    }

    /// Compiled and kept. Another process may have done it in the meantime.
    pub(super) fn compile(
        &self,
        engine: &Engine,
        digest: Sha256,
        compile: impl FnOnce() -> wasmtime::Result<Component>,
    ) -> wasmtime::Result<Component> {
        let turn = self.turn();
        if let Some(compiled) = self.find(engine, digest) {
            return Ok(compiled);
        }
        let compiled = compile()?;
        let path = self.path(engine, digest);
        if let Err(error) = self.keep(&path, &compiled) {
            // The plugin works without; only the next start is slower.
            tracing::warn!(path = %path.display(), error = %error, "a compiled component could not be kept");
        }
        self.uses(path);
        if let Some(turn) = turn
            && let Err(error) = self.tidy(&turn)
        {
            tracing::warn!(directory = %self.directory.display(), %error, "the compiled components could not be tidied up");
        }
        Ok(compiled)
    }

    /// Waits until no other process compiles. Without a lock it works too, and only more is done than must be.
    fn turn(&self) -> Option<File> {
        let path = self.directory.join(LOCK);
        let turn = File::create(&path).and_then(|file| file.lock().map(|()| file));
        if let Err(error) = &turn {
            tracing::warn!(path = %path.display(), %error, "compiling without a lock");
        }
        turn.ok()
    }

    /// Its time says when it was used last.
    fn uses(&self, path: PathBuf) {
        if let Err(error) = File::open(&path).and_then(|file| touch(&file)) {
            tracing::debug!(path = %path.display(), %error, "its use could not be noted");
        }
        self.used.lock().unwrap_or_else(PoisonError::into_inner).insert(path);
    }

    /// Removes what nobody used for long. Whoever writes here has the lock, so that a temporary file now is of a process
    /// that was killed.
    fn tidy(&self, turn: &File) -> std::io::Result<()> {
        touch(turn)?;
        // The file system's clock, by which the others were touched.
        let now = turn.metadata()?.modified()?;
        let used = self.used.lock().unwrap_or_else(PoisonError::into_inner).clone();
        for entry in std::fs::read_dir(&self.directory)? {
            let path = entry?.path();
            let ends = |extension: &str| path.extension().is_some_and(|found| found == extension);
            if ends(TEMPORARY) || (ends(COMPILED) && !used.contains(&path) && is_unused(&path, now)?) {
                std::fs::remove_file(&path)?;
            }
        }
        Ok(())
    }

    fn path(&self, engine: &Engine, digest: Sha256) -> PathBuf {
        let mut hasher = DefaultHasher::new();
        engine.precompile_compatibility_hash().hash(&mut hasher);
        self.directory.join(format!("{digest}-{:016x}.{COMPILED}", hasher.finish()))
    }

    fn keep(&self, path: &Path, compiled: &Component) -> Result<(), Box<dyn std::error::Error>> {
        let artefact = compiled.serialize()?;
        // Created with mode 0600.
        let mut file = tempfile::Builder::new().suffix(&format!(".{TEMPORARY}")).tempfile_in(&self.directory)?;
        file.write_all(&sha2::Sha256::digest(&artefact))?;
        file.write_all(&artefact)?;
        file.as_file().sync_all()?;
        file.persist(path)?;
        Ok(())
    }
}

fn touch(file: &File) -> std::io::Result<()> {
    let now = Timespec { tv_sec: 0, tv_nsec: UTIME_NOW };
    Ok(rustix::fs::futimens(file, &Timestamps { last_access: now, last_modification: now })?)
}

fn is_unused(path: &Path, now: SystemTime) -> std::io::Result<bool> {
    let used = std::fs::metadata(path)?.modified()?;
    Ok(now.duration_since(used).is_ok_and(|since| since > UNUSED))
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
        let files = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
        let files: Vec<PathBuf> = files.filter(|path| path.file_name().unwrap() != LOCK).collect();
        let [only] = files.as_slice() else { panic!("{files:?}") };
        only.clone()
    }

    fn compile(cache: &Cache, engine: &Engine, digest: Sha256) {
        if cache.find(engine, digest).is_none() {
            cache.compile(engine, digest, || Component::from_binary(engine, EMPTY)).unwrap();
        }
    }

    #[test]
    fn plg_01_what_nobody_used_for_a_month_and_what_a_killed_process_left_is_removed() {
        let directory = tempfile::tempdir().unwrap();
        let engine = super::super::engine::start().unwrap();
        let (old, recent, served) = (Sha256([1; 32]), Sha256([2; 32]), Sha256([3; 32]));
        let earlier = Cache::open(&directory.path().join("cache")).unwrap();
        for digest in [old, recent, served] {
            compile(&earlier, &engine, digest);
        }
        let cache = Cache::open(&directory.path().join("cache")).unwrap();
        let age = |digest, days: u64| {
            let path = cache.path(&engine, digest);
            let file = File::options().write(true).open(&path).unwrap();
            let used = file.metadata().unwrap().modified().unwrap();
            file.set_modified(used - Duration::from_hours(24 * days)).unwrap();
            path
        };
        assert!(cache.find(&engine, served).is_some());
        let (old, recent, served) = (age(old, 31), age(recent, 29), age(served, 31));
        let (left, foreign) = (cache.directory.join(".x.temporary"), cache.directory.join("README"));
        std::fs::write(&left, "half").unwrap();
        std::fs::write(&foreign, "a person's").unwrap();
        compile(&cache, &engine, Sha256([4; 32]));
        let is = |path: &PathBuf| path.exists();
        assert_eq!([&old, &left, &recent, &served, &foreign].map(is), [false, false, true, true, true]);
    }

    #[test]
    fn plg_01_a_use_is_noted_and_another_process_that_compiles_is_waited_for() {
        let directory = tempfile::tempdir().unwrap();
        let cache = Cache::open(&directory.path().join("cache")).unwrap();
        let engine = super::super::engine::start().unwrap();
        let digest = Sha256([7; 32]);
        compile(&cache, &engine, digest);
        let path = one_file(&cache.directory);
        let long_ago = SystemTime::UNIX_EPOCH;
        File::options().write(true).open(&path).unwrap().set_modified(long_ago).unwrap();
        assert!(cache.find(&engine, digest).is_some());
        assert_ne!(std::fs::metadata(&path).unwrap().modified().unwrap(), long_ago);
        // What came while it waited for its turn is taken as it is.
        cache.compile(&engine, digest, || panic!("it was compiled twice")).unwrap();
    }

    #[test]
    fn a_flipped_byte_is_compiled_again_and_never_loaded() {
        let directory = tempfile::tempdir().unwrap();
        let cache = Cache::open(&directory.path().join("cache")).unwrap();
        let engine = super::super::engine::start().unwrap();
        let digest = Sha256([7; 32]);
        compile(&cache, &engine, digest);
        let path = one_file(&cache.directory);
        let good = std::fs::read(&path).unwrap();
        assert!(load(&engine, &path).is_some());
        for at in [0, DIGEST_BYTES, good.len() / 2, good.len() - 1] {
            let mut bad = good.clone();
            bad[at] ^= 1;
            std::fs::write(&path, &bad).unwrap();
            assert!(load(&engine, &path).is_none(), "byte {at}");
            compile(&cache, &engine, digest);
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
