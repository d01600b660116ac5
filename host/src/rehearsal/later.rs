//! What a later look concludes: the very looks and the very rules of recovery and reconciler, over the record in memory, with
//! the removal of our temporary file where the contract gives leave and the rules allow it.
//!
//! It stands for a look after the contract's `settle` time and inside `keeps`: the simulated server shows at once what it
//! did, and a rehearsal does not wait for days.

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::record::MemoryRecord;
use crate::attempt::{Others, Work, ask_away, facts, look_back, names_of, set_beside};
use crate::job::evidence::{Evidence, Receipt};
use crate::job::facts::FileFacts;
use crate::job::on_record::{AttemptOnRecord, Recorded};
use crate::job::status::Status;
use crate::job::verdict::{Conclusion, Facts, Leave, Lost, after_removal, compare, without_fence, worth_removing};
use crate::remote::{Names, Reader, Session};

/// What the later looks concluded.
pub(super) struct Later {
    pub conclusion: Conclusion,
    /// Our temporary file was removed to settle it.
    pub removed: bool,
}

/// Looks once, and once more if it removed our temporary file.
pub(super) async fn look(work: &Work, record: &MemoryRecord, expected: &FileFacts, session: &Session) -> Later {
    let looking = Looking { work, record, expected, session };
    let (conclusion, facts) = looking.once().await;
    match facts {
        Some(facts) if matches!(conclusion, Conclusion::Unknown(_)) && looking.remove(&facts).await => {
            let (conclusion, _) = looking.once().await;
            Later { conclusion, removed: true }
        }
        Some(_) | None => Later { conclusion, removed: false },
    }
}

struct Looking<'a> {
    work: &'a Work,
    record: &'a MemoryRecord,
    expected: &'a FileFacts,
    session: &'a Session,
}

impl Looking<'_> {
    async fn once(&self) -> (Conclusion, Option<Facts>) {
        let (attempt, recorded) = self.on_record();
        let names = Arc::new(names_of(&attempt, &recorded, self.expected));
        let observation = self.observe(&attempt, &recorded, &names).await;
        // Of the key there is no other attempt.
        let others = Others { expected: &[], past_the_fence: 1 };
        let facts = facts(&attempt, &recorded, &observation, others, Duration::ZERO);
        self.record.add(Evidence::Observation(observation));
        let conclusion = match &facts {
            Some(facts) => after_removal(facts, compare::removal(&attempt.evidence)),
            None => without_fence(Lost { lost: true, fenced: attempt.fenced, database_unchanged: true }),
        };
        (conclusion, facts)
    }

    /// The attempt as the store would tell it.
    fn on_record(&self) -> (AttemptOnRecord, Recorded) {
        let kept = self.record.kept();
        let attempt = AttemptOnRecord {
            job: self.work.job.clone(),
            status: Status::OutcomeUnknown,
            expected: Some(self.expected.clone()),
            publish_intended: kept.intended.map(|(form, _)| form),
            fenced: kept.intended.is_some(),
            fences_known: true,
            digests: Some(self.work.destination.digests.clone()),
            evidence: kept.evidence,
            unreadable: 0,
            since_intended: kept.intended.map(|(_, at)| at.elapsed()),
            since_settled: Duration::MAX,
        };
        let contract = &self.work.bundle.manifest.contract;
        let recorded = Recorded::of(&attempt, contract, &self.work.destination.digests.contract);
        (attempt, recorded)
    }

    /// The host's looks, with the plugin's observation beside them.
    async fn observe(&self, attempt: &AttemptOnRecord, recorded: &Recorded, names: &Arc<Names>) -> Receipt {
        let Work { bundle, destination, job, .. } = self.work;
        let read_back = bundle.manifest.limits.read_back_bytes();
        let mut observation = Receipt::default();
        look_back(self.session, names, attempt, recorded, read_back, &mut observation).await;
        let reader = Reader::new(self.session.clone(), Arc::clone(names), CancellationToken::new());
        let observed = bundle.observe(destination, job, self.expected, recorded.baseline.as_ref(), reader).await;
        set_beside(&mut observation, observed);
        observation
    }

    /// The temporary-name fence, as the reconciler keeps it. True if the file was asked away.
    async fn remove(&self, facts: &Facts) -> bool {
        let (_, Recorded { contract, temporary, .. }) = self.on_record();
        let leave =
            Leave { may_remove_temporaries: contract.may_remove_temporaries, one_name_space: contract.one_name_space };
        let Some(temporary) = temporary.filter(|_| worth_removing(facts, leave)) else { return false };
        self.record.add(Evidence::RemovalIntended { temporary: temporary.clone() });
        let answer = ask_away(self.session, &self.expected.name, &temporary, facts.publish_overwrites()).await;
        self.record.add(Evidence::RemovalAnswered { temporary, answer });
        true
    }
}
