//! Up to cutoff 2: build the file, reach the partner, name, list, check, authorize.
//!
//! Everything here can be undone by letting go of it: the file has no name, and at the partner nothing of it was written.
//! A stop request, a lost lease and a shutdown end it at once. `Stopped` needs the recorded request; a lost lease
//! writes nothing, and a shutdown hands the work back.

use std::sync::Arc;

use super::record::{Authorization, End, Place, Record, Release};
use super::{StopReason, Work};
use super::{before, checked};
use crate::job::facts::FileFacts;
use crate::job::names::{self, Parts};
use crate::job::remedy::Remedy;
use crate::job::status::FailureReason;
use crate::job::verdict::Before;
use crate::plugin::{Built, CallError, Handed};
use crate::remote::{Names, Proof, Reader, Session};
use crate::spool::SpoolFile;

/// What cutoff 2 authorized.
pub(super) struct Prepared {
    pub file: SpoolFile,
    /// What the builder was handed.
    pub handed: Arc<Handed>,
    pub expected: FileFacts,
    /// All names that this attempt may touch.
    pub names: Arc<Names>,
    /// Where the final name lies.
    pub place: Place,
    /// How the server was shown to publish.
    pub proof: Proof,
}

/// Names, lists, checks and passes cutoff 2, or says how the attempt ends before it.
pub(super) async fn authorized(
    work: &Work,
    record: &dyn Record,
    session: &Session,
    built: Built,
) -> Result<Prepared, End> {
    let name = name(work).await?;
    let Built { file, handed, .. } = built;
    let expected = FileFacts { name, bytes: file.bytes(), sha256: file.sha256() };
    let names = Arc::new(mint(work, &expected.name)?);
    let place = place(work, session, &expected.name);
    let seen = list(work, record, session, &expected.name, &place).await?;
    // Where the look can tell nothing, the check says why, if it is a word of the contract that is not kept.
    let proof = checked::server(work, record, session, &expected.name).await?;
    if seen.answer == Before::CannotTell {
        return Err(End::Released(Release::LookFailed { why: seen.cause() }));
    }
    let prepared = Prepared { file, handed, expected, names, place, proof };
    ask_the_plugin(work, session, &prepared).await?;
    authorize(record, &prepared).await?;
    Ok(prepared)
}

pub(super) async fn build(work: &Work) -> Result<Built, End> {
    let limit_bytes = work.bundle.manifest.limits.output_bytes();
    let draft = work
        .means
        .spool
        .create(limit_bytes)
        .map_err(|error| End::Released(Release::Host { why: error.to_string(), remedy: Remedy::AnotherAttempt }))?;
    match work.bundle.build(&work.destination, &work.job, draft, work.stop.token()).await {
        Ok(built) => {
            tracing::info!(job = %work.job.id, attempt = %work.job.attempt, rows = built.rows, bytes = built.file.bytes(), "file built");
            for query in &built.unread {
                tracing::warn!(job = %work.job.id, attempt = %work.job.attempt, query, "the builder left rows of this query unread");
            }
            Ok(built)
        }
        Err(error) => Err(unprepared(work, "building", error)),
    }
}

/// A session with the partner's server. Nothing is written there.
pub(super) async fn reach(work: &Work) -> Result<Session, End> {
    tokio::select! {
        biased;
        () = work.stop.token().cancelled() => Err(stopped(work, "connecting")),
        session = work.means.sessions.checkout(work.destination.id, &work.destination.endpoint) => {
            session.map_err(|error| End::Released(Release::Partner(error)))
        }
    }
}

/// The plugin's final name, held against the manifest's pattern.
async fn name(work: &Work) -> Result<String, End> {
    let name = work.bundle.final_name(&work.destination, &work.job, work.stop.token()).await;
    let name = name.map_err(|error| unprepared(work, "naming", error))?;
    names::check_name(&name).map_err(|error| failed(FailureReason::BuildFailed, error.to_string()))?;
    let pattern = &work.bundle.manifest.names.final_name;
    let parts = Parts { key: &work.job.delivery_key, ..Parts::default() };
    if pattern.matches(&name, parts) {
        Ok(name)
    } else {
        let cause = format!(
            "the plugin named the file {name:?}, which the manifest's names.final {:?} does not allow for the delivery key {:?}",
            pattern.to_string(),
            work.job.delivery_key
        );
        Err(failed(FailureReason::BuildFailed, cause))
    }
}

/// Every name that this attempt may touch: minted by the host from the manifest's patterns.
fn mint(work: &Work, final_name: &str) -> Result<Names, End> {
    let manifest = &work.bundle.manifest;
    let (key, attempt) = (&work.job.delivery_key, work.job.attempt.to_string());
    Names::mint(&manifest.contract, Some(&manifest.names.temporary), final_name, key, &attempt)
        .map_err(|error| failed(FailureReason::BuildFailed, error.to_string()))
}

/// Lists the final name while a stop request can still win. The recorded baseline comes after cutoff 2.
async fn list(
    work: &Work,
    record: &dyn Record,
    session: &Session,
    final_name: &str,
    place: &Place,
) -> Result<before::Seen, End> {
    let history = record.history(place).await.map_err(|error| End::Nothing { why: error.to_string() })?;
    let seen = tokio::select! {
        biased;
        () = work.stop.token().cancelled() => return Err(stopped(work, "listing")),
        seen = before::look(work, record, session, final_name, &history) => seen,
    };
    match seen.answer {
        Before::Go | Before::GoOver | Before::CannotTell => Ok(seen),
        Before::FinalNameOccupied => Err(failed(FailureReason::FinalNameOccupied, seen.cause())),
        Before::OriginalDelivered => Err(failed(FailureReason::OriginalDelivered, seen.cause())),
    }
}

/// The plugin's own baseline is a report. Asking for it before cutoff 2 finds a plugin that traps there while nothing of the
/// job has left the process.
async fn ask_the_plugin(work: &Work, session: &Session, prepared: &Prepared) -> Result<(), End> {
    let reader = Reader::new(session.clone(), Arc::clone(&prepared.names), work.stop.token().clone());
    let name = &prepared.expected.name;
    let (destination, stop) = (&work.destination, work.stop.token());
    let listed = work.bundle.baseline(destination, &work.job, name, reader, &prepared.handed, stop).await;
    listed.map(drop).map_err(|error| match unprepared(work, "listing", error) {
        // The line was cut under it, which is no fault of the plugin's and none of the job's.
        End::Failed { cause, .. } if !session.is_usable() => End::Released(Release::LookFailed { why: cause }),
        end => end,
    })
}

async fn authorize(record: &dyn Record, prepared: &Prepared) -> Result<(), End> {
    let mut answer = record.authorize(&prepared.expected, &prepared.place).await;
    if answer == Authorization::LeaseLapsed && record.renew_now().await {
        answer = record.authorize(&prepared.expected, &prepared.place).await;
    }
    match answer {
        Authorization::Authorized => Ok(()),
        Authorization::StopRecorded => Err(End::Stopped { during: "authorizing" }),
        Authorization::OriginalCompleted => Err(failed(
            FailureReason::OriginalDelivered,
            "the original of this replacement is recorded as Completed; nothing was sent".to_owned(),
        )),
        Authorization::NameTaken { holder } => {
            let holder = holder
                .map_or_else(|| "another tenant's delivery".to_owned(), |key| format!("the delivery key {key:?}"));
            let name = &prepared.expected.name;
            Err(failed(
                FailureReason::FinalNameOccupied,
                format!("{holder} holds the final name {name:?} at this server; nothing was sent"),
            ))
        }
        Authorization::Moved => Err(failed(
            FailureReason::BuildFailed,
            format!(
                "a replacement keeps the destination and the final name of the earlier attempts of its key, but this one would write {:?}",
                prepared.expected.name
            ),
        )),
        Authorization::LeaseLapsed => {
            Err(End::Nothing { why: "the lease ran out and could not be renewed".to_owned() })
        }
        Authorization::NotOwner => Err(End::Nothing { why: "the job was taken over".to_owned() }),
        Authorization::Unknown { why } => Err(End::Nothing { why }),
    }
}

/// Where the final name lies: its folder, as the server resolves it, and its last part.
fn place(work: &Work, session: &Session, name: &str) -> Place {
    let (folder, last) = name.rsplit_once('/').map_or(("", name), |(folder, last)| (folder, last));
    let root = session.server().directory.trim_end_matches('/');
    Place {
        endpoint: work.destination.endpoint.server(),
        directory: if folder.is_empty() { root.to_owned() } else { format!("{root}/{folder}") },
        last_part: last.to_owned(),
        reused: work.bundle.manifest.contract.names_reused,
    }
}

/// A call before cutoff 2 that brought no result. What the plugin or its input did wrong fails the same way again; what the
/// host could not do is no failure of the job.
fn unprepared(work: &Work, during: &'static str, error: CallError) -> End {
    match error {
        CallError::Stopped => stopped(work, during),
        CallError::Host { what, remedy } => End::Released(Release::Host { why: what, remedy }),
        CallError::Failed { .. }
        | CallError::Trapped { .. }
        | CallError::TimedOut { .. }
        | CallError::Limit { .. }
        | CallError::Broke { .. } => failed(FailureReason::BuildFailed, error.to_string()),
    }
}

pub(super) fn stopped(work: &Work, during: &'static str) -> End {
    match work.stop.reason() {
        Some(StopReason::Requested) => End::Stopped { during },
        Some(StopReason::OwnershipLost) => End::Nothing { why: "the job was taken over".to_owned() },
        Some(StopReason::ShuttingDown) | None => End::Released(Release::ShuttingDown),
    }
}

pub(super) fn failed(reason: FailureReason, cause: String) -> End {
    End::Failed { reason, cause }
}
