//! What a rehearsal found, for people, scripts and tests.

use std::collections::BTreeMap;

use serde::Serialize;

use super::truth::Judged;

/// The whole report.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// The name of the bundle's directory.
    pub bundle: String,
    pub partner: String,
    pub revision: u32,
    pub passed: bool,
    pub seconds: f64,
    pub cases: Vec<CaseReport>,
}

/// One case.
#[derive(Debug, Clone, Serialize)]
pub struct CaseReport {
    pub name: String,
    pub passed: bool,
    pub seconds: f64,
    /// The final name, if builder and plugin came so far.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub final_name: Option<String>,
    /// What holds of builder and names, apart from any delivery.
    pub checks: Vec<Check>,
    /// A delivery under each fault.
    pub faults: Vec<FaultReport>,
    /// A delivery over each recorded session.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sessions: Vec<SessionReport>,
    /// What the calls took, over all deliveries of the case.
    pub calls: Vec<CallReport>,
}

/// One thing that must hold.
#[derive(Debug, Clone, Serialize)]
pub struct Check {
    pub name: &'static str,
    pub passed: bool,
    pub says: String,
}

/// One delivery under one fault.
#[derive(Debug, Clone, Serialize)]
pub struct FaultReport {
    pub fault: String,
    pub words: String,
    /// Why it was not placed: the contract excludes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub excluded: Option<&'static str>,
    /// False: the request that it waits for was never made, so the delivery went as it does without.
    pub occurred: bool,
    pub milliseconds: u64,
    /// What the plugin asked of the server, and the answers.
    pub plugin_did: Vec<String>,
    /// What the host concluded, and why.
    pub concluded: String,
    pub because: String,
    /// What really happened, by the server's own log.
    pub truth: String,
    pub judged: Judged,
    /// What a later look concluded, where the outcome was unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub later: Option<LaterReport>,
    /// What the bundle did wrong; empty: it passed.
    pub wrong: Vec<String>,
}

/// One delivery over a session with a real server: one that was recorded before, or now.
#[derive(Debug, Clone, Serialize)]
pub struct SessionReport {
    pub session: String,
    /// As the server named itself.
    pub server: String,
    pub requests: usize,
    pub milliseconds: u64,
    pub plugin_did: Vec<String>,
    pub concluded: String,
    pub because: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub later: Option<String>,
    /// The file that the session was written to just now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub written: Option<String>,
    /// What was left at the server just now.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub left: Vec<String>,
    /// What is wrong; empty: it passed.
    pub wrong: Vec<String>,
}

/// A later look at an unknown outcome.
#[derive(Debug, Clone, Serialize)]
pub struct LaterReport {
    pub concluded: String,
    pub because: String,
    pub judged: Judged,
    /// Our temporary file was removed to settle it.
    pub removed_temporary: bool,
}

/// What the calls of one kind took at most, beside what the manifest allows.
#[derive(Debug, Clone, Serialize)]
pub struct CallReport {
    pub call: &'static str,
    pub times: usize,
    pub milliseconds: u64,
    pub limit_milliseconds: u64,
    pub memory_bytes: u64,
    pub limit_memory_bytes: u64,
    /// Calls of the host's functions in the one call that made the most.
    pub host_calls: BTreeMap<&'static str, u64>,
}

impl Check {
    pub(super) const fn good(name: &'static str, says: String) -> Self {
        Self { name, passed: true, says }
    }

    pub(super) const fn bad(name: &'static str, says: String) -> Self {
        Self { name, passed: false, says }
    }
}

impl Report {
    /// Everything that is wrong, one sentence each; empty if the bundle passed.
    pub fn wrong(&self) -> Vec<String> {
        self.cases.iter().flat_map(CaseReport::wrong).collect()
    }
}

impl CaseReport {
    /// Everything that is wrong in this case.
    pub fn wrong(&self) -> Vec<String> {
        let name = &self.name;
        let checks = self
            .checks
            .iter()
            .filter(|check| !check.passed)
            .map(|check| format!("{name}: {}: {}", check.name, check.says));
        let faults = self
            .faults
            .iter()
            .flat_map(|fault| fault.wrong.iter().map(move |wrong| format!("{name}: {}: {wrong}", fault.fault)));
        let sessions = self
            .sessions
            .iter()
            .flat_map(|one| one.wrong.iter().map(move |wrong| format!("{name}: session {}: {wrong}", one.session)));
        checks.chain(faults).chain(sessions).collect()
    }

    /// Faults after which the outcome stayed unknown, also for a later look: a person would have to ask the partner.
    pub fn left_unknown(&self) -> impl Iterator<Item = &FaultReport> {
        self.faults.iter().filter(|fault| {
            let settled = fault.later.as_ref().is_some_and(|later| later.judged != Judged::Open);
            fault.excluded.is_none() && fault.judged == Judged::Open && !settled
        })
    }
}
