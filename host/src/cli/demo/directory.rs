//! Where a demo keeps everything: a private temporary directory, or one that the user names.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};

use super::lost_workers;
use super::partners::Site;
use crate::embedded::{openssh, postgres};

/// Made by us, and so may be emptied by us.
const MARKER: &str = ".waybill-demo";

/// The directory of one run.
pub(super) enum Directory {
    /// Removed at the end.
    Temporary(tempfile::TempDir),
    /// Left as it is at the end, and emptied by the next run.
    Named(PathBuf),
}

impl Directory {
    pub fn prepare(named: Option<&Path>) -> anyhow::Result<Self> {
        let directory = match named {
            None => Self::Temporary(
                tempfile::Builder::new()
                    .prefix("waybill-demo-")
                    .tempdir()
                    .context("no temporary directory could be made")?,
            ),
            Some(path) => {
                fs::create_dir_all(path).with_context(|| format!("the directory {} cannot be made", path.display()))?;
                let path = fs::canonicalize(path).with_context(|| format!("{} cannot be resolved", path.display()))?;
                empty(&path)?;
                Self::Named(path)
            }
        };
        fs::write(directory.path().join(MARKER), "").context("the demo's directory cannot be written to")?;
        // The account of the private PostgreSQL passes through both, and reads neither, where root runs the demo.
        for path in [directory.path().to_owned(), directory.data()] {
            fs::create_dir_all(&path).with_context(|| format!("{} cannot be made", path.display()))?;
            fs::set_permissions(&path, fs::Permissions::from_mode(0o711))
                .with_context(|| format!("{} cannot be opened to the database's account", path.display()))?;
        }
        Ok(directory)
    }

    pub fn path(&self) -> &Path {
        match self {
            Self::Temporary(directory) => directory.path(),
            Self::Named(path) => path,
        }
    }

    pub fn data(&self) -> PathBuf {
        self.path().join("data")
    }

    pub fn partners(&self) -> PathBuf {
        self.path().join("partners")
    }

    /// Where the second act's hosts have their configurations and logs.
    pub fn hosts(&self) -> PathBuf {
        self.path().join("hosts")
    }

    /// Where the partners' servers keep their keys, logs and files.
    pub fn servers(&self) -> PathBuf {
        self.path().join("servers")
    }
}

/// Empties a directory that an earlier demo has left, with what may still run in it.
fn empty(path: &Path) -> anyhow::Result<()> {
    let cannot = || format!("the directory {} cannot be emptied", path.display());
    let entries: Vec<fs::DirEntry> = fs::read_dir(path).and_then(Iterator::collect).with_context(cannot)?;
    if entries.is_empty() {
        return Ok(());
    }
    if !path.join(MARKER).is_file() {
        bail!("the directory {} is not empty, and not from an earlier demo; name another one", path.display());
    }
    lost_workers::end_left_behind(&path.join("hosts"))?;
    postgres::stop_running(&path.join("data").join("postgres"))?;
    for site in Site::ALL {
        openssh::end_left_behind(&path.join("servers").join(site.name()))?;
    }
    for entry in entries {
        let path = entry.path();
        if path.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(&path) }.with_context(cannot)?;
    }
    Ok(())
}
