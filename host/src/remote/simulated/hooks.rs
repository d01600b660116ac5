//! Where a test or a rehearsal steps into an operation of the simulated server: before it, after it, or between its two steps.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::watch;

use super::error::SimulatedError;
use super::files::locked;

/// How long anybody waits for an operation to arrive.
pub(super) const ARRIVAL: Duration = Duration::from_secs(20);

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum When {
    /// The request arrived; nothing happened yet.
    Before,
    /// Only of a RENAME in two steps: both names exist.
    Between,
    /// It took effect; the answer is not sent yet.
    After,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Action {
    Open,
    Write,
    Read,
    Close,
    Stat,
    SetStat,
    Fsync,
    Rename,
    PosixRename,
    Link,
    Remove,
    MakeDirectory,
    List,
    RealPath,
}

/// What a hook is asked about.
#[derive(Debug, Clone, Copy)]
pub struct Event<'a> {
    pub when: When,
    pub action: Action,
    /// The connection of the request, counted from 1.
    pub connection: u64,
    /// How many operations of this kind reached this point before, on all connections, and this one: from 1.
    pub nth: u64,
    /// The file; the new name of a rename or link.
    pub path: &'a str,
}

#[derive(Debug, Clone)]
pub enum Fault {
    /// Answers with this code of SFTP version 3 (0 to 8) and text. Before: nothing happens. After: a refusal of
    /// what did happen.
    Refuse { code: u8, text: String },
    /// The TCP connection ends, without an answer.
    Cut,
    /// The TCP connection ends, and the request takes effect only when the gate is opened; nobody hears its answer.
    CutThen(Gate),
    /// The channel ends, without an answer; the connection stays.
    CloseChannel,
    /// Stat tells this size.
    ReportSize(u64),
    /// No answer, ever.
    Hang,
    /// Goes on when the test opens the gate.
    Wait(Gate),
}

impl Fault {
    pub fn refuse(code: u8, text: &str) -> Self {
        Self::Refuse { code, text: text.to_owned() }
    }
}

/// Holds an operation until the test lets it go. It also tells when the operation arrived.
#[derive(Debug, Clone)]
pub struct Gate {
    arrived: Arc<watch::Sender<bool>>,
    open: Arc<watch::Sender<bool>>,
}

impl Default for Gate {
    fn default() -> Self {
        Self { arrived: Arc::new(watch::Sender::new(false)), open: Arc::new(watch::Sender::new(false)) }
    }
}

impl Gate {
    /// Until an operation stands at the gate.
    pub async fn reached(&self) -> Result<(), SimulatedError> {
        let mut arrived = self.arrived.subscribe();
        // The sender is in `self`, so only the time can end the wait.
        match tokio::time::timeout(ARRIVAL, arrived.wait_for(|arrived| *arrived)).await {
            Ok(_) => Ok(()),
            Err(_) => Err(SimulatedError::NotReached { seconds: ARRIVAL.as_secs() }),
        }
    }

    pub fn open(&self) {
        self.open.send_replace(true);
    }

    /// Stands at the gate until it is opened.
    pub async fn pass(&self) {
        self.arrived.send_replace(true);
        // The sender is in `self`, so the wait cannot end otherwise.
        drop(self.open.subscribe().wait_for(|open| *open).await);
    }
}

pub type Hook = Box<dyn FnMut(&Event<'_>) -> Option<Fault> + Send>;

/// All hooks of a server; the first that names a fault decides.
#[derive(Clone, Default)]
pub struct Hooks {
    inner: Arc<Mutex<Inner>>,
}

#[derive(Default)]
struct Inner {
    hooks: Vec<Hook>,
    counts: BTreeMap<(When, Action), u64>,
}

impl Hooks {
    pub fn add(&self, hook: Hook) {
        locked(&self.inner).hooks.push(hook);
    }

    pub fn clear(&self) {
        locked(&self.inner).hooks.clear();
    }

    pub fn ask(&self, when: When, action: Action, connection: u64, path: &str) -> Option<Fault> {
        let mut inner = locked(&self.inner);
        let count = inner.counts.entry((when, action)).or_default();
        *count += 1;
        let event = Event { when, action, connection, nth: *count, path };
        inner.hooks.iter_mut().find_map(|hook| hook(&event))
    }
}
