//! What an author's commands keep for the next time, in the user's own cache directory: the tools that make components, and
//! components that were compiled.

use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

/// Where compiled components are kept.
#[derive(Debug, clap::Args)]
pub(super) struct Compiled {
    /// Where compiled components are kept for the next time, a directory of this user alone [default: waybill/compiled in the
    /// user's cache directory].
    #[arg(long, env = "WAYBILL_PLUGIN_CACHE", value_name = "DIR")]
    cache: Option<PathBuf>,
}

impl Compiled {
    /// `None`: nowhere, since this user has no cache directory, or cannot write there.
    pub fn directory(self) -> Option<PathBuf> {
        self.cache.or_else(|| directory("compiled").filter(|directory| can_be_made(directory)))
    }
}

/// A directory of this program's in the user's cache directory; `None` where the user has none.
#[expect(clippy::disallowed_methods, reason = "an author's own cache directory is no setting of the host")]
pub(super) fn directory(name: &str) -> Option<PathBuf> {
    let named = |variable: &str| std::env::var_os(variable).filter(|value| !value.is_empty()).map(PathBuf::from);
    let cache = named("XDG_CACHE_HOME").or_else(|| named("HOME").map(|home| home.join(".cache")))?;
    Some(cache.join("waybill").join(name))
}

fn can_be_made(directory: &Path) -> bool {
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(directory).is_ok()
}
