//! The directory of tools: what makes components of JavaScript and Python, installed once for each lock file, whichever
//! bundle it belongs to. `plugins/build-interpreted.sh` keeps its tools in the same form.
//!
//! A directory without its last file, `complete`, was interrupted and is made anew. A lock keeps two builds from making the same.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use sha2::Digest as _;

use super::steps::Fault;
use crate::cli::plugin::cached;
use crate::job::facts::Sha256;

/// Digits of the lock file's digest in the directory's name.
const DIGITS: usize = 16;

pub(super) fn default_directory() -> anyhow::Result<PathBuf> {
    cached::directory("tools").context("there is no home directory for the tools; name one with --tools")
}

/// The tools for a lock file. `install` fills an empty directory where they are not there yet.
pub(super) async fn ready<Install>(
    tools: &Path,
    language: &str,
    lock_file: &Path,
    install: impl FnOnce(PathBuf) -> Install,
) -> Result<PathBuf, Fault>
where
    Install: Future<Output = Result<(), Fault>>,
{
    let lock = std::fs::read(lock_file).with_context(|| format!("{} cannot be read", lock_file.display()))?;
    let digest = Sha256(sha2::Sha256::digest(&lock).into()).to_string();
    let directory = tools.join(format!("{language}-{}", digest.get(..DIGITS).unwrap_or(&digest)));
    let failed = || format!("the tools cannot be kept in {}; name another directory with --tools", tools.display());
    std::fs::create_dir_all(tools).with_context(failed)?;
    let guard = std::fs::File::create(directory.with_extension("lock")).with_context(failed)?;
    // Waits for another build that installs the same; it ends with its process.
    let guard =
        tokio::task::spawn_blocking(move || guard.lock().map(|()| guard)).await.context("the lock's task ended")?;
    let _guard = guard.with_context(failed)?;
    let complete = directory.join("complete");
    if complete.exists() {
        return Ok(directory);
    }
    if directory.exists() {
        std::fs::remove_dir_all(&directory).with_context(failed)?;
    }
    std::fs::create_dir(&directory).with_context(failed)?;
    install(directory.clone()).await?;
    std::fs::write(&complete, "").with_context(failed)?;
    Ok(directory)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    #[tokio::test]
    async fn tools_are_installed_once_a_lock_file_and_again_after_an_interruption() {
        let directory = tempfile::tempdir().unwrap();
        let (lock, tools) = (directory.path().join("lock"), directory.path().join("tools"));
        std::fs::write(&lock, "one").unwrap();
        let times = AtomicU32::new(0);
        let install = async |fails: bool| {
            let made = ready(&tools, "javascript", &lock, async |into: PathBuf| {
                times.fetch_add(1, Ordering::Relaxed);
                std::fs::write(into.join("half"), "").unwrap();
                if fails { Err(Fault::Tools(anyhow::anyhow!("interrupted"))) } else { Ok(()) }
            });
            made.await
        };
        assert!(install(true).await.is_err());
        let first = install(false).await.unwrap();
        assert_eq!(install(false).await.unwrap(), first);
        assert_eq!(times.load(Ordering::Relaxed), 2, "the interrupted one and the one that is kept");
        std::fs::write(&lock, "two").unwrap();
        assert_ne!(install(false).await.unwrap(), first);
    }
}
