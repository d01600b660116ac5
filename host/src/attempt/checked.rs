//! What this server was shown to do, before a job is authorized to go there.
//!
//! A check of this very server counts, whoever made it: a person, or an attempt before this one. Where there is none, because
//! nobody asked, or banner, extensions or `destinations.toml` changed since, the attempt makes it. Nothing of the job is in
//! it: scratch files with a text of ours, under temporary names. What contradicts the contract holds the destination for a
//! person, and the job goes back into the queue.

use super::Work;
use super::prepare::{failed, stopped};
use super::record::{End, Known, Record, Release};
use crate::job::status::FailureReason;
use crate::remote::{self, About, Finding, Proof, RemoteError, ScratchNames, Session, contradictions, findings};

/// More than these would hide what has to be done; the check itself tells all.
const MOST_TOLD: usize = 3;

/// How the server publishes, if nothing that it was shown to do contradicts the contract.
pub(super) async fn server(
    work: &Work,
    record: &dyn Record,
    session: &Session,
    final_name: &str,
) -> Result<Proof, End> {
    let known = match known(record, session).await? {
        Some(known) => known,
        None => in_turn(work, record, session, final_name).await?,
    };
    let manifest = &work.bundle.manifest;
    let found = findings(&About {
        banner: &session.server().banner,
        proof: &known.proof,
        seen: known.seen.as_ref(),
        contract: &manifest.contract,
        one_folder: manifest.names.one_folder(),
    });
    let against: Vec<&Finding> = contradictions(&found).collect();
    if against.is_empty() {
        return Ok(known.proof);
    }
    Err(End::Released(Release::Attention { why: contradicted(work, &against) }))
}

async fn known(record: &dyn Record, session: &Session) -> Result<Option<Known>, End> {
    record.known(session.server()).await.map_err(|error| End::Nothing { why: error.to_string() })
}

/// Jobs that meet a new server at once wait for the first one's check.
async fn in_turn(work: &Work, record: &dyn Record, session: &Session, final_name: &str) -> Result<Known, End> {
    let _turn = tokio::select! {
        biased;
        () = work.stop.token().cancelled() => return Err(stopped(work, "waiting for a check of the server")),
        turn = work.means.sessions.turn_to_check(work.destination.id) => turn,
    };
    match known(record, session).await? {
        Some(known) => Ok(known),
        None => check(work, record, session, final_name).await,
    }
}

/// The same check as a person's, kept for the next attempts.
async fn check(work: &Work, record: &dyn Record, session: &Session, final_name: &str) -> Result<Known, End> {
    // It may take a while, and an attempt that lost its job writes nothing at the partner, not even this.
    if !record.renew_now().await {
        return Err(End::Nothing { why: "the lease could not be renewed before the server was checked".to_owned() });
    }
    let manifest = &work.bundle.manifest;
    let scratch = ScratchNames::mint(&manifest.names.temporary, final_name)
        .map_err(|error| failed(FailureReason::BuildFailed, error.to_string()))?;
    let answers = manifest.answers_folders();
    tracing::info!(destination = %work.destination.id, attempt = %work.job.attempt, banner = session.server().banner, "a server that was not checked yet is checked");
    let checked = match remote::check(session, &scratch, &answers, work.stop.token()).await {
        Ok(checked) => Ok(checked),
        Err(RemoteError::Stopped) => return Err(stopped(work, "checking the server")),
        Err(error @ RemoteError::Refused { .. }) => Err(error),
        // Of the server it says nothing.
        Err(error) => return Err(End::Released(Release::LookFailed { why: not_tried(&error) })),
    };
    let kept = checked.as_ref().map_err(not_tried);
    // An attempt that cannot keep it still has it; the next one checks again.
    if let Err(error) = record.keep_check(session.server(), kept.as_ref().copied()).await {
        tracing::warn!(job = %work.job.id, %error, "what the server was shown to do could not be kept");
    }
    match checked {
        Ok(remote::Check { proof, seen }) => Ok(Known { proof, seen: Some(seen) }),
        Err(error) if error.needs_attention() => {
            let why = format!("{}; mend it, then: {}", not_tried(&error), resume(work));
            Err(End::Released(Release::Attention { why }))
        }
        Err(error) => Err(End::Released(Release::LookFailed { why: not_tried(&error) })),
    }
}

fn not_tried(error: &RemoteError) -> String {
    let hint = if error.says_absent() {
        "; its folder is not there: have it created, or correct [names] in partner.toml"
    } else {
        ""
    };
    format!("a scratch file could not be tried under a temporary name: {error}{hint}")
}

/// What was contradicted, and what to do.
fn contradicted(work: &Work, against: &[&Finding]) -> String {
    let told = |finding: &&Finding| {
        let next = finding.next.as_deref().map_or_else(String::new, |next| format!(" ({next})"));
        format!("{}: {}{next}", finding.about, finding.sentence)
    };
    let mut points: Vec<String> = against.iter().take(MOST_TOLD).map(told).collect();
    if against.len() > MOST_TOLD {
        points.push(format!("and {} more", against.len() - MOST_TOLD));
    }
    let (id, resume) = (work.destination.id, resume(work));
    format!(
        "the contract says more than the server was shown to do: {}. Mend it at the partner or in partner.toml (raise `revision`), \
         then: waybill partner check {id} --as YOU, and once it agrees: {resume}",
        points.join("; ")
    )
}

fn resume(work: &Work) -> String {
    format!("waybill destination resume {} --tenant {} --as YOU", work.destination.id, work.destination.tenant)
}
