//! Bundles and the calls into them: what is refused, what is bounded, what cannot be expressed.
//!
//! The guests are the repository's own, built by `make plugins`.

mod authority;
mod bounded;
mod builders;
pub mod fixture;
mod gpg;
mod refused;
mod reload;
mod settings;
mod swallowed;
mod together;
mod versions;
mod words;
