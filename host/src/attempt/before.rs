//! May this attempt send? The host's look at the final name, before and after cutoff 2, and what follows from it.

use super::Work;
use super::record::KeyHistory;
use crate::job::facts::{Found, Listing};
use crate::job::verdict::{Acceptance, Before, Intent, before_sending, compare};
use crate::remote::{self, Session};

/// A look at the final name, and the answer.
pub(super) struct Seen {
    pub look: Listing,
    pub answer: Before,
}

/// Looks at the final name and decides.
pub(super) async fn look(work: &Work, session: &Session, final_name: &str, history: &KeyHistory) -> Seen {
    let look = remote::look(session, final_name, work.bundle.manifest.limits.read_back_bytes()).await;
    let replacement = work.job.replacement.as_ref();
    let intent = match replacement {
        None => Intent::Original,
        Some(replacement) => Intent::Replacement { overwrite_agreed: replacement.overwrite_agreed },
    };
    let original = replacement.and_then(|replacement| replacement.original_expected.as_ref());
    let contract = &work.bundle.manifest.contract;
    let facts = compare::before(&look, intent, original, Acceptance::None, history.last.as_ref(), contract);
    Seen { answer: before_sending(&facts), look }
}

impl Seen {
    /// The answer and what was seen, in words.
    pub fn cause(&self) -> String {
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
