//! The commands of bundles' authors, by the program itself: no database, no configuration, no network but loopback.
//!
//! It is here and not in the suite because only a package's own tests are promised its built program.

mod authored;
mod built;
mod conventions;
mod matrix;
mod recorded;
mod rehearsed;
mod reported;
mod stage;
