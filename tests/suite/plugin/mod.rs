//! Bundles and the calls into them: what is refused, what is bounded, what cannot be expressed.
//!
//! The guests are the repository's own, built by `make plugins`.

mod authority;
mod bounded;
pub mod fixture;
mod refused;
mod reload;
mod settings;
mod versions;
