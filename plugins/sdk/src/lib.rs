//! For writing Waybill's partner plugins in Rust.
//!
//! A partner has two plugins: a [`Builder`] that makes the file from rows, and a [`Destination`] that speaks the partner's
//! conventions. Each is a crate of type `cdylib` that depends on this one with the feature `builder` or `destination` (and
//! `default-features = false`), implements one trait and names the implementation in one macro. It is built for
//! `wasm32-unknown-unknown` and imports nothing but the contract, `wit/0.2.0/partner.wit`, whose comments say what each call
//! means, its units and its bounds.
//!
//! A plugin reports, the host decides: nothing that these functions return makes a delivery completed or failed by itself.
//!
//! # A builder
//!
//! ```
//! use std::io::Write as _;
//!
//! use waybill_guest::{Builder, Built, Failure, Job, Output, Value, rows};
//!
//! struct Addresses;
//!
//! impl Builder for Addresses {
//!     fn build(job: &Job, output: &mut Output<'_>) -> Result<Built, Failure> {
//!         let mut written = 0;
//!         for row in rows(job.required("query")?, &job.scope)? {
//!             for value in row? {
//!                 if let Value::Text(text) = value {
//!                     writeln!(output, "{text}")?;
//!                 }
//!             }
//!             written += 1;
//!         }
//!         Ok(Built { rows: written })
//!     }
//! }
//!
//! waybill_guest::export_builder!(Addresses);
//! ```
//!
//! Builders of files of rows share more than this: columns, encodings, words for true and nothing, compression. The feature `table` has
//! it, as a module of that name.
//!
//! # A destination
//!
//! ```
//! use waybill_guest::{Destination, Failure, FileFacts, Job, Listing, Reader, Receipt, Writer};
//!
//! struct Partner;
//!
//! impl Destination for Partner {
//!     fn final_name(job: &Job) -> Result<String, Failure> {
//!         Ok(format!("contacts-{}.csv", job.delivery_key))
//!     }
//!
//!     fn deliver(
//!         _: &Job,
//!         expected: &FileFacts,
//!         _: &Listing,
//!         auxiliary: &[String],
//!         look: &Reader,
//!         send: &Writer,
//!     ) -> Result<Receipt, Failure> {
//!         send.send()?;
//!         send.publish()?;
//!         // The manifest declares one empty file beside the data: the partner's sign that it is complete.
//!         for done in auxiliary {
//!             send.put(done, &[])?;
//!         }
//!         Ok(Receipt { auxiliary: auxiliary.to_vec(), ..Receipt::of(look.list(&expected.name)?) })
//!     }
//! }
//!
//! waybill_guest::export_destination!(Partner);
//! ```
//!
//! # Failures
//!
//! The host's failures and a plugin's own are one type, [`Failure`]. Hand on what the host answered, with `?`: its kind is
//! what tells the host "nothing was sent" from "it may have happened". A panic is reported through [`log`](mod@log) with its
//! message and place before the plugin ends, so keep personal data out of panic messages, as out of every other text.

#[cfg(all(target_family = "wasm", feature = "builder", feature = "destination"))]
compile_error!(
    "a plugin is a builder or a destination: depend on waybill-guest with default-features = false and one of the features \
     `builder` and `destination`, and build plugins of both kinds by separate calls of cargo, which unites the features of one call"
);

mod bindings;
#[cfg(feature = "builder")]
mod builder;
#[cfg(feature = "destination")]
mod destination;
mod failure;
pub mod log;
#[cfg(feature = "builder")]
mod output;
mod panics;
#[cfg(feature = "builder")]
mod rows;
mod settings;
#[cfg(feature = "table")]
pub mod table;
mod template;
#[cfg(not(target_family = "wasm"))]
pub mod testing;

#[cfg(feature = "builder")]
pub use bindings::builder::Built;
#[cfg(feature = "builder")]
pub use bindings::builder::waybill::partner::entropy::random;
#[cfg(feature = "builder")]
pub use bindings::builder::waybill::partner::source::{Column, Value};
#[cfg(feature = "destination")]
pub use bindings::destination::waybill::partner::evidence::{Acknowledgment, Listing, Observation, Receipt};
#[cfg(feature = "destination")]
pub use bindings::destination::waybill::partner::remote::{Entry, Found, Reader, Sent, Writer};
pub use bindings::shared::waybill::partner::types::{Failure, FileFacts, Job, Moment, Replacement, Setting};
#[cfg(feature = "builder")]
pub use builder::Builder;
#[cfg(feature = "destination")]
pub use destination::Destination;
#[cfg(feature = "builder")]
pub use output::Output;
#[cfg(feature = "builder")]
pub use rows::{BATCH, Row, Rows, rows};
pub use template::{Template, base_name, split_extension};

#[doc(hidden)]
pub mod export {
    //! What the export macros expand to.
    #[cfg(feature = "builder")]
    pub use crate::bindings::builder;
    #[cfg(feature = "destination")]
    pub use crate::bindings::destination;
    #[cfg(feature = "builder")]
    pub use crate::builder::BuilderExport;
    #[cfg(feature = "destination")]
    pub use crate::destination::DestinationExport;
}

/// Exports a type that implements [`Builder`] as this crate's plugin. Once a crate.
#[cfg(feature = "builder")]
#[macro_export]
macro_rules! export_builder {
    ($implementation:ident) => {
        $crate::export_world!(builder, BuilderExport, Builder, $implementation);
    };
}

/// Exports a type that implements [`Destination`] as this crate's plugin. Once a crate.
#[cfg(feature = "destination")]
#[macro_export]
macro_rules! export_destination {
    ($implementation:ident) => {
        $crate::export_world!(destination, DestinationExport, Destination, $implementation);
    };
}

// Outside of WebAssembly there is no host to export to, and the check of the trait is what is left.
#[doc(hidden)]
#[macro_export]
macro_rules! export_world {
    ($world:ident, $export:ident, $world_trait:ident, $implementation:ident) => {
        #[cfg(target_family = "wasm")]
        const _: () = {
            #[allow(
                unsafe_code,
                clippy::all,
                clippy::pedantic,
                reason = "generated: the component model's entry points"
            )]
            mod exported {
                type Exported = $crate::export::$export<super::$implementation>;
        $crate::export::$world::export_world!(Exported with_types_in $crate::export::$world);
            }
        };
        #[cfg(not(target_family = "wasm"))]
        const _: () = {
            const fn implements<T: $crate::$world_trait>() {}
            implements::<$implementation>();
        };
    };
}
