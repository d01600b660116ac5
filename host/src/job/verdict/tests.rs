//! The whole input space: one conclusion each, printed as golden tables, and the rules held as properties.

use super::facts::Compared::{Different, NotShown, Same};
use super::space::{Dimension, dimension, for_all, golden, size, tree};
use super::*;
use crate::job::status::{FailureReason, Status};

mod after_removal;
mod before;
mod own_end;

const COMPARED: [Compared; 3] = [Same, Different, NotShown];

fn publishes() -> Vec<Publish> {
    let forms = [
        Form::Link,
        Form::Rename { one_step: true },
        Form::Rename { one_step: false },
        Form::ExclusiveCreate,
        Form::CreateWhole,
        Form::Over { one_step: true },
        Form::Over { one_step: false },
    ];
    let mut all = vec![Publish::NeverSent];
    all.extend(forms.map(Publish::Refused));
    all.extend(forms.map(Publish::Acknowledged));
    all.extend(forms.map(Publish::Unanswered));
    all
}

fn final_names() -> Vec<FinalName> {
    let mut all = Vec::new();
    for checksum in COMPARED {
        all.extend(COMPARED.map(|size| FinalName::Present { size, checksum }));
    }
    all.extend([FinalName::Absent, FinalName::NotVisible, FinalName::Unknown]);
    all
}

const ACCEPTANCES: [Acceptance; 7] = [
    Acceptance::None,
    Acceptance::Tied,
    Acceptance::KeyOnly { sole: true },
    Acceptance::KeyOnly { sole: false },
    Acceptance::OtherContent,
    Acceptance::Refused,
    Acceptance::Duplicate,
];

const BASELINES: [Baseline; 7] = [
    Baseline::Absent,
    Baseline::NotVisible,
    Baseline::Unknown,
    Baseline::Present(Since::Unchanged),
    Baseline::Present(Since::Newer),
    Baseline::Present(Since::Changed),
    Baseline::Present(Since::NotShown),
];

const TEMPORARIES: [Temporary; 5] = [
    Temporary::Gone { read_back: true },
    Temporary::Gone { read_back: false },
    Temporary::Whole,
    Temporary::There,
    Temporary::NotShown,
];

const YES_NO: [bool; 2] = [true, false];

/// In the order of the golden table, chosen so that it collapses well.
fn dimensions() -> Vec<Dimension<Facts>> {
    let triggers = [Trigger::NoneAgreed, Trigger::Confirmed, Trigger::NotConfirmed];
    let others = [Others::None, Others::OtherContent, Others::SameContent];
    vec![
        dimension("publish", &publishes(), |facts: &mut Facts, value| facts.publish = value),
        dimension("partner", &ACCEPTANCES, |facts: &mut Facts, value| facts.acceptance = value),
        dimension("final", &final_names(), |facts: &mut Facts, value| facts.final_name = value),
        dimension("trigger", &triggers, |facts: &mut Facts, value| facts.trigger = value),
        dimension("baseline", &BASELINES, |facts: &mut Facts, value| facts.baseline = value),
        dimension("others", &others, |facts: &mut Facts, value| facts.others = value),
        dimension("whole", &YES_NO, |facts: &mut Facts, value| facts.promises.publishes_whole = value),
        dimension("identify", &YES_NO, |facts: &mut Facts, value| facts.promises.name_and_size_identify = value),
        dimension("time", &YES_NO, |facts: &mut Facts, value| facts.promises.time_proves_overwrite = value),
        dimension("collects", &YES_NO, |facts: &mut Facts, value| facts.promises.collects = value),
        dimension("keeps", &YES_NO, |facts: &mut Facts, value| facts.promises.keeps_covers = value),
        dimension("temporary", &TEMPORARIES, |facts: &mut Facts, value| facts.temporary = value),
    ]
}

/// Nothing is known and nothing is promised.
const NOTHING: Facts = Facts {
    publish: Publish::NeverSent,
    acceptance: Acceptance::None,
    final_name: FinalName::Unknown,
    trigger: Trigger::NoneAgreed,
    baseline: Baseline::Unknown,
    others: Others::None,
    temporary: Temporary::NotShown,
    promises: Promises {
        publishes_whole: false,
        name_and_size_identify: false,
        time_proves_overwrite: false,
        collects: false,
        keeps_covers: false,
    },
};

/// Checks a rule on every combination of facts.
fn everywhere(mut rule: impl FnMut(&Facts, Conclusion)) {
    let mut facts = NOTHING;
    for_all(&dimensions(), &mut facts, &mut |facts| rule(facts, conclude(facts)));
}

fn form_of(publish: Publish) -> Option<Form> {
    match publish {
        Publish::NeverSent => None,
        Publish::Acknowledged(form) | Publish::Refused(form) | Publish::Unanswered(form) => Some(form),
    }
}

const fn is_acknowledged(publish: Publish) -> bool {
    matches!(publish, Publish::Acknowledged(_))
}

const fn is_present(facts: &Facts) -> bool {
    matches!(facts.final_name, FinalName::Present { .. })
}

const fn size_is(facts: &Facts, expected: Compared) -> bool {
    matches!((facts.final_name, expected), (FinalName::Present { size: Same, .. }, Same))
        || matches!((facts.final_name, expected), (FinalName::Present { size: NotShown, .. }, NotShown))
}

#[test]
fn vrd_01_every_combination_of_facts_has_the_conclusion_of_the_golden_table() {
    let dimensions = dimensions();
    assert_eq!(size(&dimensions), 22 * 7 * 12 * 3 * 7 * 3 * 32 * 5);
    golden("job/verdict/golden/conclude.txt", &tree(&dimensions, NOTHING, conclude));
}

#[test]
fn vrd_01_completed_never_stands_without_evidence_of_a_kind_named() {
    everywhere(|facts, conclusion| {
        let Conclusion::Completed(by) = conclusion else { return };
        let none_but_us = facts.others == Others::None;
        let holds = match by {
            Proof::AcknowledgedAttempt => facts.acceptance == Acceptance::Tied,
            Proof::AcknowledgedKey => facts.acceptance == Acceptance::KeyOnly { sole: true },
            Proof::Checksum => {
                matches!(facts.final_name, FinalName::Present { checksum: Same, .. })
                    && !matches!(facts.baseline, Baseline::Unknown | Baseline::Present(Since::Unchanged))
                    && (is_acknowledged(facts.publish) || facts.others != Others::SameContent)
            }
            Proof::Listing => {
                facts.baseline == Baseline::Absent
                    && size_is(facts, Same)
                    && facts.promises.publishes_whole
                    && none_but_us
                    && (is_acknowledged(facts.publish) || matches!(facts.temporary, Temporary::Gone { .. }))
            }
            Proof::NameAndSize => {
                facts.baseline == Baseline::Absent
                    && size_is(facts, Same)
                    && facts.promises.name_and_size_identify
                    && none_but_us
            }
            Proof::NewerTime => {
                facts.baseline == Baseline::Present(Since::Newer)
                    && size_is(facts, Same)
                    && facts.promises.time_proves_overwrite
            }
            Proof::Collected => {
                matches!(facts.publish, Publish::Acknowledged(Form::Rename { .. }))
                    && facts.temporary == Temporary::Gone { read_back: true }
                    && facts.baseline == Baseline::Absent
                    && facts.promises.collects
            }
        };
        assert!(holds, "{conclusion} of {facts:?}");
    });
}

#[test]
fn vrd_01_not_delivered_never_stands_without_a_proof_named() {
    everywhere(|facts, conclusion| {
        let Conclusion::NotDelivered(by) = conclusion else { return };
        let holds = match by {
            NotDeliveredProof::NeverSent => facts.publish == Publish::NeverSent,
            NotDeliveredProof::RefusedAndUnchanged => {
                let as_before = (facts.final_name == FinalName::Absent && facts.baseline == Baseline::Absent)
                    || (is_present(facts) && facts.baseline == Baseline::Present(Since::Unchanged));
                let one_step = match facts.publish {
                    Publish::Refused(Form::Rename { one_step } | Form::Over { one_step }) => one_step,
                    Publish::Refused(Form::Link) => false,
                    _ => panic!("{conclusion} of {facts:?}"),
                };
                as_before && facts.temporary == Temporary::Whole && (one_step || facts.promises.keeps_covers)
            }
            // What `after_removal` and `without_fence` conclude from.
            NotDeliveredProof::TemporaryRemoved | NotDeliveredProof::NoFence => false,
        };
        assert!(holds, "{conclusion} of {facts:?}");
    });
}

#[test]
fn vrd_01_an_answer_that_was_refused_never_completes_and_one_that_was_not_refused_proves_no_absence() {
    everywhere(|facts, conclusion| match facts.publish {
        Publish::Refused(_) | Publish::NeverSent => {
            assert!(!matches!(conclusion, Conclusion::Completed(_)), "{conclusion} of {facts:?}");
        }
        Publish::Acknowledged(_) | Publish::Unanswered(_) => {
            assert!(!matches!(conclusion, Conclusion::NotDelivered(_)), "{conclusion} of {facts:?}");
        }
    });
}

#[test]
fn vrd_01_a_publish_never_sent_is_not_delivered_whatever_a_listing_shows() {
    everywhere(|facts, conclusion| {
        if facts.publish == Publish::NeverSent
            && matches!(facts.acceptance, Acceptance::None | Acceptance::KeyOnly { sole: false })
        {
            assert_eq!(conclusion, Conclusion::NotDelivered(NotDeliveredProof::NeverSent), "{facts:?}");
        }
    });
}

#[test]
fn vrd_01_an_overwrite_completes_only_on_checksum_acknowledgment_or_an_accepted_time() {
    everywhere(|facts, conclusion| {
        let overwrites = form_of(facts.publish).is_some_and(Form::overwrites);
        if let Conclusion::Completed(by) = conclusion
            && (overwrites || matches!(facts.baseline, Baseline::Present(_)))
        {
            let strong =
                matches!(by, Proof::Checksum | Proof::AcknowledgedAttempt | Proof::AcknowledgedKey | Proof::NewerTime);
            assert!(strong, "{conclusion} of {facts:?}");
        }
    });
}

#[test]
fn vrd_01_beside_another_authorized_attempt_a_listing_is_no_evidence() {
    everywhere(|facts, conclusion| {
        if facts.others != Others::None {
            let by_listing = Conclusion::Completed(Proof::Listing) == conclusion
                || Conclusion::Completed(Proof::NameAndSize) == conclusion;
            assert!(!by_listing, "{conclusion} of {facts:?}");
            let unanswered = matches!(facts.publish, Publish::Unanswered(_));
            assert!(!(unanswered && conclusion == Conclusion::Completed(Proof::NewerTime)), "{facts:?}");
        }
    });
}

#[test]
fn vrd_01_a_file_that_is_still_the_baselines_proves_nothing() {
    everywhere(|facts, conclusion| {
        if facts.baseline == Baseline::Present(Since::Unchanged)
            && let Conclusion::Completed(by) = conclusion
        {
            assert!(matches!(by, Proof::AcknowledgedAttempt | Proof::AcknowledgedKey), "{conclusion} of {facts:?}");
        }
    });
}

#[test]
fn vrd_01_what_a_partner_may_collect_completes_only_on_an_acknowledged_rename() {
    let renamed = Facts {
        publish: Publish::Acknowledged(Form::Rename { one_step: false }),
        final_name: FinalName::Absent,
        baseline: Baseline::Absent,
        temporary: Temporary::Gone { read_back: true },
        promises: Promises { collects: true, ..NOTHING.promises },
        ..NOTHING
    };
    assert_eq!(conclude(&renamed), Conclusion::Completed(Proof::Collected));
    for other in [
        Facts { publish: Publish::Acknowledged(Form::Link), ..renamed },
        Facts { publish: Publish::Unanswered(Form::Rename { one_step: true }), ..renamed },
        Facts { temporary: Temporary::Gone { read_back: false }, ..renamed },
        Facts { temporary: Temporary::NotShown, ..renamed },
        Facts { temporary: Temporary::Whole, ..renamed },
        Facts { promises: NOTHING.promises, ..renamed },
    ] {
        assert!(matches!(conclude(&other), Conclusion::Unknown(_)), "{other:?}");
    }
}

#[test]
fn vrd_01_a_contract_that_promises_nothing_never_concludes_more() {
    everywhere(|facts, conclusion| {
        if matches!(conclusion, Conclusion::Unknown(_)) {
            let silent = Facts { promises: NOTHING.promises, ..*facts };
            assert!(matches!(conclude(&silent), Conclusion::Unknown(_)), "{facts:?}");
        }
    });
}

#[test]
fn vrd_02_a_contradiction_is_unknown_whatever_a_listing_shows() {
    everywhere(|facts, conclusion| {
        let partner =
            matches!(facts.acceptance, Acceptance::Refused | Acceptance::Duplicate | Acceptance::OtherContent);
        // A file that stood there before is not ours, and says nothing against a publish that was refused or never sent.
        let file = facts.final_name.differs()
            && match facts.publish {
                Publish::NeverSent => false,
                Publish::Refused(_) => facts.baseline != Baseline::Present(Since::Unchanged),
                Publish::Acknowledged(_) | Publish::Unanswered(_) => true,
            };
        if partner || file {
            assert!(matches!(conclusion, Conclusion::Unknown(_)), "{conclusion} of {facts:?}");
        }
    });
}

#[test]
fn vrd_02_a_size_not_shown_is_no_match() {
    everywhere(|facts, conclusion| {
        if size_is(facts, NotShown) {
            let by_size =
                matches!(conclusion, Conclusion::Completed(Proof::Listing | Proof::NameAndSize | Proof::NewerTime));
            assert!(!by_size, "{conclusion} of {facts:?}");
        }
    });
}

#[test]
fn vrd_02_not_visible_is_not_absent() {
    everywhere(|facts, conclusion| {
        if matches!(facts.final_name, FinalName::NotVisible | FinalName::Unknown) && facts.publish != Publish::NeverSent
        {
            assert!(!matches!(conclusion, Conclusion::NotDelivered(_)), "{facts:?}");
        }
        if matches!(facts.baseline, Baseline::NotVisible | Baseline::Unknown)
            && let Conclusion::Completed(by) = conclusion
        {
            let allowed = match by {
                Proof::AcknowledgedAttempt | Proof::AcknowledgedKey => true,
                Proof::Checksum => facts.baseline == Baseline::NotVisible,
                Proof::Listing | Proof::NameAndSize | Proof::NewerTime | Proof::Collected => false,
            };
            assert!(allowed, "{conclusion} of {facts:?}");
        }
    });
}

#[test]
fn vrd_03_an_acknowledgment_of_the_key_counts_only_for_the_sole_attempt_past_the_fence() {
    everywhere(|facts, conclusion| match facts.acceptance {
        Acceptance::KeyOnly { sole: false } => {
            let silent = Facts { acceptance: Acceptance::None, ..*facts };
            assert_eq!(conclusion, conclude(&silent), "{facts:?}");
        }
        Acceptance::KeyOnly { sole: true } => {
            let tied = Facts { acceptance: Acceptance::Tied, ..*facts };
            assert_eq!(conclusion.status(), conclude(&tied).status(), "{facts:?}");
        }
        Acceptance::None
        | Acceptance::Tied
        | Acceptance::OtherContent
        | Acceptance::Refused
        | Acceptance::Duplicate => {}
    });
}

#[test]
fn vrd_04_without_its_agreed_trigger_nothing_completes() {
    everywhere(|facts, conclusion| {
        let bare = form_of(facts.publish) == Some(Form::ExclusiveCreate) && facts.trigger != Trigger::Confirmed;
        if bare || facts.trigger == Trigger::NotConfirmed {
            assert!(!matches!(conclusion, Conclusion::Completed(_)), "{conclusion} of {facts:?}");
        }
    });
}

#[test]
fn vrd_01_the_ordinary_endings() {
    let published = Facts {
        publish: Publish::Acknowledged(Form::Link),
        final_name: FinalName::Present { size: Same, checksum: NotShown },
        baseline: Baseline::Absent,
        promises: Promises { publishes_whole: true, ..NOTHING.promises },
        ..NOTHING
    };
    let refused = Facts {
        publish: Publish::Refused(Form::Rename { one_step: true }),
        final_name: FinalName::Absent,
        temporary: Temporary::Whole,
        ..published
    };
    for (facts, expected) in [
        (published, (Status::Completed, None)),
        (Facts { promises: NOTHING.promises, ..published }, (Status::OutcomeUnknown, None)),
        (Facts { publish: Publish::Unanswered(Form::Link), ..published }, (Status::OutcomeUnknown, None)),
        (
            Facts {
                publish: Publish::Unanswered(Form::Link),
                final_name: FinalName::Present { size: Same, checksum: Same },
                ..published
            },
            (Status::Completed, None),
        ),
        (refused, (Status::Failed, Some(FailureReason::NotDelivered))),
        (Facts { publish: Publish::Refused(Form::Link), ..refused }, (Status::OutcomeUnknown, None)),
        // A file that appeared between listing and publish.
        (Facts { final_name: published.final_name, ..refused }, (Status::OutcomeUnknown, None)),
        // An overwrite that was refused leaves the file as it was.
        (
            Facts {
                publish: Publish::Refused(Form::Over { one_step: true }),
                final_name: FinalName::Present { size: Different, checksum: Different },
                baseline: Baseline::Present(Since::Unchanged),
                ..refused
            },
            (Status::Failed, Some(FailureReason::NotDelivered)),
        ),
    ] {
        assert_eq!(conclude(&facts).status(), expected, "{facts:?}");
    }
}

#[test]
fn fen_03_a_lost_attempt_without_a_fence_is_not_delivered_only_in_an_unchanged_database() {
    for (lost, fenced, database_unchanged) in
        YES_NO.iter().flat_map(|a| YES_NO.iter().flat_map(move |b| YES_NO.iter().map(move |c| (*a, *b, *c))))
    {
        let conclusion = without_fence(Lost { lost, fenced, database_unchanged });
        let proven = lost && !fenced && database_unchanged;
        assert_eq!(proven, conclusion == Conclusion::NotDelivered(NotDeliveredProof::NoFence));
        assert!(!matches!(conclusion, Conclusion::Completed(_)));
    }
}

// Before sending.
