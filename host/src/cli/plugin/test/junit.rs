//! The file of `--junit`: opened before anything is tested, so that what cannot be written is told at once and the report of
//! last time never stands for this one.

use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;

use crate::rehearsal::{Report, untested_junit};

/// An open file, or none that was asked for.
pub(super) struct Junit(Option<(File, PathBuf)>);

impl Junit {
    pub fn open(path: Option<PathBuf>) -> anyhow::Result<Self> {
        let Some(path) = path else { return Ok(Self(None)) };
        let file = File::create(&path).with_context(|| cannot(&path))?;
        Ok(Self(Some((file, path))))
    }

    pub fn tested(self, report: &Report) -> anyhow::Result<()> {
        self.write(|| Ok(report.to_junit()?))
    }

    /// One test, which failed for this reason.
    pub fn untested(self, bundle: &Path, why: &str) -> anyhow::Result<()> {
        self.write(|| Ok(untested_junit(&bundle.display().to_string(), why)?))
    }

    fn write(self, text: impl FnOnce() -> anyhow::Result<String>) -> anyhow::Result<()> {
        let Some((mut file, path)) = self.0 else { return Ok(()) };
        file.write_all(text()?.as_bytes()).with_context(|| cannot(&path))
    }
}

fn cannot(path: &Path) -> String {
    format!("the JUnit report cannot be written to {}", path.display())
}
