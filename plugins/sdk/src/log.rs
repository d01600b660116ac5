//! Messages for the operators. Never write personal data.
//!
//! The host adds partner, job and attempt, shortens long messages, and drops what a call writes past its bound.

use crate::bindings::shared::waybill::partner::log::{Level, write};

/// Details for those who write the plugin.
pub fn debug(message: &str) {
    write(Level::Debug, message);
}

/// What happened.
pub fn info(message: &str) {
    write(Level::Info, message);
}

/// What a person should look at in time.
pub fn warn(message: &str) {
    write(Level::Warn, message);
}

/// Why this call cannot do its work.
pub fn error(message: &str) {
    write(Level::Error, message);
}
