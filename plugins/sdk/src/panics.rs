//! What a panic says, on its way to the operators.

use std::panic::{self, PanicHookInfo};
use std::sync::Once;

use crate::log;

/// Without this a panic reaches the operators as "unreachable", without a word of what or where.
pub fn report_panics() {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| panic::set_hook(Box::new(|info| log::error(&describe(info)))));
}

fn describe(info: &PanicHookInfo<'_>) -> String {
    let message = info.payload_as_str().unwrap_or("a panic without a text");
    match info.location() {
        Some(place) => format!("the plugin panicked at {}:{}: {message}", place.file(), place.line()),
        None => format!("the plugin panicked: {message}"),
    }
}
