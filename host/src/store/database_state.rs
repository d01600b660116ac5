//! What this database is (system, timeline), and how many jobs wait because it is no longer the one they were written in.

use std::collections::BTreeMap;

use sqlx::types::Json;

use super::error::StoreError;
use super::pools::Pool;
use crate::job::status::Status;

/// The database's identity and what it holds back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DatabaseState {
    pub system: i64,
    pub timeline: i64,
    pub held_back: HeldBack,
    /// A person said that the standby is synchronous, so that later timelines of this system are accepted too.
    pub standing: bool,
}

/// Jobs that wait for a person's words, by what is refused until then.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct HeldBack {
    /// Queued, and not claimed.
    pub queued: i64,
    /// Running or Delivering, and neither requeued nor taken over when their lease ends.
    pub owned: i64,
    /// `OutcomeUnknown` without a publish fence, which proves nothing.
    pub unproven: i64,
}

impl HeldBack {
    /// All of them.
    pub const fn total(self) -> i64 {
        self.queued + self.owned + self.unproven
    }
}

/// Reads both in one statement, over live jobs only.
pub async fn database_state(pool: &Pool) -> Result<DatabaseState, StoreError> {
    const ACT: &str = "database_state";
    let mut connection = pool.acquire(ACT).await?;
    let row = sqlx::query!(
        r#"-- store::database_state
           WITH here AS (
               SELECT system, timeline FROM database_history()),
           held AS (
               SELECT job.status, count(*) AS jobs
               FROM export_jobs AS job
               WHERE job.status IN ('Queued', 'Running', 'Delivering', 'OutcomeUnknown')
                 AND (job.status <> 'OutcomeUnknown' OR job.publish_intended_at IS NULL)
                 AND NOT history_is_known(job.id, job.known_system, job.known_timeline, job.status = 'OutcomeUnknown')
               GROUP BY job.status)
           SELECT here.system AS "system!",
                  here.timeline AS "timeline!",
                  (SELECT jsonb_object_agg(held.status, held.jobs) FROM held) AS "held: Json<BTreeMap<Status, i64>>",
                  EXISTS (SELECT FROM accepted_losses AS accepted
                          WHERE accepted.standing AND accepted.system = here.system) AS "standing!"
           FROM here"#
    )
    .fetch_one(&mut *connection)
    .await
    .map_err(|error| StoreError::sort(ACT, error))?;
    Ok(DatabaseState {
        system: row.system,
        timeline: row.timeline,
        held_back: held_back(&row.held.map(|Json(held)| held).unwrap_or_default()),
        standing: row.standing,
    })
}

fn held_back(held: &BTreeMap<Status, i64>) -> HeldBack {
    held.iter().fold(HeldBack::default(), |sum, (status, jobs)| match status {
        Status::Queued => HeldBack { queued: sum.queued + jobs, ..sum },
        Status::Running | Status::Delivering => HeldBack { owned: sum.owned + jobs, ..sum },
        _ => HeldBack { unproven: sum.unproven + jobs, ..sum },
    })
}
