//! Delivering → Completed or `OutcomeUnknown`: the silent attempt may have sent nothing, all, or anything between.
//!
//! Never Failed, and nothing is sent again. Completed needs evidence, and, whatever the evidence, that the attempt
//! passed the publish fence: without it a file under the final name is somebody else's. What stays unknown gets a row
//! in `looks`.

use std::time::Duration;

use super::TakeOver;
use crate::job::status::{EventKind, Status};
use crate::store::error::StoreError;
use crate::store::ground::Ground;
use crate::store::pools::Pool;
use crate::store::write::Write;

/// What the evidence says of a silent delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resolution {
    /// It met the condition agreed with the partner.
    Completed(Ground),
    /// It says nothing yet.
    OutcomeUnknown,
}

impl Resolution {
    /// The state that the row gets.
    pub const fn status(self) -> Status {
        match self {
            Self::Completed(_) => Status::Completed,
            Self::OutcomeUnknown => Status::OutcomeUnknown,
        }
    }

    const fn ground(self) -> Option<&'static str> {
        match self {
            Self::Completed(ground) => Some(ground.as_str()),
            Self::OutcomeUnknown => None,
        }
    }
}

/// A takeover past cutoff 2.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resolve {
    pub take_over: TakeOver,
    pub resolution: Resolution,
    /// What it rests on, for the event.
    pub proof: serde_json::Value,
    /// When the reconciler looks for the first time.
    pub look_after: Duration,
    /// How long an acknowledgment may still come, where the contract has one.
    pub acknowledgment_within: Option<Duration>,
}

/// Resolves a silent delivery. Refused: the lease was renewed, the attempt has ended, or Completed was asked for
/// without a publish fence or on a ground that another attempt of the key has taken away; then `OutcomeUnknown` still
/// fits.
pub async fn resolve(pool: &Pool, resolve: Resolve) -> Result<Write<()>, StoreError> {
    let Resolve { take_over, resolution, proof, look_after, acknowledgment_within } = resolve;
    let detail = serde_json::json!({ "outcome": resolution.status(), "ground": resolution.ground(), "proof": proof });
    let boundary = take_over.boundary("take_over::resolve", EventKind::ResolvedByRecovery, Some(detail.clone()));
    let TakeOver { job, attempt, run } = take_over;
    boundary
        .run(pool, async move |mut connection| {
            let row = sqlx::query_file!(
                "src/store/take_over/resolve.sql",
                job,
                attempt,
                resolution.status().as_str(),
                resolution.ground(),
                run,
                detail,
                look_after.as_secs_f64(),
                acknowledgment_within.map(|within| within.as_secs_f64())
            )
            .fetch_optional(&mut *connection)
            .await?;
            Ok(row.map(|_| ()))
        })
        .await
}
