//! Plugins: a partner's bundle on disk, its components in a sandbox, and the calls into them.
//!
//! [`Plugins`] reads a bundle or refuses it, [`Scanner`] notices what changed in the partners directory, and the
//! [`Registry`] holds what is served now. A [`Bundle`] is immutable and shared, so that a running attempt keeps the
//! components that it started with. Each call gets a store of its own with a limit on time, memory, output and log lines, and the
//! store is thrown away with the call.
//!
//! What people write: `document` reads TOML and tells faults by file and line; `manifest` is `partner.toml`, with `limits`, `patterns`
//! of names, the `part`s that it is made of and the `pins` of their digests; `destinations` is the operator's file, with `endpoint` and
//! with `checked`, on which a check of a server depends; `rehearsed` is a destination without that file. `files` reads only what is a
//! file and no more than its bound, `examine` reads a bundle without compiling it, and `error` says what can be wrong.
//!
//! From bytes to a call: `registry` loads a bundle with `component`, which is checked against its world, `engine` and `cache`; `bundle`
//! has the calls, `call` bounds and sorts them, `versions` puts them into the words of the contract that the component was built for,
//! `bindings` are those words, and `worlds` is what a guest may ask of the host. `open_query` reaches the tenant's data, `reported` is what
//! a guest said, `measure` what its calls took. `scan` and `served` are the [`Scanner`] and the [`Registry`].
//!
//! The rule kept here: a plugin holds no credential, no socket, no file and no clock, and a call before cutoff 2 is
//! handed nothing through which a write could be expressed. What a plugin returns is a report; this module bounds it
//! and proves nothing with it. wasmtime and wit-component stay inside.

mod bindings;
mod bundle;
mod cache;
mod call;
mod checked;
mod component;
mod destinations;
mod document;
mod endpoint;
mod engine;
mod error;
mod examine;
mod files;
mod limits;
mod manifest;
mod measure;
mod open_query;
mod part;
mod patterns;
mod pins;
mod registry;
mod rehearsed;
mod reported;
mod scan;
mod served;
mod versions;
mod worlds;

pub use bundle::{Built, Bundle};
pub use call::{CallError, FailureKind, LimitKind};
pub use component::{ContractVersion, World, check_component};
pub use destinations::Destination;
pub use document::{DocumentError, edits, with_fix};
pub use error::{BundleError, BundleFault, PluginError};
pub use examine::{Examined, ExaminedComponent, examine, examine_all};
pub use limits::Limits;
pub use manifest::{Manifest, NamePatterns};
pub use measure::{Asked, Measured, Meter};
pub use open_query::OpenQuery;
pub use part::Part;
pub use pins::repinned;
pub use registry::{Holder, PluginSettings, Plugins, beside};
pub use rehearsed::Address;
pub use reported::{Reported, ReportedAcknowledgment};
pub use scan::{Contents, Scanner};
pub use served::{Registry, Served};
pub use worlds::Handed;
