//! What a plugin may look at: declared names, through the host's session, without changing anything.

use std::future::Future;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::error::RemoteError;
use super::gate::shown;
use super::names::Names;
use super::session::Session;
use crate::job::facts::{Entry, Found};

/// A directory is listed up to this many entries at once, as the contract says.
const MOST_ENTRIES: u32 = 1000;
/// A small file, such as an acknowledgment, is read up to this much at once, as the contract says.
const MOST_BYTES: u32 = 64 * 1024;

/// A plugin's eyes. Clones see the same.
#[derive(Debug, Clone)]
pub struct Reader {
    session: Session,
    names: Arc<Names>,
    stop: CancellationToken,
}

impl Reader {
    /// `stop` ends waiting with [`RemoteError::Stopped`]; the request itself still runs to its end.
    pub fn new(session: Session, names: Arc<Names>, stop: CancellationToken) -> Self {
        Self { session, names, stop }
    }

    /// What it may look at.
    pub fn names(&self) -> &Names {
        &self.names
    }

    /// What stands under a declared name. A look that failed is an error, never absence.
    pub async fn stat(&self, name: &str) -> Result<Found, RemoteError> {
        self.may_look_at(name)?;
        self.unless_stopped(self.session.stat(name)).await
    }

    /// At most `most` declared names in a directory that begin with `prefix`. What others keep there is not shown.
    pub async fn entries(&self, directory: &str, prefix: &str, most: u32) -> Result<Vec<Entry>, RemoteError> {
        if !self.names.may_list(directory) {
            return Err(RemoteError::forbidden(format!("{} holds no declared name", shown(directory))));
        }
        let names = Arc::clone(&self.names);
        let wanted = move |name: &str| names.may_look_at(name);
        let most = most.min(MOST_ENTRIES) as usize;
        self.unless_stopped(self.session.list(directory, prefix, most, wanted)).await
    }

    /// At most `most` bytes of a declared file, from `offset`.
    pub async fn read(&self, name: &str, offset: u64, most: u32) -> Result<Vec<u8>, RemoteError> {
        self.may_look_at(name)?;
        if offset.checked_add(u64::from(most)).is_none() {
            return Err(RemoteError::Invalid { why: format!("the offset {offset} is past the end of any file") });
        }
        self.unless_stopped(self.session.read(name, offset, most.min(MOST_BYTES))).await
    }

    /// Host only: the beginning of one of the partner's answers, longer than any that counts.
    pub async fn answer(&self, name: &str, most: u32) -> Result<Vec<u8>, RemoteError> {
        self.may_look_at(name)?;
        self.unless_stopped(self.session.read(name, 0, most)).await
    }

    /// Host only: at most `most` files in a folder that would count as the partner's answer.
    pub async fn acknowledgments(&self, folder: &str, most: u32) -> Result<Vec<String>, RemoteError> {
        let names = Arc::clone(&self.names);
        let wanted = move |name: &str| names.is_acknowledgment(name);
        let listed = self.unless_stopped(self.session.list(folder, "", most as usize, wanted)).await?;
        // A folder among them is not their answer; a server that tells no kinds may show a file so.
        let files = listed.into_iter().filter(|entry| matches!(entry.kind.as_str(), "file" | "unknown"));
        Ok(files.map(|entry| entry.name).collect())
    }

    /// A digest that the server computed, where it offers one. None of the extensions for it has one layout that
    /// servers agree on, so none is asked for: the host's own looks read back, which proves more.
    pub fn digest(&self, name: &str, _algorithm: &str) -> Result<Option<Vec<u8>>, RemoteError> {
        self.may_look_at(name)?;
        Ok(None)
    }

    fn may_look_at(&self, name: &str) -> Result<(), RemoteError> {
        if self.names.may_look_at(name) {
            return Ok(());
        }
        Err(RemoteError::forbidden(format!(
            "{} is neither declared in the manifest nor minted by the host",
            shown(name)
        )))
    }

    async fn unless_stopped<T>(&self, looking: impl Future<Output = Result<T, RemoteError>>) -> Result<T, RemoteError> {
        tokio::select! {
            biased;
            () = self.stop.cancelled() => Err(RemoteError::Stopped),
            result = looking => result,
        }
    }
}
