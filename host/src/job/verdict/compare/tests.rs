//! Documents as recovery finds them, and the facts and conclusions that come of them.

use super::*;
use crate::job::contract::Auxiliary;
use crate::job::names::NamePattern;
use crate::job::verdict::differences::of_listing;
use crate::job::verdict::{Conclusion, NotDeliveredProof, Proof, WhyUnknown, conclude};

const OURS: Sha256 = Sha256([7; 32]);
const ANOTHERS: Sha256 = Sha256([8; 32]);
const ATTEMPT: &str = "00000000-0000-0000-0000-0000000000a1";

fn expected() -> FileFacts {
    file(100, OURS)
}

fn file(bytes: u64, sha256: Sha256) -> FileFacts {
    FileFacts { name: "contacts.csv".to_owned(), bytes, sha256 }
}

fn look(at: &str, found: Found, sha256: Option<Sha256>) -> Listing {
    Listing { at: at.to_owned(), found, sha256, hashed_by: None }
}

#[test]
fn a_server_that_tells_no_kinds_shows_files_and_a_directory_is_none() {
    let known = FileFacts { name: "contacts.csv".to_owned(), bytes: 7, sha256: Sha256([7; 32]) };
    for (kind, size) in [
        ("file", Compared::Same),
        ("unknown", Compared::Same),
        ("directory", Compared::Different),
        ("other", Compared::Different),
    ] {
        let Found::Present(seen) = entry(Some(7), None) else { panic!("it is there") };
        let found = Found::Present(Entry { kind: kind.to_owned(), ..seen });
        let look = Listing { at: "contacts.csv".to_owned(), found, sha256: None, hashed_by: None };
        assert_eq!(likeness(&known, &look).size, size, "{kind}");
    }
}

fn entry(bytes: Option<u64>, modified: Option<u64>) -> Found {
    Found::Present(Entry { name: "contacts.csv".to_owned(), kind: "file".to_owned(), bytes, modified })
}

fn present(bytes: u64) -> Listing {
    look("contacts.csv", entry(Some(bytes), None), None)
}

fn absent() -> Listing {
    look("contacts.csv", Found::Absent, None)
}

fn baseline(look: Listing) -> Evidence {
    Evidence::Baseline {
        look,
        temporary: Some(".part".to_owned()),
        acknowledgments: None,
        reported: None,
        contract: None,
    }
}

/// A look that found this under the final name, and the temporary gone.
fn receipt(look_at_final: Listing) -> Receipt {
    Receipt {
        look: Some(look_at_final),
        temporary: Some(look(".part", Found::Absent, None)),
        bytes_read_back: Some(100),
        ..Receipt::default()
    }
}

fn acknowledged(key: Option<&str>, attempt: Option<&str>, sha256: Option<Sha256>) -> Acknowledged {
    Acknowledged {
        name: "ack.txt".to_owned(),
        says: "accepted".to_owned(),
        key: key.map(str::to_owned),
        attempt: attempt.map(str::to_owned),
        sha256: sha256.map(|digest| digest.to_string()),
    }
}

fn whole() -> Contract {
    Contract { publishes_whole: true, ..Contract::default() }
}

struct Case {
    contract: Contract,
    publish: Publish,
    evidence: Vec<Evidence>,
    others: Vec<Option<FileFacts>>,
    past_the_fence: u32,
    after: Duration,
}

impl Default for Case {
    fn default() -> Self {
        Self {
            contract: whole(),
            publish: Publish::Acknowledged(Form::Rename { one_step: false }),
            evidence: vec![baseline(absent()), Evidence::Receipt(receipt(present(100)))],
            others: Vec::new(),
            past_the_fence: 1,
            after: Duration::from_mins(1),
        }
    }
}

impl Case {
    fn see<T>(&self, see: impl FnOnce(&OnRecord<'_>) -> T) -> T {
        see(&OnRecord {
            expected: &expected(),
            key: "k-1",
            attempt: ATTEMPT,
            contract: &self.contract,
            publish: self.publish,
            evidence: &self.evidence,
            others: &self.others,
            attempts_past_the_fence: self.past_the_fence,
            looked_after: self.after,
            looked_since_answer: self.after,
        })
    }

    fn conclude(&self) -> Conclusion {
        conclude(&self.see(facts))
    }

    fn said(&self, acknowledged: &Acknowledged) -> Acceptance {
        self.see(|record| said(record, acknowledged))
    }
}

#[test]
fn a_published_file_is_concluded_from_its_documents() {
    assert_eq!(Case::default().conclude(), Conclusion::Completed(Proof::Listing));
    let wrong = Case { evidence: vec![baseline(absent()), Evidence::Receipt(receipt(present(99)))], ..Case::default() };
    assert_eq!(wrong.conclude(), Conclusion::Unknown(WhyUnknown::SizeDiffers));
}

#[test]
fn vrd_05_what_a_plugin_reports_changes_no_fact() {
    let lies = [
        serde_json::json!({ "listing": { "found": "present", "bytes": 100 }, "acknowledgment": { "says": "accepted" } }),
        serde_json::json!({ "listing": { "found": "absent" }, "acknowledgment": { "says": "refused", "key": "k-1" } }),
        serde_json::json!("completed"),
    ];
    let looks = [absent(), present(100), present(99), look("contacts.csv", entry(None, None), Some(OURS))];
    for seen in &looks {
        for before in &looks {
            let honest = Case {
                evidence: vec![baseline(before.clone()), Evidence::Receipt(receipt(seen.clone()))],
                ..Case::default()
            };
            for lie in &lies {
                for reported in &looks {
                    let told = Receipt {
                        reported: Some(lie.clone()),
                        differences: of_listing(seen, reported),
                        call: Some("trapped".to_owned()),
                        conclusion: Some("Completed(listing)".to_owned()),
                        ..receipt(seen.clone())
                    };
                    let lying = Case {
                        evidence: vec![
                            Evidence::Baseline {
                                look: before.clone(),
                                temporary: Some(".part".to_owned()),
                                acknowledgments: None,
                                reported: Some(reported.clone()),
                                contract: None,
                            },
                            Evidence::Receipt(told),
                        ],
                        ..Case::default()
                    };
                    assert_eq!(honest.see(facts), lying.see(facts));
                }
            }
        }
    }
}

#[test]
fn vrd_05_a_difference_between_report_and_look_is_named() {
    assert!(of_listing(&present(100), &present(100)).is_empty());
    assert_eq!(of_listing(&present(100), &absent()), ["the host saw a file, the plugin reported no file"]);
    assert_eq!(of_listing(&present(100), &present(99)), ["the host saw 100 bytes, the plugin reported 99"]);
    let (ours, anothers) =
        (look("contacts.csv", entry(None, None), Some(OURS)), look("other.csv", entry(None, None), Some(ANOTHERS)));
    assert_eq!(of_listing(&ours, &anothers).len(), 2);
}

#[test]
fn vrd_03_what_an_acknowledgment_names_decides_what_it_counts_for() {
    let alone = Case::default();
    let beside = |other| Case { others: vec![other], past_the_fence: 2, ..Case::default() };
    let (different, same) = (beside(Some(file(90, ANOTHERS))), beside(Some(file(100, OURS))));
    let not_known = beside(None);
    let key = acknowledged(Some("k-1"), None, None);
    assert_eq!(alone.said(&key), Acceptance::KeyOnly { sole: true });
    assert_eq!(different.said(&key), Acceptance::KeyOnly { sole: false });
    let unfenced = Case { past_the_fence: 0, ..Case::default() };
    assert_eq!(unfenced.said(&key), Acceptance::KeyOnly { sole: false }, "none is not exactly one");

    let attempt = acknowledged(None, Some(&ATTEMPT.to_uppercase()), None);
    assert_eq!(same.said(&attempt), Acceptance::Tied);

    let content = acknowledged(Some("k-1"), None, Some(OURS));
    assert_eq!(different.said(&content), Acceptance::Tied);
    assert_eq!(same.said(&content), Acceptance::KeyOnly { sole: false }, "the other one had the same content");
    assert_eq!(not_known.said(&content), Acceptance::KeyOnly { sole: false });

    let other_content = acknowledged(Some("k-1"), None, Some(ANOTHERS));
    assert_eq!(alone.said(&other_content), Acceptance::OtherContent);
    assert_eq!(different.said(&other_content), Acceptance::None, "it is about the other attempt");
    let unreadable = Acknowledged { sha256: Some("not a digest".to_owned()), ..key.clone() };
    assert_eq!(alone.said(&unreadable), Acceptance::OtherContent);

    assert_eq!(alone.said(&acknowledged(Some("k-2"), None, None)), Acceptance::None);
    assert_eq!(alone.said(&acknowledged(Some("k-1"), Some("another"), None)), Acceptance::None);
    assert_eq!(alone.said(&acknowledged(None, None, None)), Acceptance::None);
    let pending = Acknowledged { says: "pending".to_owned(), ..key };
    assert_eq!(alone.said(&pending), Acceptance::None);
}

#[test]
fn vrd_02_what_speaks_against_a_delivery_outweighs_what_speaks_for_it() {
    let with = |says: [&str; 2]| {
        let carrying = |says: &str| {
            let acknowledgment =
                Acknowledged { says: says.to_owned(), ..acknowledged(Some("k-1"), Some(ATTEMPT), None) };
            Evidence::Observation(Receipt { acknowledgments: vec![acknowledgment], ..Receipt::default() })
        };
        let mut evidence = Case::default().evidence;
        evidence.extend(says.map(carrying));
        Case { evidence, ..Case::default() }.conclude()
    };
    assert_eq!(with(["accepted", "accepted"]), Conclusion::Completed(Proof::AcknowledgedAttempt));
    for says in [["accepted", "refused"], ["refused", "accepted"], ["duplicate", "refused"]] {
        assert_eq!(with(says), Conclusion::Unknown(WhyUnknown::PartnerRefused));
    }
    assert_eq!(with(["duplicate", "accepted"]), Conclusion::Unknown(WhyUnknown::PartnerHadItBefore));
}

/// Answers about another attempt of the key lie beside ours.
#[test]
fn vrd_03_an_answer_about_another_attempt_hides_none_about_this_one() {
    let case = Case { others: vec![Some(file(90, ANOTHERS))], past_the_fence: 2, ..Case::default() };
    let says = |says: &str, attempt, sha256| Acknowledged {
        says: says.to_owned(),
        ..acknowledged(Some("k-1"), attempt, sha256)
    };
    let of_the_other = says("refused", None, Some(ANOTHERS));
    for (ours, expected) in [
        (says("refused", None, None), Acceptance::Refused),
        (says("accepted", None, Some(OURS)), Acceptance::Tied),
        (says("accepted", Some(ATTEMPT), None), Acceptance::Tied),
    ] {
        for answers in [[&of_the_other, &ours], [&ours, &of_the_other]] {
            assert_eq!(case.see(|record| acceptance(record, &answers)), expected, "{answers:?}");
        }
    }
}

#[test]
fn vrd_02_unchanged_needs_enough_to_tell_and_newer_is_strict() {
    let at = |bytes, modified, sha256| look("contacts.csv", entry(bytes, modified), sha256);
    let then = at(Some(100), Some(50), None);
    for (now, told) in [
        (at(Some(100), Some(50), None), Since::Unchanged),
        (at(Some(100), Some(51), None), Since::Newer),
        (at(Some(100), Some(49), None), Since::Changed),
        (at(Some(99), Some(50), None), Since::Changed),
        (at(Some(100), None, None), Since::NotShown),
        (at(None, Some(50), None), Since::NotShown),
        (absent(), Since::Changed),
        (look("contacts.csv", Found::NotVisible { why: String::new() }, None), Since::NotShown),
    ] {
        assert_eq!(since(&then, &now), told, "{now:?}");
    }
    let hashed = at(Some(100), None, Some(OURS));
    assert_eq!(since(&hashed, &hashed), Since::Unchanged);
    assert_eq!(since(&hashed, &at(Some(100), None, Some(ANOTHERS))), Since::Changed);
}

#[test]
fn vrd_02_a_name_that_was_not_looked_at_is_not_known() {
    let elsewhere = Case {
        evidence: vec![
            baseline(absent()),
            Evidence::Receipt(receipt(look("contacts-2.csv", entry(Some(100), None), None))),
        ],
        ..Case::default()
    };
    assert_eq!(elsewhere.see(facts).final_name, FinalName::Unknown);
    let none = Case { evidence: Vec::new(), ..Case::default() }.see(facts);
    assert_eq!((none.final_name, none.baseline), (FinalName::Unknown, Baseline::Unknown));
    let mut directory = present(100);
    if let Found::Present(entry) = &mut directory.found {
        "directory".clone_into(&mut entry.kind);
    }
    assert_eq!(likeness(&expected(), &directory).size, Compared::Different, "a directory is no file of ours");
}

#[test]
fn a_file_that_was_seen_is_not_forgotten_when_the_partner_has_taken_it() {
    let taken = Case {
        evidence: vec![
            baseline(absent()),
            Evidence::Receipt(receipt(present(100))),
            Evidence::Observation(receipt(absent())),
        ],
        ..Case::default()
    };
    assert_eq!(taken.conclude(), Conclusion::Completed(Proof::Listing));
    let refused = Case { publish: Publish::Refused(Form::Rename { one_step: true }), ..taken };
    assert_eq!(refused.conclude(), Conclusion::Unknown(WhyUnknown::NotAsBefore));
}

/// A publish that was refused, with everything as it was.
fn refused(contract: Contract, form: PublishForm, after: Duration) -> Case {
    let still_there = Receipt { temporary: Some(look(".part", entry(Some(100), None), None)), ..receipt(absent()) };
    Case {
        publish: Publish::Refused(super::form(form, &contract)),
        contract,
        evidence: vec![baseline(absent()), Evidence::Receipt(still_there)],
        after,
        ..Case::default()
    }
}

#[test]
fn del_03_a_refusal_counts_only_inside_the_time_that_names_are_kept_and_after_they_settled() {
    let (second, minute) = (Duration::from_secs(1), Duration::from_mins(1));
    let proven = Conclusion::NotDelivered(NotDeliveredProof::RefusedAndUnchanged);
    let kept = Contract { keeps: Some(minute), ..whole() };
    assert_eq!(refused(kept.clone(), PublishForm::Link, minute).conclude(), proven);
    assert_eq!(
        refused(kept.clone(), PublishForm::Link, minute + second).conclude(),
        Conclusion::Unknown(WhyUnknown::NotOneStep)
    );
    let collecting = Contract { collects: true, ..kept.clone() };
    assert_eq!(
        refused(collecting, PublishForm::Link, second).conclude(),
        Conclusion::Unknown(WhyUnknown::NotOneStep),
        "what may be taken at once is not kept"
    );
    let one_step = Contract { rename_one_step: true, ..whole() };
    assert_eq!(refused(one_step.clone(), PublishForm::Rename, minute).conclude(), proven);
    let settling = Contract { settle: Some(minute), ..one_step };
    assert_eq!(
        refused(settling.clone(), PublishForm::Rename, second).conclude(),
        Conclusion::Unknown(WhyUnknown::LookFailed),
        "the server may still show its state from before"
    );
    assert_eq!(refused(settling, PublishForm::Rename, minute).conclude(), proven);
}

#[test]
fn a_temporary_that_we_removed_ourselves_says_nothing() {
    let collects = Contract { collects: true, ..Contract::default() };
    let case = |removed| {
        let receipt = Receipt { temporary_removed: removed, ..receipt(absent()) };
        Case {
            contract: collects.clone(),
            evidence: vec![baseline(absent()), Evidence::Receipt(receipt)],
            ..Case::default()
        }
    };
    assert_eq!(case(None).conclude(), Conclusion::Completed(Proof::Collected));
    // Also a removal that was not confirmed may have taken effect.
    for removed in [Some(true), Some(false)] {
        assert_eq!(case(removed).conclude(), Conclusion::Unknown(WhyUnknown::AcknowledgedButAbsent));
    }
}

/// One that answers no intention was asked for when nothing could be published any more, and says nothing of another's.
#[test]
fn fen_11_a_refused_removal_answers_only_an_intention_before_it() {
    let intended = || Evidence::RemovalIntended { temporary: "a.part".to_owned() };
    let answered = |answer| Evidence::RemovalAnswered { temporary: "a.part".to_owned(), answer };
    let refused = || answered(Answer::Refused { code: Some(2), text: "no such file".to_owned() });
    for (evidence, expected) in [
        (vec![], Removal::NotByUs),
        (vec![refused()], Removal::NotByUs),
        (vec![intended(), refused()], Removal::NotByUs),
        (vec![intended()], Removal::Unclear),
        (vec![refused(), intended()], Removal::Unclear),
        (vec![intended(), refused(), refused(), intended()], Removal::Unclear),
        (vec![intended(), answered(Answer::Unanswered { why: String::new() })], Removal::Unclear),
        (vec![intended(), answered(Answer::Acknowledged)], Removal::Confirmed),
    ] {
        assert_eq!(removal(&evidence), expected, "{evidence:?}");
    }
}

#[test]
fn vrd_04_every_trigger_of_the_contract_must_have_been_acknowledged() {
    let trigger =
        |name: &str| Auxiliary { name: NamePattern::parse(name).unwrap(), trigger: true, before_publish: false };
    let contract = Contract { auxiliary: vec![trigger("{final}.done"), trigger("{key}.go")], ..whole() };
    let case = |puts: &[(&str, Answer)]| {
        let auxiliary = puts
            .iter()
            .map(|(name, answer)| AuxiliaryPut { name: (*name).to_owned(), trigger: true, answer: answer.clone() })
            .collect();
        let receipt = Receipt { auxiliary, ..receipt(present(100)) };
        Case {
            contract: contract.clone(),
            evidence: vec![baseline(absent()), Evidence::Receipt(receipt)],
            ..Case::default()
        }
        .conclude()
    };
    let (done, go) = ("contacts.csv.done", "k-1.go");
    let unanswered = Answer::Unanswered { why: "cut".to_owned() };
    assert_eq!(
        case(&[(done, Answer::Acknowledged), (go, Answer::Acknowledged)]),
        Conclusion::Completed(Proof::Listing)
    );
    for puts in [
        &[][..],
        &[(done, Answer::Acknowledged)],
        &[(done, Answer::Acknowledged), (go, unanswered)],
        &[(done, Answer::Acknowledged), ("k-2.go", Answer::Acknowledged)],
    ] {
        assert_eq!(case(puts), Conclusion::Unknown(WhyUnknown::TriggerNotConfirmed), "{puts:?}");
    }
}

#[test]
fn only_the_attempt_itself_can_say_that_a_fenced_publish_was_never_sent() {
    let contract = Contract::default();
    let answer = |form, answer: Answer| Evidence::Publish { form, answer };
    let link = Some(PublishForm::Link);
    assert_eq!(publish_of_the_attempt(None, &contract), Publish::NeverSent);
    assert_eq!(publish_on_record(None, &[], &contract), None);
    let unanswered = Some(Publish::Unanswered(Form::Link));
    assert_eq!(publish_on_record(link, &[], &contract), unanswered);
    let yes = answer(PublishForm::Link, Answer::Acknowledged);
    let no = answer(PublishForm::Link, Answer::Refused { code: Some(4), text: String::new() });
    let other = answer(PublishForm::Rename, Answer::Acknowledged);
    assert_eq!(publish_on_record(link, std::slice::from_ref(&yes), &contract), Some(Publish::Acknowledged(Form::Link)));
    assert_eq!(publish_on_record(link, std::slice::from_ref(&no), &contract), Some(Publish::Refused(Form::Link)));
    assert_eq!(publish_on_record(link, &[no, yes], &contract), unanswered);
    assert_eq!(publish_on_record(link, &[other], &contract), unanswered);
}

#[test]
fn rpl_05_the_originals_file_is_known_by_checksum_not_by_size() {
    let agreed = Contract { name_and_size_identify: true, ..Contract::default() };
    let replacement = Intent::Replacement { overwrite_agreed: false };
    let answer = |look: &Listing, contract: &Contract| {
        let facts = before(look, replacement, Some(&expected()), Acceptance::None, None, contract);
        crate::job::verdict::before_sending(&facts).as_str()
    };
    let hashed = look("contacts.csv", entry(Some(100), None), Some(OURS));
    assert_eq!(answer(&hashed, &Contract::default()), "original_delivered");
    assert_eq!(answer(&present(100), &Contract::default()), "final_name_occupied");
    assert_eq!(answer(&present(100), &agreed), "original_delivered");
    assert_eq!(answer(&absent(), &agreed), "go");
}
