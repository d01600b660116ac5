//! A directory of this machine as the partner's place, judged by what lies in it.

mod delivered;
mod interrupted;
mod session;

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use tempfile::TempDir;
use waybill::job::evidence::PublishForm;

use super::place::{Before, Fresh, Place};

/// A directory of the test's own.
pub struct Directory {
    pub path: PathBuf,
    _around: TempDir,
}

impl Directory {
    pub fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }
}

impl Place for Directory {
    fn lines(&self) -> String {
        format!("path = '{}'", self.path.display())
    }

    fn names(&self) -> anyhow::Result<Vec<String>> {
        names(&self.path)
    }

    fn read(&self, name: &str) -> anyhow::Result<Option<Vec<u8>>> {
        match std::fs::read(self.file(name)) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            read => Ok(Some(read?)),
        }
    }

    fn write(&self, name: &str, content: &[u8]) -> anyhow::Result<()> {
        Ok(std::fs::write(self.file(name), content)?)
    }
}

impl Fresh for Directory {
    const FORM: PublishForm = PublishForm::Link;

    async fn fresh() -> anyhow::Result<Self> {
        let around = tempfile::tempdir()?;
        let path = around.path().join("outbox");
        std::fs::create_dir(&path)?;
        Ok(Self { path, _around: around })
    }

    /// As one place, whatever path led to it; names are compared without case.
    fn on_record(&self) -> anyhow::Result<(String, String)> {
        Ok(("file://".to_owned(), std::fs::canonicalize(&self.path)?.to_string_lossy().to_lowercase()))
    }
}

/// A house before a directory.
type Outbox = Before<Directory>;

fn names(directory: &Path) -> anyhow::Result<Vec<String>> {
    let mut names = std::fs::read_dir(directory)?
        .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
        .collect::<anyhow::Result<Vec<_>>>()?;
    names.sort();
    Ok(names)
}

pub fn mode(path: &Path) -> anyhow::Result<u32> {
    Ok(std::fs::metadata(path)?.permissions().mode() & 0o777)
}
