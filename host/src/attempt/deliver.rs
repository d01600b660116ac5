//! From cutoff 2 to the conclusion: baseline, form, send and publish by the plugin, look, conclude.
//!
//! Stop requests and lost leases no longer end anything here: an upload cannot be stopped safely, and the publish fence
//! refuses an attempt that lost its job. Whatever happens, the journal says what was sent and the verdict what it means.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::Work;
use super::before;
use super::earlier;
use super::leftover::Leftover;
use super::look::{self, Looks};
use super::prepare::Prepared;
use super::record::{Delivered, End, KeyHistory, Record};
use crate::job::evidence::{Evidence, Receipt};
use crate::job::facts::{Found, Listing};
use crate::job::verdict::compare::{self, OnRecord};
use crate::job::verdict::{Before, Conclusion, NotDeliveredProof, conclude_own, differences};
use crate::remote::{self, Fence, Journal, Licence, Names, Reader, Sending, Session, Writer, WriterParts};

/// How long a remote operation that a dropped call left behind may still take before it counts as unanswered.
const PATIENCE: Duration = Duration::from_secs(60);
/// The longest `settle` of a contract that an attempt waits for.
pub const LONGEST_SETTLE: Duration = Duration::from_secs(30);

/// The recorded baseline, and what it allows.
struct Baseline {
    look: Listing,
    acknowledgments: Option<Vec<String>>,
    overwrite: bool,
    evidence: Evidence,
}

/// Delivers what cutoff 2 authorized, and concludes. With the end comes what is left to clear up after it.
pub(super) async fn deliver(
    work: &Work,
    record: &Arc<dyn Record>,
    session: &Session,
    prepared: &Prepared,
) -> (End, Option<Leftover>) {
    // Before the baseline, which lists anew what this leaves.
    match earlier::close(work, record.as_ref(), session, &prepared.place).await {
        // Whole, however long: what is listed within it would pass for fact.
        Ok(true) => tokio::time::sleep(work.bundle.manifest.contract.settle.unwrap_or_default()).await,
        Ok(false) => {}
        Err(why) => return (never_sent(record.as_ref(), why).await, None),
    }
    let baseline = match baseline(work, record.as_ref(), session, prepared).await {
        Ok(baseline) => baseline,
        Err(end) => return (end, None),
    };
    let overwrite = baseline.overwrite;
    let Some(form) = remote::choose_form(&prepared.proof, &work.bundle.manifest.contract, overwrite) else {
        // An overwrite that a replacement's own record agrees on is not the contract's, so no check was held against it.
        let why = if overwrite {
            "the server was shown no way to replace a file in one step, so the agreed overwrite cannot be done"
        } else {
            "the server was shown no way to publish that refuses an existing name"
        };
        record.attention(why).await;
        return (never_sent(record.as_ref(), why.to_owned()).await, None);
    };
    // Without a temporary file the final name is written at the publish.
    let names = if form.has_temporary() {
        Arc::clone(&prepared.names)
    } else {
        Arc::new(Names { temporary: None, ..prepared.names.as_ref().clone() })
    };
    let contract = &work.bundle.manifest.contract;
    let licence = Licence {
        form,
        overwrite_agreed: baseline.overwrite,
        baseline_showed_file: matches!(baseline.look.found, Found::Present(_)),
    };
    let reader = Reader::new(session.clone(), Arc::clone(&names), CancellationToken::new());
    let writer = Writer::new(WriterParts {
        session: session.clone(),
        names: Arc::clone(&names),
        file: prepared.file.clone(),
        licence,
        listing_hidden: contract.listing_hidden,
        lost: work.stop.lost().clone(),
        fence: Arc::clone(record) as Arc<dyn Fence>,
        journal: Arc::clone(record) as Arc<dyn Journal>,
    });
    let began = Instant::now();
    let called = work
        .bundle
        .deliver(
            &work.destination,
            &work.job,
            &prepared.expected,
            &baseline.look,
            reader,
            writer.clone(),
            &prepared.handed,
        )
        .await;
    // A call that was dropped leaves its remote operation running: the journal is read when that has ended.
    let sending = writer.outcome(PATIENCE).await;
    let answered = Instant::now();
    let mut receipt = receipt(&sending);
    match called {
        Ok(reported) => receipt.reported = serde_json::to_value(&reported).ok(),
        Err(error) => receipt.call = Some(error.to_string()),
    }
    if sending.publish.is_some() {
        settle(work).await;
    }
    let since_answer = answered.elapsed();
    let looks = look::at_the_end(work, session, &names, baseline.acknowledgments.as_deref(), &sending).await;
    let waited = Waited { since_began: began.elapsed(), since_answer };
    end(work, record.as_ref(), &writer, &baseline, prepared, sending, receipt, looks, waited).await
}

/// Lists, has it recorded with the name that the temporary file will have, and decides whether to send at all.
async fn baseline(work: &Work, record: &dyn Record, session: &Session, prepared: &Prepared) -> Result<Baseline, End> {
    // Without the record of the others nothing under the final name is identified, which is the cautious side.
    let history = record.history(&prepared.place).await.unwrap_or_else(|_| KeyHistory::unreadable());
    let seen = before::look(work, record, session, &prepared.expected.name, &history).await;
    let acknowledgments = look::acknowledgments_there(work, session, &prepared.names).await;
    // The plugin is asked without a way to stop it: from here on a stop request is too late.
    let asked = CancellationToken::new();
    let reader = Reader::new(session.clone(), Arc::clone(&prepared.names), asked.clone());
    let (name, handed) = (&prepared.expected.name, &prepared.handed);
    let reported = work.bundle.baseline(&work.destination, &work.job, name, reader, handed, &asked).await.ok();
    for difference in reported.iter().flat_map(|reported| differences::of_listing(&seen.look, reported)) {
        tracing::warn!(job = %work.job.id, attempt = %work.job.attempt, difference, "the plugin's baseline differs from the host's");
    }
    let evidence = Evidence::Baseline {
        look: seen.look.clone(),
        temporary: prepared.names.temporary.clone(),
        acknowledgments: acknowledgments.clone(),
        reported,
        contract: Some(Box::new(work.bundle.manifest.contract.clone())),
    };
    if let Err(error) = record.append(&evidence).await {
        tracing::error!(job = %work.job.id, attempt = %work.job.attempt, %error, "the baseline could not be recorded; nothing is sent");
        return Err(End::Delivered(Delivered::Concluded(Conclusion::NotDelivered(NotDeliveredProof::NeverSent))));
    }
    match seen.answer {
        Before::Go | Before::GoOver => {
            Ok(Baseline { overwrite: seen.answer == Before::GoOver, look: seen.look, acknowledgments, evidence })
        }
        Before::FinalNameOccupied => Err(End::Delivered(Delivered::Occupied { cause: seen.cause() })),
        Before::OriginalDelivered => Err(End::Delivered(Delivered::OriginalThere { cause: seen.cause() })),
        Before::CannotTell => Err(never_sent(record, seen.cause()).await),
    }
}

/// Nothing was sent, and nothing will be.
async fn never_sent(record: &dyn Record, why: String) -> End {
    let conclusion = Conclusion::NotDelivered(NotDeliveredProof::NeverSent);
    let receipt = Receipt { call: Some(why), conclusion: Some(conclusion.code().to_owned()), ..Receipt::default() };
    if let Err(error) = record.append(&Evidence::Receipt(receipt)).await {
        tracing::error!(%error, "why nothing was sent could not be recorded");
    }
    End::Delivered(Delivered::Concluded(conclusion))
}

fn receipt(sending: &Sending) -> Receipt {
    Receipt {
        bytes_read_back: sending.sent.as_ref().filter(|sent| sent.read_back).map(|sent| sent.bytes),
        auxiliary: sending.put.clone(),
        temporary_removed: sending.temporary_removed,
        ..Receipt::default()
    }
}

/// A look that comes earlier than the contract's `settle` proves neither absence nor sameness. An attempt waits for a
/// short one; for a long one the outcome stays open until a later look.
async fn settle(work: &Work) {
    if let Some(settle) = work.bundle.manifest.contract.settle.filter(|settle| *settle <= LONGEST_SETTLE) {
        tokio::time::sleep(settle).await;
    }
}

/// Monotonic times of this process, each taken on its cautious side.
struct Waited {
    /// From before the first byte until after the last look: a file may have come and gone within it.
    since_began: Duration,
    /// From the publish's answer until before the first look: no look was later than this, at the least.
    since_answer: Duration,
}

#[expect(clippy::too_many_arguments, reason = "the end of an attempt brings together everything that it knows")]
async fn end(
    work: &Work,
    record: &dyn Record,
    writer: &Writer,
    baseline: &Baseline,
    prepared: &Prepared,
    sending: Sending,
    mut receipt: Receipt,
    looks: Looks,
    waited: Waited,
) -> (End, Option<Leftover>) {
    look::add_to(&mut receipt, looks);
    let history = record.history(&prepared.place).await.unwrap_or_else(|_| KeyHistory::unreadable());
    let contract = &work.bundle.manifest.contract;
    let publish = sending.publish.as_ref().map(|(form, answer)| (*form, answer));
    let evidence = [baseline.evidence.clone(), Evidence::Receipt(receipt.clone())];
    let facts = compare::facts(&OnRecord {
        expected: &prepared.expected,
        key: &work.job.delivery_key,
        attempt: &work.job.attempt.to_string(),
        contract,
        publish: compare::publish_of_the_attempt(publish, contract),
        evidence: &evidence,
        others: &history.others,
        attempts_past_the_fence: history.past_fence,
        looked_after: waited.since_began,
        looked_since_answer: waited.since_answer,
    });
    let conclusion = conclude_own(&facts, receipt.call.is_some());
    let seen_absent = receipt.temporary.as_ref().is_none_or(|look| look.found == Found::Absent);
    let cleared = contract.may_remove_temporaries && matches!(conclusion, Conclusion::NotDelivered(_)) && !seen_absent;
    let leftover = writer
        .leftover()
        .filter(|_| cleared)
        .map(|temporary| Leftover { temporary, never_sent: sending.publish.is_none() });
    receipt.conclusion = Some(conclusion.code().to_owned());
    if let Some(why) = &receipt.unread {
        tracing::warn!(job = %work.job.id, attempt = %work.job.attempt, why, "what the partner says is not known");
    }
    for difference in &receipt.differences {
        tracing::warn!(job = %work.job.id, attempt = %work.job.attempt, difference, "the plugin's receipt differs from what the host saw");
    }
    if let Err(error) = record.append(&Evidence::Receipt(receipt)).await {
        // The conclusion stands on evidence. Where that cannot be kept, recovery looks for itself.
        tracing::error!(job = %work.job.id, attempt = %work.job.attempt, %error, "the receipt could not be recorded");
        if matches!(conclusion, Conclusion::Completed(_)) {
            return (End::Nothing { why: error.to_string() }, None);
        }
    }
    (End::Delivered(Delivered::Concluded(conclusion)), leftover)
}
