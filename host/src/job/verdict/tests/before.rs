//! Before sending: the whole input space as a table, and what must hold all over it.

use super::*;

fn before_dimensions() -> Vec<Dimension<BeforeFacts>> {
    let intents = [
        Intent::Original,
        Intent::Replacement { overwrite_agreed: false },
        Intent::Replacement { overwrite_agreed: true },
    ];
    let standings = [Standing::Absent, Standing::NotVisible, Standing::Unknown, Standing::Present];
    let likenesses: Vec<Likeness> =
        COMPARED.iter().flat_map(|checksum| COMPARED.map(|size| Likeness { size, checksum: *checksum })).collect();
    vec![
        dimension("job", &intents, |facts: &mut BeforeFacts, value| facts.intent = value),
        dimension("original_acknowledged", &YES_NO, |facts: &mut BeforeFacts, value| {
            facts.original_acknowledged = value;
        }),
        dimension("final", &standings, |facts: &mut BeforeFacts, value| facts.standing = value),
        dimension("hidden", &YES_NO, |facts: &mut BeforeFacts, value| facts.listing_hidden = value),
        dimension("identify", &YES_NO, |facts: &mut BeforeFacts, value| facts.name_and_size_identify = value),
        dimension("like_original", &likenesses, |facts: &mut BeforeFacts, value| facts.like_original = value),
        dimension("overwrites_last", &YES_NO, |facts: &mut BeforeFacts, value| facts.overwrites_last = value),
        dimension("like_last", &likenesses, |facts: &mut BeforeFacts, value| facts.like_last = value),
    ]
}

const UNSEEN: BeforeFacts = BeforeFacts {
    standing: Standing::Unknown,
    intent: Intent::Original,
    original_acknowledged: false,
    like_original: Likeness::NOTHING,
    like_last: Likeness::NOTHING,
    overwrites_last: false,
    name_and_size_identify: false,
    listing_hidden: false,
};

fn before_everywhere(mut rule: impl FnMut(&BeforeFacts, Before)) {
    let mut facts = UNSEEN;
    for_all(&before_dimensions(), &mut facts, &mut |facts| rule(facts, before_sending(facts)));
}

#[test]
fn vrd_01_before_sending_every_combination_has_the_answer_of_the_golden_table() {
    let printed = tree(&before_dimensions(), UNSEEN, |facts| Answered(before_sending(facts)));
    golden("job/verdict/golden/before_sending.txt", &printed);
}

/// Prints an answer's code.
#[derive(Clone, Copy, PartialEq)]
struct Answered(Before);

impl std::fmt::Display for Answered {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.0.as_str())
    }
}

#[test]
fn vrd_01_nothing_is_overwritten_without_an_agreement_and_a_file_that_was_seen() {
    before_everywhere(|facts, before| {
        if before == Before::GoOver {
            let last = facts.overwrites_last && facts.like_last.identifies(facts.name_and_size_identify);
            let agreed = facts.intent == Intent::Replacement { overwrite_agreed: true };
            assert!(facts.standing == Standing::Present && (agreed || last), "{facts:?}");
        }
    });
}

#[test]
fn vrd_01_a_file_that_was_seen_is_never_sent_over_by_the_plain_form() {
    before_everywhere(|facts, before| {
        if before == Before::Go {
            let by_contract = facts.standing == Standing::NotVisible && facts.listing_hidden;
            assert!(facts.standing == Standing::Absent || by_contract, "{facts:?}");
        }
    });
}

#[test]
fn vrd_01_an_original_is_never_taken_for_delivered_by_its_replacement_without_identification() {
    before_everywhere(|facts, before| {
        if before == Before::OriginalDelivered {
            let seen =
                facts.standing == Standing::Present && facts.like_original.identifies(facts.name_and_size_identify);
            assert!(facts.intent != Intent::Original && (seen || facts.original_acknowledged), "{facts:?}");
        }
    });
}

#[test]
fn vrd_02_a_look_that_failed_is_not_a_go() {
    before_everywhere(|facts, before| {
        if facts.standing == Standing::Unknown {
            assert!(matches!(before, Before::CannotTell | Before::OriginalDelivered), "{facts:?}");
        }
    });
}
