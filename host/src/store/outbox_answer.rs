//! What became of a dispatcher's write to an entry that it had claimed.

use sqlx::PgConnection;
use uuid::Uuid;

use super::error::StoreError;

/// The answer to completing or failing an entry. Only `Applied` is this dispatcher's work.
#[must_use = "only `Applied` may be counted as this dispatcher's work"]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum OutboxAnswer {
    /// It committed.
    Applied,
    /// The lease ran out, and another dispatcher holds the entry, held it since, or may claim it.
    StaleClaim,
    /// The entry had ended: published, or dead-lettered. Also what a caller is told that asks again after a lost answer.
    Terminal,
    /// The write matched nothing, and yet the row then showed this claim: it was being written at that moment.
    ConcurrencyLost,
    /// There is no such entry.
    Missing,
}

impl OutboxAnswer {
    /// Every answer, so that each can be counted from zero.
    pub const ALL: [Self; 5] = [Self::Applied, Self::StaleClaim, Self::Terminal, Self::ConcurrencyLost, Self::Missing];

    /// A stable name for logs and metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Applied => "applied",
            Self::StaleClaim => "stale_claim",
            Self::Terminal => "terminal",
            Self::ConcurrencyLost => "concurrency_lost",
            Self::Missing => "missing",
        }
    }
}

/// Why a write matched nothing. A second statement, and so a report.
pub(super) async fn refused(
    act: &'static str,
    connection: &mut PgConnection,
    message: Uuid,
    token: Uuid,
) -> Result<OutboxAnswer, StoreError> {
    let row = sqlx::query!(
        r#"-- store::outbox_answer
           SELECT finished_at IS NOT NULL OR dead_lettered_at IS NOT NULL AS "ended!",
                  coalesce(token = $2, false) AS "ours!"
           FROM outbox_claims WHERE message_id = $1"#,
        message,
        token
    )
    .fetch_optional(connection)
    .await
    .map_err(|error| StoreError::sort(act, error))?;
    Ok(match row {
        None => OutboxAnswer::Missing,
        Some(row) if row.ended => OutboxAnswer::Terminal,
        Some(row) if row.ours => OutboxAnswer::ConcurrencyLost,
        Some(_) => OutboxAnswer::StaleClaim,
    })
}
