//! A bundle as it lies on disk, read without compiling it: what it is, and everything that is wrong with it.
//!
//! The host refuses a bundle at its first fault; whoever writes one wants them all. Types are compared by the linker when
//! the bundle is loaded, so that a bundle without a fault here may still have one there.

use std::path::Path;

use wasmtime::Engine;

use super::component::{self, Admitted, ContractVersion, World};
use super::destinations::{self, Destination, Shared};
use super::engine;
use super::error::{BundleFault, PluginError};
use super::limits::Limits;
use super::manifest::{self, ComponentFile, Manifest};
use super::part::Part;
use super::registry::{Holder, Read, beside, read_component, read_text};
use super::scan::bundle_directories;
use crate::job::facts::Sha256;

/// What was found of a bundle.
#[derive(Debug)]
pub struct Examined {
    /// The name of its directory.
    pub bundle: String,
    pub manifest: Option<Manifest>,
    pub components: Vec<ExaminedComponent>,
    /// Their digests cover only the components that could be read.
    pub destinations: Vec<Destination>,
    pub problems: Vec<BundleFault>,
}

/// One of the two components.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExaminedComponent {
    /// `builder` or `destination`.
    pub world: &'static str,
    pub file: String,
    pub bytes: usize,
    pub sha256: Sha256,
    /// The contract that it was built for; `None` where it does not fit its world.
    pub version: Option<ContractVersion>,
    pub imports: Vec<String>,
}

/// Examines every bundle of a partners directory, in the order of their names. What two of them have is the earlier one's, as
/// on a host that starts now; on one that runs it stays with the one that had it first. `most` is what its operator allows.
pub fn examine_all(partners_dir: &Path, most: &Limits) -> Result<Vec<Examined>, PluginError> {
    let mut all: Vec<Examined> = Vec::new();
    for directory in bundle_directories(partners_dir)? {
        let mut examined = examine(&directory, true)?;
        if let Some(manifest) = &examined.manifest
            && let Ok(text) = read_text(&directory, manifest::FILE)
        {
            examined.problems.extend(manifest.within(most, &text).map_err(BundleFault::Document).err());
        }
        let sound = all.iter().filter(|other| other.problems.is_empty()).filter_map(Examined::holder);
        let taken = examined.holder().and_then(|own| beside(own.partner, own.destinations, sound).err());
        examined.problems.extend(taken);
        all.push(examined);
    }
    Ok(all)
}

/// Examines one bundle. `operated`: the operator's `destinations.toml` belongs to it. It reads files and blocks.
pub fn examine(directory: &Path, operated: bool) -> Result<Examined, PluginError> {
    let engine = Engine::new(&engine::config()).map_err(PluginError::Engine)?;
    let bundle = directory.file_name().unwrap_or(directory.as_os_str()).to_string_lossy().into_owned();
    let mut examined =
        Examined { bundle, manifest: None, components: Vec::new(), destinations: Vec::new(), problems: Vec::new() };
    let manifest = match read_text(directory, manifest::FILE)
        .and_then(|text| Manifest::parse(&text).map_err(BundleFault::Document))
    {
        Ok(manifest) => manifest,
        Err(fault) => {
            examined.problems.push(fault);
            return Ok(examined);
        }
    };
    examined.problems.extend(manifest.part.map(|part| BundleFault::OnePart { part }));
    let mut component = |part, file, world| {
        if manifest.has(part) { examined.component(&engine, directory, file, world) } else { None }
    };
    let builder = component(Part::Builder, &manifest.builder, World::Builder);
    let destination = component(Part::Destination, &manifest.destination, World::Destination);
    if operated {
        let none = Sha256([0; 32]);
        let (builder, destination) = (builder.unwrap_or(none), destination.unwrap_or(none));
        let described = Shared { manifest: &manifest, builder, destination, directory };
        match read_text(directory, destinations::FILE)
            .and_then(|text| destinations::parse(&text, &described).map_err(BundleFault::Document))
        {
            Ok(destinations) => examined.destinations = destinations,
            Err(fault) => examined.problems.push(fault),
        }
    }
    examined.manifest = Some(manifest);
    Ok(examined)
}

impl Examined {
    fn holder(&self) -> Option<Holder<'_>> {
        let partner = &self.manifest.as_ref()?.partner;
        let destinations = self.destinations.iter().map(|destination| destination.id).collect();
        Some(Holder { bundle: &self.bundle, partner, destinations })
    }

    /// Reads one component; its digest, if it could be read.
    fn component(
        &mut self,
        engine: &Engine,
        directory: &Path,
        component: &ComponentFile,
        world: World,
    ) -> Option<Sha256> {
        let Read { file, bytes, sha256 } = match read_component(directory, component) {
            Ok(read) => read,
            Err(fault) => {
                self.problems.push(fault);
                return None;
            }
        };
        let length = bytes.len();
        let (version, imports) = match component::admit(engine, bytes, world) {
            Ok(Admitted { version, imports, .. }) => (Some(version), imports),
            Err(what) => {
                self.problems.push(BundleFault::Component { file: file.clone(), what });
                (None, Vec::new())
            }
        };
        self.components.push(ExaminedComponent { world: world.name(), file, bytes: length, sha256, version, imports });
        Some(sha256)
    }
}
