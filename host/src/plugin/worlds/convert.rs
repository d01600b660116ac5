//! Between the contract's records and the host's own model. A guest's texts are cleaned of data and
//! bounded on the way in, all of them: what is converted here is what events, logs and errors may hold.

use time::format_description::well_known::Rfc3339;

use super::State;
use crate::job::facts::{self, FileFacts, Listing, Sha256};
use crate::job::model::{ClaimedJob, Replacement};
use crate::plugin::bindings::{evidence, remote, types};
use crate::plugin::call::FailureKind;
use crate::plugin::reported::{Reported, ReportedAcknowledgment, bounded_list};
use crate::remote::RemoteError;

/// Who computed a digest that a plugin reports.
const BY_PLUGIN: &str = "plugin";

/// A claimed job as plugins see it.
pub(crate) fn job(job: &ClaimedJob, settings: &[(String, String)]) -> Result<types::Job, String> {
    let created = job.created_at.to_offset(time::UtcOffset::UTC);
    let created_at = created
        .format(&Rfc3339)
        .map_err(|error| format!("the job's creation time cannot be written as RFC 3339: {error}"))?;
    Ok(types::Job {
        id: job.id.to_string(),
        tenant: job.tenant.to_string(),
        attempt: job.attempt.to_string(),
        destination: job.destination.to_string(),
        delivery_key: job.delivery_key.clone(),
        created_at,
        created: moment(created)?,
        version: u32::try_from(job.version).map_err(|_| format!("the job's version {} is negative", job.version))?,
        replacement: job.replacement.as_ref().map(replacement),
        scope: scope(&job.scope),
        settings: settings.iter().map(|(name, value)| setting(name, value.clone())).collect(),
        extra: Vec::new(),
    })
}

fn moment(time: time::OffsetDateTime) -> Result<types::Moment, String> {
    Ok(types::Moment {
        year: u16::try_from(time.year()).map_err(|_| format!("the job's creation year {} is negative", time.year()))?,
        month: time.month().into(),
        day: time.day(),
        hour: time.hour(),
        minute: time.minute(),
        second: time.second(),
    })
}

fn replacement(replacement: &Replacement) -> types::Replacement {
    types::Replacement {
        original_job: replacement.original.to_string(),
        overwrite_agreed: replacement.overwrite_agreed,
        original_expected: replacement.original_expected.as_ref().map(file_facts),
    }
}

/// The scope's entries: scalars as their text, anything nested as JSON. A scope that is no object has none.
fn scope(scope: &serde_json::Value) -> Vec<types::Setting> {
    let text = |value: &serde_json::Value| match value {
        serde_json::Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    scope.as_object().into_iter().flatten().map(|(name, value)| setting(name, text(value))).collect()
}

fn setting(name: &str, value: String) -> types::Setting {
    types::Setting { name: name.to_owned(), value }
}

pub(crate) fn file_facts(facts: &FileFacts) -> types::FileFacts {
    types::FileFacts { name: facts.name.clone(), bytes: facts.bytes, sha256: facts.sha256.0.to_vec() }
}

/// A failed remote operation in the contract's words.
pub(super) fn failure(error: RemoteError) -> types::Failure {
    match error {
        RemoteError::Stopped => types::Failure::Stopped,
        RemoteError::Forbidden { why } => types::Failure::Forbidden(why),
        RemoteError::Invalid { why } => types::Failure::Invalid(why),
        RemoteError::NotSent { why } => types::Failure::Other(format!("not sent: {why}")),
        RemoteError::Refused { code, text } => types::Failure::Refused(match code {
            Some(code) => format!("the server refused with status {code}: {text}"),
            None => format!("the server refused: {text}"),
        }),
        RemoteError::Unknown { why } => types::Failure::Unknown(why),
    }
}

/// The kind of a guest's failure, and its own words as they came.
pub(crate) fn typed_failure(failure: types::Failure) -> (FailureKind, String) {
    match failure {
        types::Failure::Stopped => (FailureKind::Stopped, String::new()),
        types::Failure::Forbidden(text) => (FailureKind::Forbidden, text),
        types::Failure::Refused(text) => (FailureKind::Refused, text),
        types::Failure::Unknown(text) => (FailureKind::Unknown, text),
        types::Failure::Invalid(text) => (FailureKind::Invalid, text),
        types::Failure::Other(text) => (FailureKind::Other, text),
    }
}

pub(super) fn entry(entry: facts::Entry) -> remote::Entry {
    remote::Entry { name: entry.name, kind: entry.kind, bytes: entry.bytes, modified: entry.modified }
}

pub(super) fn found(found: facts::Found) -> remote::Found {
    match found {
        facts::Found::Absent => remote::Found::Absent,
        facts::Found::Present(present) => remote::Found::Present(entry(present)),
        facts::Found::NotVisible { why } => remote::Found::NotVisible(why),
        facts::Found::Unknown { why } => remote::Found::Other(why),
    }
}

/// The recorded baseline, for the guest.
pub(crate) fn guest_listing(listing: &Listing) -> evidence::Listing {
    evidence::Listing {
        name: listing.at.clone(),
        found: found(listing.found.clone()),
        sha256: listing.sha256.map(|digest| digest.0.to_vec()),
        extra: Vec::new(),
    }
}

/// A guest's listing, as a baseline.
pub(crate) fn baseline(state: &State, listing: evidence::Listing) -> Listing {
    reported_listing(state, listing)
}

pub(crate) fn receipt(state: &State, receipt: evidence::Receipt) -> Reported {
    let evidence::Receipt { listing, acknowledgment, auxiliary, extra } = receipt;
    Reported {
        listing: listing.map(|listing| reported_listing(state, listing)),
        acknowledgment: acknowledgment.map(|told| reported_acknowledgment(state, told)),
        auxiliary: bounded_list(auxiliary, |name| state.name(&name)),
        again_after_seconds: None,
        extra: remarks(state, extra),
    }
}

pub(crate) fn observation(state: &State, observation: evidence::Observation) -> Reported {
    let evidence::Observation { listing, acknowledgment, again_after_seconds, extra } = observation;
    Reported {
        listing: listing.map(|listing| reported_listing(state, listing)),
        acknowledgment: acknowledgment.map(|told| reported_acknowledgment(state, told)),
        auxiliary: Vec::new(),
        again_after_seconds,
        extra: remarks(state, extra),
    }
}

/// Remarks beside a listing are not kept.
fn reported_listing(state: &State, listing: evidence::Listing) -> Listing {
    let sha256 = listing.sha256.and_then(|bytes| Sha256::try_from(bytes.as_slice()).ok());
    Listing {
        at: state.name(&listing.name),
        found: match listing.found {
            remote::Found::Absent => facts::Found::Absent,
            remote::Found::Present(present) => facts::Found::Present(facts::Entry {
                name: state.name(&present.name),
                kind: state.name(&present.kind),
                bytes: present.bytes,
                modified: present.modified,
            }),
            remote::Found::NotVisible(why) => facts::Found::NotVisible { why: state.words(&why) },
            remote::Found::Other(why) => facts::Found::Unknown { why: state.words(&why) },
        },
        sha256,
        hashed_by: sha256.map(|_| BY_PLUGIN.to_owned()),
    }
}

fn reported_acknowledgment(state: &State, told: evidence::Acknowledgment) -> ReportedAcknowledgment {
    let evidence::Acknowledgment { name, delivery_key, attempt, sha256, says, extra } = told;
    ReportedAcknowledgment {
        name: state.name(&name),
        delivery_key: state.name(&delivery_key),
        attempt: attempt.map(|attempt| state.name(&attempt)),
        sha256: sha256.and_then(|bytes| Sha256::try_from(bytes.as_slice()).ok()).map(|digest| digest.to_string()),
        says: state.name(&says),
        extra: remarks(state, extra),
    }
}

fn remarks(state: &State, settings: Vec<types::Setting>) -> Vec<(String, String)> {
    bounded_list(settings, |setting| (state.name(&setting.name), state.words(&setting.value)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scope_is_flat_text() {
        let json =
            serde_json::json!({ "since": "2026-01-01", "limit": 5, "all": true, "none": null, "lists": ["a", "b"] });
        let settings: Vec<(String, String)> = scope(&json).into_iter().map(|one| (one.name, one.value)).collect();
        let expected =
            [("all", "true"), ("limit", "5"), ("lists", "[\"a\",\"b\"]"), ("none", "null"), ("since", "2026-01-01")];
        assert_eq!(settings, expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
        assert!(scope(&serde_json::json!(null)).is_empty());
    }

    #[test]
    fn a_reported_digest_of_another_length_counts_as_none() {
        let listing = evidence::Listing {
            name: "a".into(),
            found: remote::Found::Absent,
            sha256: Some(vec![1; 31]),
            extra: Vec::new(),
        };
        let listing = baseline(&State::of_a_test(), listing);
        assert_eq!((listing.sha256, listing.hashed_by), (None, None));
    }
}
