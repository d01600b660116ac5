//! A check of a partner's server before it is trusted: what it announces, shows and offers, and the [`Proof`] on scratch
//! names of how it publishes. What it means for a contract is [`super::findings`]'s. A person's command and an attempt make
//! the same one.
//!
//! Nothing is written but scratch files under temporary names, each with an id of its own, and they are removed again.

use std::collections::BTreeSet;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use super::error::RemoteError;
use super::prove::{Proof, ScratchNames, Shown, go_on, prove_until};
use super::session::Session;
use crate::job::facts::{Entry, Found};

/// More entries than this are not counted.
const MOST_ENTRIES: usize = 10_000;
/// How long a check that was asked to stop may take to remove its scratch files.
const TO_CLEAN_UP: Duration = Duration::from_secs(10);
const CONTENT: &[u8] = b"a scratch file, removed again by the host that wrote it\n";

/// What was seen of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Check {
    pub proof: Proof,
    pub seen: Seen,
}

/// What a server shows of a file that we wrote, beside what the proof tells.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seen {
    /// The destination's own directory can be listed.
    pub lists: Shown,
    /// The folders of the partner's answers can be listed. `None`: there are none, or their names depend on the delivery.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lists_answers: Option<Shown>,
    /// A file that we wrote is shown under its name.
    pub shows: Shown,
    /// Its size is told.
    pub tells_size: bool,
    /// Its modification time is told.
    pub tells_time: bool,
    /// Its bytes can be read back.
    pub reads_back: Shown,
    /// Bytes that this account may still write, where the server tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub free_bytes: Option<u64>,
}

/// Looks, then proves. An error means that the session was lost or that a scratch file could not be written; scratch files
/// may then be left, under names that only temporary files have. Asked to stop, it ends between two requests and removes
/// what it wrote; a server that is too slow for that keeps it.
pub async fn check(
    session: &Session,
    scratch: &ScratchNames,
    answers: &BTreeSet<String>,
    stop: &CancellationToken,
) -> Result<Check, RemoteError> {
    let checking = look_and_prove(session, scratch, answers, stop);
    tokio::pin!(checking);
    tokio::select! {
        biased;
        checked = &mut checking => checked,
        () = stop.cancelled() => {
            tokio::time::timeout(TO_CLEAN_UP, checking).await.unwrap_or(Err(RemoteError::Stopped))
        }
    }
}

async fn look_and_prove(
    session: &Session,
    scratch: &ScratchNames,
    answers: &BTreeSet<String>,
    stop: &CancellationToken,
) -> Result<Check, RemoteError> {
    let lists = list(session, ".").await?;
    let lists_answers = list_all(session, answers).await?;
    let free_bytes = session.free_bytes().await?;
    go_on(stop)?;
    let name = scratch.first();
    session.create(name, CONTENT.to_vec()).await.map_err(|failed| failed.error)?;
    let seen = look(session, name).await;
    // The proof begins with this name, and needs it free.
    let removed = session.remove(name).await;
    let (shows, entry, reads_back) = seen?;
    if let Err(error) = removed
        && !error.says_absent()
        && !error.is_refusal()
    {
        return Err(error);
    }
    go_on(stop)?;
    let proof = prove_until(session, scratch, stop).await?;
    let tells_size = entry.as_ref().is_some_and(|entry| entry.bytes == Some(CONTENT.len() as u64));
    let tells_time = entry.as_ref().is_some_and(|entry| entry.modified.is_some());
    let seen = Seen { lists, lists_answers, shows, tells_size, tells_time, reads_back, free_bytes };
    Ok(Check { proof, seen })
}

/// The first folder that cannot be listed, or what the last one showed.
async fn list_all(session: &Session, folders: &BTreeSet<String>) -> Result<Option<Shown>, RemoteError> {
    let mut listed = None;
    for folder in folders {
        let shown = list(session, folder).await?;
        let ends = !shown.shown;
        listed = Some(Shown { seen: format!("{folder}: {}", shown.seen), ..shown });
        if ends {
            break;
        }
    }
    Ok(listed)
}

async fn list(session: &Session, folder: &str) -> Result<Shown, RemoteError> {
    match session.list(folder, "", MOST_ENTRIES, |_| true).await {
        Ok(entries) => Ok(shown(true, format!("{} entries", entries.len()))),
        Err(error) => refused(error),
    }
}

async fn look(session: &Session, name: &str) -> Result<(Shown, Option<Entry>, Shown), RemoteError> {
    let (shows, entry) = match session.stat(name).await {
        Ok(Found::Present(entry)) => (shown(true, "it is there"), Some(entry)),
        Ok(Found::Absent) => (shown(false, "it is not there"), None),
        Ok(Found::NotVisible { why } | Found::Unknown { why }) => (shown(false, why), None),
        Err(error) => (refused(error)?, None),
    };
    let reads_back = match session.read(name, 0, 1024).await {
        Ok(read) if read == CONTENT => shown(true, "the bytes are those that were written"),
        Ok(read) => shown(false, format!("{} bytes came back of {} that were written", read.len(), CONTENT.len())),
        Err(error) => refused(error)?,
    };
    Ok((shows, entry, reads_back))
}

fn shown(shown: bool, seen: impl Into<String>) -> Shown {
    Shown { shown, seen: seen.into(), code: None }
}

/// The server's no is something seen; anything else ends the check.
fn refused(error: RemoteError) -> Result<Shown, RemoteError> {
    match error {
        RemoteError::Refused { code, text } => Ok(Shown { shown: false, seen: text, code }),
        error => Err(error),
    }
}
