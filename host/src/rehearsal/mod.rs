//! The rehearsal: a partner's bundle tested alone, by the very sequence that delivers. No database, no `destinations.toml`,
//! no network but loopback.
//!
//! `waybill plugin test DIR` is this module with a report for people. [`rehearse`] reads the bundle and its cases
//! (`tests/NAME.toml`), checks builder and names, and then delivers each case once under every fault: [`crate::attempt`] runs
//! against a [simulated server](crate::remote::simulated) with its record in memory, under the manifest's own limits.
//! For each delivery the report says what the plugin did, what the host concluded, and whether that is true by the
//! server's own log. An unknown outcome is never false; what a later look makes of it is told beside it.
//!
//! A bundle fails if a conclusion is false (the contract promises what its server does not keep), if a call traps, hangs
//! or exceeds a limit, if the plugin asks for what it may not, if its reports differ from what the host sees, if a final name
//! is not stable, or if the built bytes are not those of the golden file.
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
//! Not promised: that a real partner behaves as a simulated one; `waybill partner check` finds out what that one does. Overwriting
//! is rehearsed where a case has our file of last time there; replacements are not.

mod case;
mod checks;
mod fault;
mod junit;
mod later;
mod placed;
mod record;
mod report;
mod rows;
mod stage;
mod truth;
mod weigh;

use std::collections::BTreeMap;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures::StreamExt as _;
use tokio::sync::Mutex;
use tokio::time::Instant;

pub use case::CaseFault;
pub use fault::{Fault, Oddity, Request, Trouble};
pub use junit::JunitError;
pub use report::{CallReport, CaseReport, Check, FaultReport, LaterReport, Report};
pub use truth::Judged;

use crate::plugin::{Bundle, BundleError, Meter, PluginError, PluginSettings, Plugins};
use crate::remote::simulated::{SimulatedError, ssh};
use crate::remote::{ConnectError, RemoteError};
use crate::spool::{Spool, SpoolError};
use case::Case;
use stage::Stage;

/// Deliveries at a time. They wait for loopback more than they compute.
const AT_ONCE: usize = 4;

/// How to rehearse.
#[derive(Clone, Default)]
pub struct Options {
    /// Only the case of this name.
    pub only: Option<String>,
    /// Only the faults of these names, separated by commas, such as `plain`: for a quick look while writing.
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
    #[error(
        "{directory:?} has no cases; add tests/first.toml with `key = \"K-1\"`, the expected `final_name`, and the rows of each query under [rows]"
    )]
    NoCases { directory: PathBuf },
    #[error("there is no case {name:?}; there are: {known}")]
    NoSuchCase { name: String, known: String },
    #[error("there is no fault {name:?}; a report names them all, such as plain, disk-full, cut-after-link")]
    NoSuchFault { name: String },
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
    if !directory.is_dir() {
        return Err(RehearsalError::NoBundle { directory: directory.to_owned() });
    }
    options.faults()?;
    options.tell(Progress::Loading);
    // Texts first: their faults are told without waiting for a compiler.
    let cases = cases(directory, options)?;
    let own = Own::make()?;
    let cache_dir = options.compiled.clone().unwrap_or_else(|| own.path("compiled"));
    let directory = directory.canonicalize().map_err(|source| failed(directory, source))?;
    let bundle = Plugins::open(&PluginSettings { cache_dir })?.load_alone(&directory).await;
    let bundle = Arc::new(bundle.map_err(RehearsalError::Bundle)?);
    let mut reports = Vec::new();
    for case in cases {
        reports.push(rehearse_case(&bundle, case, &own, options).await?);
    }
    Ok(Report {
        bundle: bundle.directory.clone(),
        partner: bundle.partner.clone(),
        revision: bundle.manifest.revision,
        passed: reports.iter().all(|report| report.passed),
        seconds: began.elapsed().as_secs_f64(),
        cases: reports,
    })
}

fn cases(directory: &Path, options: &Options) -> Result<Vec<Case>, RehearsalError> {
    let mut cases = case::all(&directory.join("tests")).map_err(RehearsalError::Case)?;
    if cases.is_empty() {
        return Err(RehearsalError::NoCases { directory: directory.to_owned() });
    }
    if let Some(only) = &options.only {
        let known = cases.iter().map(|case| case.name.as_str()).collect::<Vec<_>>().join(", ");
        cases.retain(|case| case.name == *only);
        if cases.is_empty() {
            return Err(RehearsalError::NoSuchCase { name: only.clone(), known });
        }
    }
    Ok(cases)
}

async fn rehearse_case(
    bundle: &Arc<Bundle>,
    case: Case,
    own: &Own,
    options: &Options,
) -> Result<CaseReport, RehearsalError> {
    let (began, contract) = (Instant::now(), &bundle.manifest.contract);
    let stage = Stage {
        bundle: Arc::clone(bundle),
        case,
        spool: Spool::open(&own.path("spool"))?,
        password: own.path("password"),
        proofs: Mutex::new(BTreeMap::new()),
    };
    let meter = Meter::default();
    let checked = checks::check(&stage, &stage.destination(0, "", meter.clone()), options.bless).await?;
    let mut measured = meter.calls();
    let mut faults = Vec::new();
    if let Some(expected) = &checked.expected {
        let all = options.faults()?;
        let excluded = |fault| placed::excluded(fault, contract, &stage.case);
        let placed: Vec<Fault> = all.iter().copied().filter(|fault| excluded(*fault).is_none()).collect();
        options.tell(Progress::Case { name: &stage.case.name, deliveries: placed.len() });
        let deliveries = futures::stream::iter(placed.into_iter().map(|fault| stage.run(fault, expected)));
        let mut deliveries = deliveries.buffered(AT_ONCE);
        let mut made = BTreeMap::new();
        while let Some(run) = deliveries.next().await {
            let run = run?;
            options.tell(Progress::Delivered);
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
    }
    let passed = checked.checks.iter().all(|check| check.passed) && faults.iter().all(|fault| fault.wrong.is_empty());
    Ok(CaseReport {
        name: stage.case.name.clone(),
        passed,
        seconds: began.elapsed().as_secs_f64(),
        final_name: checked.expected.map(|expected| expected.name),
        checks: checked.checks,
        faults,
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
                names.split(',').map(str::trim).map(named).collect()
            }
        }
    }

    fn tell(&self, progress: Progress<'_>) {
        if let Some(told) = &self.progress {
            told(progress);
        }
    }
}

/// The rehearsal's own directory: built files, the password, compiled components that nobody wants to keep.
struct Own {
    directory: tempfile::TempDir,
}

impl Own {
    fn make() -> Result<Self, RehearsalError> {
        let directory = tempfile::tempdir().map_err(|source| failed(&std::env::temp_dir(), source))?;
        let own = Self { directory };
        let path = own.path("password");
        let write = || {
            let mut file = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
            std::io::Write::write_all(&mut file, ssh::PASSWORD.as_bytes())
        };
        write().map_err(|source| failed(&path, source))?;
        Ok(own)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }
}

fn failed(path: &Path, source: std::io::Error) -> RehearsalError {
    RehearsalError::File { path: path.to_owned(), source }
}
