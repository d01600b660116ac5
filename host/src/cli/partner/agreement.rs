//! What is on record of a destination's server, held against its contract: one reading for every command.

use serde::Serialize;

use crate::cli::explain;
use crate::job::contract::Contract;
use crate::plugin::NamePatterns;
use crate::remote::{About, Finding, Proof, Seen, Standing, contradictions, findings};
use crate::store::RecordedCheck;

/// A recorded check, as it reads under the contract of now.
#[derive(Debug, Serialize)]
pub(super) struct Recorded {
    pub finished_at: String,
    pub requested_by: String,
    /// The server's identification string.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub banner: Option<String>,
    /// Why nothing could be proven.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    pub findings: Vec<Finding>,
}

impl Recorded {
    pub fn contradictions(&self) -> impl Iterator<Item = &Finding> {
        contradictions(&self.findings)
    }

    pub fn in_few_words(&self) -> String {
        let what = match (&self.problem, self.contradictions().count()) {
            (Some(_), _) => "not possible".to_owned(),
            (None, 0) => "agrees".to_owned(),
            (None, contradictions) => format!("contradicts in {contradictions}"),
        };
        format!("{what} ({}, by {})", self.finished_at, self.requested_by)
    }
}

/// Reads a recorded check under a contract. A proof that this version cannot read is a problem: check again.
pub(super) fn recorded(check: &RecordedCheck, contract: &Contract, names: &NamePatterns) -> Recorded {
    let banner = check.server.as_ref().and_then(|server| server.get("banner")).and_then(|banner| banner.as_str());
    let seen: Option<Seen> = check.seen.clone().and_then(|seen| serde_json::from_value(seen).ok());
    let proof: Option<Proof> = check.proof.clone().and_then(|proof| serde_json::from_value(proof).ok());
    let unreadable = || "it was recorded by another version of this program; check again".to_owned();
    let (problem, findings) = match (&check.problem, proof, seen) {
        (Some(problem), ..) => (Some(problem.clone()), Vec::new()),
        (None, None, _) | (None, _, None) => (Some(unreadable()), Vec::new()),
        (None, Some(proof), Some(seen)) => {
            let about = About {
                banner: banner.unwrap_or_default(),
                proof: &proof,
                seen: Some(&seen),
                contract,
                one_folder: names.one_folder(),
            };
            (None, findings(&about))
        }
    };
    Recorded {
        finished_at: explain::at(check.finished_at),
        requested_by: check.requested_by.clone(),
        banner: banner.map(str::to_owned),
        problem,
        findings,
    }
}

/// The findings for people: what contradicts first.
pub(super) fn told(findings: &[Finding]) -> String {
    let mut lines = Vec::new();
    for (stands, word) in [
        (Standing::Contradicts, "CONTRADICTS"),
        (Standing::Agrees, "agrees"),
        (Standing::NotShown, "not shown"),
        (Standing::Noted, "noted"),
    ] {
        for finding in findings.iter().filter(|finding| finding.stands == stands) {
            lines.push(format!("  {word:11}  {}: {}", finding.about, finding.sentence));
            if let Some(next) = &finding.next {
                lines.push(format!("  {:11}  → {next}", ""));
            }
        }
    }
    lines.join("\n")
}
