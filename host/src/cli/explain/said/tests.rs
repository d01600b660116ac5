//! Every state that a row can have, with every sentence and step, as one page that people review.

use std::fmt::Write as _;

use time::OffsetDateTime;
use uuid::Uuid;

use super::*;
use crate::cli::explain::family::Family;
use crate::cli::explain::next::steps;
use crate::cli::explain::words::state;
use crate::job::facts::{FileFacts, Sha256};

const BESIDE: [Beside; 4] = [Beside::Nothing, Beside::ToCome, Beside::MayHave, Beside::Delivered];

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
        writeln!(page, "{name}\n  stands: {}", stands(&job, Some("BECAUSE."), None)).unwrap();
        for beside in BESIDE {
            writeln!(page, "  partner, beside {beside:?}: {}", to_the_partner(&job, beside)).unwrap();
        }
        for step in steps(&job, &[], &Family::default()) {
            writeln!(page, "  - {}", step.means).unwrap();
            if let Some(command) = step.command {
                writeln!(page, "      {command}").unwrap();
            }
        }
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
        let partner = to_the_partner(&job, Beside::Nothing);
        let both = format!("{} {partner}", stands(&job, None, None));
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
