//! What a later look concludes, as recovery and the reconciler do: the same looks, by reading only, and the same pure rules,
//! with the removal of our temporary file where the contract gives leave and the rules allow it.
//!
//! It stands for a look after the contract's `settle` time and inside `keeps`: the simulated server shows at once what it
//! did, and a rehearsal does not wait for days.

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::record::{Kept, MemoryRecord};
use crate::attempt::{Work, acknowledgment_that_weighs_most};
use crate::job::evidence::{Answer, Evidence, Receipt};
use crate::job::facts::{FileFacts, Found, Listing};
use crate::job::verdict::compare::{self, OnRecord};
use crate::job::verdict::{Conclusion, Facts, Leave, Lost, after_removal, without_fence, worth_removing};
use crate::remote::{self, ConnectError, Names, Reader, RemoteError, Session, SessionLimits};

/// What the later looks concluded.
pub(super) struct Later {
    pub conclusion: Conclusion,
    /// Our temporary file was removed to settle it.
    pub removed: bool,
}

/// Looks once, and once more if it removed our temporary file.
pub(super) async fn look(
    work: &Work,
    record: &MemoryRecord,
    names: &Names,
    expected: &FileFacts,
    limits: &SessionLimits,
) -> Result<Later, ConnectError> {
    let session = Session::connect(&work.destination.endpoint, limits).await?;
    let looking = Looking { work, record, expected, session: &session };
    let (conclusion, facts) = looking.once(names).await;
    let later = match facts {
        Some(facts) if matches!(conclusion, Conclusion::Unknown(_)) && looking.remove(&facts, names).await => {
            let (conclusion, _) = looking.once(names).await;
            Later { conclusion, removed: true }
        }
        Some(_) | None => Later { conclusion, removed: false },
    };
    session.close().await;
    Ok(later)
}

struct Looking<'a> {
    work: &'a Work,
    record: &'a MemoryRecord,
    expected: &'a FileFacts,
    session: &'a Session,
}

impl Looking<'_> {
    async fn once(&self, names: &Names) -> (Conclusion, Option<Facts>) {
        let kept = self.record.kept();
        let Some((form, intended_at)) = kept.intended else {
            let lost = Lost { lost: kept.taken_over, fenced: false, database_unchanged: true };
            return (without_fence(lost), None);
        };
        let observation = self.observe(&kept, names).await;
        self.record.add(Evidence::Observation(observation));
        let contract = &self.work.bundle.manifest.contract;
        let evidence = self.record.kept().evidence;
        let Some(publish) = compare::publish_on_record(Some(form), &evidence, contract) else {
            return (without_fence(Lost { lost: kept.taken_over, fenced: true, database_unchanged: true }), None);
        };
        let facts = compare::facts(&OnRecord {
            expected: self.expected,
            key: &self.work.job.delivery_key,
            attempt: &self.work.job.attempt.to_string(),
            contract,
            publish,
            evidence: &evidence,
            others: &[],
            attempts_past_the_fence: 1,
            looked_after: intended_at.elapsed(),
            looked_since_answer: Duration::MAX,
        });
        (after_removal(&facts, compare::removal(&evidence)), Some(facts))
    }

    /// The host's looks, with the plugin's observation beside them.
    async fn observe(&self, kept: &Kept, names: &Names) -> Receipt {
        let Work { bundle, destination, job, .. } = self.work;
        let (before, temporary, acknowledged_before) = baseline(kept);
        let names = Arc::new(Names { temporary, ..names.clone() });
        let reader = Reader::new(self.session.clone(), Arc::clone(&names), CancellationToken::new());
        let observed = bundle.observe(destination, job, self.expected, before.as_ref(), reader).await;
        let mut receipt = Receipt {
            look: Some(remote::look(self.session, &names.final_name, bundle.manifest.limits.read_back_bytes()).await),
            temporary: match &names.temporary {
                Some(name) => Some(remote::look(self.session, name, 0).await),
                None => None,
            },
            ..Receipt::default()
        };
        if let Some(before) = &acknowledged_before {
            let ours: Vec<_> =
                kept.evidence.iter().filter_map(Evidence::look).flat_map(|look| look.auxiliary.clone()).collect();
            let contract = &bundle.manifest.contract;
            let said = acknowledgment_that_weighs_most(self.session, &names, contract, before, &ours).await;
            // One that cannot be read says nothing yet.
            receipt.acknowledgment = said.ok().flatten();
        }
        match observed {
            Ok(reported) => {
                if let (Some(look), Some(told)) = (&receipt.look, &reported.listing) {
                    receipt.differences = compare::differences(look, told);
                }
            }
            Err(error) => receipt.call = Some(error.to_string()),
        }
        receipt
    }

    /// The temporary-name fence, as the reconciler keeps it. True if the file was asked away.
    async fn remove(&self, facts: &Facts, names: &Names) -> bool {
        let contract = &self.work.bundle.manifest.contract;
        let leave =
            Leave { may_remove_temporaries: contract.may_remove_temporaries, one_name_space: contract.one_name_space };
        let (_, temporary, _) = baseline(&self.record.kept());
        let Some(temporary) = temporary.filter(|_| worth_removing(facts, leave)) else { return false };
        self.record.add(Evidence::RemovalIntended { temporary: temporary.clone() });
        let still_absent = matches!(self.session.stat(&names.final_name).await, Ok(Found::Absent));
        let answer = if still_absent || facts.publish_overwrites() {
            match self.session.remove(&temporary).await {
                Ok(()) => Answer::Acknowledged,
                Err(RemoteError::Refused { code, text }) => Answer::Refused { code, text },
                Err(RemoteError::NotSent { why }) => Answer::Refused { code: None, text: format!("not sent: {why}") },
                Err(error) => Answer::Unanswered { why: error.to_string() },
            }
        } else {
            Answer::Refused { code: None, text: "not sent: the final name is no longer seen absent".to_owned() }
        };
        self.record.add(Evidence::RemovalAnswered { temporary, answer });
        true
    }
}

/// What the baseline recorded: its look, the temporary name, the acknowledgments that were there.
fn baseline(kept: &Kept) -> (Option<Listing>, Option<String>, Option<Vec<String>>) {
    let recorded = kept.evidence.iter().find_map(|evidence| match evidence {
        Evidence::Baseline { look, temporary, acknowledgments, .. } => {
            Some((Some(look.clone()), temporary.clone(), acknowledgments.clone()))
        }
        Evidence::Publish { .. }
        | Evidence::Receipt(_)
        | Evidence::Observation(_)
        | Evidence::RemovalIntended { .. }
        | Evidence::RemovalAnswered { .. } => None,
    });
    recorded.unwrap_or_default()
}
