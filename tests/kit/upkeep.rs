//! Recovery and reconciler of a house, one run at a time, each under its own login.

use std::time::Duration;

use uuid::Uuid;
use waybill::job::status::Role;
use waybill::remote::SessionLimits;
use waybill::upkeep::{Inspector, Reconciler, ReconcilerSettings, Recovery, RecoverySettings};

use crate::House;

impl House {
    /// Recovery that does not wait for a lease after its start.
    pub async fn recovery(&self) -> anyhow::Result<Recovery> {
        self.recovery_after(Duration::ZERO).await
    }

    /// Recovery under a lease of this length.
    pub async fn recovery_after(&self, lease: Duration) -> anyhow::Result<Recovery> {
        let settings = RecoverySettings {
            owner: "recovery-test".to_owned(),
            max_attempts: self.plan.max_attempts,
            lease,
            look_after: Duration::from_secs(60),
        };
        Ok(Recovery::new(self.database.store(Role::Recovery).await?, self.inspector(), settings))
    }

    pub async fn reconciler(&self) -> anyhow::Result<Reconciler> {
        self.reconciler_with(Duration::from_secs(60)).await
    }

    /// A reconciler whose looks have a lease of this length.
    pub async fn reconciler_with(&self, lease: Duration) -> anyhow::Result<Reconciler> {
        let settings = ReconcilerSettings {
            owner: format!("reconciler-{}", Uuid::new_v4().simple()),
            lease,
            first_wait: Duration::from_secs(60),
            longest_wait: Duration::from_secs(3600),
        };
        Ok(Reconciler::new(self.database.store(Role::Reconciler).await?, self.inspector(), settings))
    }

    fn inspector(&self) -> Inspector {
        Inspector::new(self.registry.clone(), SessionLimits::default())
    }

    /// Whether looking at a job's attempt has ended, and who holds its look.
    pub async fn look_of(&self, job: Uuid) -> anyhow::Result<(bool, Option<String>)> {
        Ok(sqlx::query_as("SELECT ended_at IS NOT NULL, owner FROM looks WHERE job_id = $1")
            .bind(job)
            .fetch_one(&mut self.unguarded().await?)
            .await?)
    }

    /// Makes a job's next look due, as time would.
    pub async fn look_is_due(&self, job: Uuid) -> anyhow::Result<()> {
        sqlx::query("UPDATE looks SET next_at = clock_timestamp() - interval '1 second' WHERE job_id = $1")
            .bind(job)
            .execute(&mut self.unguarded().await?)
            .await?;
        Ok(())
    }

    /// Makes what was recorded of a job's attempts as much older, as time would: fence and events.
    pub async fn ages(&self, job: Uuid, by: Duration) -> anyhow::Result<()> {
        let mut connection = self.unguarded().await?;
        for statement in [
            "UPDATE export_attempt_events SET recorded_at = recorded_at - make_interval(secs => $2) WHERE job_id = $1",
            "UPDATE export_jobs SET publish_intended_at = publish_intended_at - make_interval(secs => $2) WHERE id = $1",
        ] {
            sqlx::query(statement).bind(job).bind(by.as_secs_f64()).execute(&mut connection).await?;
        }
        Ok(())
    }
}
