//! The temporary-name fence: its table over the whole input space, and what must hold all over it.

use super::*;
use crate::job::verdict::contradiction;

/// Facts, and what is on record of our removal.
#[derive(Clone, Copy)]
struct Weighed {
    facts: Facts,
    removal: Removal,
}

const REMOVALS: [Removal; 3] = [Removal::Confirmed, Removal::Unclear, Removal::NotByUs];

/// The facts that the fence itself asks about. The others only matter to `conclude`, whose own table has them.
fn fence_dimensions() -> Vec<Dimension<Weighed>> {
    vec![
        dimension("removal", &REMOVALS, |weighed: &mut Weighed, value| weighed.removal = value),
        dimension("publish", &publishes(), |weighed: &mut Weighed, value| weighed.facts.publish = value),
        dimension("partner", &ACCEPTANCES, |weighed: &mut Weighed, value| weighed.facts.acceptance = value),
        dimension("final", &final_names(), |weighed: &mut Weighed, value| weighed.facts.final_name = value),
        dimension("baseline", &BASELINES, |weighed: &mut Weighed, value| weighed.facts.baseline = value),
        dimension("keeps", &YES_NO, |weighed: &mut Weighed, value| weighed.facts.promises.keeps_covers = value),
        dimension("temporary", &TEMPORARIES, |weighed: &mut Weighed, value| weighed.facts.temporary = value),
    ]
}

fn weigh(weighed: &Weighed) -> Conclusion {
    after_removal(&weighed.facts, weighed.removal)
}

const START: Weighed = Weighed { facts: NOTHING, removal: Removal::NotByUs };

#[test]
fn fen_06_every_combination_after_a_removal_has_the_conclusion_of_the_golden_table() {
    golden("job/verdict/golden/after_removal.txt", &tree(&fence_dimensions(), START, weigh));
}

#[test]
fn fen_06_a_removal_proves_only_what_could_no_longer_have_been_published() {
    let mut weighed = START;
    let mut proven = 0_u32;
    for_all(&fence_dimensions(), &mut weighed, &mut |weighed| {
        let facts = &weighed.facts;
        let (with, without) = (weigh(weighed), conclude(facts));
        if with == without {
            return;
        }
        proven += 1;
        assert_eq!(with, Conclusion::NotDelivered(NotDeliveredProof::TemporaryRemoved), "{facts:?}");
        assert_eq!(weighed.removal, Removal::Confirmed, "{facts:?}");
        assert_eq!(facts.acceptance, Acceptance::None, "{facts:?}");
        assert!(matches!(without, Conclusion::Unknown(_)), "evidence was overruled: {facts:?}");
        match facts.publish {
            Publish::Unanswered(Form::Rename { one_step: true }) => {
                assert_eq!((facts.baseline, facts.final_name), (Baseline::Absent, FinalName::Absent));
            }
            Publish::Unanswered(Form::Link) => {
                assert_eq!((facts.baseline, facts.final_name), (Baseline::Absent, FinalName::Absent));
                assert!(facts.promises.keeps_covers, "{facts:?}");
            }
            Publish::Unanswered(Form::Over { one_step: true }) => {
                assert_eq!(facts.baseline, Baseline::Present(Since::Unchanged));
                assert!(facts.final_name.differs(), "{facts:?}");
            }
            Publish::Unanswered(
                Form::Rename { one_step: false }
                | Form::Over { one_step: false }
                | Form::ExclusiveCreate
                | Form::CreateWhole,
            )
            | Publish::NeverSent
            | Publish::Acknowledged(_)
            | Publish::Refused(_) => panic!("{facts:?}"),
        }
    });
    assert!(proven > 0);
}

#[test]
fn fen_06_fen_08_nothing_is_removed_without_leave_or_beside_a_final_name() {
    let leaves = YES_NO
        .map(|may_remove_temporaries| YES_NO.map(|one_name_space| Leave { may_remove_temporaries, one_name_space }));
    let mut weighed = START;
    let mut removable = 0_u32;
    for_all(&fence_dimensions(), &mut weighed, &mut |Weighed { facts, .. }| {
        for leave in leaves.as_flattened() {
            if !worth_removing(facts, *leave) {
                continue;
            }
            removable += 1;
            assert!(leave.may_remove_temporaries && leave.one_name_space);
            assert!(matches!(facts.publish, Publish::Unanswered(_)), "{facts:?}");
            assert!(matches!(facts.temporary, Temporary::Whole | Temporary::There), "{facts:?}");
            // OpenSSH's RENAME undoes its link when its removal fails: FEN-07.
            assert_ne!(facts.publish, Publish::Unanswered(Form::Rename { one_step: false }));
            let overwrite = facts.publish == Publish::Unanswered(Form::Over { one_step: true })
                && facts.baseline == Baseline::Present(Since::Unchanged);
            assert!(facts.final_name == FinalName::Absent || overwrite, "{facts:?}");
        }
    });
    assert!(removable > 0);
}

#[test]
fn rec_04_what_contradicts_a_record_is_named_and_nothing_else_is() {
    let completed = Facts {
        publish: Publish::Acknowledged(Form::Link),
        final_name: FinalName::Present { size: Same, checksum: Same },
        baseline: Baseline::Absent,
        ..NOTHING
    };
    assert_eq!(contradiction(true, &completed), None);
    for acceptance in [Acceptance::Refused, Acceptance::Duplicate, Acceptance::OtherContent] {
        assert!(contradiction(true, &Facts { acceptance, ..completed }).is_some(), "{acceptance:?}");
        assert!(contradiction(false, &Facts { acceptance, ..NOTHING }).is_some(), "{acceptance:?}");
    }
    let other = Facts { final_name: FinalName::Present { size: Same, checksum: Different }, ..completed };
    assert!(contradiction(true, &other).is_some());
    // A replacement may have put its own file there.
    assert_eq!(contradiction(true, &Facts { others: Others::OtherContent, ..other }), None);
    // Collected, or simply gone by now.
    assert_eq!(contradiction(true, &Facts { final_name: FinalName::Absent, ..completed }), None);
    assert!(contradiction(false, &Facts { acceptance: Acceptance::Tied, ..NOTHING }).is_some());
    assert!(contradiction(false, &completed).is_some());
    assert_eq!(contradiction(false, &Facts { others: Others::SameContent, ..completed }), None);
    assert_eq!(contradiction(false, &NOTHING), None);
}
