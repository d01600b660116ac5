//! An edit of a queued job's terms: the version rises, and a new wake-up brings the job back to policy.
//!
//! A worker that evaluated the old terms fails its claim. Refused: the job was claimed, ended, or edited by somebody
//! else since it was read, or it is a replacement and was to go elsewhere than its original.

use time::OffsetDateTime;
use uuid::Uuid;

use super::boundary::{AskTheRow, Boundary, landed_if};
use super::error::{StoreError, sqlstate};
use super::pools::Pool;
use super::write::Write;
use crate::job::status::Status;

/// The terms as they shall be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TermsEdit {
    pub tenant: Uuid,
    pub job: Uuid,
    /// The version that the editor read.
    pub expected_version: i32,
    pub destination: Uuid,
    pub scope: serde_json::Value,
    pub not_before: Option<OffsetDateTime>,
    pub edited_by: String,
}

/// What came of an edit.
#[must_use = "a refused edit changed nothing"]
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Edit {
    /// `Written` holds the new version.
    Answered(Write<i32>),
    /// The tenant has no such destination. Nothing was written.
    NoSuchDestination,
}

/// Edits the terms of a queued job.
pub async fn edit_terms(pool: &Pool, edit: TermsEdit) -> Result<Edit, StoreError> {
    let expected = edit.expected_version;
    let boundary = Boundary {
        act: "edit_terms",
        job: edit.job,
        tenant: Some(edit.tenant),
        ask: AskTheRow::AfterALostAnswer,
        // Another editor may have raised the version instead; then this one's answer stays unknown.
        landed: landed_if(move |found| {
            (found.status == Status::Queued && found.version == expected + 1).then_some(None)
        }),
    };
    let answer = boundary
        .run(pool, async move |mut connection| {
            let row = sqlx::query_file!(
                "src/store/edit_terms.sql",
                edit.tenant,
                edit.job,
                edit.expected_version,
                edit.destination,
                edit.scope,
                edit.not_before,
                edit.edited_by
            )
            .fetch_optional(&mut *connection)
            .await?;
            Ok(row.map(|row| Some(row.version)))
        })
        .await;
    match answer {
        Ok(Write::Written(Some(version))) => Ok(Edit::Answered(Write::Written(version))),
        Ok(Write::Written(None)) => Err(StoreError::MaybeCommitted {
            act: "edit_terms",
            source: "the version rose, by this edit or by another".into(),
        }),
        Ok(Write::Refused(found)) => Ok(Edit::Answered(Write::Refused(found))),
        Ok(Write::Absent) => Ok(Edit::Answered(Write::Absent)),
        Err(error)
            if error.code() == Some(sqlstate::FOREIGN_KEY_VIOLATION)
                && error.constraint() == Some("fk_export_jobs_destination") =>
        {
            Ok(Edit::NoSuchDestination)
        }
        Err(error) => Err(error),
    }
}
