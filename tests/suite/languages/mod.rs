//! The example plugins in Rust, JavaScript and Python: the same rows must leave the house as the same bytes under the same
//! name, whatever language the partner's engineer chose.
//!
//! `delivered` goes the whole way, with real data and a server; `built` compares what a rarer or a wrong setting does;
//! `reused` replaces a file by agreement;
//! `wasi` shows what the host answers a runtime that imports it.

mod built;
mod delivered;
mod reused;
mod wasi;

/// The example plugins of one language by their files in `target/plugins`.
#[derive(Debug, Clone, Copy)]
pub struct Language {
    pub name: &'static str,
    pub builder: &'static str,
    pub destination: &'static str,
}

/// Rust first: the others are compared with it.
pub const LANGUAGES: [Language; 3] = [
    Language { name: "Rust", builder: "csv-builder", destination: "sftp-destination" },
    Language { name: "JavaScript", builder: "javascript-builder", destination: "javascript-destination" },
    Language { name: "Python", builder: "python-builder", destination: "python-destination" },
];
