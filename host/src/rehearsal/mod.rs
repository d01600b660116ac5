//! The rehearsal: a partner's bundle tested alone, by the very sequence that delivers. No database, no `destinations.toml`,
//! no network but loopback; only [`record_session`] connects, to the one server that it is told.
//!
//! `waybill plugin test DIR` is this module with a report for people. [`rehearse`] reads the bundle and its cases
//! (`tests/NAME.toml`), checks builder and names, and then delivers each case once under every fault: [`crate::attempt`] runs
//! against a [simulated server](crate::remote::simulated) with its record in memory, under the manifest's own limits.
//! For each delivery the report says what the plugin did, what the host concluded, and whether that is true by the
//! server's own log. An unknown outcome is never false; what a later look makes of it is told beside it.
//!
//! A bundle fails if a conclusion is false (the contract promises what its server does not keep), if a call traps, hangs
//! or exceeds a limit, if the plugin asks for what it may not, if its reports differ from what the host sees, if it leaves rows
//! unread, if the file differs between attempts, or the final name between attempts, edits and replacements, if a file that
//! the contract declares beside ours is not written, or if bytes are not those of their golden file.
//!
//! In an author's own tests:
//!
//! ```no_run
//! use waybill::rehearsal::{Options, rehearse};
//!
//! # async fn example() -> Result<(), waybill::rehearsal::RehearsalError> {
//! // In a `#[tokio::test]`:
//! let report = rehearse("partners/northwind", &Options::default()).await?;
//! assert!(report.passed, "{:#?}", report.wrong());
//! # Ok(())
//! # }
//! ```
//!
//! Not promised: that a real partner behaves as a simulated one; `waybill partner check` finds out what that one does, and a
//! session with a real server ([`record_session`]), once recorded, is part of every rehearsal. The simulated server always speaks
//! SFTP, whatever the bundle's destinations are, and shows at once what it did: the contract's `settle` is not waited for. Overwriting is rehearsed where a case has our file of last time there; replacements
//! are not.

mod case;
mod checks;
mod fault;
mod filled;
mod golden;
mod junit;
mod later;
mod opened;
mod placed;
mod record;
mod report;
mod rows;
mod sessions;
mod stage;
mod truth;
mod weigh;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures::StreamExt as _;
use tokio::time::Instant;

pub use case::CaseFault;
pub use fault::{Fault, Oddity, Request, Trouble};
pub use junit::{JunitError, untested_junit};
pub use report::{CallReport, CaseReport, Check, FaultReport, LaterReport, Report, SessionReport};
pub use sessions::{Against, Plan, Recording, record as record_session};
pub use truth::Judged;

use crate::plugin::{BundleError, Meter, PluginError};
use crate::remote::simulated::SimulatedError;
use crate::remote::{ConnectError, RemoteError};
use crate::spool::SpoolError;
use case::Case;
use opened::{Opened, Waits};
use sessions::Session;

/// Deliveries at a time. They wait for loopback more than they compute.
const AT_ONCE: usize = 4;
/// What stands for all recorded sessions among the names of faults.
const SESSIONS: &str = "sessions";

/// How to rehearse.
#[derive(Clone, Default)]
pub struct Options {
    /// Only the case of this name.
    pub only: Option<String>,
    /// Only the faults of these names, separated by commas, such as `plain`: for a quick look while writing. `sessions` stands
    /// for all recorded sessions.
    pub fault: Option<String>,
    /// Write the golden files anew instead of comparing.
    pub bless: bool,
    /// Where compiled components are kept for the next time: a directory of this user alone. `None`: nowhere.
    pub compiled: Option<PathBuf>,
    /// Told as it goes.
    pub progress: Option<OnProgress>,
}

/// Told how far a rehearsal is.
pub type OnProgress = Arc<dyn Fn(Progress<'_>) + Send + Sync>;

/// How far a rehearsal is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress<'a> {
    /// The bundle is being read and compiled.
    Loading,
    /// This is now written at a real server.
    Recording { plan: &'a Plan },
    /// So many deliveries of this case are to come.
    Case { name: &'a str, deliveries: usize },
    /// One was made.
    Delivered,
}

/// Why a bundle could not be tested.
#[derive(Debug, thiserror::Error)]
pub enum RehearsalError {
    #[error("there is no bundle {directory:?}; name the directory that holds partner.toml")]
    NoBundle { directory: PathBuf },
    /// The bundle itself is broken: the author's to mend.
    #[error("{0}")]
    Bundle(BundleError),
    #[error("{0}")]
    Case(CaseFault),
    #[error("destinations.example.toml cannot be read: {why}")]
    Example { why: String },
    #[error(
        "{directory:?} has no cases; add tests/first.toml with `key = \"K-1\"`, the expected `final_name`, and the rows of each query under [rows]"
    )]
    NoCases { directory: PathBuf },
    #[error("there is no case {name:?}; there are: {known}")]
    NoSuchCase { name: String, known: String },
    #[error(
        "there is no fault {name:?}; a report names them all, such as plain, disk-full, cut-after-link; sessions are the recorded ones"
    )]
    NoSuchFault { name: String },
    #[error(
        "no session is recorded for {cases}, so there is none to deliver over; record one with `waybill plugin test DIR --only CASE --record NAME --against DESTINATION`"
    )]
    NoSessions { cases: String },
    #[error("nothing would be delivered, since every fault that was named is excluded: {why}")]
    AllExcluded { why: String },
    #[error("plugins cannot be run here")]
    Plugins(#[from] PluginError),
    #[error("the simulated server failed")]
    Simulated(#[from] SimulatedError),
    #[error("the simulated server could not be reached")]
    Connect(#[from] ConnectError),
    #[error("the simulated server could not be tried")]
    Remote(#[from] RemoteError),
    #[error("the built file could not be kept")]
    Spool(#[from] SpoolError),
    #[error("the names of an attempt could not be made: {why}")]
    Names { why: String },
    #[error("the bundle is a builder alone (`part` in partner.toml), so there is nothing to deliver")]
    NothingToDeliver,
    #[error("a session cannot be called {name:?}; use lower-case letters, digits and hyphens")]
    SessionName { name: String },
    #[error("one case is recorded at a time; name it with --only: {known}")]
    WhichCase { known: String },
    #[error(
        "the case {case:?} replaces our file of last time, and nothing that a partner has is replaced for a test; record another case"
    )]
    ReplacesAFile { case: String },
    #[error("{file:?} has no destination {name:?}; it has: {known}")]
    NoSuchDestination { name: String, file: PathBuf, known: String },
    #[error("several destinations in {file:?} are called {name:?}; name the one that is meant by its id")]
    SeveralDestinations { name: String, file: PathBuf },
    #[error("{0}")]
    NotReached(ConnectError),
    #[error("the server could not be tried on scratch names: {0}; files under temporary names may be left there")]
    NotProven(RemoteError),
    #[error(
        "the final name {name:?} is not seen to be free at the server ({why}), so nothing was written; give the case another key, or have the file removed"
    )]
    NameNotFree { name: String, why: String },
    #[error("the session has no form in JSON: {why}")]
    Unwritable { why: String },
    #[error("{path:?} cannot be read or written")]
    File {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
}

/// Rehearses the bundle in a directory.
pub async fn rehearse(directory: impl AsRef<Path>, options: &Options) -> Result<Report, RehearsalError> {
    let (directory, began) = (directory.as_ref(), Instant::now());
    let opened = Opened::open(directory, options, Waits::Skipped).await?;
    let sessions = sessions::all(&opened.directory.join("tests"), &opened.known).map_err(RehearsalError::Case)?;
    selects_something(&opened, &sessions, options)?;
    let mut reports = Vec::new();
    for case in &opened.cases {
        reports.push(rehearse_case(&opened, case, &sessions, options).await?);
    }
    Ok(opened.report(reports, began))
}

/// What was named and selects nothing is a mistake: a pass would say that it was tried.
fn selects_something(opened: &Opened, sessions: &[Session], options: &Options) -> Result<(), RehearsalError> {
    if options.fault.is_none() {
        return Ok(());
    }
    let recorded = |case: &Case| sessions.iter().any(|session| session.header.case == case.name);
    if options.sessions() && !opened.cases.iter().any(recorded) {
        let cases = opened.cases.iter().map(|case| case.name.as_str()).collect::<Vec<_>>().join(", ");
        return Err(RehearsalError::NoSessions { cases });
    }
    let (faults, contract) = (options.faults()?, &opened.bundle.manifest.contract);
    let each = opened.cases.iter().flat_map(|case| faults.iter().map(move |fault| (*fault, case)));
    let excluded: Vec<_> = each.map(|(fault, case)| placed::excluded(fault, contract, case)).collect();
    match excluded.iter().copied().collect::<Option<BTreeSet<_>>>() {
        Some(why) if !why.is_empty() && !options.sessions() => {
            Err(RehearsalError::AllExcluded { why: Vec::from_iter(why).join("; ") })
        }
        Some(_) | None => Ok(()),
    }
}

async fn rehearse_case(
    opened: &Opened,
    case: &Case,
    sessions: &[Session],
    options: &Options,
) -> Result<CaseReport, RehearsalError> {
    let (began, bundle) = (Instant::now(), &opened.bundle);
    let contract = &bundle.manifest.contract;
    let stage = opened.stage(case.clone())?;
    let sessions = sessions.iter().filter(|session| session.header.case == case.name && options.sessions());
    let sessions: Vec<&Session> = sessions.collect();
    let meter = Meter::default();
    let mut checked = checks::check(&stage, &stage.destination(0, "", meter.clone()), options.bless).await?;
    let mut measured = meter.calls();
    let (mut faults, mut replayed) = (Vec::new(), Vec::new());
    if let Some(expected) = &checked.expected {
        let all = options.faults()?;
        let excluded = |fault| placed::excluded(fault, contract, &stage.case);
        let placed: Vec<Fault> = all.iter().copied().filter(|fault| excluded(*fault).is_none()).collect();
        options.tell(Progress::Case { name: &stage.case.name, deliveries: placed.len() + sessions.len() });
        let deliveries = futures::stream::iter(placed.into_iter().map(|fault| stage.run(fault, expected)));
        let mut deliveries = deliveries.buffered(AT_ONCE);
        let mut made = BTreeMap::new();
        while let Some(run) = deliveries.next().await {
            let run = run?;
            options.tell(Progress::Delivered);
            if run.fault == Fault::Odd(Oddity::Plain) {
                checked.checks.extend(checks::beside(&stage.case, &run, options.bless)?);
            }
            made.insert(run.fault, weigh::report(&run, &stage.case.expects));
            measured.extend(run.calls);
        }
        faults = all
            .into_iter()
            .filter_map(|fault| match excluded(fault) {
                Some(why) => Some(weigh::excluded(fault, why)),
                None => made.remove(&fault),
            })
            .collect();
        for session in sessions {
            let (report, calls) = sessions::replay(&stage, session, expected).await?;
            options.tell(Progress::Delivered);
            replayed.push(report);
            measured.extend(calls);
        }
    }
    let passed = checked.checks.iter().all(|check| check.passed)
        && faults.iter().all(|fault| fault.wrong.is_empty())
        && replayed.iter().all(|session| session.wrong.is_empty());
    Ok(CaseReport {
        name: stage.case.name.clone(),
        passed,
        seconds: began.elapsed().as_secs_f64(),
        final_name: checked.expected.map(|expected| expected.name),
        checks: checked.checks,
        faults,
        sessions: replayed,
        calls: weigh::calls(&measured, &bundle.manifest.limits),
    })
}

impl Options {
    fn faults(&self) -> Result<Vec<Fault>, RehearsalError> {
        match &self.fault {
            None => Ok(Fault::all()),
            Some(names) => {
                let named = |name: &str| {
                    Fault::named(name).ok_or_else(|| RehearsalError::NoSuchFault { name: name.to_owned() })
                };
                names.split(',').map(str::trim).filter(|name| *name != SESSIONS).map(named).collect()
            }
        }
    }

    /// Recorded sessions are replayed too.
    fn sessions(&self) -> bool {
        self.fault.as_ref().is_none_or(|names| names.split(',').any(|name| name.trim() == SESSIONS))
    }

    fn tell(&self, progress: Progress<'_>) {
        if let Some(told) = &self.progress {
            told(progress);
        }
    }
}

fn failed(path: &Path, source: std::io::Error) -> RehearsalError {
    RehearsalError::File { path: path.to_owned(), source }
}
