//! What proves a transition after a lost answer where the row alone cannot tell who made it: the event that it wrote.

use uuid::Uuid;

use super::boundary::Landed;
use super::error::StoreError;
use crate::job::status::EventKind;

/// The event that a transition of this very caller would have written.
pub(super) struct OwnEvent {
    pub act: &'static str,
    pub job: Uuid,
    pub attempt: Uuid,
    pub kind: EventKind,
    pub observed_by: String,
    pub detail: Option<serde_json::Value>,
}

impl OwnEvent {
    /// The transition took effect if its event stands. It stands with the write or not at all, since both are one
    /// statement.
    pub fn landed(self) -> Landed<()> {
        Box::new(move |connection, _| {
            Box::pin(async move {
                let Self { act, job, attempt, kind, observed_by, detail } = self;
                let stands = sqlx::query_scalar!(
                    r#"-- store::recorded
                       SELECT EXISTS (SELECT FROM export_attempt_events
                                      WHERE (job_id, attempt_id, kind, observed_by) = ($1, $2, $3, $4)
                                        AND detail IS NOT DISTINCT FROM $5) AS "stands!""#,
                    job,
                    attempt,
                    kind.as_str(),
                    observed_by,
                    detail
                )
                .fetch_one(connection)
                .await
                .map_err(|error| StoreError::sort(act, error))?;
                Ok(stands.then_some(()))
            })
        })
    }
}
