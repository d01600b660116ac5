//! Holding a session with a real server, and writing it down.

use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Serialize;
use tokio::time::Instant;

use super::file::{FOLDER, Header, Ids, Session, file_name};
use super::play::{self, Played, play};
use crate::job::facts::{FileFacts, Found};
use crate::plugin::{Address, Bundle, Meter, Part};
use crate::rehearsal::opened::{Opened, Waits};
use crate::rehearsal::report::{CaseReport, Report, SessionReport};
use crate::rehearsal::stage::Stage;
use crate::rehearsal::{Options, Progress, RehearsalError, checks, weigh};
use crate::remote::recorded::{self, Answer, Request, Step};
use crate::remote::{self, Names, SessionLimits};

/// The longest name of a session.
const LONGEST_NAME: usize = 60;

/// What to record, and where.
#[derive(Debug, Clone)]
pub struct Against {
    /// The session's name: its file is `tests/sessions/NAME.jsonl`.
    pub session: String,
    /// The destination's id, or its name where only one has it.
    pub destination: String,
    /// The file that the destination is in; `None`: the bundle's `destinations.toml`.
    pub destinations: Option<PathBuf>,
    /// Without it the server is only looked at, and what would be written there is told.
    pub confirmed: bool,
}

/// What will be written at the partner, before it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Plan {
    pub case: String,
    pub destination: String,
    /// For people: account, server, directory.
    pub place: String,
    pub banner: String,
    /// The file that is delivered, and stays there.
    pub final_name: String,
    /// The pattern of the names under which it is sent, and of the scratch names of the proof.
    pub temporary: String,
    /// Files beside it.
    pub auxiliary: Vec<String>,
}

/// What became of it.
#[derive(Debug)]
pub enum Recording {
    /// Nothing was written: it was not confirmed.
    Unconfirmed(Plan),
    /// The case was delivered, or what stands in its way is in the report.
    Done(Report),
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { case, destination, place, banner, final_name, temporary, auxiliary } = self;
        writeln!(f, "The case {case} is delivered to {destination} ({place}; {banner}). There are written")?;
        writeln!(f, "  {final_name}, which is not there now, and stays")?;
        for name in auxiliary {
            writeln!(f, "  {name}, if the plugin writes it, which stays too")?;
        }
        write!(f, "  {temporary}, with ids of its own, which are removed: the file on its way, and five scratch files")
    }
}

/// Delivers one case of the bundle to a real server and writes the session down. Nothing of the partner's is touched: the final
/// name must be free.
pub async fn record(
    directory: impl AsRef<Path>,
    options: &Options,
    against: &Against,
) -> Result<Recording, RehearsalError> {
    let (directory, began) = (directory.as_ref(), Instant::now());
    check_name(&against.session)?;
    let opened = Opened::open(directory, options, Waits::Whole).await?;
    let case = match opened.cases.as_slice() {
        [case] => case.clone(),
        cases => {
            let known = cases.iter().map(|case| case.name.as_str()).collect::<Vec<_>>().join(", ");
            return Err(RehearsalError::WhichCase { known });
        }
    };
    if !opened.bundle.manifest.has(Part::Destination) {
        return Err(RehearsalError::NothingToDeliver);
    }
    if case.last.is_some() {
        return Err(RehearsalError::ReplacesAFile { case: case.name });
    }
    let bundle = &opened.bundle;
    let address = address(bundle, &opened.directory, against)?;
    let stage = opened.stage(case)?;
    let meter = Meter::default();
    let checked = checks::check(&stage, &stage.destination(0, "", meter.clone()), options.bless).await?;
    let mut measured = meter.calls();
    let (mut sessions, mut final_name) = (Vec::new(), None);
    if let Some(expected) = checked.expected.filter(|_| checked.checks.iter().all(|check| check.passed)) {
        let server = remote::Session::connect(&address.endpoint, &SessionLimits::default())
            .await
            .map_err(RehearsalError::NotReached)?;
        let held = hold(&stage, &server, &address, &expected, options, against).await;
        server.close().await;
        match held? {
            Held::Unconfirmed(plan) => return Ok(Recording::Unconfirmed(plan)),
            Held::Done { report, played } => {
                measured.extend(played.calls);
                sessions.push(*report);
            }
        }
        final_name = Some(expected.name);
    }
    let passed = !sessions.is_empty() && sessions.iter().all(|session| session.wrong.is_empty());
    let case = CaseReport {
        name: stage.case.name.clone(),
        passed,
        seconds: began.elapsed().as_secs_f64(),
        final_name,
        checks: checked.checks,
        faults: Vec::new(),
        sessions,
        calls: weigh::calls(&measured, &bundle.manifest.limits),
    };
    Ok(Recording::Done(opened.report(vec![case], began)))
}

enum Held {
    Unconfirmed(Plan),
    Done { report: Box<SessionReport>, played: Box<Played> },
}

async fn hold(
    stage: &Stage,
    server: &remote::Session,
    address: &Address,
    expected: &FileFacts,
    options: &Options,
    against: &Against,
) -> Result<Held, RehearsalError> {
    let ids = Ids::fresh();
    let plan = plan(stage, server, address, &ids, expected)?;
    must_be_free(server, stage, &expected.name).await?;
    if !against.confirmed {
        return Ok(Held::Unconfirmed(plan));
    }
    options.tell(Progress::Recording { plan: &plan });
    let session = recorded::Session::recording(server.clone());
    let played = play(stage, &session, &ids, expected).await?;
    let mut report = play::report(&against.session, &session, Some(&played));
    match session.recorded() {
        Ok(steps) => {
            report.left = left(&steps);
            if report.wrong.is_empty() {
                let steps =
                    Session { name: against.session.clone(), header: header(stage, &ids, &session, &played), steps };
                keep(stage, &steps, &ids, address, expected, &mut report).await?;
            }
        }
        Err(why) => report.wrong.push(format!("the session cannot be written down: {why}")),
    }
    Ok(Held::Done { report: Box::new(report), played: Box::new(played) })
}

/// Writes the session, if it can be held again.
async fn keep(
    stage: &Stage,
    session: &Session,
    ids: &Ids,
    address: &Address,
    expected: &FileFacts,
    report: &mut SessionReport,
) -> Result<(), RehearsalError> {
    let unwritable = |error: serde_json::Error| RehearsalError::Unwritable { why: error.to_string() };
    let text = session.to_text(ids, &address.endpoint).map_err(unwritable)?;
    let read = Session::read(&session.name, &text).map_err(RehearsalError::Case)?;
    let (again, _) = play::replay(stage, &read, expected).await?;
    if !again.wrong.is_empty() {
        let told = again.wrong.into_iter();
        report
            .wrong
            .extend(told.map(|wrong| format!("nothing was kept, since it does not go the same way twice: {wrong}")));
        return Ok(());
    }
    let tests = stage.directory.join("tests");
    let path = tests.join(file_name(&session.name));
    let failed = |source| RehearsalError::File { path: path.clone(), source };
    std::fs::create_dir_all(tests.join(FOLDER)).map_err(failed)?;
    std::fs::write(&path, text).map_err(failed)?;
    report.written = Some(format!("tests/{}", file_name(&session.name)));
    Ok(())
}

fn header(stage: &Stage, ids: &Ids, session: &recorded::Session, played: &Played) -> Header {
    let later = played.later.as_ref().map(|later| later.conclusion.to_string());
    Header::new(&stage.case.name, ids.attempt, session.described(), played.concluded.name(), later)
}

fn plan(
    stage: &Stage,
    server: &remote::Session,
    address: &Address,
    ids: &Ids,
    expected: &FileFacts,
) -> Result<Plan, RehearsalError> {
    let manifest = &stage.bundle.manifest;
    let (key, attempt) = (&stage.case.key, ids.attempt.to_string());
    let names = Names::mint(&manifest.contract, Some(&manifest.names.temporary), &expected.name, key, &attempt)
        .map_err(|error| RehearsalError::Names { why: error.to_string() })?;
    Ok(Plan {
        case: stage.case.name.clone(),
        destination: address.name.clone(),
        place: address.endpoint.to_string(),
        banner: server.server().banner.clone(),
        final_name: expected.name.clone(),
        temporary: manifest.names.temporary.to_string(),
        auxiliary: names.auxiliary.iter().map(|auxiliary| auxiliary.name.clone()).collect(),
    })
}

async fn must_be_free(server: &remote::Session, stage: &Stage, name: &str) -> Result<(), RehearsalError> {
    let why = match server.stat(name).await {
        Ok(Found::Absent) => return Ok(()),
        Ok(Found::NotVisible { .. }) if stage.bundle.manifest.contract.listing_hidden => return Ok(()),
        Ok(Found::Present(_)) => "a file has it".to_owned(),
        Ok(Found::NotVisible { why } | Found::Unknown { why }) => why,
        Err(error) => error.to_string(),
    };
    Err(RehearsalError::NameNotFree { name: name.to_owned(), why })
}

fn address(bundle: &Arc<Bundle>, directory: &Path, against: &Against) -> Result<Address, RehearsalError> {
    let file = against.destinations.clone().unwrap_or_else(|| directory.join("destinations.toml"));
    let addresses = bundle.addresses_in(&file).map_err(RehearsalError::Bundle)?;
    let wanted = &against.destination;
    let is_it = |address: &&Address| address.name == *wanted || address.id.to_string() == *wanted;
    let mut found = addresses.iter().filter(is_it);
    match (found.next(), found.next()) {
        (Some(address), None) => Ok(address.clone()),
        (None, _) => {
            let known = addresses.iter().map(|address| address.name.as_str()).collect::<Vec<_>>().join(", ");
            Err(RehearsalError::NoSuchDestination { name: wanted.clone(), file, known })
        }
        (Some(_), Some(_)) => Err(RehearsalError::SeveralDestinations { name: wanted.clone(), file }),
    }
}

fn check_name(name: &str) -> Result<(), RehearsalError> {
    let plain = |char: char| char.is_ascii_lowercase() || char.is_ascii_digit() || char == '-';
    if !name.is_empty() && name.len() <= LONGEST_NAME && name.chars().all(plain) {
        return Ok(());
    }
    Err(RehearsalError::SessionName { name: name.to_owned() })
}

/// Names that were made in the session and are still there, as far as the server's answers are true.
fn left(steps: &[Step]) -> Vec<String> {
    let mut left = BTreeSet::new();
    for Step { request, .. } in steps.iter().filter(|step| step.answer == Answer::Done) {
        match request {
            Request::Create { name, .. } | Request::MakeDirectory { name } => {
                left.insert(name.clone());
            }
            Request::Hardlink { to, .. } => {
                left.insert(to.clone());
            }
            Request::Rename { from, to } | Request::PosixRename { from, to } => {
                left.remove(from);
                left.insert(to.clone());
            }
            Request::Remove { name } => {
                left.remove(name);
            }
            Request::Stat { .. }
            | Request::List { .. }
            | Request::Read { .. }
            | Request::Digest { .. }
            | Request::FreeBytes => {}
        }
    }
    left.into_iter().collect()
}
