//! What several of these commands read, and answers that they share.

use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use uuid::Uuid;

use crate::cli::Ended;
use crate::cli::output::Output;
use crate::job::status::Status;
use crate::store::StoreError;

/// Answers that the tenant has no such job; another tenant's looks the same.
pub(super) fn not_found(output: Output, tenant: Uuid, job: Uuid) -> anyhow::Result<()> {
    output.answer(&serde_json::json!({ "job": job, "outcome": "NotFound" }), || {
        format!(
            "NotFound: the tenant {tenant} has no job {job}; `waybill job list --tenant {tenant}` shows those it has"
        )
    })
}

/// A write that a person asked for and that was not done: its code, and why with what to do next.
pub(super) struct Refusal {
    pub ended: Ended,
    pub outcome: &'static str,
    pub sentence: String,
}

impl Refusal {
    pub fn new(outcome: &'static str, sentence: String) -> Self {
        Self { ended: Ended::Refused, outcome, sentence }
    }

    /// Nothing was written, and the same command may succeed now.
    pub fn again(outcome: &'static str, sentence: String) -> Self {
        Self { ended: Ended::TryAgain, outcome, sentence }
    }

    /// A write whose answer was lost; any other error is the command's own.
    pub fn of_error(error: StoreError, look: &str) -> anyhow::Result<Self> {
        match error {
            StoreError::MaybeCommitted { .. } => Ok(Self::again(
                "NotKnown",
                format!(
                    "The database's answer was lost, so it may or may not have been written. Look before you try again: {look}"
                ),
            )),
            StoreError::NeverSent { .. } | StoreError::Answered { .. } | StoreError::Unreadable { .. } => {
                Err(error.into())
            }
        }
    }

    /// Prints it.
    pub fn answer(self, output: Output, job: Uuid) -> anyhow::Result<Ended> {
        let Self { ended, outcome, sentence } = self;
        output.answer(&serde_json::json!({ "job": job, "outcome": outcome, "sentence": sentence }), || {
            format!("{outcome}: {sentence}")
        })?;
        Ok(ended)
    }
}

pub(super) fn pair(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("write it as NAME=VALUE")?;
    if name.is_empty() { Err("the name is missing".to_owned()) } else { Ok((name.to_owned(), value.to_owned())) }
}

pub(super) fn timestamp(text: &str) -> Result<OffsetDateTime, String> {
    OffsetDateTime::parse(text, &Rfc3339)
        .map_err(|_| "write it in RFC 3339, for example 2026-12-01T06:00:00Z".to_owned())
}

pub(super) fn status(text: &str) -> Result<Status, String> {
    text.parse().map_err(|_| {
        let known: Vec<&str> = Status::ALL.iter().map(|status| status.as_str()).collect();
        format!("the states are {}", known.join(", "))
    })
}
