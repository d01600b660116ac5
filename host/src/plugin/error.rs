//! What can be wrong with the sandbox as a whole, and with one bundle.
//!
//! A bundle's fault is one sentence for the person who dropped it in: which file, which line, what, and what to do.

use std::path::PathBuf;

use super::document::DocumentError;
use super::part::Part;

/// Why plugins cannot be served at all.
#[derive(Debug, thiserror::Error)]
pub enum PluginError {
    #[error("the WebAssembly engine cannot be set up")]
    Engine(#[source] wasmtime::Error),
    #[error("the thread that bounds the plugins' computing time cannot be started")]
    Ticker(#[source] std::io::Error),
    #[error("the threads that compile plugins cannot be started")]
    Compilers(#[source] rayon::ThreadPoolBuildError),
    #[error("the cache directory {directory:?} cannot be used; give a directory that belongs to this process's user")]
    Cache {
        directory: PathBuf,
        #[source]
        source: std::io::Error,
    },
    #[error(
        "the cache directory {directory:?} is open to others (mode {mode:o}, owner {owner}); compiled code is trusted, so give it to this process's user alone: chmod 700"
    )]
    CacheOpen { directory: PathBuf, mode: u32, owner: u32 },
    #[error(
        "the partners directory {directory:?} cannot be read; make it (`mkdir`) if it is not there, or name another with [directories] partners in the configuration or WAYBILL_PARTNERS"
    )]
    Partners {
        directory: PathBuf,
        #[source]
        source: std::io::Error,
    },
}

/// A bundle that is not served, and why.
#[derive(Debug, thiserror::Error)]
#[error("bundle {bundle} is refused: {fault}")]
pub struct BundleError {
    /// The name of its directory.
    pub bundle: String,
    pub fault: BundleFault,
}

/// What is wrong with a bundle.
#[derive(Debug, thiserror::Error)]
pub enum BundleFault {
    #[error("its directory name is not readable as UTF-8; rename it")]
    DirectoryName,
    #[error("{file} cannot be read ({why}); add it{}, or correct its permissions", built(.file))]
    Unreadable { file: String, why: String },
    #[error("{0}")]
    Document(DocumentError),
    #[error("{file} {what}")]
    Component { file: String, what: String },
    #[error(
        "{file} has the SHA-256 {found}, but partner.toml pins {pinned}; restore the pinned component, or pin the new one and raise the revision"
    )]
    Digest { file: String, pinned: String, found: String },
    #[error("destination {destination} is already served by bundle {holder}; an id belongs to one destination only")]
    DestinationTaken { destination: uuid::Uuid, holder: String },
    #[error("the partner name {partner:?} is already used by bundle {holder}; choose another in partner.toml")]
    PartnerTaken { partner: String, holder: String },
    #[error(
        "partner.toml says that it is a {part} alone (`part = \"{part}\"`), which is tested and not served; put the other component beside it and take that line out"
    )]
    OnePart { part: Part },
    /// Only where it was not to be compiled.
    #[error("{file} is not compiled yet")]
    NotCompiled { file: String },
    /// What the database has on record of its destinations speaks against it.
    #[error("{what}")]
    OnRecord { what: String },
    /// The same of a destination's name, which the one that has it may give up.
    #[error("{what}")]
    NameTaken { what: String },
}

/// How a component comes about, where the file is one.
fn built(file: &str) -> &'static str {
    let component = std::path::Path::new(file).extension().is_some_and(|extension| extension == "wasm");
    if component { " (`waybill plugin build DIR` makes it where its sources lie beside it)" } else { "" }
}
