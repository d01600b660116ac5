//! One delivery under one fault: a server of its own, the very sequence that delivers, the later look, and the truth.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use sha2::Digest as _;
use tokio::sync::Mutex;
use tokio::time::Instant;
use uuid::Uuid;

use super::RehearsalError;
use super::case::{Acknowledgment, Case, Moment};
use super::fault::{Fault, Oddity, Trouble};
use super::filled::Filled;
use super::later::{self, Later};
use super::placed::{self, Naming, Placed, Scene};
use super::record::{Concluded, Kept, MemoryRecord, Orders};
use super::rows::{Needed, RowFiles};
use super::truth::Truth;
use crate::attempt::{self, Means, Record, Stop, Work};
use crate::job::contract;
use crate::job::facts::{FileFacts, Sha256};
use crate::job::model::ClaimedJob;
use crate::job::verdict::Conclusion;
use crate::plugin::{Bundle, Destination, Measured, Meter};
use crate::remote::simulated::{Action, SftpServer, SimulatedError, When, resolve, ssh};
use crate::remote::{
    self, Endpoint, Names, Proof, ScratchNames, SecretRef, Session, SessionLimits, Sessions, SftpEndpoint,
};
use crate::spool::Spool;

/// The attempt whose build is compared with the golden file: always the same, so that a file may name it.
pub(super) const FIRST_ATTEMPT: Uuid = Uuid::from_u128(0x0000_a77e_0000_7000_8000_0000_0000_0001);
const JOB: Uuid = Uuid::from_u128(0x0000_0a0b_0000_7000_8000_0000_0000_0001);

/// What all deliveries of one case share.
pub(super) struct Stage {
    pub bundle: Arc<Bundle>,
    /// The bundle's.
    pub directory: PathBuf,
    pub case: Case,
    pub needed: Arc<Needed>,
    pub spool: Spool,
    /// Holds the simulated server's password, as an operator's file would.
    pub password: PathBuf,
    /// How each kind of server was shown to publish, before anything went wrong there.
    pub proofs: Mutex<BTreeMap<Naming, Proof>>,
}

/// One delivery, as it went.
pub(super) struct Run {
    pub fault: Fault,
    pub names: Names,
    /// What was to be delivered: of a file that differs with every build, this one's.
    pub expected: FileFacts,
    pub occurred: bool,
    pub concluded: Concluded,
    pub later: Option<Later>,
    pub truth: Truth,
    pub kept: Kept,
    pub calls: Vec<Measured>,
    pub took: Duration,
}

/// The job of a case, as an attempt's claim sees it.
pub(super) fn job(case: &Case, attempt: Uuid) -> ClaimedJob {
    ClaimedJob {
        id: JOB,
        tenant: Uuid::from_u128(0x7e4a_4700),
        attempt,
        attempt_count: 1,
        destination: Uuid::from_u128(0x0e8e_a25e),
        delivery_key: case.key.clone(),
        created_at: case.created_at,
        version: 1,
        scope: case.scope.clone(),
        replacement: None,
    }
}

impl Stage {
    /// A destination at a port of this machine; 0 for calls that reach nothing.
    pub fn destination(&self, port: u16, host_key: &str, meter: Meter) -> Destination {
        let endpoint = Endpoint::Sftp(SftpEndpoint {
            host: "127.0.0.1".to_owned(),
            port,
            user: ssh::USER.to_owned(),
            directory: ".".to_owned(),
            host_keys: vec![host_key.to_owned()],
            secret: SecretRef::PasswordFile(self.password.clone()),
        });
        let rows = Arc::new(RowFiles { rows: self.case.rows.clone(), needed: Arc::clone(&self.needed) });
        self.bundle.rehearsed_at(endpoint, &self.case.settings, rows, meter).with_file(self.case.file.clone())
    }

    /// Delivers under the fault.
    pub async fn run(&self, fault: Fault, expected: &FileFacts) -> Result<Run, RehearsalError> {
        let began = Instant::now();
        let contract = &self.bundle.manifest.contract;
        let job = job(&self.case, Uuid::new_v4());
        let names = self.names(&expected.name, &job)?;
        let naming = Naming::of(fault, contract, &self.case);
        let proof = self.proof(naming, expected, &names).await?;

        let server = Arc::new(SftpServer::start(placed::behaviour(fault, naming, &names, &self.case)).await?);
        self.make_directories(&server, &names)?;
        placed::hide(&server, &self.case);
        let last = self.last(&server, &names)?;
        let orders = Orders {
            stop_requested: fault == Fault::Odd(Oddity::StopRequested),
            lost_before_fence: fault == Fault::Odd(Oddity::LostBeforeFence),
        };
        let replaces = last.is_some() && contract.overwrites_last.is_some();
        let counted = Arc::clone(&server);
        let record = Arc::new(MemoryRecord::new(move || counted.log().len(), orders, proof, last));
        let stop = Stop::new();
        self.acknowledge_when_published(&server, &record, &names);
        let scene = Scene { server: &server, record: &record, names: &names, naming, replaces, stop: &stop };
        let placed = placed::place(fault, &scene);

        let meter = Meter::default();
        let limits = limits(fault);
        let sessions = Sessions::new(limits, Duration::from_secs(60));
        let work = Work {
            job,
            bundle: Arc::clone(&self.bundle),
            destination: Arc::new(self.destination(server.port(), server.host_key(), meter.clone())),
            means: Means { spool: self.spool.clone(), sessions: sessions.clone() },
            stop,
        };
        attempt::run(&work, Arc::clone(&record) as Arc<dyn Record>).await;
        sessions.close().await;

        server.clear_hooks();
        placed::hide(&server, &self.case);
        if matches!(fault, Fault::At(_, Trouble::CutDuring)) {
            land(&server, &placed).await?;
        }
        let kept = record.kept();
        // A file may be another one with every build: what counts is what this attempt built.
        let expected = kept.expected.as_ref().unwrap_or(expected);
        // The partner answers what it has, and takes it.
        if !server.appearances(&names.final_name).is_empty() {
            if self.case.server.collects_later {
                server.collect(&names.final_name);
            }
            for answer in answers(&self.case.acknowledgments, &names, expected, Moment::Later) {
                answer.give(&server)?;
            }
        }
        let concluded =
            kept.concluded.clone().unwrap_or(Concluded::Nothing { why: "the attempt did not end".to_owned() });
        let later = match &kept.expected {
            Some(expected) if wants_a_later_look(fault, &concluded) => {
                let session = Session::connect(&work.destination.endpoint, &limits).await?;
                let later = later::look(&work, &record, expected, &session).await;
                session.close().await;
                Some(later)
            }
            Some(_) | None => None,
        };
        if fault == Fault::Odd(Oddity::LandsAfterLook) {
            land(&server, &placed).await?;
        }
        let foreign = placed::foreign(fault, &names).filter(|_| placed.has_occurred());
        let truth = Truth::of(&server, &names, expected, &kept, foreign);
        Ok(Run {
            fault,
            expected: expected.clone(),
            names,
            occurred: placed.has_occurred(),
            concluded,
            later,
            truth,
            kept: record.kept(),
            calls: meter.calls(),
            took: began.elapsed(),
        })
    }

    fn names(&self, final_name: &str, job: &ClaimedJob) -> Result<Names, RehearsalError> {
        let manifest = &self.bundle.manifest;
        let attempt = job.attempt.to_string();
        Names::mint(&manifest.contract, Some(&manifest.names.temporary), final_name, &job.delivery_key, &attempt)
            .map_err(|error| RehearsalError::Names { why: error.to_string() })
    }

    /// As `waybill partner check` finds out on scratch names, while nothing goes wrong. Once for each kind of server.
    async fn proof(&self, naming: Naming, expected: &FileFacts, names: &Names) -> Result<Proof, RehearsalError> {
        let mut proofs = self.proofs.lock().await;
        if let Some(proof) = proofs.get(&naming) {
            return Ok(proof.clone());
        }
        let server = SftpServer::start(naming.behaviour()).await?;
        self.make_directories(&server, names)?;
        placed::hide(&server, &self.case);
        let destination = self.destination(server.port(), server.host_key(), Meter::default());
        let session = Session::connect(&destination.endpoint, &SessionLimits::default()).await?;
        let scratch = ScratchNames::mint(&self.bundle.manifest.names.temporary, &expected.name)
            .map_err(|error| RehearsalError::Names { why: error.to_string() })?;
        let proof = remote::prove(&session, &scratch).await?;
        session.close().await;
        proofs.insert(naming, proof.clone());
        Ok(proof)
    }

    /// The folders that the partner has: those of every name that may be written or read.
    fn make_directories(&self, server: &SftpServer, names: &Names) -> Result<(), RehearsalError> {
        let written = [Some(&names.final_name), names.temporary.as_ref()].into_iter().flatten();
        let beside = names.auxiliary.iter().map(|auxiliary| &auxiliary.name);
        let mut paths: Vec<String> = written.chain(beside).cloned().collect();
        let answers = self.bundle.manifest.contract.acknowledgment.iter().flat_map(contract::Acknowledgment::names);
        paths.extend(answers.map(|(_, name)| name.to_string()));
        paths.extend(self.case.acknowledgments.iter().map(|one| one.name.to_string()));
        // A folder whose name is a pattern is the partner's to make, when it has a file for it.
        let plain = |path: &&String| !path.rsplit_once('/').is_some_and(|(folders, _)| folders.contains(['*', '{']));
        paths.iter().filter(plain).try_for_each(|path| Ok(make_folders(server, path)?))
    }

    /// Our file of last time, under the name that is used again.
    fn last(&self, server: &SftpServer, names: &Names) -> Result<Option<FileFacts>, RehearsalError> {
        let Some(bytes) = &self.case.last else { return Ok(None) };
        server.put(&names.final_name, bytes.clone())?;
        let sha256 = Sha256(sha2::Sha256::digest(bytes).into());
        Ok(Some(FileFacts { name: names.final_name.clone(), bytes: bytes.len() as u64, sha256 }))
    }

    /// The partner answers the file that it was sent: what was authorized, not what another attempt would have built.
    fn acknowledge_when_published(&self, server: &Arc<SftpServer>, record: &Arc<MemoryRecord>, names: &Names) {
        let (acknowledgments, names) = (self.case.acknowledgments.clone(), names.clone());
        let (final_name, weak, record) = (resolve(&names.final_name), Arc::downgrade(server), Arc::clone(record));
        server.hook(move |event| {
            let named = match event.action {
                Action::Link | Action::Rename | Action::PosixRename | Action::Close => event.path == final_name,
                _ => false,
            };
            let server = weak.upgrade().filter(|_| named && event.when == When::After)?;
            if let Some(expected) = record.kept().expected {
                for answer in answers(&acknowledgments, &names, &expected, Moment::Published) {
                    if let Err(error) = answer.give(&server) {
                        tracing::warn!(%error, "an acknowledgment of the case could not be put there");
                    }
                }
            }
            None
        });
    }
}

fn answers(all: &[Acknowledgment], names: &Names, expected: &FileFacts, moment: Moment) -> Vec<Answer> {
    let sha256 = expected.sha256.to_string();
    let fill = |text: &Filled| text.fill(names, &sha256);
    let wanted = all.iter().filter(|one| one.when == moment);
    wanted
        .map(|one| Answer {
            name: fill(&one.name),
            text: one.text.as_ref().map(fill),
            final_name: names.final_name.clone(),
        })
        .collect()
}

/// What the partner does by itself with what it was sent.
struct Answer {
    name: String,
    /// None: our own file gets the name.
    text: Option<String>,
    final_name: String,
}

impl Answer {
    fn give(&self, server: &SftpServer) -> Result<(), SimulatedError> {
        match (&self.text, server.read(&self.final_name)) {
            (Some(text), _) => {
                make_folders(server, &self.name)?;
                server.put(&self.name, text.clone())
            }
            (None, Some(ours)) => {
                make_folders(server, &self.name)?;
                server.collect(&self.final_name);
                server.put(&self.name, ours)
            }
            (None, None) => Ok(()),
        }
    }
}

/// Every folder of a name.
fn make_folders(server: &SftpServer, name: &str) -> Result<(), SimulatedError> {
    let mut folder = String::new();
    for part in name.rsplit_once('/').map_or("", |(folders, _)| folders).split_terminator('/') {
        let known = server.names_in(if folder.is_empty() { "/" } else { &folder });
        folder = format!("{folder}/{part}");
        if !known.iter().any(|name| name == part) {
            server.make_directory(&folder)?;
        }
    }
    Ok(())
}

/// Lets the request take effect whose line was cut, and waits until it has.
async fn land(server: &SftpServer, placed: &Placed) -> Result<(), RehearsalError> {
    if placed.has_occurred() {
        placed.gate.open();
        server.all_answered().await?;
    }
    Ok(())
}

/// An open outcome is looked at again; so is the plain run, to see what `observe` does.
fn wants_a_later_look(fault: Fault, concluded: &Concluded) -> bool {
    match concluded {
        Concluded::By(Conclusion::Unknown(_)) | Concluded::Nothing { .. } => true,
        Concluded::By(Conclusion::Completed(_) | Conclusion::NotDelivered(_)) => {
            fault == Fault::Odd(Oddity::Plain) || fault.loses_the_job()
        }
        Concluded::Failed { .. } | Concluded::Released { .. } | Concluded::Stopped => false,
    }
}

/// The host's own limits, but where the server never answers: a rehearsal does not wait for minutes.
fn limits(fault: Fault) -> SessionLimits {
    let usual = SessionLimits::default();
    if fault == Fault::Odd(Oddity::NeverAnswers) {
        let short = Duration::from_secs(2);
        return SessionLimits { request: short, stall: short, ..usual };
    }
    usual
}
