//! The registrar: keeps what is served, and the destinations in the database, in step with the partners directory.
//!
//! It compares contents, not times, and takes a change in once two looks in a row found it the same, so that a bundle is
//! not read while it is being copied. A new version is compiled beside the old one, which serves until then and, where
//! the new one is refused, goes on. Attempts keep the bundle that they started with. A bundle that is gone is served no
//! longer: its wake-ups are received by nobody here, and its jobs wait in the queue.
//!
//! What the first run finds is taken in at once. A partners directory that cannot be read leaves everything as it is.
//! Not promised: that hosts which share a database change over together; each follows its own directory.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::sync::Mutex;

use crate::job::facts::Sha256;
use crate::plugin::{Bundle, BundleError, BundleFault, Contents, Destination, PluginError, Plugins, Registry, Scanner};
use crate::store::{self, JoinedDestination, Joining, Pool, StoreError};

/// A registrar over the worker's login.
pub struct Registrar {
    pool: Pool,
    plugins: Plugins,
    partners: PathBuf,
    registry: Registry,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    scanner: Scanner,
    /// What the look before found; `None` before the first.
    before: Option<Contents>,
    known: BTreeMap<PathBuf, Known>,
}

/// A bundle's directory, as it was taken in last.
struct Known {
    contents: Sha256,
    /// The version that is served: the newest that was not refused.
    served: Option<Arc<Bundle>>,
    /// Refused for what another bundle holds: looked at again when what is served changes.
    waits: bool,
}

/// What one run changed, each with the name of the bundle's directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Registered {
    Added {
        bundle: String,
    },
    Replaced {
        bundle: String,
    },
    Removed {
        bundle: String,
    },
    /// One sentence says why. `serving`: an older version goes on.
    Refused {
        bundle: String,
        why: String,
        serving: bool,
    },
}

/// Why the partners directory could not be followed; the next run tries again.
#[derive(Debug, thiserror::Error)]
pub enum RegistrarError {
    #[error(transparent)]
    Plugins(#[from] PluginError),
    #[error("the destinations in the database could not be kept in step with the partners directory")]
    Store(#[from] StoreError),
    #[error("a bundle could not be written as JSON")]
    Json(#[from] serde_json::Error),
    #[error("the partners directory was not looked at: {why}")]
    Interrupted { why: String },
}

impl Registrar {
    pub fn new(pool: Pool, plugins: Plugins, partners: PathBuf, registry: Registry) -> Self {
        Self { pool, plugins, partners, registry, state: Mutex::default() }
    }

    /// Takes in what has changed and is settled.
    pub async fn run_once(&self) -> Result<Vec<Registered>, RegistrarError> {
        let mut state = self.state.lock().await;
        let found = self.scan(&mut state).await?;
        let settled = |directory: &Path| match &state.before {
            None => true,
            Some(before) => before.get(directory) == found.get(directory),
        };
        let gone: Vec<PathBuf> =
            state.known.keys().filter(|known| !found.contains_key(*known) && settled(known)).cloned().collect();
        let new: Vec<(PathBuf, Sha256)> = found
            .iter()
            .filter(|(directory, contents)| {
                let known = state.known.get(*directory);
                settled(directory) && known.is_none_or(|known| known.contents != **contents)
            })
            .map(|(directory, contents)| (directory.clone(), *contents))
            .collect();
        let mut changes = Vec::new();
        // What is gone first: a bundle may have been given another directory name.
        for directory in gone {
            state.known.remove(&directory);
            self.publish(&state);
            changes.push(Registered::Removed { bundle: name(&directory) });
        }
        for (directory, contents) in new {
            changes.extend(self.take_in(&mut state, directory, contents).await?);
        }
        if changes.iter().any(|change| !matches!(change, Registered::Refused { .. })) {
            let waiting: Vec<(PathBuf, Sha256)> = state
                .known
                .iter()
                .filter(|(_, known)| known.waits)
                .map(|(directory, known)| (directory.clone(), known.contents))
                .collect();
            for (directory, contents) in waiting {
                let change = self.take_in(&mut state, directory, contents).await?;
                changes.extend(change.filter(|change| !changes.contains(change)));
            }
        }
        state.before = Some(found);
        for change in &changes {
            change.log();
        }
        Ok(changes)
    }

    /// Reads, checks and compiles one bundle, and serves it. `None`: it changed meanwhile, and a later run takes it in.
    async fn take_in(
        &self,
        state: &mut State,
        directory: PathBuf,
        contents: Sha256,
    ) -> Result<Option<Registered>, RegistrarError> {
        let loaded = self.plugins.load_one(&directory).await;
        if self.contents_of(state, &directory).await? != contents {
            return Ok(None);
        }
        let others: Vec<Arc<Bundle>> = state
            .known
            .iter()
            .filter(|(other, _)| **other != directory)
            .filter_map(|(_, known)| known.served.clone())
            .collect();
        let admitted = match loaded.and_then(|bundle| bundle.beside(&others)) {
            Ok(bundle) => self.join(&bundle).await?.map(|()| Arc::new(bundle)),
            Err(refused) => Err(refused),
        };
        let old = state.known.get(&directory).and_then(|known| known.served.clone());
        let bundle = name(&directory);
        Ok(Some(match admitted {
            Ok(served) => {
                let change = if old.is_some() { Registered::Replaced { bundle } } else { Registered::Added { bundle } };
                state.known.insert(directory, Known { contents, served: Some(served), waits: false });
                self.publish(state);
                change
            }
            Err(refused) => {
                let waits =
                    matches!(refused.fault, BundleFault::PartnerTaken { .. } | BundleFault::DestinationTaken { .. });
                let serving = old.is_some();
                state.known.insert(directory, Known { contents, served: old, waits });
                Registered::Refused { bundle, why: refused.to_string(), serving }
            }
        }))
    }

    fn publish(&self, state: &State) {
        self.registry.replace(state.known.values().filter_map(|known| known.served.clone()).collect());
    }

    /// Brings the destinations in the database in step with a bundle, or says what speaks against it there.
    async fn join(&self, bundle: &Bundle) -> Result<Result<(), BundleError>, RegistrarError> {
        for destination in &bundle.destinations {
            let joining = store::upsert_destination(&self.pool, &joined(bundle, destination)?).await?;
            if let Err(what) = judge(bundle, destination, joining) {
                let fault = BundleFault::OnRecord { what };
                return Ok(Err(BundleError { bundle: bundle.directory.clone(), fault }));
            }
        }
        Ok(Ok(()))
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

fn joined(bundle: &Bundle, destination: &Destination) -> serde_json::Result<JoinedDestination> {
    Ok(JoinedDestination {
        id: destination.id,
        tenant: destination.tenant,
        name: destination.name.clone(),
        partner: bundle.partner.clone(),
        revision: i32::try_from(bundle.manifest.revision).unwrap_or(i32::MAX),
        manifest: serde_json::to_value(&bundle.manifest)?,
        contract: serde_json::to_value(&bundle.manifest.contract)?,
        rules: serde_json::to_value(&destination.rules)?,
        digests: serde_json::to_value(&destination.digests)?,
        endpoint: destination.endpoint.server(),
    })
}

/// What came of joining, as one sentence where it refuses the bundle.
fn judge(bundle: &Bundle, destination: &Destination, joining: Joining) -> Result<(), String> {
    let (id, name) = (destination.id, &destination.name);
    match joining {
        Joining::Joined => Ok(()),
        Joining::Older { in_force } => {
            tracing::warn!(destination = %id, name, revision = bundle.manifest.revision, in_force, "the database has a newer manifest of this destination, which stays in force there; update this host's bundle");
            Ok(())
        }
        Joining::SameRevision { differ } => {
            let changed: Vec<&str> = differ.iter().map(|part| file_of(bundle, part)).collect();
            Err(format!(
                "revision {} of {} is in force with another {}; raise `revision` in partner.toml, so that a revision means one thing (what stands in destinations.toml takes effect without it)",
                bundle.manifest.revision,
                bundle.partner,
                changed.join(" and another ")
            ))
        }
        Joining::Foreign => Err(format!(
            "the destination {id} ({name}) belongs to another tenant or partner in the database; an id never changes hands, so give it a new one in destinations.toml"
        )),
        Joining::NameTaken => Err(format!(
            "the tenant {} has another destination named {name:?} in the database; choose another name in destinations.toml",
            destination.tenant
        )),
    }
}

/// The file that a digest of this name is about.
fn file_of<'a>(bundle: &'a Bundle, part: &'a str) -> &'a str {
    match part {
        "builder" => &bundle.manifest.builder.file,
        "destination" => &bundle.manifest.destination.file,
        "manifest" => "partner.toml",
        part => part,
    }
}

impl Registered {
    fn log(&self) {
        match self {
            Self::Added { bundle } => tracing::info!(bundle, "the bundle is served"),
            Self::Replaced { bundle } => {
                tracing::info!(bundle, "the new version of the bundle serves; attempts under way keep the old one");
            }
            Self::Removed { bundle } => {
                tracing::info!(bundle, "the bundle is gone and no longer served; its jobs wait in the queue");
            }
            Self::Refused { bundle, why, serving: false } => tracing::error!(bundle, "{why}"),
            Self::Refused { bundle, why, serving: true } => {
                tracing::error!(bundle, "{why}; the version before goes on serving");
            }
        }
    }
}
