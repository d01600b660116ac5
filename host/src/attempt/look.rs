//! The host's own looks at the end of an attempt: final name, temporary name, acknowledgments.
//!
//! What the plugin reported is kept beside them, and each difference is put in words. A session that was lost during the
//! delivery is replaced by a fresh one for looking; where none can be had, nothing is known, and that is what is said.

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::Work;
use crate::job::contract::Contract;
use crate::job::evidence::{Acknowledged, AuxiliaryPut, Receipt};
use crate::job::facts::{Found, Listing};
use crate::job::names::Parts;
use crate::job::verdict::acknowledgment::{File, MAX_BYTES, Reader as Acknowledgments};
use crate::job::verdict::differences;
use crate::remote::{self, Names, Reader, Sending, Session};

/// How long a fresh session for looking may take.
const RECONNECT_WITHIN: Duration = Duration::from_secs(20);

/// Acknowledgment files that are listed at most. Where more are there, none counts as new or as read.
const MOST_LISTED: u32 = 1000;

/// What the looks at the end of an attempt showed.
pub(super) struct Looks {
    final_name: Listing,
    temporary: Option<Listing>,
    acknowledgment: Option<Acknowledged>,
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
    let acknowledgment = acknowledgment(work, session, names, there_before, sending).await;
    if let Some(Ok(fresh)) = fresh {
        fresh.close().await;
    }
    Looks { final_name, temporary, acknowledgment }
}

async fn reconnect(work: &Work) -> Result<Session, String> {
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
        acknowledgment: None,
    }
}

/// Adds the looks to the receipt, with every difference from the plugin's report.
pub(super) fn add_to(receipt: &mut Receipt, looks: Looks) {
    receipt.look = Some(looks.final_name);
    receipt.temporary = looks.temporary;
    receipt.acknowledgment = looks.acknowledgment;
    receipt.differences = differences::of_report(receipt);
}

/// Acknowledgment files that are there before anything is sent; they say nothing of this attempt. `None` where none are
/// agreed or they cannot all be listed: then none that is found later was shown to be new.
pub(super) async fn acknowledgments_there(work: &Work, session: &Session, names: &Arc<Names>) -> Option<Vec<String>> {
    work.bundle.manifest.contract.acknowledgment.as_ref()?;
    let reader = Reader::new(session.clone(), Arc::clone(names), CancellationToken::new());
    match listed(&reader).await {
        Ok(names) => Some(names),
        Err(why) => {
            tracing::warn!(job = %work.job.id, attempt = %work.job.attempt, why, "what lies there of the partner's answers is not known; none will count for this attempt");
            None
        }
    }
}

/// All of them, or none: of a part it is not known what is new.
async fn listed(reader: &Reader) -> Result<Vec<String>, String> {
    let names = reader.acknowledgments(MOST_LISTED + 1).await.map_err(|error| error.to_string())?;
    if names.len() > MOST_LISTED as usize {
        return Err(format!(
            "more than {MOST_LISTED} files match the acknowledgment's name; put {{key}} or {{final}} into it"
        ));
    }
    Ok(names)
}

/// The acknowledgment that weighs most, read by the host itself.
async fn acknowledgment(
    work: &Work,
    session: &Session,
    names: &Arc<Names>,
    there_before: Option<&[String]>,
    sending: &Sending,
) -> Option<Acknowledged> {
    let contract = &work.bundle.manifest.contract;
    // One that cannot be read says nothing yet; a later look may read it.
    acknowledgment_that_weighs_most(session, names, contract, there_before?, &sending.put).await.ok().flatten()
}

/// The partner's word about an attempt, read and matched by the host itself: for the attempt, and for any look after it.
/// An error where the files cannot be listed or read: then it is not known what the partner says.
/// `there_before`: files that the baseline showed; `ours`: files that the attempt put there. Neither says anything.
pub async fn acknowledgment_that_weighs_most(
    session: &Session,
    names: &Arc<Names>,
    contract: &Contract,
    there_before: &[String],
    ours: &[AuxiliaryPut],
) -> Result<Option<Acknowledged>, String> {
    let expressions = Acknowledgments::new(contract, contract).map_err(|error| error.to_string())?;
    let parts = Parts { key: &names.key, attempt: &names.attempt, final_name: &names.final_name };
    let reader = Reader::new(session.clone(), Arc::clone(names), CancellationToken::new());
    let mut best = None;
    let listed = listed(&reader).await?;
    for name in listed.into_iter().filter(|name| !there_before.contains(name)) {
        let most = if expressions.reads(&name, parts) { MAX_BYTES + 1 } else { 0 };
        let bytes = match most {
            0 => Vec::new(),
            most => match reader.answer(&name, u32::try_from(most).unwrap_or(u32::MAX)).await {
                Ok(bytes) => bytes,
                // It went away since it was listed.
                Err(refusal) if refusal.says_absent() => continue,
                Err(error) => return Err(format!("the partner's answer {name:?} cannot be read: {error}")),
            },
        };
        let file = File {
            name: &name,
            bytes: &bytes,
            absent_before: true,
            written_by_us: ours.iter().any(|put| put.name == name),
        };
        match expressions.read(file, parts) {
            // What speaks against a delivery weighs more than what speaks for it.
            Ok(said) if said.says != "accepted" => return Ok(Some(said)),
            // One that names the attempt or the content says more than one that names only the key.
            Ok(said) => match &best {
                Some(known) if names_more(known) || !names_more(&said) => {}
                Some(_) | None => best = Some(said),
            },
            Err(_) => {}
        }
    }
    Ok(best)
}

const fn names_more(said: &Acknowledged) -> bool {
    said.attempt.is_some() || said.sha256.is_some()
}
