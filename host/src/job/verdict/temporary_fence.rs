//! The temporary-name fence: a file that is gone from its temporary name can no longer be published.
//!
//! For an attempt whose publish was sent and not answered, removing its temporary file can prove that it was not, and
//! never will be, published. [`worth_removing`] says when the removal harms nothing and can settle something;
//! [`after_removal`] weighs what the later looks show. All else is [`conclude`]'s.
//!
//! Stricter than "any form" for a RENAME that the contract does not call one step: such a server links, removes, and
//! undoes the link when the removal fails, so that our removal between the two would take away a file that the partner
//! may have seen already. That temporary is left alone.

use super::conclude::conclude;
use super::conclusion::{Conclusion, NotDeliveredProof};
use super::facts::{Acceptance, Baseline, Facts, FinalName, Form, Publish, Since, Temporary};

/// What the record says of our own removal of the temporary file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Removal {
    /// None was tried, or each that was tried was refused: whatever happened to the file, it was not us.
    NotByUs,
    /// The server confirmed that we removed it.
    Confirmed,
    /// One was intended and its answer is not known.
    Unclear,
}

/// The contract's leave to remove.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Leave {
    /// We may remove our own temporary files.
    pub may_remove_temporaries: bool,
    /// A publish stays in one name space: it never copies, so a removed temporary cannot be half read.
    pub one_name_space: bool,
}

/// True if the temporary file of an attempt with an unknown outcome may be removed, and its removal can settle something.
/// Never while the final name shows a file, but for an agreed overwrite in one step whose final name is the baseline's.
pub const fn worth_removing(facts: &Facts, leave: Leave) -> bool {
    let Publish::Unanswered(form) = facts.publish else { return false };
    leave.may_remove_temporaries
        && leave.one_name_space
        && matches!(facts.acceptance, Acceptance::None)
        && matches!(facts.temporary, Temporary::Whole | Temporary::There)
        && matches!(
            (form, facts.baseline, facts.final_name),
            (Form::Link | Form::Rename { one_step: true }, Baseline::Absent, FinalName::Absent)
                | (Form::Over { one_step: true }, Baseline::Present(Since::Unchanged), FinalName::Present { .. })
        )
}

/// Concludes at a look that came after our removal and after the contract's `settle` time (a look that came earlier
/// shows neither absence nor sameness, and so proves nothing here).
pub const fn after_removal(facts: &Facts, removal: Removal) -> Conclusion {
    let Publish::Unanswered(form) = facts.publish else { return conclude(facts) };
    if !matches!(removal, Removal::Confirmed) || !matches!(facts.acceptance, Acceptance::None) {
        return conclude(facts);
    }
    let never_published = match (form, facts.baseline, facts.final_name) {
        // Had the one step happened, there would have been nothing to remove.
        (Form::Rename { one_step: true }, Baseline::Absent, FinalName::Absent) => true,
        // Had the link been made, the final name would still be there.
        (Form::Link, Baseline::Absent, FinalName::Absent) => facts.promises.keeps_covers,
        // The file from before stands there, and it is not ours.
        (Form::Over { one_step: true }, Baseline::Present(Since::Unchanged), FinalName::Present { .. }) => {
            facts.final_name.differs()
        }
        _ => false,
    };
    if never_published { Conclusion::NotDelivered(NotDeliveredProof::TemporaryRemoved) } else { conclude(facts) }
}
