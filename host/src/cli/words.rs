//! Words of a person as an argument, and words that any command may need.

use uuid::Uuid;

/// What was typed, without blanks around it. Nothing at all says nothing.
pub(super) fn words(text: &str) -> Result<String, String> {
    match text.trim() {
        "" => Err("it needs words: they are put on record".to_owned()),
        words => Ok(words.to_owned()),
    }
}

/// A job's id as it was typed.
pub(super) fn job_id(text: &str) -> Result<Uuid, String> {
    text.parse().map_err(|_| "write a job's id (UUID), not its key; `waybill job list` shows both".to_owned())
}

/// `1 time`, `2 times`.
pub(super) fn counted(count: impl Into<u64>, one: &str) -> String {
    match count.into() {
        1 => format!("1 {one}"),
        count => format!("{count} {one}s"),
    }
}

/// How a person says that a destination is mended.
pub(super) fn resume(destination: Uuid, tenant: Uuid) -> String {
    format!("waybill destination resume {destination} --tenant {tenant} --as YOU")
}
