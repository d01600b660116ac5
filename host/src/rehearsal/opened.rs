//! A bundle that was read for rehearsals, with its cases and a directory of the rehearsal's own.

use std::collections::BTreeMap;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::Instant;

use super::case::{self, Case};
use super::report::{CaseReport, Report};
use super::rows::{self, Needed};
use super::stage::Stage;
use super::{Options, Progress, RehearsalError, failed};
use crate::attempt;
use crate::plugin::{Bundle, PluginSettings, Plugins};
use crate::remote::simulated::ssh;
use crate::spool::Spool;

pub(super) struct Opened {
    pub bundle: Arc<Bundle>,
    pub directory: PathBuf,
    /// Those that are wanted.
    pub cases: Vec<Case>,
    /// The names of all that there are.
    pub known: Vec<String>,
    needed: Arc<Needed>,
    own: Own,
}

/// What becomes of the contract's `settle`, which an attempt waits for where it is short.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Waits {
    /// A simulated server shows at once what it did, so that waiting shows nothing new, seventy times a case.
    Skipped,
    /// A real server takes its time.
    Whole,
}

impl Opened {
    pub async fn open(directory: &Path, options: &Options, waits: Waits) -> Result<Self, RehearsalError> {
        if !directory.is_dir() {
            return Err(RehearsalError::NoBundle { directory: directory.to_owned() });
        }
        options.faults()?;
        options.tell(Progress::Loading);
        // Texts first: their faults are told without waiting for a compiler.
        let (cases, known) = cases(directory, options)?;
        let needed = Arc::new(rows::needed(directory)?);
        let own = Own::make()?;
        let cache_dir = options.compiled.clone().unwrap_or_else(|| own.path("compiled"));
        let directory = directory.canonicalize().map_err(|source| failed(directory, source))?;
        let bundle = Plugins::open(&PluginSettings::new(cache_dir))?.load_alone(&directory).await;
        let mut bundle = bundle.map_err(RehearsalError::Bundle)?;
        let settle = &mut bundle.manifest.contract.settle;
        // A longer one is not waited for, and leaves the outcome to a later look, here too.
        if waits == Waits::Skipped && settle.is_some_and(|settle| settle <= attempt::LONGEST_SETTLE) {
            *settle = Some(Duration::ZERO);
        }
        let bundle = Arc::new(bundle);
        for case in &cases {
            case.suits(&bundle.manifest).map_err(RehearsalError::Case)?;
        }
        Ok(Self { bundle, directory, cases, known, needed, own })
    }

    /// Where a case is delivered.
    pub fn stage(&self, case: Case) -> Result<Stage, RehearsalError> {
        Ok(Stage {
            bundle: Arc::clone(&self.bundle),
            directory: self.directory.clone(),
            case,
            needed: Arc::clone(&self.needed),
            spool: Spool::open(&self.own.path("spool"))?,
            password: self.own.path("password"),
            proofs: Mutex::new(BTreeMap::new()),
        })
    }

    pub fn report(&self, cases: Vec<CaseReport>, began: Instant) -> Report {
        Report {
            bundle: self.bundle.directory.clone(),
            partner: self.bundle.partner.clone(),
            revision: self.bundle.manifest.revision,
            passed: cases.iter().all(|case| case.passed),
            seconds: began.elapsed().as_secs_f64(),
            cases,
        }
    }
}

fn cases(directory: &Path, options: &Options) -> Result<(Vec<Case>, Vec<String>), RehearsalError> {
    let mut cases = case::all(&directory.join("tests")).map_err(RehearsalError::Case)?;
    if cases.is_empty() {
        return Err(RehearsalError::NoCases { directory: directory.to_owned() });
    }
    let known: Vec<String> = cases.iter().map(|case| case.name.clone()).collect();
    if let Some(only) = &options.only {
        cases.retain(|case| case.name == *only);
        if cases.is_empty() {
            return Err(RehearsalError::NoSuchCase { name: only.clone(), known: known.join(", ") });
        }
    }
    Ok((cases, known))
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
