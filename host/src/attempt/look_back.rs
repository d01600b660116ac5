//! A look at an earlier attempt by somebody else than its worker: the host's own looks, the facts that follow from them
//! and from the record, and the one request by which a silent attempt's temporary file is asked away.
//!
//! For recovery, for the reconciler, and for a replacement that closes what came before it.

use std::sync::Arc;
use std::time::Duration;

use super::look::{Answered, Asked, answered};
use crate::job::evidence::{Answer, Evidence, Receipt};
use crate::job::facts::{FileFacts, Found};
use crate::job::on_record::{AttemptOnRecord, Recorded};
use crate::job::verdict::Facts;
use crate::job::verdict::compare::{self, OnRecord};
use crate::job::verdict::differences;
use crate::plugin::{CallError, Reported};
use crate::remote::{self, Names, RemoteError, Session};

/// What is recorded of the other attempts of a key, as far as evidence is weighed by it.
#[derive(Debug, Clone, Copy)]
pub struct Others<'a> {
    /// What each other authorized attempt was to deliver; `None` where it is not known.
    pub expected: &'a [Option<FileFacts>],
    /// Attempts of the key that passed the publish fence, the one that is looked at included.
    pub past_the_fence: u32,
}

/// The names to look at: those of the attempt, not those that the manifest of now would mint.
pub fn names_of(attempt: &AttemptOnRecord, recorded: &Recorded, expected: &FileFacts) -> Names {
    let (key, id) = (&attempt.job.delivery_key, attempt.job.attempt.to_string());
    let agreed = [&recorded.then, &recorded.now];
    Names::on_record(&recorded.contract, agreed, recorded.temporary.clone(), &expected.name, key, &id)
}

/// What the partner's answers say of an attempt on record.
pub async fn answers_to(
    session: &Session,
    names: &Arc<Names>,
    attempt: &AttemptOnRecord,
    recorded: &Recorded,
) -> Answered {
    let looks = attempt.evidence.iter().filter_map(Evidence::look);
    let ours: Vec<_> = looks.flat_map(|look| look.auxiliary.clone()).collect();
    let Recorded { then, now, acknowledgments, .. } = recorded;
    answered(session, names, Asked { then, now, there_before: acknowledgments.as_deref(), ours: &ours }).await
}

/// Looks at final name, temporary name and acknowledgments, one after the other: what was looked at stands in `observation`,
/// should the rest take too long.
pub async fn look_back(
    session: &Session,
    names: &Arc<Names>,
    attempt: &AttemptOnRecord,
    recorded: &Recorded,
    read_back_up_to: u64,
    observation: &mut Receipt,
) {
    observation.look = Some(remote::look(session, &names.final_name, read_back_up_to).await);
    if let Some(name) = &names.temporary {
        observation.temporary = Some(remote::look(session, name, 0).await);
    }
    answers_to(session, names, attempt, recorded).await.add_to(observation);
}

/// Sets beside the host's look what the plugin says that it observed, and names every difference.
pub fn set_beside(observation: &mut Receipt, observed: Result<Reported, CallError>) {
    match observed {
        Ok(reported) => {
            observation.reported = serde_json::to_value(&reported).ok();
            observation.differences.extend(differences::of_report(observation));
        }
        Err(error) => observation.call = Some(error.to_string()),
    }
}

/// The facts of an attempt on record after a look; `None` without a publish fence, or without what cutoff 2 recorded.
/// `looked_for`: how long ago the record was read.
pub fn facts(
    attempt: &AttemptOnRecord,
    recorded: &Recorded,
    observation: &Receipt,
    others: Others<'_>,
    looked_for: Duration,
) -> Option<Facts> {
    let expected = attempt.expected.as_ref()?;
    let publish = compare::publish_on_record(attempt.publish_intended, &attempt.evidence, &recorded.contract)
        .filter(|_| attempt.fenced)?;
    let mut evidence = attempt.evidence.clone();
    evidence.push(Evidence::Observation(observation.clone()));
    Some(compare::facts(&OnRecord {
        expected,
        key: &attempt.job.delivery_key,
        attempt: &attempt.job.attempt.to_string(),
        contract: &recorded.contract,
        publish,
        evidence: &evidence,
        others: others.expected,
        attempts_past_the_fence: others.past_the_fence,
        looked_after: attempt.since_intended.unwrap_or(Duration::MAX).saturating_add(looked_for),
        looked_since_answer: attempt.since_settled,
    }))
}

/// Asks a temporary file away whose removal is worth it and whose intention is on record. It looks at the final name
/// once more: the publish may have taken effect since. `overwrites`: an agreed overwrite in one step has its file from
/// before there, so only the temporary tells.
pub async fn ask_away(session: &Session, final_name: &str, temporary: &str, overwrites: bool) -> Answer {
    let still_absent = match session.stat(final_name).await {
        Ok(Found::Absent) => true,
        Ok(Found::Present(_) | Found::NotVisible { .. } | Found::Unknown { .. }) | Err(_) => false,
    };
    if !still_absent && !overwrites {
        return Answer::Refused { code: None, text: "not sent: the final name is no longer seen absent".to_owned() };
    }
    asked_away(session, temporary).await
}

/// Asks for the removal of a temporary file, whatever else is there.
pub async fn asked_away(session: &Session, temporary: &str) -> Answer {
    match session.remove(temporary).await {
        Ok(()) => Answer::Acknowledged,
        Err(RemoteError::Refused { code, text }) => Answer::Refused { code, text },
        Err(RemoteError::NotSent { why }) => Answer::Refused { code: None, text: format!("not sent: {why}") },
        Err(error) => Answer::Unanswered { why: error.to_string() },
    }
}
