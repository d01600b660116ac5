//! The host's own looks at the end of an attempt: final name, temporary name, acknowledgments.
//!
//! What the plugin reported is kept beside them, and each difference is put in words. A session that was lost during the
//! delivery is replaced by a fresh one for looking; where none can be had, nothing is known, and that is what is said.

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::Work;
use crate::job::contract::{Acknowledgment, Contract};
use crate::job::evidence::{Acknowledged, AuxiliaryPut, Receipt};
use crate::job::facts::{Found, Listing};
use crate::job::names::Parts;
use crate::job::verdict::acknowledgment::{Before, File, MAX_BYTES, Reader as Acknowledgments};
use crate::job::verdict::differences;
use crate::remote::{self, Names, Reader, Sending, Session};

/// How long a fresh session for looking may take.
const RECONNECT_WITHIN: Duration = Duration::from_secs(20);

/// Acknowledgment files that are listed at most. Where more are there, none counts as new or as read.
const MOST_LISTED: u32 = 1000;

/// How long all of them together may take to read.
const ANSWERS_WITHIN: Duration = Duration::from_secs(120);

/// Answers that one look keeps at most.
const MOST_KEPT: usize = 20;

/// What the looks at the end of an attempt showed.
pub(super) struct Looks {
    final_name: Listing,
    temporary: Option<Listing>,
    answered: Answered,
}

/// What to know of the partner's answers before they are weighed.
#[derive(Debug, Clone, Copy)]
pub struct Asked<'a> {
    /// What was agreed at the claim, and what is agreed now.
    pub then: &'a Contract,
    pub now: &'a Contract,
    /// Files that the baseline showed; `None` where it could not list them all.
    pub there_before: Option<&'a [String]>,
    /// Files that the attempt put there.
    pub ours: &'a [AuxiliaryPut],
}

/// What the partner's answers say of an attempt.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Answered {
    /// What may be about the attempt, by both contracts. Where not all could be read, only what speaks against the delivery.
    pub said: Vec<Acknowledged>,
    /// Why not all could be listed or read: then it is not known what the partner says.
    pub unread: Option<String>,
    /// Acceptances by one of the two contracts alone, or not shown to be new. They complete nothing, and nothing is sent again
    /// beside one of them.
    pub perhaps: Vec<Acknowledged>,
}

/// Looks at everything that the conclusion rests on.
pub(super) async fn at_the_end(
    work: &Work,
    session: &Session,
    names: &Arc<Names>,
    there_before: Option<&[String]>,
    sending: &Sending,
) -> Looks {
    let fresh = if session.is_usable() { None } else { Some(reconnect(work).await) };
    let session = match &fresh {
        None => session,
        Some(Ok(fresh)) => fresh,
        Some(Err(why)) => return nothing_known(names, why),
    };
    let read_back = work.bundle.manifest.limits.read_back_bytes();
    let final_name = remote::look(session, &names.final_name, read_back).await;
    let temporary = match &names.temporary {
        Some(name) => Some(remote::look(session, name, 0).await),
        None => None,
    };
    let contract = &work.bundle.manifest.contract;
    let asked = Asked { then: contract, now: contract, there_before, ours: &sending.put };
    let answered = answered(session, names, asked).await;
    if let Some(Ok(fresh)) = fresh {
        fresh.close().await;
    }
    Looks { final_name, temporary, answered }
}

pub(super) async fn reconnect(work: &Work) -> Result<Session, String> {
    let connect = work.means.sessions.checkout(work.destination.id, &work.destination.endpoint);
    match tokio::time::timeout(RECONNECT_WITHIN, connect).await {
        Ok(session) => session.map_err(|error| error.to_string()),
        Err(_) => Err(format!("no session for looking within {} s", RECONNECT_WITHIN.as_secs())),
    }
}

fn nothing_known(names: &Arc<Names>, why: &str) -> Looks {
    let unknown = |at: &str| Listing {
        at: at.to_owned(),
        found: Found::Unknown { why: why.to_owned() },
        sha256: None,
        hashed_by: None,
    };
    Looks {
        final_name: unknown(&names.final_name),
        temporary: names.temporary.as_deref().map(unknown),
        answered: Answered::default(),
    }
}

/// Adds the looks to the receipt, with every difference from the plugin's report.
pub(super) fn add_to(receipt: &mut Receipt, looks: Looks) {
    receipt.look = Some(looks.final_name);
    receipt.temporary = looks.temporary;
    looks.answered.add_to(receipt);
}

impl Answered {
    /// Adds them to a receipt with its report, and names every difference from it.
    pub fn add_to(self, receipt: &mut Receipt) {
        receipt.acknowledgments = self.said;
        receipt.unread = self.unread;
        receipt.differences = differences::of_report(receipt);
    }
}

/// Acknowledgment files that are there before anything is sent; they say nothing of this attempt. `None` where none are
/// agreed or they cannot all be listed: then none that is found later was shown to be new.
pub(super) async fn acknowledgments_there(work: &Work, session: &Session, names: &Arc<Names>) -> Option<Vec<String>> {
    work.bundle.manifest.contract.acknowledgment.as_ref()?;
    let reader = Reader::new(session.clone(), Arc::clone(names), CancellationToken::new());
    match list(&reader, |_| false).await {
        Listed { names, unread: None } => Some(names),
        Listed { unread: Some(why), .. } => {
            tracing::warn!(job = %work.job.id, attempt = %work.job.attempt, why, "what lies there of the partner's answers is not known; none will count for this attempt, and a refusal against it");
            None
        }
    }
}

/// Files by which the partner may have answered, and why they are not all.
#[derive(Default)]
struct Listed {
    names: Vec<String>,
    unread: Option<String>,
}

/// `may_be_gone`: folders whose absence says that nothing lies in them.
async fn list(reader: &Reader, may_be_gone: impl Fn(&str) -> bool) -> Listed {
    let mut listed = Listed::default();
    let folders = match reader.names().acknowledgment_folders() {
        Ok(folders) => folders,
        Err(error) => return Listed { unread: Some(error.to_string()), ..listed },
    };
    for folder in folders {
        // What lies in the others may still say no.
        match reader.acknowledgments(&folder, MOST_LISTED + 1).await {
            Ok(names) if names.len() > MOST_LISTED as usize => {
                listed.unread = Some(format!(
                    "more than {MOST_LISTED} files match the acknowledgment's name; put {{key}} or {{final}} into it"
                ));
            }
            Ok(names) => listed.names.extend(names),
            Err(error) if error.says_absent() && may_be_gone(&folder) => {}
            Err(error) => {
                listed.unread = Some(format!("the partner's answers in {folder:?} cannot be listed: {error}"));
            }
        }
    }
    listed
}

/// The partner's word about an attempt, read and matched by the host itself: for the attempt, and for any look after it.
pub async fn answered(session: &Session, names: &Arc<Names>, asked: Asked<'_>) -> Answered {
    if names.acknowledgments.is_empty() {
        return Answered::default();
    }
    let mut answered = Answered::default();
    let reading = tokio::time::timeout(ANSWERS_WITHIN, read_all(session, names, asked, &mut answered)).await;
    match reading {
        Ok(Ok(())) => {}
        Ok(Err(why)) => answered.unread = Some(why),
        Err(_) => {
            let within = ANSWERS_WITHIN.as_secs();
            answered.unread = Some(format!("the partner's answers could not all be read within {within} s"));
        }
    }
    // What could not be read may speak against the delivery.
    if answered.unread.is_some() {
        answered.said.retain(speaks_against);
    }
    answered
}

async fn read_all(
    session: &Session,
    names: &Arc<Names>,
    asked: Asked<'_>,
    answered: &mut Answered,
) -> Result<(), String> {
    let expressions = Acknowledgments::new(asked.then, asked.now).map_err(|error| error.to_string())?;
    let parts = Parts { key: &names.key, attempt: &names.attempt, final_name: &names.final_name };
    let reader = Reader::new(session.clone(), Arc::clone(names), CancellationToken::new());
    // Once answers lie elsewhere by agreement, the partner may clear the old folder away.
    let is_agreed_now = |folder: &str| {
        let names = asked.now.acknowledgment.iter().flat_map(Acknowledgment::names);
        names.map(|(_, name)| name.folder(parts)).any(|of| of.matches(folder, Parts::default()))
    };
    let listed = list(&reader, |folder| !is_agreed_now(folder)).await;
    answered.unread = listed.unread;
    for name in listed.names {
        let before = before(asked, &name, parts);
        if before == Before::There {
            continue;
        }
        let bytes = if expressions.reads(&name, parts) {
            match reader.answer(&name, u32::try_from(MAX_BYTES + 1).unwrap_or(u32::MAX)).await {
                Ok(bytes) => bytes,
                // It went away since it was listed.
                Err(refusal) if refusal.says_absent() => continue,
                // The others may still say no.
                Err(error) => {
                    answered.unread = Some(format!("the partner's answer {name:?} cannot be read: {error}"));
                    continue;
                }
            }
        } else {
            Vec::new()
        };
        let written_by_us = names.is_ours(&name) || asked.ours.iter().any(|put| put.name == name);
        let file = File { name: &name, bytes: &bytes, before, written_by_us };
        match expressions.read(file, parts) {
            Ok(said) => answered.said.push(said),
            Err(_) => answered.perhaps.extend(expressions.perhaps_accepted(file, parts)),
        }
    }
    // What speaks against a delivery weighs more than what speaks for it, and one that names the attempt or the content
    // says more than one that names only the key.
    answered.said.sort_by_key(|said| std::cmp::Reverse((speaks_against(said), names_more(said))));
    answered.said.truncate(MOST_KEPT);
    Ok(())
}

/// What the baseline says of a file that is there now. It listed by the names that were agreed then.
fn before(asked: Asked<'_>, name: &str, parts: Parts<'_>) -> Before {
    let Some(there) = asked.there_before else { return Before::NotLooked };
    let mut patterns = asked.then.acknowledgment.iter().flat_map(Acknowledgment::names);
    if there.iter().any(|one| one == name) {
        Before::There
    } else if patterns.any(|(_, pattern)| pattern.matches(name, parts)) {
        Before::Absent
    } else {
        Before::NotLooked
    }
}

fn speaks_against(said: &Acknowledged) -> bool {
    said.says != "accepted"
}

const fn names_more(said: &Acknowledged) -> bool {
    said.attempt.is_some() || said.sha256.is_some()
}
