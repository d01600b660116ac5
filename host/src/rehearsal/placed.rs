//! How each fault is placed: what server there is, and where it steps into a request.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use super::case::Case;
use super::fault::{Fault, Oddity, Request, Trouble};
use super::record::{MemoryRecord, Phase};
use crate::attempt::{Stop, StopReason};
use crate::job::contract::Contract;
use crate::remote::Names;
use crate::remote::simulated::{
    Action, Behaviour, Event, Fault as Step, Gate, HardLink, Listing, RenameOver, RenameSteps, SftpServer, When,
    resolve,
};

/// What somebody else's file holds.
pub(super) const FOREIGN: &[u8] = b"This file is not ours, and must be here when the rehearsal ends.\n";

/// How late a late answer is.
const LATE: Duration = Duration::from_millis(300);

/// SFTP's code for a failure, and for a refused permission.
const FAILURE: u8 = 4;
const DENIED: u8 = 3;

/// What a server can do to names: this decides the form of the publish, and is proven before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Naming {
    /// As OpenSSH, with a rename in one step.
    Links,
    LinksAndReplaces,
    LinkLies,
    RefusingRename,
    TwoStepRename,
    ReplacingRename,
    Nothing,
}

impl Naming {
    /// The server on which a fault is placed. Where the contract says that names are created in place, the partner's server
    /// offers nothing else.
    pub fn of(fault: Fault, contract: &Contract, case: &Case) -> Self {
        match fault {
            Fault::Odd(Oddity::LinkLies) => Self::LinkLies,
            // A file is replaced by a rename that replaces.
            Fault::At(Request::Rename, _) if case.last.is_some() => Self::Links,
            Fault::Odd(Oddity::NoLink) | Fault::At(Request::Rename, _) => Self::RefusingRename,
            Fault::Odd(Oddity::TwoStepRename | Oddity::DiesBetween) => Self::TwoStepRename,
            Fault::Odd(Oddity::ReplacesOnRename) => Self::LinksAndReplaces,
            Fault::Odd(Oddity::RenameReplacesOnly) => Self::ReplacingRename,
            Fault::Odd(Oddity::NeitherLinkNorRename) => Self::Nothing,
            Fault::Odd(_) | Fault::At(..) if contract.exclusive_create => Self::Nothing,
            Fault::Odd(_) | Fault::At(..) if !case.server.hard_links => Self::RefusingRename,
            Fault::Odd(_) | Fault::At(..) => Self::Links,
        }
    }

    pub fn behaviour(self) -> Behaviour {
        let honest = Behaviour::default();
        let without_links = Behaviour { hard_link: HardLink::NotOffered, posix_rename: false, ..Behaviour::default() };
        match self {
            Self::Links => honest,
            Self::LinksAndReplaces => Behaviour { rename_over: RenameOver::Replaces, ..honest },
            Self::LinkLies => Behaviour { hard_link: HardLink::Lies, ..honest },
            Self::RefusingRename => without_links,
            Self::TwoStepRename => Behaviour { rename_steps: RenameSteps::LinkThenRemove, ..without_links },
            Self::ReplacingRename => Behaviour { rename_over: RenameOver::Replaces, ..without_links },
            Self::Nothing => Behaviour { rename_offered: false, ..without_links },
        }
    }
}

/// Why a fault tests nothing in this case.
pub(super) fn excluded(fault: Fault, contract: &Contract, case: &Case) -> Option<&'static str> {
    match fault {
        Fault::Odd(Oddity::NameTakenMeanwhile) if case.last.is_some() => {
            Some("the case replaces a file by agreement, and no server tells another one apart at that moment")
        }
        Fault::At(Request::Link | Request::SeeFinal, _) if !case.server.hard_links => {
            Some("the case's server has no hard links")
        }
        Fault::Odd(_) | Fault::At(..) => fault.excluded_by(contract),
    }
}

/// The server's manners in one run, beside its naming.
pub(super) fn behaviour(fault: Fault, naming: Naming, names: &Names, case: &Case) -> Behaviour {
    let mut usual = naming.behaviour();
    let final_name = resolve(&names.final_name);
    if case.server.collects {
        usual = usual.collecting({
            let final_name = final_name.clone();
            move |path| path == final_name
        });
    }
    match fault {
        Fault::Odd(Oddity::DiskFull) => Behaviour { capacity_bytes: Some(0), ..usual },
        Fault::Odd(Oddity::NoSizeUntilClose) => Behaviour { listing: Listing::SizeAfterClose, ..usual },
        Fault::Odd(Oddity::HiddenListings) => Behaviour { listing: Listing::Forbidden, ..usual },
        Fault::Odd(Oddity::CollectsAtOnce) => usual.collecting(move |path| path == final_name),
        Fault::Odd(_) | Fault::At(..) => usual,
    }
}

/// What a placed fault leaves in the rehearsal's hands.
#[derive(Default)]
pub(super) struct Placed {
    /// It came to pass.
    pub occurred: Arc<AtomicBool>,
    /// Behind it waits a request whose line was cut.
    pub gate: Gate,
}

impl Placed {
    pub fn has_occurred(&self) -> bool {
        self.occurred.load(Ordering::Relaxed)
    }
}

/// The name under which a fault puts somebody else's file.
pub(super) fn foreign(fault: Fault, names: &Names) -> Option<&str> {
    match fault {
        Fault::Odd(Oddity::NameTaken | Oddity::NameTakenMeanwhile) => Some(&names.final_name),
        Fault::Odd(Oddity::AuxiliaryTaken) => names.auxiliary.first().map(|auxiliary| auxiliary.name.as_str()),
        Fault::Odd(_) | Fault::At(..) => None,
    }
}

/// What a run's fault may need to know.
pub(super) struct Scene<'a> {
    pub server: &'a Arc<SftpServer>,
    pub record: &'a Arc<MemoryRecord>,
    pub names: &'a Names,
    pub naming: Naming,
    /// A file is replaced by agreement.
    pub replaces: bool,
    pub stop: &'a Stop,
}

/// What the folders show that the partner hides: nothing, whatever goes wrong.
pub(super) fn hide(server: &SftpServer, case: &Case) {
    let hidden: Vec<String> = case.server.hides.iter().map(|folder| resolve(folder)).collect();
    if hidden.is_empty() {
        return;
    }
    server.hook(move |event| {
        let looks = matches!(event.action, Action::Stat | Action::List | Action::Read);
        let inside =
            |folder: &String| event.path.strip_prefix(folder.as_str()).is_some_and(|rest| rest.starts_with('/'));
        let refused = looks && event.when == When::Before && hidden.iter().any(inside);
        refused.then(|| Step::refuse(DENIED, "nothing is shown here"))
    });
}

/// Places the fault. What needs no hook has occurred with the server's manners.
pub(super) fn place(fault: Fault, scene: &Scene<'_>) -> Placed {
    let placed = Placed::default();
    let publish = scene.publish();
    match fault {
        Fault::At(request, trouble) => {
            let (action, path) = scene.at(request);
            let (when, step) = match trouble {
                Trouble::Refused => (When::Before, Step::refuse(code(request), "refused by the rehearsal")),
                Trouble::CutBefore => (When::Before, Step::Cut),
                Trouble::CutDuring => (When::Before, Step::CutThen(placed.gate.clone())),
                Trouble::CutAfter => (When::After, Step::Cut),
            };
            let phase = phase_of(request);
            let record = Arc::clone(scene.record);
            once(scene.server, &placed, step, move |event| {
                event.when == when && event.action == action && path.is(event.path) && phase(record.phase())
            });
        }
        Fault::Odd(Oddity::NeverAnswers) => at_publish(scene, &placed, When::After, Step::Hang, publish),
        Fault::Odd(Oddity::AnswersLate) => {
            let gate = placed.gate.clone();
            at_publish(scene, &placed, When::After, Step::Wait(gate.clone()), publish);
            tokio::spawn(async move {
                if gate.reached().await.is_ok() {
                    tokio::time::sleep(LATE).await;
                    gate.open();
                }
            });
        }
        Fault::Odd(Oddity::RefusesWhatItDid) => {
            at_publish(
                scene,
                &placed,
                When::After,
                Step::refuse(FAILURE, "refused by the rehearsal, after it was done"),
                publish,
            );
        }
        Fault::Odd(Oddity::LandsAfterLook) => {
            at_publish(scene, &placed, When::Before, Step::CutThen(placed.gate.clone()), publish);
        }
        Fault::Odd(Oddity::DiesBetween) => at_publish(scene, &placed, When::Between, Step::Cut, publish),
        Fault::Odd(Oddity::WrongSize) => {
            let (record, sent) = (Arc::clone(scene.record), scene.sent());
            always(scene.server, &placed, Step::ReportSize(3), move |event| {
                let after = record.phase() != Phase::Before;
                event.when == When::Before && event.action == Action::Stat && event.path == sent && after
            });
        }
        Fault::Odd(Oddity::NameTaken | Oddity::AuxiliaryTaken) => {
            if let Some(name) = foreign(fault, scene.names) {
                put(scene.server, &placed, name);
            }
        }
        Fault::Odd(Oddity::NameTakenMeanwhile) => {
            let (sent, final_name) = (scene.sent(), scene.names.final_name.clone());
            let (server, occurred) = (Arc::downgrade(scene.server), Arc::clone(&placed.occurred));
            scene.server.hook(move |event| {
                if event.when == When::Before && event.action == Action::Open && event.path == sent {
                    let placed = Placed { occurred: Arc::clone(&occurred), gate: Gate::default() };
                    if let Some(server) = Weak::upgrade(&server).filter(|_| !placed.has_occurred()) {
                        put(&server, &placed, &final_name);
                    }
                }
                None
            });
        }
        Fault::Odd(Oddity::LostWhileSending) => {
            let (stop, record, sent) = (scene.stop.clone(), Arc::clone(scene.record), scene.sent());
            let occurred = Arc::clone(&placed.occurred);
            scene.server.hook(move |event| {
                if event.when == When::Before && event.action == Action::Write && event.path == sent {
                    occurred.store(true, Ordering::Relaxed);
                    record.take_over();
                    stop.signal(StopReason::OwnershipLost);
                }
                None
            });
        }
        Fault::Odd(
            Oddity::Plain
            | Oddity::DiskFull
            | Oddity::NoSizeUntilClose
            | Oddity::HiddenListings
            | Oddity::CollectsAtOnce
            | Oddity::LinkLies
            | Oddity::NoLink
            | Oddity::TwoStepRename
            | Oddity::ReplacesOnRename
            | Oddity::RenameReplacesOnly
            | Oddity::NeitherLinkNorRename
            | Oddity::StopRequested
            | Oddity::LostBeforeFence,
        ) => placed.occurred.store(true, Ordering::Relaxed),
    }
    placed
}

impl Scene<'_> {
    /// The file that is sent: the temporary one, or the final one where it is created in place.
    fn sent(&self) -> String {
        match (&self.names.temporary, self.naming) {
            (Some(temporary), naming) if naming != Naming::Nothing => resolve(temporary),
            _ => resolve(&self.names.final_name),
        }
    }

    /// The request that publishes.
    fn publish(&self) -> (Action, Path) {
        let final_name = Path::Is(resolve(&self.names.final_name));
        match self.naming {
            Naming::Links | Naming::LinksAndReplaces | Naming::LinkLies if self.replaces => {
                (Action::PosixRename, final_name)
            }
            Naming::Links | Naming::LinksAndReplaces => (Action::Link, final_name),
            Naming::LinkLies | Naming::RefusingRename | Naming::TwoStepRename | Naming::ReplacingRename => {
                (Action::Rename, final_name)
            }
            // In place it is the close that makes it whole.
            Naming::Nothing => (Action::Close, final_name),
        }
    }

    fn at(&self, request: Request) -> (Action, Path) {
        let final_name = || Path::Is(resolve(&self.names.final_name));
        let sent = || Path::Is(self.sent());
        let beside = || Path::OneOf(self.names.auxiliary.iter().map(|auxiliary| resolve(&auxiliary.name)).collect());
        match request {
            Request::Connect => (Action::RealPath, Path::Any),
            Request::FirstLook | Request::Baseline | Request::SeeFinal | Request::LastLook => {
                (Action::Stat, final_name())
            }
            Request::Create => (Action::Open, sent()),
            Request::Write => (Action::Write, sent()),
            Request::Close => (Action::Close, sent()),
            Request::ReadBack => (Action::Stat, sent()),
            Request::Link => (Action::Link, final_name()),
            Request::Rename if self.replaces => self.publish(),
            Request::Rename => (Action::Rename, final_name()),
            Request::Remove => (Action::Remove, sent()),
            Request::PutCreate => (Action::Open, beside()),
            Request::PutWrite => (Action::Write, beside()),
            Request::PutClose => (Action::Close, beside()),
        }
    }
}

/// When in the attempt a request of this kind is the one that is meant.
fn phase_of(request: Request) -> fn(Phase) -> bool {
    match request {
        Request::FirstLook => |phase| phase == Phase::Before,
        Request::Baseline => |phase| phase == Phase::Authorized,
        Request::SeeFinal => |phase| phase == Phase::Fenced,
        Request::LastLook => |phase| phase == Phase::Answered,
        Request::ReadBack => |phase| phase != Phase::Before,
        Request::Connect
        | Request::Create
        | Request::Write
        | Request::Close
        | Request::Link
        | Request::Rename
        | Request::Remove
        | Request::PutCreate
        | Request::PutWrite
        | Request::PutClose => |_| true,
    }
}

/// A refused look is one that is not permitted; anything else fails.
fn code(request: Request) -> u8 {
    match request {
        Request::FirstLook | Request::Baseline | Request::SeeFinal | Request::LastLook | Request::ReadBack => DENIED,
        Request::Connect
        | Request::Create
        | Request::Write
        | Request::Close
        | Request::Link
        | Request::Rename
        | Request::Remove
        | Request::PutCreate
        | Request::PutWrite
        | Request::PutClose => FAILURE,
    }
}

/// Which names a fault waits for.
enum Path {
    Any,
    Is(String),
    OneOf(Vec<String>),
}

impl Path {
    fn is(&self, path: &str) -> bool {
        match self {
            Self::Any => true,
            Self::Is(one) => one == path,
            Self::OneOf(some) => some.iter().any(|one| one == path),
        }
    }
}

fn at_publish(scene: &Scene<'_>, placed: &Placed, when: When, step: Step, (action, path): (Action, Path)) {
    once(scene.server, placed, step, move |event| event.when == when && event.action == action && path.is(event.path));
}

fn once(server: &SftpServer, placed: &Placed, step: Step, here: impl Fn(&Event<'_>) -> bool + Send + 'static) {
    let (occurred, mut step) = (Arc::clone(&placed.occurred), Some(step));
    server.hook(move |event| {
        let taken = if here(event) { step.take() } else { None };
        if taken.is_some() {
            occurred.store(true, Ordering::Relaxed);
        }
        taken
    });
}

fn always(server: &SftpServer, placed: &Placed, step: Step, here: impl Fn(&Event<'_>) -> bool + Send + 'static) {
    let occurred = Arc::clone(&placed.occurred);
    server.hook(move |event| {
        here(event).then(|| {
            occurred.store(true, Ordering::Relaxed);
            step.clone()
        })
    });
}

/// Somebody else's file; its folder is there.
fn put(server: &SftpServer, placed: &Placed, name: &str) {
    match server.put(name, FOREIGN) {
        Ok(()) => placed.occurred.store(true, Ordering::Relaxed),
        Err(error) => tracing::debug!(%error, "somebody else's file could not be put there"),
    }
}
