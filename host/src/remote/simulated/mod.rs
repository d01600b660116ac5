//! A partner's SFTP server inside this process, on loopback: behaves as told, breaks where told, and remembers
//! everything. Rehearsals and tests deliver to it; nothing in operation does.
//!
//! It stands on russh and russh-sftp and keeps its files in memory. Requests of one channel are served one by one, so
//! a held operation holds what comes behind it on that channel. What russh-sftp's server cannot express (codes above
//! 8, bare statuses, binary handles and names) is rewritten on the [`wire`]. [`ssh`] lets every key and one password in.
//!
//! Not promised: that a real server behaves so. What was seen at real ones is in [`Behaviour`], switch by switch.

mod answers;
mod behaviour;
mod error;
mod files;
mod handler;
mod hooks;
mod naming;
pub mod operations;
pub mod packets;
pub mod ssh;
mod wire;

use std::sync::{Arc, Mutex};

use sha2::Digest as _;
use tokio::sync::watch;

pub use behaviour::{Behaviour, HardLink, Listing, RenameOver, RenameSteps};
pub use error::SimulatedError;
use files::{Files, locked};
pub use files::{No, resolve};
pub use hooks::{Action, Event, Fault, Gate, When};
pub use wire::Wire;

use crate::job::facts::Sha256;
use operations::{Answer, Done, Operation};
use ssh::{Opened, SshServer};

/// One request in the server's memory, in the order of arrival.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Logged {
    pub connection: u64,
    pub operation: Operation,
    /// It changed, or read, what it asked for; whatever was answered.
    pub took_effect: bool,
    /// `None`: no answer was sent.
    pub answer: Option<Answer>,
}

/// A name that a client's request made appear whole, with what stood under it then.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Appearance {
    pub path: String,
    pub bytes: u64,
    pub sha256: Sha256,
}

/// What the channels of one server share.
#[derive(Clone)]
struct Shared {
    behaviour: Arc<Mutex<Behaviour>>,
    files: Arc<Mutex<Files>>,
    hooks: hooks::Hooks,
    log: Arc<Mutex<Vec<Logged>>>,
    appeared: Arc<Mutex<Vec<Appearance>>>,
    /// Counts the answers.
    answers: Arc<watch::Sender<u64>>,
}

pub struct SftpServer {
    ssh: SshServer,
    shared: Shared,
}

impl SftpServer {
    pub async fn start(behaviour: Behaviour) -> Result<Self, SimulatedError> {
        Self::start_with(behaviour, Wire::default()).await
    }

    /// With answers rewritten on their way out.
    pub async fn start_with(behaviour: Behaviour, wire: Wire) -> Result<Self, SimulatedError> {
        let shared = Shared {
            behaviour: Arc::new(Mutex::new(behaviour)),
            files: Arc::default(),
            hooks: hooks::Hooks::default(),
            log: Arc::default(),
            appeared: Arc::default(),
            answers: Arc::new(watch::Sender::new(0)),
        };
        let ssh = SshServer::start({
            let shared = shared.clone();
            move |Opened { stream, line }| {
                let handler = handler::Handler::new(shared.clone(), line);
                let wire = wire.clone();
                tokio::spawn(async move {
                    // russh-sftp spawns the loop that serves the channel; it ends with the stream.
                    if wire.changes_nothing() {
                        russh_sftp::server::run(stream, handler).await;
                    } else {
                        russh_sftp::server::run(wire.between(stream), handler).await;
                    }
                });
            }
        })
        .await?;
        Ok(Self { ssh, shared })
    }

    pub fn port(&self) -> u16 {
        self.ssh.port()
    }

    pub fn host_key(&self) -> &str {
        self.ssh.host_key()
    }

    /// Steps into operations: the hook is asked at every point of every operation.
    pub fn hook(&self, hook: impl FnMut(&Event<'_>) -> Option<Fault> + Send + 'static) {
        self.shared.hooks.add(Box::new(hook));
    }

    /// The next time that an operation of this kind reaches this point, and never again.
    pub fn once(&self, when: When, action: Action, fault: Fault) {
        let mut fault = Some(fault);
        self.hook(move |event| if event.when == when && event.action == action { fault.take() } else { None });
    }

    /// Each time that an operation of this kind reaches this point.
    pub fn always(&self, when: When, action: Action, fault: Fault) {
        self.hook(move |event| (event.when == when && event.action == action).then(|| fault.clone()));
    }

    /// Holds the next operation of this kind at this point until the gate is opened.
    pub fn hold(&self, when: When, action: Action) -> Gate {
        let gate = Gate::default();
        self.once(when, action, Fault::Wait(gate.clone()));
        gate
    }

    pub fn clear_hooks(&self) {
        self.shared.hooks.clear();
    }

    /// From now on it behaves like this. Extensions are told at the start of a session.
    pub fn set_behaviour(&self, behaviour: Behaviour) {
        *locked(&self.shared.behaviour) = behaviour;
    }

    /// Everything that was asked so far, in the order of arrival.
    pub fn log(&self) -> Vec<Logged> {
        locked(&self.shared.log).clone()
    }

    /// Forgets what was asked and what appeared so far.
    pub fn forget(&self) {
        locked(&self.shared.log).clear();
        locked(&self.shared.appeared).clear();
    }

    /// Until every request that arrived has been answered, or would have been if somebody listened.
    pub async fn all_answered(&self) -> Result<(), SimulatedError> {
        let mut answers = self.shared.answers.subscribe();
        let answered = || locked(&self.shared.log).iter().all(|logged| logged.answer.is_some());
        // The sender is in `self`, so only the time can end the wait.
        match tokio::time::timeout(hooks::ARRIVAL, answers.wait_for(|_| answered())).await {
            Ok(_) => Ok(()),
            Err(_) => Err(SimulatedError::NotReached { seconds: hooks::ARRIVAL.as_secs() }),
        }
    }

    /// Every appearance of this name, whoever took it away since.
    pub fn appearances(&self, path: &str) -> Vec<Appearance> {
        let path = resolve(path);
        locked(&self.shared.appeared).iter().filter(|appearance| appearance.path == path).cloned().collect()
    }

    /// The same in the words that OpenSSH's log is read into.
    pub fn operations(&self) -> Vec<Done> {
        self.log().into_iter().map(|logged| Done { operation: logged.operation, answer: logged.answer }).collect()
    }

    /// How often something was asked that creates this name, answered or not.
    pub fn times_created(&self, path: &str) -> usize {
        let path = resolve(path);
        self.log().iter().filter(|logged| logged.operation.creates() == Some(path.as_str())).count()
    }

    /// How often it took effect: how often the name was written.
    pub fn times_written(&self, path: &str) -> usize {
        let path = resolve(path);
        self.log()
            .iter()
            .filter(|logged| logged.took_effect && logged.operation.creates() == Some(path.as_str()))
            .count()
    }

    /// A file's bytes, if the name is there.
    pub fn read(&self, path: &str) -> Option<Vec<u8>> {
        let file = locked(&self.shared.files).file(&resolve(path)).ok()?;
        let bytes = locked(&file).bytes.clone();
        Some(bytes)
    }

    /// What somebody else puts there: the partner's acknowledgment, a file in the way. Replaces what is there.
    pub fn put(&self, path: &str, bytes: impl Into<Vec<u8>>) -> Result<(), SimulatedError> {
        let path = resolve(path);
        let file =
            locked(&self.shared.files).create(&path).map_err(|no| SimulatedError::File { path: path.clone(), no })?;
        locked(&file).bytes = bytes.into();
        Ok(())
    }

    pub fn make_directory(&self, path: &str) -> Result<(), SimulatedError> {
        let path = resolve(path);
        locked(&self.shared.files).make_directory(&path).map_err(|no| SimulatedError::File { path, no })
    }

    /// The partner takes a file away. Answers whether it was there.
    pub fn collect(&self, path: &str) -> bool {
        locked(&self.shared.files).remove(&resolve(path)).is_ok()
    }

    pub fn names_in(&self, directory: &str) -> Vec<String> {
        locked(&self.shared.files).names_in(&resolve(directory))
    }
}

impl Shared {
    fn behaviour(&self) -> Behaviour {
        locked(&self.behaviour).clone()
    }

    /// Remembers a request at its arrival; the index is for [`Shared::took_effect`] and [`Shared::answered`].
    fn arrived(&self, connection: u64, operation: Operation) -> usize {
        let mut log = locked(&self.log);
        log.push(Logged { connection, operation, took_effect: false, answer: None });
        log.len() - 1
    }

    fn took_effect(&self, index: usize) {
        if let Some(logged) = locked(&self.log).get_mut(index) {
            logged.took_effect = true;
        }
    }

    fn answered(&self, index: usize, answer: Answer) {
        if let Some(logged) = locked(&self.log).get_mut(index) {
            logged.answer = Some(answer);
        }
        self.answers.send_modify(|count| *count += 1);
    }

    /// Remembers that a name is there as a whole now.
    fn appeared(&self, path: &str) {
        let Ok(file) = locked(&self.files).file(path) else { return };
        let inside = locked(&file);
        let sha256 = Sha256(sha2::Sha256::digest(&inside.bytes).into());
        let appearance = Appearance { path: path.to_owned(), bytes: inside.bytes.len() as u64, sha256 };
        locked(&self.appeared).push(appearance);
    }

    /// The partner takes what it collects, at once.
    fn collect(&self, path: &str) {
        if self.behaviour().collects.is_some_and(|collects| collects(path)) && locked(&self.files).remove(path).is_ok()
        {
            tracing::debug!(path, "collected");
        }
    }
}
