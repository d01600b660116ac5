//! The operators' commands, by the program itself, on a real database: what they say, what they write, how they end.
//!
//! It is here and not in the suite because only a package's own tests are promised its built program.

mod advised;
mod answered;
mod bundles;
mod canaries;
mod checks;
mod corrections;
mod creations;
mod edits;
mod explained;
mod help;
mod partners;
mod reconciliations;
mod replacements;
mod stage;
mod watching;
