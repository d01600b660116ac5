//! What became of an attempt: at its end, and at any later look.
//!
//! The order is that of the facts in the golden table: what the journal proves about the publish, what the partner said,
//! what stands under the final name, the triggers, and only then what a listing may prove.

use super::conclusion::{
    Conclusion::{self, Completed, NotDelivered, Unknown},
    NotDeliveredProof, Proof, WhyUnknown,
};
use super::facts::{
    Acceptance, Baseline, Compared, Facts, FinalName, Form, Others, Publish, Since, Temporary, Trigger,
};

/// Concludes what became of an attempt that passed the publish fence, or that still owns its job.
///
/// For recovery and the reconciler at any look after its end; [`conclude_own`] for the worker at that end. Recovery's own
/// takeover records only `Completed` or `OutcomeUnknown`, whatever this says.
pub const fn conclude(facts: &Facts) -> Conclusion {
    match facts.publish {
        Publish::NeverSent => never_sent(facts),
        Publish::Refused(form) => refused(form, facts),
        Publish::Acknowledged(form) => sent(form, true, facts),
        Publish::Unanswered(form) => sent(form, false, facts),
    }
}

/// Concludes for the delivering worker at its own end. `interrupted`: the plugin's call did not return normally, because of a
/// trap, a time limit, a lost session, or a failure of its own.
///
/// An interrupted delivery whose publish went out, or one whose publish was not answered, completes nothing by itself,
/// whatever the worker saw then: recovery and the reconciler weigh the same facts at a look of their own. What proves
/// that nothing was published proves it here too.
pub const fn conclude_own(facts: &Facts, interrupted: bool) -> Conclusion {
    match conclude(facts) {
        Completed(_) if interrupted || matches!(facts.publish, Publish::Unanswered(_)) => {
            Unknown(WhyUnknown::Interrupted)
        }
        conclusion @ (Completed(_) | NotDelivered(_) | Unknown(_)) => conclusion,
    }
}

/// An attempt that has no publish fence on record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Lost {
    /// Its ownership ended: by a committed takeover, or by its own terminal write.
    pub lost: bool,
    /// `publish_intended_at` is set.
    pub fenced: bool,
    /// The database is the one that the claim knew, on the same timeline, or a person said what was lost.
    pub database_unchanged: bool,
}

/// Concludes for an attempt that lost its job, from the absence of its publish fence alone.
///
/// Whatever stands under the final name is somebody else's. The statement that records this reads the same facts again.
pub const fn without_fence(facts: Lost) -> Conclusion {
    if facts.fenced {
        Unknown(WhyUnknown::Fenced)
    } else if !facts.lost {
        Unknown(WhyUnknown::StillOwned)
    } else if facts.database_unchanged {
        NotDelivered(NotDeliveredProof::NoFence)
    } else {
        Unknown(WhyUnknown::DatabaseChanged)
    }
}

/// A file under the final name is somebody else's, so no listing matters. A partner that speaks of the delivery does:
/// it may have taken what was not meant for it yet.
const fn never_sent(facts: &Facts) -> Conclusion {
    match facts.acceptance {
        Acceptance::None | Acceptance::KeyOnly { sole: false } => NotDelivered(NotDeliveredProof::NeverSent),
        Acceptance::Tied
        | Acceptance::KeyOnly { sole: true }
        | Acceptance::OtherContent
        | Acceptance::Refused
        | Acceptance::Duplicate => Unknown(WhyUnknown::AcknowledgedThoughNeverSent),
    }
}

/// What the partner said against the delivery, if it did.
const fn contradicted(acceptance: Acceptance) -> Option<WhyUnknown> {
    match acceptance {
        Acceptance::Refused => Some(WhyUnknown::PartnerRefused),
        Acceptance::Duplicate => Some(WhyUnknown::PartnerHadItBefore),
        Acceptance::OtherContent => Some(WhyUnknown::AcceptedOtherContent),
        Acceptance::None | Acceptance::Tied | Acceptance::KeyOnly { .. } => None,
    }
}

/// A refusal never completes: the server itself said no. It proves the opposite only while everything is as before.
/// Where a file was there before, that file is what stands there, so it is no contradiction that it is not ours.
const fn refused(form: Form, facts: &Facts) -> Conclusion {
    if let Some(why) = contradicted(facts.acceptance) {
        return Unknown(why);
    }
    if matches!(facts.acceptance, Acceptance::Tied | Acceptance::KeyOnly { sole: true }) {
        return Unknown(WhyUnknown::AcceptedThoughRefused);
    }
    match (facts.final_name, facts.baseline) {
        (FinalName::Absent, Baseline::Absent) | (FinalName::Present { .. }, Baseline::Present(Since::Unchanged)) => {}
        (FinalName::Unknown, _) => return Unknown(WhyUnknown::LookFailed),
        (FinalName::NotVisible, _) => return Unknown(WhyUnknown::NotVisible),
        (FinalName::Absent | FinalName::Present { .. }, _) => return Unknown(WhyUnknown::NotAsBefore),
    }
    let one_step = match form {
        // There is no temporary that could show that nothing was written.
        Form::ExclusiveCreate | Form::CreateWhole => return Unknown(WhyUnknown::TemporaryNotWhole),
        Form::Link => false,
        Form::Rename { one_step } | Form::Over { one_step } => one_step,
    };
    if !matches!(facts.temporary, Temporary::Whole) {
        Unknown(WhyUnknown::TemporaryNotWhole)
    } else if one_step || facts.promises.keeps_covers {
        NotDelivered(NotDeliveredProof::RefusedAndUnchanged)
    } else {
        Unknown(WhyUnknown::NotOneStep)
    }
}

/// A publish that was acknowledged, or that may have taken effect.
const fn sent(form: Form, acknowledged: bool, facts: &Facts) -> Conclusion {
    if let Some(why) = contradicted(facts.acceptance) {
        return Unknown(why);
    }
    if let FinalName::Present { size, checksum } = facts.final_name {
        if matches!(checksum, Compared::Different) {
            return Unknown(WhyUnknown::ChecksumDiffers);
        }
        if matches!(size, Compared::Different) {
            return Unknown(WhyUnknown::SizeDiffers);
        }
    }
    match (facts.trigger, form) {
        (Trigger::NotConfirmed, _) | (Trigger::NoneAgreed, Form::ExclusiveCreate) => {
            return Unknown(WhyUnknown::TriggerNotConfirmed);
        }
        (Trigger::NoneAgreed | Trigger::Confirmed, _) => {}
    }
    match facts.acceptance {
        Acceptance::Tied => return Completed(Proof::AcknowledgedAttempt),
        Acceptance::KeyOnly { sole: true } => return Completed(Proof::AcknowledgedKey),
        Acceptance::None
        | Acceptance::KeyOnly { sole: false }
        | Acceptance::OtherContent
        | Acceptance::Refused
        | Acceptance::Duplicate => {}
    }
    match facts.final_name {
        FinalName::Unknown => Unknown(WhyUnknown::LookFailed),
        FinalName::Absent | FinalName::NotVisible if collected(form, acknowledged, facts) => {
            Completed(Proof::Collected)
        }
        FinalName::NotVisible => Unknown(WhyUnknown::NotVisible),
        FinalName::Absent if acknowledged => Unknown(WhyUnknown::AcknowledgedButAbsent),
        FinalName::Absent => Unknown(WhyUnknown::UnansweredAndAbsent),
        FinalName::Present { checksum: Compared::Same, .. } => by_checksum(acknowledged, facts),
        FinalName::Present { size, .. } => match facts.baseline {
            Baseline::NotVisible | Baseline::Unknown => Unknown(WhyUnknown::BaselineNotKnown),
            Baseline::Present(since) => by_time(form, acknowledged, size, since, facts),
            Baseline::Absent if form.overwrites() => Unknown(WhyUnknown::OverwriteNotProven),
            Baseline::Absent => by_listing(form, acknowledged, size, facts),
        },
    }
}

/// The file has the expected checksum. It proves this delivery unless it may have been there before, or may be the
/// same content of another attempt. An acknowledged publish settles both doubts, except where nothing changed.
const fn by_checksum(acknowledged: bool, facts: &Facts) -> Conclusion {
    match facts.baseline {
        Baseline::Unknown => return Unknown(WhyUnknown::BaselineNotKnown),
        Baseline::Present(Since::Unchanged) => return Unknown(WhyUnknown::StillTheBaseline),
        Baseline::Present(Since::NotShown) if !acknowledged => return Unknown(WhyUnknown::OverwriteNotProven),
        Baseline::Present(Since::Newer | Since::Changed | Since::NotShown)
        | Baseline::Absent
        | Baseline::NotVisible => {}
    }
    match facts.others {
        Others::SameContent if !acknowledged => Unknown(WhyUnknown::AnotherAttempt),
        Others::None | Others::OtherContent | Others::SameContent => Completed(Proof::Checksum),
    }
}

/// A file was there before: of what a listing shows, only a time that the contract accepts tells them apart. Beside
/// another attempt it takes the server's answer too, which only this attempt got.
const fn by_time(form: Form, acknowledged: bool, size: Compared, since: Since, facts: &Facts) -> Conclusion {
    match since {
        Since::Unchanged => Unknown(WhyUnknown::StillTheBaseline),
        Since::Changed | Since::NotShown => Unknown(WhyUnknown::OverwriteNotProven),
        Since::Newer if !form.overwrites() || !facts.promises.time_proves_overwrite => {
            Unknown(WhyUnknown::OverwriteNotProven)
        }
        Since::Newer if !matches!(size, Compared::Same) => Unknown(WhyUnknown::SizeNotShown),
        Since::Newer if !acknowledged && !matches!(facts.others, Others::None) => Unknown(WhyUnknown::AnotherAttempt),
        Since::Newer => Completed(Proof::NewerTime),
    }
}

/// The name was absent, and a file that nothing contradicts is there now.
const fn by_listing(form: Form, acknowledged: bool, size: Compared, facts: &Facts) -> Conclusion {
    if !matches!(facts.others, Others::None) {
        if collected(form, acknowledged, facts) {
            return Completed(Proof::Collected);
        }
        return Unknown(WhyUnknown::AnotherAttempt);
    }
    if matches!(size, Compared::Same) {
        let became_it = match form {
            // Not published by link or rename, so `publishes_whole` does not speak of it.
            Form::ExclusiveCreate => false,
            // The answer is all that ties the file to this attempt: there is no temporary that is gone.
            Form::CreateWhole => acknowledged,
            // The temporary of a link stays until it is removed; the answer says that the link was made.
            Form::Link if acknowledged => true,
            // A server that says it renamed, while the temporary is still there, did not.
            Form::Rename { .. } | Form::Over { .. } if acknowledged => {
                !matches!(facts.temporary, Temporary::Whole | Temporary::There)
            }
            Form::Link | Form::Rename { .. } | Form::Over { .. } => matches!(facts.temporary, Temporary::Gone { .. }),
        };
        if facts.promises.publishes_whole && became_it {
            return Completed(Proof::Listing);
        }
        // Cut while the name was created exclusively, the file may not be whole yet.
        let may_identify = acknowledged || !matches!(form, Form::ExclusiveCreate);
        if facts.promises.name_and_size_identify && may_identify {
            return Completed(Proof::NameAndSize);
        }
        if collected(form, acknowledged, facts) {
            return Completed(Proof::Collected);
        }
        let has_temporary = !matches!(form, Form::ExclusiveCreate | Form::CreateWhole);
        return Unknown(if facts.promises.publishes_whole && has_temporary {
            WhyUnknown::TemporaryNotGone
        } else {
            WhyUnknown::NotPromisedWhole
        });
    }
    if collected(form, acknowledged, facts) {
        return Completed(Proof::Collected);
    }
    Unknown(WhyUnknown::SizeNotShown)
}

/// The partner takes files at once, so that nothing has to be left under the final name: the server acknowledged the
/// rename of a file that was read back whole, and its temporary name is gone. A link leaves the temporary in place,
/// so its disappearance would say nothing.
const fn collected(form: Form, acknowledged: bool, facts: &Facts) -> bool {
    facts.promises.collects
        && acknowledged
        && matches!(form, Form::Rename { .. })
        && matches!(facts.baseline, Baseline::Absent)
        && matches!(facts.temporary, Temporary::Gone { read_back: true })
}
