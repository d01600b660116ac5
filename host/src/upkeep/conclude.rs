//! What a Completed by somebody else than the worker rests on, in the words of the statement that records it.

use super::inspection::Inspection;
use crate::job::verdict::{Proof, Publish};
use crate::store::Ground;

/// The ground of a proof. Where the partner's server answered this attempt's publish, no other attempt can undo it.
pub(super) fn ground(proof: Proof, inspection: &Inspection) -> Ground {
    let acknowledged = inspection.facts.as_ref().is_some_and(|facts| matches!(facts.publish, Publish::Acknowledged(_)));
    match proof {
        Proof::AcknowledgedAttempt if names_the_attempt(inspection) => Ground::Attempt,
        Proof::Collected => Ground::Attempt,
        Proof::Checksum | Proof::NewerTime if acknowledged => Ground::Attempt,
        Proof::AcknowledgedAttempt | Proof::Checksum => Ground::Content,
        Proof::AcknowledgedKey | Proof::Listing | Proof::NameAndSize | Proof::NewerTime => Ground::Listing,
    }
}

/// True if an acknowledgment on record, or the one just read, names the attempt itself.
fn names_the_attempt(inspection: &Inspection) -> bool {
    let id = inspection.attempt.job.attempt.to_string();
    let recorded = inspection.attempt.evidence.iter().filter_map(crate::job::evidence::Evidence::look);
    recorded
        .chain(std::iter::once(&inspection.observation))
        .flat_map(|look| &look.acknowledgments)
        .any(|said| said.attempt.as_deref().is_some_and(|named| named.eq_ignore_ascii_case(&id)))
}
