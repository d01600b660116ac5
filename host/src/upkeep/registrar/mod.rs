//! The registrar: keeps what is served, and the destinations in the database, in step with the partners directory.
//!
//! It compares contents, not times, and takes a change in once two looks in a row found it the same, so that a bundle is
//! not read while it is being copied. A new version is compiled beside the old one, which serves until then and, where
//! the new one is refused, goes on. Attempts keep the bundle that they started with. A bundle that is gone is served no
//! longer: its wake-ups are received by nobody here, and its jobs wait in the queue.
//!
//! Bundles do not wait for each other: what must be compiled comes last, one at a time, and meanwhile the directory is
//! looked at as ever. A host that starts only looks ([`Registrar::look_once`]), and compiles in the runs that follow. A compile
//! whose bundle is gone or another one by then is waited for no longer. What a bundle is refused for because another has it (a
//! partner's name, a destination's id or name) is asked again at each look. Whatever is wrong with one bundle, in its files or in
//! the database, is that bundle's; an error that is not is the run's, and the next run comes back to what it left. A partners
//! directory that cannot be read leaves everything as it is. Not promised: that hosts which share a database change over
//! together; each follows its own directory.
//!
//! `changes` says what a run changed, `joining` holds a bundle against the destinations on record.

mod changes;
mod joining;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

pub use self::changes::Registered;
pub use self::joining::in_words;
use self::joining::{joined, newer_in_database, refusal};
use crate::job::facts::Sha256;
use crate::plugin::{Bundle, BundleError, BundleFault, Contents, PluginError, Plugins, Registry, Scanner, beside};
use crate::store::{self, Joining, Pool, StoreError};

/// A registrar over the worker's login.
pub struct Registrar {
    pool: Pool,
    plugins: Plugins,
    partners: PathBuf,
    registry: Registry,
    look_every: Duration,
    stop: CancellationToken,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    scanner: Scanner,
    /// What the look before found; `None` before the first.
    before: Option<Contents>,
    known: BTreeMap<PathBuf, Known>,
    /// What must be compiled before it can be taken in.
    uncompiled: BTreeMap<PathBuf, Sha256>,
    compiling: Option<Compiling>,
    /// A compile that nobody waits for any more. It cannot be ended, and the next begins after it.
    abandoned: Option<JoinHandle<Result<Bundle, BundleError>>>,
}

impl State {
    fn is_to_be_compiled(&self, directory: &Path, contents: Sha256) -> bool {
        self.uncompiled.get(directory) == Some(&contents)
            || self
                .compiling
                .as_ref()
                .is_some_and(|compiling| compiling.directory == directory && compiling.contents == contents)
    }
}

/// A bundle's directory, as it was taken in last.
struct Known {
    contents: Sha256,
    /// The version that is served: the newest that was not refused.
    served: Option<Arc<Bundle>>,
    /// Refused for what another one holds, and ready for when that is given up.
    waits: Option<Waiting>,
}

struct Waiting {
    bundle: Arc<Bundle>,
    /// What was told of it last.
    why: String,
    /// The other one is a destination in the database, whoever serves it.
    on_record: bool,
}

struct Compiling {
    directory: PathBuf,
    contents: Sha256,
    task: JoinHandle<Result<Bundle, BundleError>>,
}

/// A bundle that is whole, and is to be served.
struct Candidate {
    directory: PathBuf,
    contents: Sha256,
    bundle: Arc<Bundle>,
}

/// What came of joining bundles: of each destination, or the first bundle that is refused.
type Joined = Result<Vec<(Uuid, Joining)>, (usize, BundleFault)>;

/// What a run brought so far.
#[derive(Default)]
struct Run {
    changes: Vec<Registered>,
    /// The first error that was no bundle's.
    failed: Option<RegistrarError>,
}

/// Why the partners directory could not be followed; the next run tries again.
#[derive(Debug, thiserror::Error)]
pub enum RegistrarError {
    #[error(transparent)]
    Plugins(#[from] PluginError),
    #[error("the destinations in the database could not be kept in step with the partners directory")]
    Store(#[from] StoreError),
    #[error("the partners directory was not looked at: {why}")]
    Interrupted { why: String },
}

impl Registrar {
    pub fn new(pool: Pool, plugins: Plugins, partners: PathBuf, registry: Registry) -> Self {
        Self {
            pool,
            plugins,
            partners,
            registry,
            look_every: Duration::from_secs(2),
            stop: CancellationToken::new(),
            state: Mutex::default(),
        }
    }

    /// How often it looks while a run waits for a compiler; two seconds unless told.
    #[must_use]
    pub fn looking_every(self, look_every: Duration) -> Self {
        Self { look_every, ..self }
    }

    /// A run that waits for a compiler is left when this says so. The compile itself cannot be ended, and does nothing but fill
    /// the cache.
    #[must_use]
    pub fn until(self, stop: CancellationToken) -> Self {
        Self { stop, ..self }
    }

    /// Takes in what has changed, is settled, and is compiled already; for a host that starts. The next run compiles the rest.
    pub async fn look_once(&self) -> Result<Vec<Registered>, RegistrarError> {
        let mut state = self.state.lock().await;
        let mut run = Run::default();
        self.look(&mut state, &mut run).await;
        run.ended()
    }

    /// The bundles that are not taken in before they are compiled.
    pub async fn uncompiled(&self) -> Vec<String> {
        let state = self.state.lock().await;
        let compiling = state.compiling.iter().map(|compiling| &compiling.directory);
        compiling.chain(state.uncompiled.keys()).map(|directory| name(directory)).collect()
    }

    /// Takes in what has changed and is settled. It ends when nothing is left to be compiled.
    pub async fn run_once(&self) -> Result<Vec<Registered>, RegistrarError> {
        let mut state = self.state.lock().await;
        let mut run = Run::default();
        self.look(&mut state, &mut run).await;
        while let Some(compiling) = self.compile_next(&mut state) {
            tokio::select! {
                () = self.stop.cancelled() => break,
                loaded = &mut compiling.task => {
                    let loaded = loaded.map_err(|error| RegistrarError::Interrupted { why: error.to_string() });
                    if let Some(Compiling { directory, contents, .. }) = state.compiling.take() {
                        match loaded {
                            Ok(loaded) => self.take_in(&mut state, &mut run, directory, contents, loaded).await,
                            Err(error) => run.fails(error),
                        }
                        self.admit_waiting(&mut state, &mut run).await;
                    }
                }
                () = tokio::time::sleep(self.look_every) => self.look(&mut state, &mut run).await,
            }
        }
        run.ended()
    }

    /// One look: what is gone, what is new and need not be compiled, and what waited for either.
    async fn look(&self, state: &mut State, run: &mut Run) {
        let found = match self.scan(state).await {
            Ok(found) => found,
            Err(error) => return run.fails(error),
        };
        let before = state.before.replace(found.clone()).unwrap_or_default();
        state.uncompiled.retain(|directory, contents| found.get(directory) == Some(&*contents));
        if let Some(compiling) = state.compiling.take_if(|one| found.get(&one.directory) != Some(&one.contents)) {
            state.abandoned = Some(compiling.task);
        }
        let settled = |directory: &Path| before.get(directory) == found.get(directory);
        let gone: Vec<PathBuf> =
            state.known.keys().filter(|known| !found.contains_key(*known) && settled(known)).cloned().collect();
        let new: Vec<(PathBuf, Sha256)> = found
            .iter()
            .filter(|(directory, contents)| {
                let known = state.known.get(*directory);
                settled(directory)
                    && known.is_none_or(|known| known.contents != **contents)
                    && !state.is_to_be_compiled(directory, **contents)
            })
            .map(|(directory, contents)| (directory.clone(), *contents))
            .collect();
        // What is gone first: a bundle may have been given another directory name.
        for directory in gone {
            state.known.remove(&directory);
            self.publish(state);
            run.tell(Registered::Removed { bundle: name(&directory) });
        }
        for (directory, contents) in new {
            match self.plugins.load_compiled(&directory).await {
                Err(BundleError { fault: BundleFault::NotCompiled { .. }, .. }) => {
                    state.uncompiled.insert(directory, contents);
                }
                loaded => self.take_in(state, run, directory, contents, loaded).await,
            }
        }
        self.admit_waiting(state, run).await;
    }

    /// What is being compiled; the next one where nothing is.
    fn compile_next<'s>(&self, state: &'s mut State) -> Option<&'s mut Compiling> {
        if state.abandoned.as_ref().is_some_and(|task| !task.is_finished()) {
            return None;
        }
        if state.compiling.is_none()
            && let Some((directory, contents)) = state.uncompiled.pop_first()
        {
            let (plugins, path) = (self.plugins.clone(), directory.clone());
            let task = tokio::spawn(async move { plugins.load_one(&path).await });
            state.compiling = Some(Compiling { directory, contents, task });
        }
        state.compiling.as_mut()
    }

    /// Serves what was loaded, or says what is wrong with it. If it changed meanwhile, a later look comes back to it.
    async fn take_in(
        &self,
        state: &mut State,
        run: &mut Run,
        directory: PathBuf,
        contents: Sha256,
        loaded: Result<Bundle, BundleError>,
    ) {
        match self.contents_of(state, &directory).await {
            Ok(now) if now == contents => {}
            Ok(_) => return,
            Err(error) => return run.fails(error),
        }
        match loaded {
            Ok(bundle) => {
                let candidate = Candidate { directory, contents, bundle: Arc::new(bundle) };
                self.admit(state, run, vec![candidate]).await;
            }
            Err(refused) => refuse(state, run, directory, contents, None, &refused),
        }
    }

    /// Bundles that waited for what another held, for as long as one of them is served by it. They are looked at together,
    /// so that two may change names.
    async fn admit_waiting(&self, state: &mut State, run: &mut Run) {
        loop {
            let is_there = |directory: &Path, known: &Known| {
                state.before.as_ref().is_some_and(|found| found.get(directory) == Some(&known.contents))
            };
            let mut waiting = Vec::new();
            for (directory, known) in state.known.iter().filter(|(directory, known)| is_there(directory, known)) {
                // What is on record is asked for before it is tried: the database logs each try that it refuses.
                if let Some(waits) = &known.waits
                    && !(waits.on_record && self.has_a_taken_name(&waits.bundle).await)
                {
                    let (contents, bundle) = (known.contents, Arc::clone(&waits.bundle));
                    waiting.push(Candidate { directory: directory.clone(), contents, bundle });
                }
            }
            if waiting.is_empty() || !self.admit(state, run, waiting).await {
                return;
            }
        }
    }

    /// Serves these bundles in the place of what their directories served, but for those that cannot be. True if any is.
    async fn admit(&self, state: &mut State, run: &mut Run, mut candidates: Vec<Candidate>) -> bool {
        let mut answers = Vec::new();
        while !candidates.is_empty() {
            let (index, fault) = match conflict(state, &candidates) {
                Some(conflict) => conflict,
                None => match self.join(&candidates).await {
                    Ok(Ok(joined)) => {
                        answers = joined;
                        break;
                    }
                    Ok(Err(refused)) => refused,
                    Err(error) => {
                        run.fails(error);
                        return false;
                    }
                },
            };
            // Without it the others are looked at again: what it would have given up, its old version holds.
            let Candidate { directory, contents, bundle } = candidates.remove(index);
            let on_record = matches!(fault, BundleFault::NameTaken { .. });
            let waits =
                on_record || matches!(fault, BundleFault::PartnerTaken { .. } | BundleFault::DestinationTaken { .. });
            let refused = BundleError { bundle: bundle.directory.clone(), fault };
            let waits = waits.then(|| Waiting { bundle, why: refused.to_string(), on_record });
            refuse(state, run, directory, contents, waits, &refused);
        }
        let any = !candidates.is_empty();
        for Candidate { directory, contents, bundle } in candidates {
            let (name, revision) = (name(&directory), bundle.manifest.revision);
            let newer = newer_in_database(&bundle, &answers);
            let known = Known { contents, served: Some(bundle), waits: None };
            let old = state.known.insert(directory, known).and_then(|known| known.served);
            run.tell(match (newer, old) {
                (Some(in_database), _) => Registered::Older { bundle: name, revision, in_database },
                (None, Some(_)) => Registered::Replaced { bundle: name, revision },
                (None, None) => Registered::Added { bundle: name, revision },
            });
        }
        if any {
            self.publish(state);
        }
        any
    }

    fn publish(&self, state: &State) {
        self.registry.replace(state.known.values().filter_map(|known| known.served.clone()).collect());
    }

    /// Brings the destinations in the database in step with these bundles, all or none: what came of each destination, or a
    /// bundle's position and what speaks against it there.
    async fn join(&self, candidates: &[Candidate]) -> Result<Joined, RegistrarError> {
        let mut all = Vec::new();
        for (index, Candidate { bundle, .. }) in candidates.iter().enumerate() {
            for destination in &bundle.destinations {
                match joined(bundle, destination) {
                    Ok(joined) => all.push(joined),
                    Err(error) => {
                        let what = format!("the destination {} cannot be written as JSON: {error}", destination.id);
                        return Ok(Err((index, BundleFault::OnRecord { what })));
                    }
                }
            }
        }
        let answers = store::upsert_destinations(&self.pool, &all).await?;
        let refused = answers.iter().find_map(|(id, joining)| {
            candidates
                .iter()
                .enumerate()
                .find_map(|(index, candidate)| Some((index, refusal(&candidate.bundle, *id, joining)?)))
        });
        Ok(refused.map_or(Ok(answers), Err))
    }

    /// True if the database has another destination under the name of one of these, or cannot say so now.
    async fn has_a_taken_name(&self, bundle: &Bundle) -> bool {
        for own in &bundle.destinations {
            let others = store::destinations_of(&self.pool, own.tenant).await;
            if others.is_err()
                || others.is_ok_and(|others| others.iter().any(|other| other.id != own.id && other.name == own.name))
            {
                return true;
            }
        }
        false
    }

    async fn scan(&self, state: &mut State) -> Result<Contents, RegistrarError> {
        let partners = self.partners.clone();
        Ok(with_scanner(state, move |scanner| scanner.scan(&partners)).await??)
    }

    async fn contents_of(&self, state: &mut State, directory: &Path) -> Result<Sha256, RegistrarError> {
        let directory = directory.to_owned();
        with_scanner(state, move |scanner| scanner.digest_of(&directory).0).await
    }
}

impl Run {
    fn tell(&mut self, change: Registered) {
        change.log();
        // What was refused only until another gave it up was not refused.
        let bundle = change.bundle();
        self.changes.retain(|told| !(matches!(told, Registered::Refused { .. }) && told.bundle() == bundle));
        self.changes.push(change);
    }

    fn fails(&mut self, error: RegistrarError) {
        self.failed.get_or_insert(error);
    }

    fn ended(self) -> Result<Vec<Registered>, RegistrarError> {
        match self.failed {
            None => Ok(self.changes),
            Some(error) => Err(error),
        }
    }
}

/// The first bundle that has what another one has: one that is served and not replaced by these, or an earlier one of them.
fn conflict(state: &State, candidates: &[Candidate]) -> Option<(usize, BundleFault)> {
    let replaced = |directory: &Path| candidates.iter().any(|candidate| candidate.directory == directory);
    let served = state.known.iter().filter(|(directory, _)| !replaced(directory));
    let served: Vec<&Arc<Bundle>> = served.filter_map(|(_, known)| known.served.as_ref()).collect();
    candidates.iter().enumerate().find_map(|(index, candidate)| {
        let earlier = candidates.iter().take(index).map(|candidate| &candidate.bundle);
        let others = served.iter().copied().chain(earlier).map(|other| other.holder());
        let own = candidate.bundle.holder();
        beside(own.partner, own.destinations, others).err().map(|fault| (index, fault))
    })
}

/// Remembers a refusal, under which the version before goes on. One that waits is told of once for each reason.
fn refuse(
    state: &mut State,
    run: &mut Run,
    directory: PathBuf,
    contents: Sha256,
    waits: Option<Waiting>,
    refused: &BundleError,
) {
    let bundle = name(&directory);
    let old = state.known.remove(&directory);
    let told_before = old.as_ref().filter(|old| old.contents == contents).and_then(|old| old.waits.as_ref());
    let told = waits.as_ref().zip(told_before).is_some_and(|(now, before)| now.why == before.why);
    let served = old.and_then(|old| old.served);
    let serving = served.is_some();
    state.known.insert(directory, Known { contents, served, waits });
    if !told {
        run.tell(Registered::Refused { bundle, why: refused.to_string(), serving });
    }
}

/// Lends the scanner to a thread that may block.
async fn with_scanner<T: Send + 'static>(
    state: &mut State,
    read: impl FnOnce(&mut Scanner) -> T + Send + 'static,
) -> Result<T, RegistrarError> {
    let mut scanner = std::mem::take(&mut state.scanner);
    let reading = tokio::task::spawn_blocking(move || {
        let read = read(&mut scanner);
        (scanner, read)
    });
    // A scanner that is lost with its thread is made anew, and reads everything again.
    let (scanner, read) = reading.await.map_err(|error| RegistrarError::Interrupted { why: error.to_string() })?;
    state.scanner = scanner;
    Ok(read)
}

fn name(directory: &Path) -> String {
    directory.file_name().unwrap_or(directory.as_os_str()).to_string_lossy().into_owned()
}
