//! The rules of a job: its states, its terms, what was agreed with a partner, and what evidence proves.
//!
//! Pure: no input or output, no clock, no runtime, and nothing of the host is imported. The store repeats the
//! states and edges as constraints and triggers, and a test compares the two.

pub mod contract;
pub mod evidence;
pub mod facts;
pub mod model;
pub mod names;
pub mod on_record;
pub mod remedy;
pub mod status;
pub mod verdict;
