//! The commands of bundles' authors, by the program itself: no database, no configuration, no network but loopback. What
//! they make is taken the operators' way, with all three, by `onboarded`.
//!
//! It is here and not in the suite because only a package's own tests are promised its built program.

mod authored;
mod built;
mod conventions;
mod examples;
mod matrix;
mod onboarded;
mod recorded;
mod rehearsed;
mod reported;
mod stage;
mod weighed;
