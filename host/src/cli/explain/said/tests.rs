//! Every state that a row can have, with every sentence and step, as one page that people review.

use std::fmt::Write as _;

use time::OffsetDateTime;
use uuid::Uuid;

use super::*;
use crate::cli::explain::family::Family;
use crate::cli::explain::next::steps;
use crate::cli::explain::theirs::What;
use crate::cli::explain::words::state;
use crate::job::facts::{FileFacts, Sha256};

const BESIDE: [Beside; 5] = [Beside::Nothing, Beside::ToCome, Beside::MayHave, Beside::Found, Beside::Delivered];

const fn key(beside: Beside, publishes: usize) -> Key {
    Key { beside, publishes, overtaken: false }
}

fn answer(job: &Job, says: Says) -> Theirs {
    let contradicts = match job.status {
        Status::Completed => says != Says::Accepted,
        Status::Failed => says != Says::Refused,
        _ => false,
    };
    let word =
        Word { says, file: "ANSWER".to_owned(), seen_at: "THEN".to_owned(), contradicts_the_record: contradicts };
    let lies = Lies { what: What::Ours, seen_at: OffsetDateTime::UNIX_EPOCH };
    Theirs { answer: Some(word), lies: Some(lies), ..Theirs::default() }
}

pub(in crate::cli::explain) fn job(
    status: Status,
    reason: Option<FailureReason>,
    authorized: bool,
    fenced: bool,
) -> Job {
    let then = OffsetDateTime::UNIX_EPOCH;
    Job {
        id: Uuid::from_u128(1),
        tenant: Uuid::from_u128(2),
        status,
        version: 3,
        destination: Uuid::from_u128(4),
        delivery_key: "spring".to_owned(),
        scope: serde_json::json!({}),
        not_before: None,
        priority: 0,
        created_at: then,
        created_by: "olga".to_owned(),
        replaces: None,
        replacement_reason: None,
        overwrite_agreement_ref: None,
        attempt: Some(Uuid::from_u128(5)),
        attempt_count: 1,
        claimed_by: None,
        lease_expires_at: None,
        stop_request: None,
        cancellation_request: None,
        expected: authorized.then(|| FileFacts { name: "FILE".to_owned(), bytes: 9, sha256: Sha256([7; 32]) }),
        delivery_authorized_at: authorized.then_some(then),
        publish_intended_at: fenced.then_some(then),
        failure_reason: reason,
        rejection: None,
        woken_at: then,
        sweep_count: 0,
    }
}

fn write_steps(page: &mut String, job: &Job, theirs: &Theirs) {
    for step in steps(job, &Family::default(), theirs, &Waits::default()) {
        writeln!(page, "  - {}", step.means).unwrap();
        if let Some(command) = step.command {
            writeln!(page, "      {command}").unwrap();
        }
    }
}

fn may_be_answered(job: &Job) -> bool {
    matches!(
        (job.status, job.failure_reason),
        (Status::Completed | Status::OutcomeUnknown, _) | (Status::Failed, Some(FailureReason::NotDelivered))
    )
}

/// Every combination that the schema lets a row have.
fn states() -> Vec<(Job, String)> {
    let mut all = Vec::new();
    for status in Status::ALL {
        let reasons: Vec<Option<FailureReason>> =
            if *status == Status::Failed { FailureReason::ALL.iter().copied().map(Some).collect() } else { vec![None] };
        for reason in reasons {
            for (authorized, fenced) in [(false, false), (true, false), (true, true)] {
                let possible = match status {
                    Status::Queued | Status::Running | Status::Canceled | Status::Rejected | Status::Stopped => {
                        !authorized
                    }
                    Status::Delivering | Status::Completed | Status::OutcomeUnknown => authorized,
                    Status::Failed => true,
                };
                if !possible {
                    continue;
                }
                let passed = match (authorized, fenced) {
                    (false, _) => "",
                    (true, false) => ", authorized",
                    (true, true) => ", authorized, publish intended",
                };
                all.push((job(*status, reason, authorized, fenced), format!("{}{passed}", state(*status, reason))));
                if *status == Status::Running {
                    let stopping = Job { stop_request: Some(Uuid::from_u128(6)), ..job(*status, reason, false, false) };
                    all.push((stopping, "Running, stop requested".to_owned()));
                }
            }
        }
    }
    all
}

#[test]
fn can_08_every_state_has_the_sentences_and_steps_of_the_golden_page() {
    let mut page = String::new();
    for (job, name) in states() {
        writeln!(page, "{name}\n  stands: {}", stands(&job, Some("BECAUSE."), &Waits::default(), &Theirs::default()))
            .unwrap();
        for beside in BESIDE {
            let said = to_the_partner(&job, key(beside, 1), &Theirs::default());
            writeln!(page, "  partner, beside {beside:?}: {said}").unwrap();
            let twice = to_the_partner(&job, key(beside, 2), &Theirs::default());
            if twice != said {
                writeln!(page, "  partner, beside {beside:?}, two publishes: {twice}").unwrap();
            }
        }
        write_steps(&mut page, &job, &Theirs::default());
    }
    for (job, name) in states() {
        if job.publish_intended_at.is_none() || !may_be_answered(&job) {
            continue;
        }
        for says in [Says::Accepted, Says::OtherContent, Says::Duplicate, Says::Refused] {
            let theirs = answer(&job, says);
            writeln!(page, "{name}, the partner {}", says.verb()).unwrap();
            writeln!(page, "  stands: {}", stands(&job, Some("BECAUSE."), &Waits::default(), &theirs)).unwrap();
            writeln!(page, "  partner: {}", to_the_partner(&job, key(Beside::Nothing, 1), &theirs)).unwrap();
            write_steps(&mut page, &job, &theirs);
        }
    }
    let open = job(Status::OutcomeUnknown, None, true, true);
    for (said, answer) in [("", None), (", the partner accepted it", answer(&open, Says::Accepted).answer)] {
        let theirs = Theirs { answer, triggers: Some(Unconfirmed::refused("FILE.done")), ..Theirs::default() };
        writeln!(page, "OutcomeUnknown, authorized, publish intended, without its trigger{said}").unwrap();
        writeln!(page, "  stands: {}", stands(&open, Some("BECAUSE."), &Waits::default(), &theirs)).unwrap();
        writeln!(page, "  partner: {}", to_the_partner(&open, key(Beside::Nothing, 1), &theirs)).unwrap();
        write_steps(&mut page, &open, &theirs);
    }
    for outcome in CancellationOutcome::ALL {
        for found in found_with(*outcome) {
            writeln!(page, "{outcome} of {found}: {}", cancellation(*outcome, *found)).unwrap();
        }
    }
    compare("cli/explain/golden/said.txt", &page);
}

#[test]
fn can_08_no_sentence_says_more_than_is_known() {
    for (job, name) in states() {
        let partner = to_the_partner(&job, key(Beside::Nothing, 1), &Theirs::default());
        let both = format!("{} {partner}", stands(&job, None, &Waits::default(), &Theirs::default()));
        let left = job.delivery_authorized_at.is_some();
        if left {
            assert!(!both.contains("canceled"), "{name}: {both}");
        }
        match job.status {
            Status::OutcomeUnknown => {
                assert!(!partner.contains("not delivered") && !partner.contains("was delivered"), "{name}: {partner}");
            }
            Status::Delivering => assert!(!both.contains("delivered"), "{name}: {both}"),
            Status::Completed => assert!(partner.contains("was delivered"), "{name}: {partner}"),
            Status::Queued | Status::Running | Status::Canceled | Status::Rejected | Status::Stopped => {
                assert!(!partner.contains("was delivered") && !partner.contains("may have"), "{name}: {partner}");
            }
            Status::Failed => assert!(!both.contains("canceled"), "{name}: {both}"),
        }
    }
}

#[test]
fn can_08_what_the_partner_says_against_the_record_comes_first() {
    let completed = job(Status::Completed, None, true, true);
    let theirs = answer(&completed, Says::Refused);
    let said = stands(&completed, Some("The checksum is the same."), &Waits::default(), &theirs);
    assert!(said.starts_with("the partner refused it (ANSWER, seen THEN), which contradicts the record: "), "{said}");
    let said = to_the_partner(&completed, key(Beside::Nothing, 1), &theirs);
    assert!(said.contains("you refused it") && !said.contains("was delivered"), "{said}");
    let unknown = job(Status::OutcomeUnknown, None, true, true);
    let said =
        stands(&unknown, Some("Name and size are not enough."), &Waits::default(), &answer(&unknown, Says::Refused));
    assert!(said.starts_with("the partner refused it") && !said.contains("are not enough"), "{said}");
}

#[test]
fn can_08_more_than_once_is_said_only_after_two_publishes() {
    for (job, name) in states() {
        for beside in BESIDE {
            for theirs in [Theirs::default(), answer(&job, Says::Refused)] {
                let said = to_the_partner(&job, key(beside, 1), &theirs);
                assert!(!said.contains("more than once"), "{name}, beside {beside:?}: {said}");
            }
        }
    }
    let completed = job(Status::Completed, None, true, true);
    assert!(to_the_partner(&completed, key(Beside::MayHave, 2), &Theirs::default()).contains("more than once"));
}

#[test]
fn can_08_canceled_is_said_only_of_what_is_canceled() {
    for outcome in CancellationOutcome::ALL {
        let is = matches!(outcome, CancellationOutcome::CanceledWhileQueued | CancellationOutcome::AlreadyCanceled);
        for found in found_with(*outcome) {
            assert_eq!(cancellation(*outcome, *found).contains("canceled"), is, "{outcome} of {found}");
        }
    }
    for found in found_with(CancellationOutcome::TooLate) {
        assert!(cancellation(CancellationOutcome::TooLate, *found).starts_with("It is too late"));
    }
}

/// What a request of this outcome found.
const fn found_with(outcome: CancellationOutcome) -> &'static [Status] {
    match outcome {
        CancellationOutcome::CanceledWhileQueued => &[Status::Queued],
        CancellationOutcome::StopRequested | CancellationOutcome::StopAlreadyRequested => &[Status::Running],
        CancellationOutcome::AlreadyCanceled => &[Status::Canceled],
        CancellationOutcome::AlreadyEnded => &[Status::Rejected, Status::Stopped, Status::Failed],
        CancellationOutcome::TooLate => &[Status::Delivering, Status::Completed, Status::OutcomeUnknown],
    }
}

/// `WAYBILL_BLESS=1` writes the page anew.
fn compare(file: &str, page: &str) {
    let path = std::path::PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("src").join(file);
    #[expect(clippy::disallowed_methods, reason = "a test's own switch, as for the verdict's golden files")]
    if std::env::var_os("WAYBILL_BLESS").is_some() {
        std::fs::write(&path, page).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    for (number, (line, was)) in page.lines().zip(expected.lines()).enumerate() {
        assert_eq!(line, was, "{file}, line {}", number + 1);
    }
    assert_eq!(page.lines().count(), expected.lines().count(), "{file} is longer or shorter");
}
