//! From a file's bytes to a component that is known to fit its world, or one sentence that says why it does not.
//!
//! A core module made by wit-bindgen is encoded on load; a component is taken as it is. Names of imports and exports are
//! compared before anything is compiled, because their fault is the one that authors meet and must be told in their
//! words; types are compared by the linker afterwards.

use std::panic::AssertUnwindSafe;

use wasmtime::{Engine, Module};
use wit_component::{ComponentEncoder, DecodedWasm};

use super::engine;
use super::worlds::wasi;

/// The package that plugins are written against.
pub(super) const PACKAGE: &str = "waybill:partner";

/// The versions of it that this host serves, each by an adapter of its own. A plugin says in its imports which one it
/// was built for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ContractVersion {
    V0_1_0,
    V0_2_0,
}

impl ContractVersion {
    pub const ALL: [Self; 2] = [Self::V0_1_0, Self::V0_2_0];
    /// What a plugin that is written today is built for.
    pub const NEWEST: Self = Self::V0_2_0;

    pub const fn name(self) -> &'static str {
        match self {
            Self::V0_1_0 => "0.1.0",
            Self::V0_2_0 => "0.2.0",
        }
    }

    /// All versions that are served, for a sentence.
    fn served() -> String {
        Self::ALL.map(Self::name).join(", ")
    }
}

/// A component that fits its world by name.
pub(super) struct Admitted {
    /// The component's bytes; a core module's are encoded.
    pub component: Vec<u8>,
    pub version: ContractVersion,
    /// The interfaces that it imports, by name.
    pub imports: Vec<String>,
}

/// What a component must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum World {
    Builder,
    Destination,
}

impl World {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Builder => "builder",
            Self::Destination => "destination",
        }
    }

    const fn exports(self) -> &'static [&'static str] {
        match self {
            Self::Builder => &["build"],
            Self::Destination => &["final-name", "baseline", "deliver", "observe"],
        }
    }

    const fn interfaces(self) -> &'static [&'static str] {
        match self {
            Self::Builder => &["types", "source", "output", "entropy", "log"],
            Self::Destination => &["types", "remote", "evidence", "log"],
        }
    }

    const fn other(self) -> Self {
        match self {
            Self::Builder => Self::Destination,
            Self::Destination => Self::Builder,
        }
    }
}

/// Checks a built file as it is checked when a bundle is loaded, without compiling it.
pub fn check_component(bytes: Vec<u8>, world: World) -> Result<(), String> {
    let engine = Engine::new(&engine::config()).map_err(|error| one_line(&error.to_string()))?;
    admit(&engine, bytes, world).map(|_| ())
}

/// The component's bytes, checked by name against its world. The error continues a sentence that begins with the file.
pub(super) fn admit(engine: &Engine, bytes: Vec<u8>, world: World) -> Result<Admitted, String> {
    // The decoders were seen to panic on a truncated module; a panic here is one more way to say that a file is broken.
    std::panic::catch_unwind(AssertUnwindSafe(|| admit_unguarded(engine, bytes, world)))
        .unwrap_or_else(|_| Err("is broken in a way that no decoder foresaw; build it again".to_owned()))
}

fn admit_unguarded(engine: &Engine, bytes: Vec<u8>, world: World) -> Result<Admitted, String> {
    if Engine::detect_precompiled(&bytes).is_some() || bytes.starts_with(b"\x7fELF") {
        return Err(
            "is compiled code; give the .wasm that it was compiled from, because compiled code cannot be checked"
                .to_owned(),
        );
    }
    let component = match bytes.get(..8) {
        Some(b"\0asm\x01\0\0\0") => encode(engine, &bytes)?,
        Some(b"\0asm\x0d\0\x01\0") => bytes,
        _ => return Err("is not WebAssembly: it begins with other bytes than a module or a component".to_owned()),
    };
    let (version, imports) = check_names(&component, world)?;
    Ok(Admitted { component, version, imports })
}

fn encode(engine: &Engine, module: &[u8]) -> Result<Vec<u8>, String> {
    Module::validate(engine, module).map_err(|error| {
        let why = one_line(&error.to_string());
        let next =
            if why.contains("unexpected end") { "; it is not whole: copy it again, or build it again" } else { "" };
        format!("is a broken module: {why}{next}")
    })?;
    ComponentEncoder::default().validate(true).module(module).and_then(ComponentEncoder::encode).map_err(|error| {
        format!(
            "is a core module that cannot be made a component ({}); build it with wit-bindgen for wasm32-unknown-unknown against {PACKAGE}, without WASI",
            first_and_root(error.as_ref())
        )
    })
}

/// A file that ends too early was most often not copied whole.
fn unreadable(why: &str) -> String {
    let cut = why.contains("unexpected end") || why.contains("out of bounds");
    let next = if cut { "; it is not whole: copy it again, or build it again" } else { "" };
    format!("is no component that can be read: {why}{next}")
}

fn first_and_root(error: &(dyn std::error::Error + 'static)) -> String {
    let mut cause = error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    let (first, root) = (one_line(&error.to_string()), one_line(&cause.to_string()));
    if first == root { first } else { format!("{first}: {root}") }
}

/// Text for one sentence: a single line of bounded length.
pub(super) fn one_line(text: &str) -> String {
    let joined = text.split_whitespace().collect::<Vec<_>>().join(" ");
    joined.chars().take(400).collect()
}

fn check_names(component: &[u8], world: World) -> Result<(ContractVersion, Vec<String>), String> {
    let decoded = wit_component::decode(component).map_err(|error| unreadable(&first_and_root(error.as_ref())))?;
    let DecodedWasm::Component(resolve, id) = decoded else {
        return Err("is a WIT package, not a component: give the built plugin".to_owned());
    };
    let Some(found) = resolve.worlds.get(id) else {
        return Err("is a component without a world".to_owned());
    };
    let name_of = |key| resolve.name_world_key(key);
    let imports: Vec<String> = found.imports.keys().map(name_of).collect();
    let exports: Vec<String> = found.exports.keys().map(name_of).collect();
    // The version first: a plugin for another version fails every other check too.
    let version = version_of(imports.iter().chain(&exports))?;
    check_not_swapped(&exports, world)?;
    check_imports(&imports, world)?;
    check_exports(&exports, world, version)?;
    // Types that a component names on their own come from these interfaces.
    let interfaces = imports.into_iter().filter(|name| name.contains(':')).collect();
    Ok((version, interfaces))
}

/// The one version that all names of the package carry. Without any such name the checks that follow say what is missing.
fn version_of<'a>(names: impl Iterator<Item = &'a String>) -> Result<ContractVersion, String> {
    let mut found = None;
    for name in names {
        let Some(version) = version_in(name)? else { continue };
        if found.is_some_and(|found| found != version) {
            return Err(format!(
                "uses two versions of {PACKAGE} at once; build it against one of {}",
                ContractVersion::served()
            ));
        }
        found = Some(version);
    }
    Ok(found.unwrap_or(ContractVersion::NEWEST))
}

fn version_in(name: &str) -> Result<Option<ContractVersion>, String> {
    let Some(rest) = name.strip_prefix(PACKAGE) else { return Ok(None) };
    let Some((_, version)) = rest.split_once('@') else {
        let served = ContractVersion::served();
        return Err(format!("uses {} without a version; this host serves {PACKAGE} {served}", one_line(name)));
    };
    let known = ContractVersion::ALL.into_iter().find(|served| served.name() == version);
    known.map(Some).ok_or_else(|| {
        format!(
            "was built for {PACKAGE} {}, and this host serves {}; build it against one of these",
            one_line(version),
            ContractVersion::served()
        )
    })
}

/// The two files of a bundle are easily swapped, and every other message would mislead then.
fn check_not_swapped(exports: &[String], world: World) -> Result<(), String> {
    let other = world.other();
    if first_missing(exports, other).is_some() || first_missing(exports, world).is_none() {
        return Ok(());
    }
    Err(format!(
        "is a {} plugin, and partner.toml names it under [{}]; swap the two files or correct the manifest",
        other.name(),
        world.name()
    ))
}

fn check_exports(exports: &[String], world: World, version: ContractVersion) -> Result<(), String> {
    let Some(missing) = first_missing(exports, world) else { return Ok(()) };
    Err(format!(
        "does not export `{missing}`, which the world `{}` of {PACKAGE} {} demands (it exports {})",
        world.name(),
        version.name(),
        if exports.is_empty() { "nothing".to_owned() } else { one_line(&exports.join(", ")) }
    ))
}

fn first_missing(exports: &[String], world: World) -> Option<&'static str> {
    world.exports().iter().copied().find(|wanted| !exports.iter().any(|name| name == wanted))
}

fn check_imports(imports: &[String], world: World) -> Result<(), String> {
    for name in imports {
        // Names without a package are the world's own types; the linker refuses anything else among them.
        if !name.contains(':') {
            continue;
        }
        let interface =
            name.strip_prefix(PACKAGE).and_then(|rest| rest.strip_prefix('/')).and_then(|rest| rest.split('@').next());
        if interface.is_some_and(|interface| world.interfaces().contains(&interface)) {
            continue;
        }
        if wasi::is_served(name) {
            continue;
        }
        let why = if interface.is_some() {
            format!("the world `{}` does not have it", world.name())
        } else if name.starts_with("wasi:") {
            "of WASI only the basic packages in versions 0.2.x are answered, with nothing in them; build for wasm32-unknown-unknown, or switch the runtime's WASI features off".to_owned()
        } else {
            format!("a plugin imports nothing but {PACKAGE}")
        };
        return Err(format!("imports `{}`: {why}", one_line(name)));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(list: &[&str]) -> Vec<String> {
        list.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn what_is_not_webassembly_is_told() {
        let engine = Engine::default();
        let refused = |bytes: &[u8]| admit(&engine, bytes.to_vec(), World::Builder).err().unwrap();
        assert!(refused(b"MZ").contains("not WebAssembly"));
        assert!(refused(b"").contains("not WebAssembly"));
        assert!(refused(b"\x7fELF and more").contains("compiled code"));
        let module = refused(b"\0asm\x01\0\0\0");
        assert!(module.contains("core module") || module.contains("does not export"), "{module}");
    }

    /// Two memories, which the host's engine does not have.
    #[test]
    fn what_is_built_is_checked_as_what_is_loaded() {
        let module = b"\0asm\x01\0\0\0\x05\x05\x02\0\x01\0\x01".to_vec();
        let error = check_component(module, World::Builder).unwrap_err();
        assert!(error.contains("is a broken module") && error.contains("memories"), "{error}");
    }

    #[test]
    fn a_component_without_exports_is_told_what_is_missing() {
        let engine = Engine::default();
        let error = admit(&engine, b"\0asm\x0d\0\x01\0".to_vec(), World::Destination).err().unwrap();
        assert!(error.contains("`final-name`"), "{error}");
    }

    #[test]
    fn another_version_is_told_with_those_that_are_served() {
        let version = |name: &str| version_of([name.to_owned()].iter());
        let error = version("waybill:partner/types@0.9.0").unwrap_err();
        assert!(error.contains("0.9.0") && error.contains("serves 0.1.0, 0.2.0"), "{error}");
        assert_eq!(version("waybill:partner/types@0.1.0"), Ok(ContractVersion::V0_1_0));
        assert_eq!(version("waybill:partner/types@0.2.0"), Ok(ContractVersion::V0_2_0));
        let both = ["waybill:partner/types@0.1.0".to_owned(), "waybill:partner/log@0.2.0".to_owned()];
        assert!(version_of(both.iter()).unwrap_err().contains("two versions"));
        assert!(version("waybill:partner/types").unwrap_err().contains("without a version"));
        assert!(version("wasi:cli/environment@0.2.0").is_ok(), "told later, as an import");
    }

    #[test]
    fn swapped_components_are_told_as_such() {
        let error = check_not_swapped(&names(World::Destination.exports()), World::Builder).unwrap_err();
        assert!(error.contains("is a destination plugin"), "{error}");
    }

    #[test]
    fn an_import_beyond_the_world_is_told_by_name() {
        for (name, world, part) in [
            ("wasi:http/outgoing-handler@0.2.0", World::Builder, "WASI"),
            ("acme:tools/net@1.0.0", World::Builder, "nothing but"),
            ("waybill:partner/remote@0.1.0", World::Builder, "does not have it"),
            ("waybill:partner/entropy@0.1.0", World::Destination, "does not have it"),
        ] {
            let error = check_imports(&names(&[name]), world).unwrap_err();
            assert!(error.contains(name) && error.contains(part), "{error}");
        }
        let fine = ["job", "waybill:partner/log@0.1.0", "wasi:cli/environment@0.2.9"];
        assert!(check_imports(&names(&fine), World::Builder).is_ok());
    }
}
