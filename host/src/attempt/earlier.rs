//! What a replacement does about earlier attempts of its key that may still bring their file: it closes them, or it sends
//! nothing.
//!
//! It acts before its own baseline, so that the baseline lists anew what the fencing left. An attempt is closed by removing
//! its temporary file, by the reconciler's rules and under the same lease: only where the contract gives leave, never
//! while a file shows under the final name, and with "removal intended" on record first. What cannot be closed so demands
//! the words of the replacement's creator; without them nothing is sent.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use uuid::Uuid;

use super::Work;
use super::look_back::{Others, ask_away, facts, look_back, names_of};
use super::record::{Earlier, KeyHistory, NotRecorded, Place, Record};
use crate::job::evidence::Receipt;
use crate::job::on_record::{AttemptOnRecord, Recorded};
use crate::job::verdict::{Leave, worth_removing};
use crate::remote::Session;

/// How long a reconciler that looks at the same attempt is waited for.
const LEASE_WITHIN: Duration = Duration::from_secs(20);
const ASK_AGAIN_AFTER: Duration = Duration::from_millis(500);

/// True if a temporary file was asked away. An error says why nothing may be sent.
pub(super) async fn close(work: &Work, record: &dyn Record, session: &Session, place: &Place) -> Result<bool, String> {
    if work.job.replacement.is_none() {
        return Ok(false);
    }
    let began = Instant::now();
    let open = record.open_earlier_attempts().await.map_err(|error| unreadable(&error))?;
    if open.is_empty() {
        return Ok(false);
    }
    let history = record.history(place).await.unwrap_or_else(|_| KeyHistory::unreadable());
    let mut removed = false;
    for attempt in open.iter().filter_map(|earlier| earlier.on_record.as_ref()) {
        removed |= fence(work, record, session, attempt, &history, began).await.map_err(|error| unreadable(&error))?;
    }
    let open = record.open_earlier_attempts().await.map_err(|error| unreadable(&error))?;
    if open.is_empty() { Ok(removed) } else { Err(still_open(&open)) }
}

/// Removes the temporary file of one attempt, if the rules allow it.
async fn fence(
    work: &Work,
    record: &dyn Record,
    session: &Session,
    earlier: &AttemptOnRecord,
    history: &KeyHistory,
    began: Instant,
) -> Result<bool, NotRecorded> {
    let Some(expected) = &earlier.expected else { return Ok(false) };
    let manifest = &work.bundle.manifest;
    let recorded = Recorded::of(earlier, &manifest.contract, &work.destination.digests.contract);
    let Some(temporary) = &recorded.temporary else { return Ok(false) };
    let names = Arc::new(names_of(earlier, &recorded, expected));
    let mut observation = Receipt::default();
    look_back(session, &names, earlier, &recorded, manifest.limits.read_back_bytes(), &mut observation).await;
    // The history is this replacement's; the earlier attempt is one of its others.
    let mut expected_of_others = history.others.clone();
    if let Some(own) = expected_of_others.iter().position(|other| other.as_ref() == Some(expected)) {
        expected_of_others.swap_remove(own);
    }
    let others = Others { expected: &expected_of_others, past_the_fence: history.past_fence };
    let Some(facts) = facts(earlier, &recorded, &observation, others, began.elapsed()) else { return Ok(false) };
    let leave = Leave {
        may_remove_temporaries: recorded.contract.may_remove_temporaries,
        one_name_space: recorded.contract.one_name_space,
    };
    if !worth_removing(&facts, leave) {
        return Ok(false);
    }
    let Some(look) = intended(record, earlier, temporary).await? else { return Ok(false) };
    let answer = ask_away(session, &expected.name, temporary, facts.publish_overwrites()).await;
    tracing::info!(
        job = %work.job.id, attempt = %work.job.attempt, earlier_job = %earlier.job.id, earlier_attempt = %earlier.job.attempt, temporary,
        ?answer, "removal of an earlier attempt's temporary file"
    );
    record.removal_answered(earlier, look, temporary, &answer).await?;
    Ok(true)
}

/// Has the intention recorded, under the attempt's look. A reconciler that holds the look is soon done with it.
async fn intended(
    record: &dyn Record,
    earlier: &AttemptOnRecord,
    temporary: &str,
) -> Result<Option<Uuid>, NotRecorded> {
    let began = Instant::now();
    loop {
        let look = record.intend_removal(earlier, temporary).await?;
        if look.is_some() || began.elapsed() >= LEASE_WITHIN {
            return Ok(look);
        }
        tokio::time::sleep(ASK_AGAIN_AFTER).await;
    }
}

fn still_open(open: &[Earlier]) -> String {
    let jobs: Vec<String> = open.iter().map(|earlier| earlier.job.to_string()).collect();
    format!(
        "an earlier attempt of this delivery key may still bring its file (job {}), its temporary file could not be removed, and no words on record say why it cannot",
        jobs.join(", ")
    )
}

fn unreadable(error: &NotRecorded) -> String {
    format!("the earlier attempts of this delivery key could not be read or closed: {error}")
}
