//! Where the tests' servers live, and the one PostgreSQL that all test processes share.
//!
//! `tests/setup.sh services` starts that PostgreSQL; without it, the first test process does, under a file lock, and
//! leaves it running for the others. `make test` stops it at the end, `make clean-services` at any time. Both sides
//! find each other by `target/services/directory`, which names the directory in use: the script prefers memory, below
//! `/dev/shm`, and the server's account may be unable to enter the repository (one below /root, say), so that it lives
//! below the temporary directory.

use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::Context;
use rustix::fs::{FlockOperation, flock};
use sha2::{Digest, Sha256};
use waybill::embedded::postgres::{self, Address, Durability, Postgres, PostgresError, Settings};

/// The connections of one PostgreSQL are shared by all tests that run at once.
const MAX_CONNECTIONS: u32 = 400;

/// The address of the tests' PostgreSQL, which runs when this returns.
pub async fn postgres() -> anyhow::Result<Address> {
    let services = services_directory();
    fs::create_dir_all(&services).with_context(|| format!("making {}", services.display()))?;
    // Blocks while another process starts the server; what it started is then found.
    let _lock = tokio::task::spawn_blocking({
        let path = services.join("start.lock");
        move || lock(&path)
    })
    .await??;
    let pointer = services.join("directory");
    if let Ok(directory) = fs::read_to_string(&pointer)
        && let Some(address) = postgres::running(Path::new(directory.trim()))
    {
        return Ok(address);
    }
    let (directory, server) = match start(services.join("postgres")).await {
        Err(PostgresError::Unreachable { .. }) => {
            let below_temporary = std::env::temp_dir().join(short_name(&services));
            (below_temporary.clone(), start(below_temporary).await?)
        }
        other => (services.join("postgres"), other.context("starting the tests' PostgreSQL")?),
    };
    fs::write(&pointer, format!("{}\n", directory.display()))?;
    Ok(server.leave_running())
}

async fn start(directory: PathBuf) -> Result<Postgres, PostgresError> {
    let settings =
        Settings { durability: Durability::None, max_connections: MAX_CONNECTIONS, ..Settings::new(directory) };
    Postgres::start(&settings).await
}

/// A directory for one fixture of this test process: `target/services/<kind>/<process>-<number>`. It goes when dropped.
#[derive(Debug)]
pub struct TestDirectory(PathBuf);

impl TestDirectory {
    pub fn new(kind: &str) -> anyhow::Result<Self> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = services_directory().join(kind).join(format!("{}-{number}", std::process::id()));
        // An earlier process of the same id may have left one.
        remove(&path)?;
        fs::create_dir_all(&path).with_context(|| format!("making {}", path.display()))?;
        Ok(Self(path))
    }

    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for TestDirectory {
    fn drop(&mut self) {
        if let Err(error) = remove(&self.0) {
            tracing::warn!(%error, "a test's directory stays behind");
        }
    }
}

/// The directories of a kind whose test process is gone.
pub fn left_behind(kind: &str) -> anyhow::Result<Vec<PathBuf>> {
    let entries = match fs::read_dir(services_directory().join(kind)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        other => other?,
    };
    let mut found = Vec::new();
    for entry in entries {
        let path = entry?.path();
        let owner = path.file_name().and_then(|name| name.to_str()).and_then(|name| name.split_once('-'));
        if owner.is_some_and(|(pid, _)| !process_exists(pid)) {
            found.push(path);
        }
    }
    Ok(found)
}

/// Two sweeping processes may meet; what the other removed is as good as removed.
pub fn remove(directory: &Path) -> anyhow::Result<()> {
    match fs::remove_dir_all(directory) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("removing {}", directory.display()))
        }
        _ => Ok(()),
    }
}

pub fn process_exists(pid: &str) -> bool {
    Path::new("/proc").join(pid).exists()
}

fn services_directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).with_file_name("target").join("services")
}

fn short_name(directory: &Path) -> String {
    let digest = Sha256::digest(directory.as_os_str().as_bytes());
    let digest = data_encoding::HEXLOWER.encode(&digest);
    format!("waybill-services-{}", digest.get(..16).unwrap_or_default())
}

fn lock(path: &Path) -> anyhow::Result<fs::File> {
    let file = fs::File::create(path).with_context(|| format!("opening {}", path.display()))?;
    flock(&file, FlockOperation::LockExclusive).with_context(|| format!("locking {}", path.display()))?;
    Ok(file)
}
