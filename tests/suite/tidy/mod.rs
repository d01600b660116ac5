//! Holds the architecture: what may import what, what a statement may say, that each claimed requirement has its test.
//!
//! These tests read the sources as text and syntax; each check is also shown to fail on a source that breaks it.

mod contract;
mod house;
mod imports;
mod requirements;
mod settings;
mod sources;
mod statements;
mod terms;
