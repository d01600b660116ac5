//! The first half of the temporary-name fence: "removal intended" is committed before the file is removed.
//!
//! Refused: the outcome was settled meanwhile, the look's lease is another's or has run out, or the attempt never passed
//! the publish fence (then nothing has to be removed to know that it did not publish). Its lease is extended, so that the
//! removal and its answer fit into it.

use std::future::ready;
use std::time::Duration;

use super::boundary::{AskTheRow, Boundary};
use super::claim_look::DueLook;
use super::error::StoreError;
use super::pools::Pool;
use super::write::Write;
use crate::job::evidence::Evidence;

const ACT: &str = "intend_removal";

/// Records that this reconciler is about to remove the attempt's temporary file. Without `Written` it must not.
pub async fn intend_removal(
    pool: &Pool,
    look: &DueLook,
    run: &str,
    temporary: &str,
    lease: Duration,
) -> Result<Write<()>, StoreError> {
    let evidence = Evidence::RemovalIntended { temporary: temporary.to_owned() };
    let detail = serde_json::to_value(evidence).map_err(|error| StoreError::unreadable(ACT, error))?;
    let (job, attempt, token, run) = (look.job, look.attempt, look.token, run.to_owned());
    let boundary = Boundary {
        act: ACT,
        job,
        tenant: None,
        ask: AskTheRow::AfterALostAnswer,
        // The row does not tell. Not removing after a lost answer is the safe side: the next look starts anew.
        landed: Box::new(|_, _| Box::pin(ready(Ok(None)))),
    };
    boundary
        .run(pool, async move |mut connection| {
            let row = sqlx::query_file!(
                "src/store/intend_removal.sql",
                job,
                attempt,
                token,
                run,
                detail,
                lease.as_secs_f64()
            )
            .fetch_optional(&mut *connection)
            .await?;
            Ok(row.map(|_| ()))
        })
        .await
}
