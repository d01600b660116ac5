//! Notifications that something may be ready. A hint only: workers look by themselves every so often, and a hint that is
//! lost costs that wait and nothing else.
//!
//! A hint is sent in a statement of its own after its wake-up committed, and never inside a cutoff: NOTIFY serialises the
//! commits of all who use it. Whoever listens does so before it looks, so that nothing falls between the two.

use sqlx::postgres::PgListener;
use uuid::Uuid;

use super::error::StoreError;
use super::pools::Pool;

const CHANNEL: &str = "waybill_wakeups";

/// Tells listening workers that a wake-up for this destination was published.
pub async fn hint_wakeup(pool: &Pool, destination: Uuid) -> Result<(), StoreError> {
    const ACT: &str = "hint_wakeup";
    let mut connection = pool.acquire(ACT).await?;
    sqlx::query!(
        r#"-- store::hint_wakeup
           SELECT pg_notify($1, $2) IS NOT NULL AS "sent!""#,
        CHANNEL,
        destination.to_string()
    )
    .fetch_one(&mut *connection)
    .await
    .map(drop)
    .map_err(|error| StoreError::sort(ACT, error))
}

/// Listens on a connection of its own, which reconnects by itself.
pub struct WakeupHints(PgListener);

/// One hint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WakeupHint {
    For(Uuid),
    /// The line was lost for a while, and hints with it: look, whatever you serve.
    Missed,
}

/// Begins to listen. Look once after it.
pub async fn listen_wakeups(pool: &Pool) -> Result<WakeupHints, StoreError> {
    const ACT: &str = "listen_wakeups";
    let mut listener = pool.listener().await.map_err(|error| StoreError::never_sent(ACT, error))?;
    listener.listen(CHANNEL).await.map_err(|error| StoreError::sort(ACT, error))?;
    Ok(WakeupHints(listener))
}

impl WakeupHints {
    /// Waits for a hint. May be dropped and called again.
    pub async fn wait(&mut self) -> Result<WakeupHint, StoreError> {
        let notification = self.0.try_recv().await.map_err(|error| StoreError::sort("wait_for_hint", error))?;
        let destination = notification.and_then(|notification| notification.payload().parse().ok());
        Ok(destination.map_or(WakeupHint::Missed, WakeupHint::For))
    }
}
