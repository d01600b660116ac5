//! The partners directory: each sub-directory a bundle. A broken one is refused alone, with one sentence.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sha2::Digest as _;
use wasmtime::Engine;
use wasmtime::component::{Component, Linker};

use super::bundle::{Bundle, Prepared};
use super::cache::Cache;
use super::component::{self, Admitted, ContractVersion, World};
use super::destinations::{self, Shared};
use super::engine;
use super::error::{BundleError, BundleFault, PluginError};
use super::manifest::{self, ComponentFile, Manifest};
use super::part::Part;
use super::scan::bundle_directories;
use super::versions::{BuilderWorld, DestinationWorld};
use super::worlds::{State, link, wasi};
use crate::job::facts::Sha256;

/// What the plugins of a process need.
#[derive(Debug, Clone)]
pub struct PluginSettings {
    /// Where compiled components are kept: private to this process's user, safe to delete.
    pub cache_dir: PathBuf,
}

/// Loads bundles. One a process: it owns the engine.
#[derive(Clone)]
pub struct Plugins {
    shared: Arc<SharedParts>,
}

struct SharedParts {
    engine: Engine,
    cache: Cache,
}

impl SharedParts {
    /// What the component is linked with: its world in its version, and an empty WASI as far as it imports that.
    fn linker(&self, component: &Component, world: World, version: ContractVersion) -> wasmtime::Result<Linker<State>> {
        let mut linker = Linker::new(&self.engine);
        link::link(&mut linker, world, version)?;
        wasi::define(&mut linker, component, world)?;
        Ok(linker)
    }
}

/// What a partners directory held.
#[derive(Debug, Default)]
pub struct Loaded {
    /// In the order of their directories' names.
    pub bundles: Vec<Arc<Bundle>>,
    pub refused: Vec<BundleError>,
}

impl Loaded {
    /// One line for the log and the operator.
    pub fn summary(&self, partners_dir: &Path) -> String {
        let directory = partners_dir.display();
        let destinations: usize = self.bundles.iter().map(|bundle| bundle.destinations.len()).sum();
        match (self.bundles.len(), self.refused.len()) {
            (0, 0) => format!(
                "the partners directory {directory} is empty: nothing can be delivered until a bundle is put into it"
            ),
            (0, refused) => format!("no bundle of {directory} can be served; {refused} are refused"),
            (bundles, refused) => {
                format!(
                    "{bundles} bundles with {destinations} destinations are served from {directory}, {refused} are refused"
                )
            }
        }
    }
}

impl Plugins {
    /// Sets up the engine and the cache.
    pub fn open(settings: &PluginSettings) -> Result<Self, PluginError> {
        let engine = engine::start()?;
        let cache = Cache::open(&settings.cache_dir)?;
        Ok(Self { shared: Arc::new(SharedParts { engine, cache }) })
    }

    /// Reads every bundle of a partners directory. Hidden entries and plain files are not bundles.
    pub async fn load(&self, partners_dir: &Path) -> Result<Loaded, PluginError> {
        let mut loaded = Loaded::default();
        for directory in bundle_directories(partners_dir)? {
            match self.load_one(&directory).await.and_then(|bundle| bundle.beside(&loaded.bundles)) {
                Ok(bundle) => loaded.bundles.push(Arc::new(bundle)),
                Err(refused) => {
                    tracing::error!(bundle = %refused.bundle, "{refused}");
                    loaded.refused.push(refused);
                }
            }
        }
        let summary = loaded.summary(partners_dir);
        if loaded.bundles.is_empty() {
            tracing::warn!("{summary}");
        } else {
            tracing::info!("{summary}");
        }
        Ok(loaded)
    }

    /// Reads one bundle. Compilation takes seconds for JavaScript and Python, and runs on the blocking pool.
    pub async fn load_one(&self, directory: &Path) -> Result<Bundle, BundleError> {
        self.load_from(directory, true).await
    }

    /// Reads a bundle as its author has it: without the operator's `destinations.toml`, and so without destinations.
    pub async fn load_alone(&self, directory: &Path) -> Result<Bundle, BundleError> {
        self.load_from(directory, false).await
    }

    async fn load_from(&self, directory: &Path, operated: bool) -> Result<Bundle, BundleError> {
        let shown = directory.file_name().unwrap_or(directory.as_os_str()).to_string_lossy().into_owned();
        let shared = Arc::clone(&self.shared);
        let path = directory.to_owned();
        let loading = tokio::task::spawn_blocking(move || load_bundle(&shared, &path, operated)).await;
        let fault = match loading {
            Ok(Ok(bundle)) => return Ok(bundle),
            Ok(Err(fault)) => fault,
            // Whatever still panics on hostile bytes costs this bundle only.
            Err(join) => {
                BundleFault::Component { file: "a component".to_owned(), what: format!("could not be read: {join}") }
            }
        };
        Err(BundleError { bundle: shown, fault })
    }
}

impl Bundle {
    /// The bundle, if it can be served beside these: a partner's name and a destination's id are one bundle's only, and
    /// stay with the one that is served.
    pub fn beside(self, served: &[Arc<Self>]) -> Result<Self, BundleError> {
        let mut holders: HashMap<uuid::Uuid, &str> = HashMap::new();
        for other in served {
            if other.partner == self.partner {
                let fault = BundleFault::PartnerTaken { partner: self.partner, holder: other.directory.clone() };
                return Err(BundleError { bundle: self.directory, fault });
            }
            holders.extend(other.destinations.iter().map(|destination| (destination.id, other.directory.as_str())));
        }
        let taken = self
            .destinations
            .iter()
            .find_map(|destination| holders.get(&destination.id).map(|holder| (destination.id, *holder)));
        match taken {
            Some((destination, holder)) => {
                let fault = BundleFault::DestinationTaken { destination, holder: holder.to_owned() };
                Err(BundleError { bundle: self.directory, fault })
            }
            None => Ok(self),
        }
    }
}

fn load_bundle(shared: &SharedParts, directory: &Path, operated: bool) -> Result<Bundle, BundleFault> {
    let name = directory.file_name().and_then(|name| name.to_str()).ok_or(BundleFault::DirectoryName)?;
    let manifest = Manifest::parse(&read_text(directory, manifest::FILE)?).map_err(BundleFault::Document)?;
    if let Some(part) = manifest.part.filter(|_| operated) {
        return Err(BundleFault::OnePart { part });
    }
    // Texts first: their faults are told without waiting for a compiler.
    let destinations_text = if operated { Some(read_text(directory, destinations::FILE)?) } else { None };
    let read = |part, file| manifest.has(part).then(|| read_component(directory, file)).transpose();
    let builder = read(Part::Builder, &manifest.builder)?;
    let destination = read(Part::Destination, &manifest.destination)?;
    let sha256 = |read: &Option<Read>| read.as_ref().map_or(Sha256([0; 32]), |read| read.sha256);
    let described =
        Shared { manifest: &manifest, builder: sha256(&builder), destination: sha256(&destination), directory };
    let destinations = match destinations_text {
        Some(text) => destinations::parse(&text, &described).map_err(BundleFault::Document)?,
        None => Vec::new(),
    };

    let builder = match builder {
        None => None,
        Some(read) => {
            let (compiled, version) = read.compile(shared, World::Builder)?;
            let prepared = shared
                .linker(&compiled, World::Builder, version)
                .and_then(|linker| BuilderWorld::prepare(version, &linker, &compiled));
            Some(prepared.map_err(|error| types_differ(&manifest.builder, World::Builder, &error))?)
        }
    };
    let destination = match destination {
        None => None,
        Some(read) => {
            let (compiled, version) = read.compile(shared, World::Destination)?;
            let prepared = shared
                .linker(&compiled, World::Destination, version)
                .and_then(|linker| DestinationWorld::prepare(version, &linker, &compiled));
            Some(prepared.map_err(|error| types_differ(&manifest.destination, World::Destination, &error))?)
        }
    };
    Ok(Bundle {
        directory: name.to_owned(),
        partner: manifest.partner.clone(),
        manifest,
        destinations: destinations.into_iter().map(Arc::new).collect(),
        prepared: Prepared { engine: shared.engine.clone(), builder, destination },
    })
}

fn types_differ(file: &ComponentFile, world: World, error: &wasmtime::Error) -> BundleFault {
    let chain: Vec<String> = error.chain().map(|cause| component::one_line(&cause.to_string())).collect();
    BundleFault::Component {
        file: file.file.clone(),
        what: format!(
            "does not fit the world `{}`, so it was built from a changed copy of the contract ({}); build it against the released wit folder",
            world.name(),
            component::one_line(&chain.join(": "))
        ),
    }
}

pub(super) fn read_text(directory: &Path, file: &'static str) -> Result<String, BundleFault> {
    std::fs::read_to_string(directory.join(file)).map_err(|error| unreadable(file, &error))
}

fn unreadable(file: &str, error: &std::io::Error) -> BundleFault {
    BundleFault::Unreadable { file: file.to_owned(), why: error.to_string() }
}

/// A component's file with its digest, checked against the manifest's pin.
pub(super) struct Read {
    pub file: String,
    pub bytes: Vec<u8>,
    pub sha256: Sha256,
}

pub(super) fn read_component(directory: &Path, component: &ComponentFile) -> Result<Read, BundleFault> {
    let path = directory.join(&component.file);
    let length = std::fs::metadata(&path).map_err(|error| unreadable(&component.file, &error))?.len();
    if length > component::MOST_BYTES {
        let what = format!("has {length} bytes, and a component has {} at most", component::MOST_BYTES);
        return Err(BundleFault::Component { file: component.file.clone(), what });
    }
    let bytes = std::fs::read(&path).map_err(|error| unreadable(&component.file, &error))?;
    let sha256 = Sha256(sha2::Sha256::digest(&bytes).into());
    if let Some(pinned) = component.sha256
        && pinned != sha256
    {
        return Err(BundleFault::Digest {
            file: component.file.clone(),
            pinned: pinned.to_string(),
            found: sha256.to_string(),
        });
    }
    Ok(Read { file: component.file.clone(), bytes, sha256 })
}

impl Read {
    fn compile(self, shared: &SharedParts, world: World) -> Result<(Component, ContractVersion), BundleFault> {
        let Self { file, bytes, sha256 } = self;
        let Admitted { component, version, .. } = match component::admit(&shared.engine, bytes, world) {
            Ok(admitted) => admitted,
            Err(what) => return Err(BundleFault::Component { file, what }),
        };
        match shared.cache.compile(&shared.engine, sha256, &component) {
            Ok(compiled) => Ok((compiled, version)),
            Err(error) => {
                let what = format!("cannot be compiled: {}", component::one_line(&error.root_cause().to_string()));
                Err(BundleFault::Component { file, what })
            }
        }
    }
}
