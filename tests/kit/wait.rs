//! Waiting for something that another task, process or server does: by looking again until it is so, within a bound.

use std::time::Duration;

use anyhow::bail;
use tokio::time::Instant;

/// Long enough for a loaded machine; a test that needs it has failed.
pub const BOUND: Duration = Duration::from_secs(20);
const LOOK_AGAIN: Duration = Duration::from_millis(5);

/// Looks until `look` finds something, and returns it. `what` ends the sentence "waited in vain for …".
pub async fn until<T, Look>(what: &str, look: Look) -> anyhow::Result<T>
where
    Look: AsyncFnMut() -> anyhow::Result<Option<T>>,
{
    until_within(BOUND, what, look).await
}

pub async fn until_within<T, Look>(bound: Duration, what: &str, mut look: Look) -> anyhow::Result<T>
where
    Look: AsyncFnMut() -> anyhow::Result<Option<T>>,
{
    let start = Instant::now();
    loop {
        if let Some(found) = look().await? {
            return Ok(found);
        }
        if start.elapsed() > bound {
            bail!("waited in vain for {what} ({} s)", bound.as_secs());
        }
        tokio::time::sleep(LOOK_AGAIN).await;
    }
}
