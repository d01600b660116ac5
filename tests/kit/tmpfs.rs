//! A disk that is really full: a file system in memory of a given size.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, ensure};

/// A small file system over a directory. It is detached when dropped, even while files on it are open.
#[derive(Debug)]
pub struct SmallDisk(PathBuf);

impl SmallDisk {
    /// Mounts it; the directory is made where it is missing. Only root can: a test that could not make a full disk must
    /// fail, not pass.
    pub fn mount(directory: &Path, kibibytes: u32) -> anyhow::Result<Self> {
        ensure!(rustix::process::geteuid().is_root(), "a test with a full disk mounts a tmpfs; run it as root");
        std::fs::create_dir_all(directory).with_context(|| format!("making {}", directory.display()))?;
        let size = format!("size={kibibytes}k,mode=0755");
        let mount = Command::new("mount").args(["-t", "tmpfs", "-o", &size, "tmpfs"]).arg(directory).output();
        let mount = mount.context("running mount")?;
        let said = String::from_utf8_lossy(&mount.stderr);
        ensure!(mount.status.success(), "mounting a tmpfs over {} failed: {said}", directory.display());
        Ok(Self(directory.to_owned()))
    }

    /// Bytes that files take, named or not.
    pub fn used_bytes(&self) -> anyhow::Result<u64> {
        let disk = rustix::fs::statvfs(&self.0)?;
        Ok((disk.f_blocks - disk.f_bfree) * disk.f_frsize)
    }

    pub fn names(&self) -> anyhow::Result<Vec<String>> {
        let entries = std::fs::read_dir(&self.0)?;
        entries.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned())).collect()
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        match Command::new("umount").arg("--lazy").arg(&self.0).status() {
            Ok(status) if status.success() => {}
            other => tracing::warn!(directory = %self.0.display(), ?other, "a test's tmpfs stays mounted"),
        }
    }
}
