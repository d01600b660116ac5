//! From a bundle's directory to a bundle that can be called, or to one sentence that says why it is refused.
//!
//! What is compiled runs on threads of its own, one fewer than there are cores, beside deliveries and their leases. A compile
//! cannot be ended before its time; what bounds it is the size of the file.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::available_parallelism;

use sha2::Digest as _;
use tokio::time::Instant;
use uuid::Uuid;
use wasmtime::Engine;
use wasmtime::component::{Component, Linker};

use super::bundle::{Bundle, Prepared};
use super::cache::Cache;
use super::component::{self, Admitted, ContractVersion, World};
use super::destinations::{self, Shared};
use super::engine;
use super::error::{BundleError, BundleFault, PluginError};
use super::files::{self, ReadError};
use super::limits::Limits;
use super::manifest::{self, ComponentFile, Manifest};
use super::part::Part;
use super::versions::{BuilderWorld, DestinationWorld};
use super::worlds::{State, link, wasi};
use crate::job::facts::Sha256;

/// What the plugins of a process need.
#[derive(Debug, Clone)]
pub struct PluginSettings {
    /// Where compiled components are kept: private to this process's user, safe to delete.
    pub cache_dir: PathBuf,
    /// The most that a manifest may ask for. None for authors, who have no operator.
    pub most: Option<Limits>,
}

impl PluginSettings {
    pub fn new(cache_dir: PathBuf) -> Self {
        Self { cache_dir, most: None }
    }
}

/// Loads bundles. One a process: it owns the engine.
#[derive(Clone)]
pub struct Plugins {
    shared: Arc<SharedParts>,
}

struct SharedParts {
    engine: Engine,
    cache: Cache,
    compilers: rayon::ThreadPool,
    most: Option<Limits>,
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

impl Plugins {
    /// Sets up the engine and the cache.
    pub fn open(settings: &PluginSettings) -> Result<Self, PluginError> {
        let engine = engine::start()?;
        let cache = Cache::open(&settings.cache_dir)?;
        let cores = available_parallelism().map_or(1, std::num::NonZero::get);
        let compilers = rayon::ThreadPoolBuilder::new()
            .num_threads(cores.saturating_sub(1).max(1))
            .thread_name(|number| format!("plugin-compile-{number}"))
            .build()
            .map_err(PluginError::Compilers)?;
        Ok(Self { shared: Arc::new(SharedParts { engine, cache, compilers, most: settings.most }) })
    }

    /// Reads one bundle. For JavaScript and Python compiling takes some seconds to two minutes, by the machine.
    pub async fn load_one(&self, directory: &Path) -> Result<Bundle, BundleError> {
        self.load_from(directory, true, Compiling::Now).await
    }

    /// Reads one bundle, and refuses it with [`BundleFault::NotCompiled`] where a component is not in the cache.
    pub async fn load_compiled(&self, directory: &Path) -> Result<Bundle, BundleError> {
        self.load_from(directory, true, Compiling::Never).await
    }

    /// Reads a bundle as its author has it: without the operator's `destinations.toml`, and so without destinations.
    pub async fn load_alone(&self, directory: &Path) -> Result<Bundle, BundleError> {
        self.load_from(directory, false, Compiling::Now).await
    }

    async fn load_from(&self, directory: &Path, operated: bool, compiling: Compiling) -> Result<Bundle, BundleError> {
        let shown = directory.file_name().unwrap_or(directory.as_os_str()).to_string_lossy().into_owned();
        let shared = Arc::clone(&self.shared);
        let path = directory.to_owned();
        let loading = tokio::task::spawn_blocking(move || load_bundle(&shared, &path, operated, compiling)).await;
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

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Compiling {
    Now,
    Never,
}

/// A partner's name and a destination's id are one bundle's only. What speaks against one beside these others.
pub fn beside<'a>(
    partner: &str,
    destinations: impl IntoIterator<Item = Uuid>,
    others: impl IntoIterator<Item = Holder<'a>>,
) -> Result<(), BundleFault> {
    let mut holders: HashMap<Uuid, &str> = HashMap::new();
    for other in others {
        if other.partner == partner {
            return Err(BundleFault::PartnerTaken { partner: partner.to_owned(), holder: other.bundle.to_owned() });
        }
        holders.extend(other.destinations.into_iter().map(|destination| (destination, other.bundle)));
    }
    let taken = destinations.into_iter().find_map(|id| holders.get(&id).map(|holder| (id, (*holder).to_owned())));
    match taken {
        Some((destination, holder)) => Err(BundleFault::DestinationTaken { destination, holder }),
        None => Ok(()),
    }
}

/// A bundle as far as others may not have the same.
#[derive(Debug, Clone)]
pub struct Holder<'a> {
    /// The name of its directory.
    pub bundle: &'a str,
    pub partner: &'a str,
    pub destinations: Vec<Uuid>,
}

impl Bundle {
    pub fn holder(&self) -> Holder<'_> {
        Holder {
            bundle: &self.directory,
            partner: &self.partner,
            destinations: self.destinations.iter().map(|destination| destination.id).collect(),
        }
    }
}

fn load_bundle(
    shared: &SharedParts,
    directory: &Path,
    operated: bool,
    compiling: Compiling,
) -> Result<Bundle, BundleFault> {
    let name = directory.file_name().and_then(|name| name.to_str()).ok_or(BundleFault::DirectoryName)?;
    let text = read_text(directory, manifest::FILE)?;
    let manifest = Manifest::parse(&text).map_err(BundleFault::Document)?;
    if let Some(most) = &shared.most {
        manifest.within(most, &text).map_err(BundleFault::Document)?;
    }
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
            let (compiled, version) = read.compile(shared, World::Builder, name, compiling)?;
            let prepared = shared
                .linker(&compiled, World::Builder, version)
                .and_then(|linker| BuilderWorld::prepare(version, &linker, &compiled));
            Some(prepared.map_err(|error| types_differ(&manifest.builder, World::Builder, &error))?)
        }
    };
    let destination = match destination {
        None => None,
        Some(read) => {
            let (compiled, version) = read.compile(shared, World::Destination, name, compiling)?;
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
    let bytes = files::read(&directory.join(file), files::DOCUMENT_BYTES).map_err(|error| unreadable(file, &error))?;
    String::from_utf8(bytes).map_err(|error| BundleFault::Unreadable { file: file.to_owned(), why: error.to_string() })
}

fn unreadable(file: &str, error: &ReadError) -> BundleFault {
    let file = file.to_owned();
    match error {
        ReadError::Io(error) => BundleFault::Unreadable { file, why: error.to_string() },
        ReadError::NoFile | ReadError::TooLarge { .. } => BundleFault::Component { file, what: error.to_string() },
    }
}

/// A component's file with its digest, checked against the manifest's pin.
pub(super) struct Read {
    pub file: String,
    pub bytes: Vec<u8>,
    pub sha256: Sha256,
}

pub(super) fn read_component(directory: &Path, component: &ComponentFile) -> Result<Read, BundleFault> {
    let bytes = files::read(&directory.join(&component.file), files::COMPONENT_BYTES)
        .map_err(|error| unreadable(&component.file, &error))?;
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
    fn compile(
        self,
        shared: &SharedParts,
        world: World,
        bundle: &str,
        compiling: Compiling,
    ) -> Result<(Component, ContractVersion), BundleFault> {
        let Self { file, bytes, sha256 } = self;
        let Admitted { component, version, .. } = match component::admit(&shared.engine, bytes, world) {
            Ok(admitted) => admitted,
            Err(what) => return Err(BundleFault::Component { file, what }),
        };
        if let Some(compiled) = shared.cache.find(&shared.engine, sha256) {
            return Ok((compiled, version));
        }
        if compiling == Compiling::Never {
            return Err(BundleFault::NotCompiled { file });
        }
        let compile = || -> wasmtime::Result<Component> {
            let begun = Instant::now();
            tracing::info!(bundle, file, bytes = component.len(), "compiling a component, which is not in the cache");
            let compiled = shared.compilers.install(|| Component::from_binary(&shared.engine, &component))?;
            let seconds = begun.elapsed().as_secs_f64();
            tracing::info!(bundle, file, "compiled in {seconds:.1} s; the next start finds it in the cache");
            Ok(compiled)
        };
        match shared.cache.compile(&shared.engine, sha256, compile) {
            Ok(compiled) => Ok((compiled, version)),
            Err(error) => {
                let what = format!("cannot be compiled: {}", component::one_line(&error.root_cause().to_string()));
                Err(BundleFault::Component { file, what })
            }
        }
    }
}
