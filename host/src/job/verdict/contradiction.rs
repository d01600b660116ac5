//! What a later look says against an outcome that is already recorded.
//!
//! It changes no state: the record is one-shot, and only a named person corrects it. It is appended and alerts.

use super::facts::{Acceptance, Baseline, Compared, Facts, FinalName, Others, Since};

/// The contradiction of a Completed (`completed`) or Failed delivery, in words.
pub const fn contradiction(completed: bool, facts: &Facts) -> Option<&'static str> {
    if completed { of_completed(facts) } else { of_failed(facts) }
}

const fn of_completed(facts: &Facts) -> Option<&'static str> {
    match facts.acceptance {
        Acceptance::Refused => {
            return Some("The partner says that it refused a delivery that is recorded as Completed.");
        }
        Acceptance::Duplicate => {
            return Some("The partner says that it had this delivery before, which is recorded as Completed.");
        }
        Acceptance::OtherContent => {
            return Some("The partner acknowledged other content than that of the delivery recorded as Completed.");
        }
        Acceptance::None | Acceptance::Tied | Acceptance::KeyOnly { .. } => {}
    }
    match (facts.final_name, facts.others) {
        // Another attempt may have put its own file there since.
        (FinalName::Present { .. }, Others::None) if facts.final_name.differs() => {
            Some("The file under the final name is not the one that is recorded as delivered.")
        }
        _ => None,
    }
}

const fn of_failed(facts: &Facts) -> Option<&'static str> {
    match facts.acceptance {
        Acceptance::Tied | Acceptance::KeyOnly { sole: true } => {
            return Some("The partner acknowledged a delivery that is recorded as Failed.");
        }
        Acceptance::Refused | Acceptance::Duplicate | Acceptance::OtherContent => {
            return Some("The partner speaks of a delivery that is recorded as Failed.");
        }
        Acceptance::None | Acceptance::KeyOnly { sole: false } => {}
    }
    match (facts.final_name, facts.baseline, facts.others) {
        (
            FinalName::Present { checksum: Compared::Same, .. },
            Baseline::Absent | Baseline::Present(Since::Newer | Since::Changed),
            Others::None | Others::OtherContent,
        ) => Some("The very file of a delivery that is recorded as Failed is under the final name."),
        _ => None,
    }
}
