//! A row of `export_jobs` as the model of the host, shared by the reads.

use time::OffsetDateTime;
use uuid::Uuid;

use super::error::{StoreError, stored};
use crate::job::facts::{FileFacts, Sha256};
use crate::job::model::Job;

/// Every column of `export_jobs` that the host reads, under the database's names.
pub(super) struct JobRow {
    pub id: Uuid,
    pub tenant_id: Uuid,
    pub status: String,
    pub version: i32,
    pub destination_id: Uuid,
    pub scope: serde_json::Value,
    pub not_before: Option<OffsetDateTime>,
    pub priority: i16,
    pub attempt_id: Option<Uuid>,
    pub attempt_count: i32,
    pub claimed_by: Option<String>,
    pub lease_expires_at: Option<OffsetDateTime>,
    pub stop_request_id: Option<Uuid>,
    pub cancellation_request_id: Option<Uuid>,
    pub expected_file_name: Option<String>,
    pub expected_file_bytes: Option<i64>,
    pub expected_file_sha256: Option<Vec<u8>>,
    pub delivery_authorized_at: Option<OffsetDateTime>,
    pub publish_intended_at: Option<OffsetDateTime>,
    pub woken_at: OffsetDateTime,
    pub failure_reason: Option<String>,
    pub rejection: Option<serde_json::Value>,
    pub delivery_key: String,
    pub replaces_job_id: Option<Uuid>,
    pub created_by: String,
    pub created_at: OffsetDateTime,
    pub replacement_reason: Option<String>,
    pub overwrite_agreement_ref: Option<String>,
    pub sweep_count: i32,
}

impl JobRow {
    pub fn into_job(self, act: &'static str) -> Result<Job, StoreError> {
        Ok(Job {
            id: self.id,
            tenant: self.tenant_id,
            status: stored(act, &self.status)?,
            version: self.version,
            destination: self.destination_id,
            delivery_key: self.delivery_key,
            scope: self.scope,
            not_before: self.not_before,
            priority: self.priority,
            created_at: self.created_at,
            created_by: self.created_by,
            replaces: self.replaces_job_id,
            replacement_reason: self.replacement_reason,
            overwrite_agreement_ref: self.overwrite_agreement_ref,
            attempt: self.attempt_id,
            attempt_count: self.attempt_count,
            claimed_by: self.claimed_by,
            lease_expires_at: self.lease_expires_at,
            stop_request: self.stop_request_id,
            cancellation_request: self.cancellation_request_id,
            expected: file_facts(act, self.expected_file_name, self.expected_file_bytes, self.expected_file_sha256)?,
            delivery_authorized_at: self.delivery_authorized_at,
            publish_intended_at: self.publish_intended_at,
            failure_reason: self.failure_reason.as_deref().map(|code| stored(act, code)).transpose()?,
            rejection: self.rejection,
            woken_at: self.woken_at,
            sweep_count: self.sweep_count,
        })
    }
}

/// The facts that cutoff 2 recorded. A CHECK keeps them all set or all null.
pub(super) fn file_facts(
    act: &'static str,
    name: Option<String>,
    bytes: Option<i64>,
    sha256: Option<Vec<u8>>,
) -> Result<Option<FileFacts>, StoreError> {
    let (Some(name), Some(bytes), Some(sha256)) = (name, bytes, sha256) else { return Ok(None) };
    Ok(Some(FileFacts {
        name,
        bytes: u64::try_from(bytes).map_err(|error| StoreError::unreadable(act, error))?,
        sha256: Sha256::try_from(sha256.as_slice()).map_err(|error| StoreError::unreadable(act, error))?,
    }))
}
