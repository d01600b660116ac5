//! A job as its row tells it, and the part of it that a plugin sees.

use serde::{Deserialize, Serialize};
use time::OffsetDateTime;
use uuid::Uuid;

use super::facts::FileFacts;
use super::status::{FailureReason, Status};

/// One row of `export_jobs`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Job {
    pub id: Uuid,
    pub tenant: Uuid,
    pub status: Status,
    /// Version of the terms; every edit raises it.
    pub version: i32,
    pub destination: Uuid,
    pub delivery_key: String,
    pub scope: serde_json::Value,
    pub not_before: Option<OffsetDateTime>,
    /// Higher is woken earlier.
    pub priority: i16,
    pub created_at: OffsetDateTime,
    pub created_by: String,
    /// The original, on a replacement.
    pub replaces: Option<Uuid>,
    pub replacement_reason: Option<String>,
    pub overwrite_agreement_ref: Option<String>,
    pub attempt: Option<Uuid>,
    pub attempt_count: i32,
    pub claimed_by: Option<String>,
    pub lease_expires_at: Option<OffsetDateTime>,
    pub stop_request: Option<Uuid>,
    pub cancellation_request: Option<Uuid>,
    /// What cutoff 2 recorded.
    pub expected: Option<FileFacts>,
    pub delivery_authorized_at: Option<OffsetDateTime>,
    pub publish_intended_at: Option<OffsetDateTime>,
    pub failure_reason: Option<FailureReason>,
    pub rejection: Option<serde_json::Value>,
    pub woken_at: OffsetDateTime,
    pub sweep_count: i32,
}

/// One claimed job, as this attempt's claim saw its terms.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimedJob {
    pub id: Uuid,
    pub tenant: Uuid,
    pub attempt: Uuid,
    pub attempt_count: i32,
    pub destination: Uuid,
    pub delivery_key: String,
    /// When the original was created.
    pub created_at: OffsetDateTime,
    pub version: i32,
    pub scope: serde_json::Value,
    pub replacement: Option<Replacement>,
}

/// What a replacement knows of its original.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replacement {
    pub original: Uuid,
    /// True only while the row records the partner's agreement to an overwrite.
    pub overwrite_agreed: bool,
    /// What the original was to deliver, where its cutoff 2 recorded it.
    pub original_expected: Option<FileFacts>,
}

/// Digests of what an attempt works with, recorded by its claim. Verdicts use the stricter contract of then and now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Digests {
    /// SHA-256 in lower-case hex of the builder component's bytes.
    pub builder: String,
    /// The same of the destination component's.
    pub destination: String,
    /// The same of `partner.toml`.
    pub manifest: String,
    /// The same of this destination's settings, names and queries (secrets are references, and so not in it).
    pub settings: String,
    /// The same of the contract in canonical JSON.
    pub contract: String,
    /// The same of what a check of its server depends on: where it is, and where names lie. A claim from before there was one
    /// does not say it.
    #[serde(default)]
    pub checked: String,
}
