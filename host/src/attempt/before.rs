//! May this attempt send? The host's look at the final name, before and after cutoff 2, and what follows from it.

use std::sync::Arc;
use std::time::Duration;

use super::Work;
use super::look_back::{answers_to, names_of};
use super::record::{KeyHistory, Record};
use crate::job::facts::{Found, Listing};
use crate::job::on_record::Recorded;
use crate::job::verdict::compare::OnRecord;
use crate::job::verdict::{Acceptance, Before, Intent, Publish, before_sending, compare};
use crate::remote::{self, Session};

/// A look at the final name, and the answer.
pub(super) struct Seen {
    pub look: Listing,
    pub answer: Before,
    /// Why it cannot be told, where that was not the look itself.
    unclear: Option<String>,
}

/// Looks at the final name and decides.
pub(super) async fn look(
    work: &Work,
    record: &dyn Record,
    session: &Session,
    final_name: &str,
    history: &KeyHistory,
) -> Seen {
    let look = remote::look(session, final_name, work.bundle.manifest.limits.read_back_bytes()).await;
    let replacement = work.job.replacement.as_ref();
    let intent = match replacement {
        None => Intent::Original,
        Some(replacement) => Intent::Replacement { overwrite_agreed: replacement.overwrite_agreed },
    };
    let original = replacement.and_then(|replacement| replacement.original_expected.as_ref());
    let contract = &work.bundle.manifest.contract;
    let acknowledged = match original_acknowledged(work, record, session, history).await {
        Ok(acknowledged) => acknowledged,
        Err(why) => {
            let unclear =
                Some(format!("What the partner says of the original is not known ({why}); nothing was sent."));
            return Seen { answer: Before::CannotTell, look, unclear };
        }
    };
    let facts = compare::before(&look, intent, original, acknowledged, history.last.as_ref(), contract);
    Seen { answer: before_sending(&facts), look, unclear: None }
}

/// What the partner says about the original of a replacement, read by the host itself. An error where its record or the
/// files cannot be read: the partner may have taken the original's file, so nothing may be sent then.
async fn original_acknowledged(
    work: &Work,
    record: &dyn Record,
    session: &Session,
    history: &KeyHistory,
) -> Result<Acceptance, String> {
    if work.job.replacement.is_none() {
        return Ok(Acceptance::None);
    }
    // An original that was never authorized sent nothing that could be acknowledged.
    let Some(original) = record.original().await.map_err(|error| error.to_string())? else {
        return Ok(Acceptance::None);
    };
    let Some(expected) = &original.expected else { return Ok(Acceptance::None) };
    // What was shown to have published nothing was not acknowledged either, whatever earlier attempts of the key were.
    if !original.fenced && original.fences_known {
        return Ok(Acceptance::None);
    }
    let contract = &work.bundle.manifest.contract;
    let recorded = Recorded::of(&original, contract, &work.destination.digests.contract);
    let names = Arc::new(names_of(&original, &recorded, expected));
    let answered = answers_to(session, &names, &original, &recorded).await;
    if let Some(why) = answered.unread {
        return Err(why);
    }
    // The original is one of the others of this attempt; what remains are the others of the original.
    let mut others = history.others.clone();
    if let Some(own) = others.iter().position(|other| other.as_ref() == Some(expected)) {
        others.swap_remove(own);
    }
    let on_record = OnRecord {
        expected,
        key: &names.key,
        attempt: &names.attempt,
        contract: &recorded.contract,
        publish: Publish::NeverSent,
        evidence: &[],
        others: &others,
        attempts_past_the_fence: history.past_fence,
        looked_after: Duration::MAX,
        looked_since_answer: Duration::ZERO,
    };
    let perhaps = answered.perhaps.iter().find(|one| compare::acceptance(&on_record, &[one]).is_of_the_delivery());
    match (compare::acceptance(&on_record, &answered.said.iter().collect::<Vec<_>>()), perhaps) {
        (acceptance, Some(answer)) if !acceptance.is_of_the_delivery() => Err(format!(
            "{:?} may accept it: the contract was another one when it was sent, or the file may have been there before",
            answer.name
        )),
        (acceptance, _) => Ok(acceptance),
    }
}

impl Seen {
    /// The answer and what was seen, in words.
    pub fn cause(&self) -> String {
        if let Some(unclear) = &self.unclear {
            return unclear.clone();
        }
        let seen = match &self.look.found {
            Found::Absent => "no file".to_owned(),
            Found::Present(entry) => {
                entry.bytes.map_or_else(|| "a file".to_owned(), |bytes| format!("a file of {bytes} bytes"))
            }
            Found::NotVisible { why } => format!("nothing that the server lets us see ({why})"),
            Found::Unknown { why } => format!("nothing for certain ({why})"),
        };
        format!("{} The look at {:?} showed {seen}.", self.answer.sentence(), self.look.at)
    }
}
