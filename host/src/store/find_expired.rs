//! Attempts whose lease has expired. The scan only nominates: a takeover asks for each of these facts again.
//!
//! It pages by key, so that attempts which nobody can take over now (a partner that does not answer, a database whose
//! history a person has to accept) never keep those behind them from being seen.

use time::OffsetDateTime;
use uuid::Uuid;

use super::error::{StoreError, stored};
use super::pools::Pool;
use crate::job::status::Status;

const ACT: &str = "find_expired";

/// An attempt that went silent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expired {
    pub job: Uuid,
    pub attempt: Uuid,
    pub tenant: Uuid,
    pub destination: Uuid,
    /// The worker that went silent.
    pub worker: String,
    pub standing: Standing,
    /// False after a failover or restore that nobody accepted for this job: no takeover will match.
    pub history_known: bool,
    lease_expires_at: OffsetDateTime,
}

/// On which side of cutoff 2 the attempt went silent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// Before it: nothing has left for the partner.
    Running { stop_requested: bool, attempt_count: i32 },
    /// Past it: only evidence tells.
    Delivering { publish_intended: bool },
}

/// The takeover that fits what was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Case {
    Requeue,
    Stop,
    Exhaust,
    Resolve,
}

/// Where the scan goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExpiredAfter {
    lease_expires_at: OffsetDateTime,
    job: Uuid,
}

impl Expired {
    /// Which takeover to try, with attempts capped at this number.
    pub const fn case(&self, max_attempts: i32) -> Case {
        match self.standing {
            Standing::Running { stop_requested: true, .. } => Case::Stop,
            Standing::Running { stop_requested: false, attempt_count } if attempt_count >= max_attempts => {
                Case::Exhaust
            }
            Standing::Running { stop_requested: false, .. } => Case::Requeue,
            Standing::Delivering { .. } => Case::Resolve,
        }
    }

    /// The place of this attempt in the scan.
    pub const fn place(&self) -> ExpiredAfter {
        ExpiredAfter { lease_expires_at: self.lease_expires_at, job: self.job }
    }
}

/// The next `most` attempts with an expired lease, those first that expired first. An empty page ends the scan.
pub async fn find_expired(pool: &Pool, after: Option<ExpiredAfter>, most: u16) -> Result<Vec<Expired>, StoreError> {
    let mut connection = pool.acquire(ACT).await?;
    let rows = sqlx::query!(
        r#"-- store::find_expired
           SELECT id,
                  tenant_id,
                  destination_id,
                  status,
                  attempt_id AS "attempt_id!",
                  attempt_count,
                  claimed_by AS "claimed_by!",
                  lease_expires_at AS "lease_expires_at!",
                  stop_request_id IS NOT NULL AS "stop_requested!",
                  publish_intended_at IS NOT NULL AS "publish_intended!",
                  history_is_known(id, known_system, known_timeline, false) AS "history_known!"
           FROM export_jobs
           WHERE status IN ('Running', 'Delivering')
             AND lease_expires_at < clock_timestamp()
             AND (lease_expires_at, id) > (coalesce($1::timestamptz, '-infinity'), $2::uuid)
           ORDER BY lease_expires_at, id
           LIMIT $3"#,
        after.map(|after| after.lease_expires_at),
        after.map_or(Uuid::nil(), |after| after.job),
        i64::from(most)
    )
    .fetch_all(&mut *connection)
    .await
    .map_err(|error| StoreError::sort(ACT, error))?;
    rows.into_iter()
        .map(|row| {
            let standing = match stored::<Status>(ACT, &row.status)? {
                Status::Delivering => Standing::Delivering { publish_intended: row.publish_intended },
                // The WHERE leaves no other one.
                Status::Running
                | Status::Queued
                | Status::Canceled
                | Status::Rejected
                | Status::Stopped
                | Status::Failed
                | Status::Completed
                | Status::OutcomeUnknown => {
                    Standing::Running { stop_requested: row.stop_requested, attempt_count: row.attempt_count }
                }
            };
            Ok(Expired {
                job: row.id,
                attempt: row.attempt_id,
                tenant: row.tenant_id,
                destination: row.destination_id,
                worker: row.claimed_by,
                standing,
                history_known: row.history_known,
                lease_expires_at: row.lease_expires_at,
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stop_request_comes_before_the_cap_and_nothing_past_cutoff_2_runs_again() {
        let expired = |standing| Expired {
            job: Uuid::nil(),
            attempt: Uuid::nil(),
            tenant: Uuid::nil(),
            destination: Uuid::nil(),
            worker: String::new(),
            standing,
            history_known: true,
            lease_expires_at: OffsetDateTime::UNIX_EPOCH,
        };
        let running = |stop_requested, attempt_count| expired(Standing::Running { stop_requested, attempt_count });
        assert_eq!(running(true, 5).case(5), Case::Stop);
        assert_eq!(running(false, 5).case(5), Case::Exhaust);
        assert_eq!(running(false, 4).case(5), Case::Requeue);
        for publish_intended in [false, true] {
            assert_eq!(expired(Standing::Delivering { publish_intended }).case(5), Case::Resolve);
        }
    }
}
