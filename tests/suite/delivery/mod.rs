//! Whole attempts: worker, plugins, outbox and broker, before a real server. OpenSSH's where its own log is the judge,
//! the in-process one where a moment must be met exactly.

mod leases;
mod occupied;
mod policy;
mod proofs;
mod reached;
mod stops;
mod sweeper;
mod whole;

use std::time::Duration;

use sqlx::{Connection as _, PgConnection, PgPool};
use waybill::job::evidence::Evidence;
use waybill::job::status::EventKind;
use waybill::store::AttemptEvent;
use waybill_tests::wait;

/// The kinds of a job's events, in order, without the evidence.
pub fn kinds(events: &[AttemptEvent]) -> Vec<EventKind> {
    events.iter().map(|event| event.kind).filter(|kind| *kind != EventKind::DeliveryEvidence).collect()
}

/// The evidence of a job's events, in order.
pub fn evidence(events: &[AttemptEvent]) -> anyhow::Result<Vec<Evidence>> {
    events
        .iter()
        .filter(|event| event.kind == EventKind::DeliveryEvidence)
        .map(|event| Ok(serde_json::from_value(event.detail.clone().unwrap_or_default())?))
        .collect()
}

/// Holds every build: the tenant's table is locked until this is let go.
pub struct HeldBuilds {
    connection: PgConnection,
    watching: PgPool,
}

impl HeldBuilds {
    pub async fn hold(house: &waybill_tests::House) -> anyhow::Result<Self> {
        let mut connection = house.admin.acquire().await?.detach();
        sqlx::query("BEGIN").execute(&mut connection).await?;
        sqlx::query("LOCK TABLE crm.contacts IN ACCESS EXCLUSIVE MODE").execute(&mut connection).await?;
        Ok(Self { connection, watching: house.admin.clone() })
    }

    /// Waits until so many builds wait for the table.
    pub async fn reached_by(&self, builds: i64) -> anyhow::Result<()> {
        wait::until("builds that wait for the tenant's data", async || {
            let waiting: i64 = sqlx::query_scalar(
                "SELECT count(*) FROM pg_locks WHERE relation = 'crm.contacts'::regclass AND NOT granted AND database = (SELECT oid FROM pg_database WHERE datname = current_database())",
            )
            .fetch_one(&self.watching)
            .await?;
            Ok((waiting >= builds).then_some(()))
        })
        .await
    }

    pub async fn let_go(self) -> anyhow::Result<()> {
        Ok(self.connection.close().await?)
    }
}

/// Longer than any test.
pub const LONG: Duration = Duration::from_hours(1);
