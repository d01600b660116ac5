//! Our temporary file at the partner, after an attempt that has proven that it published nothing.
//!
//! It is removed once the end of the attempt is on record, and not before: the file may be part of the proof, which a crash
//! between removal and record would take away.

use super::Work;
use super::look::reconnect;
use super::look_back::asked_away;
use super::record::{Record, Terminal};
use crate::job::evidence::{Answer, Evidence};
use crate::remote::Session;

/// A temporary file that the attempt may have left, with the contract's leave to remove it.
pub(super) struct Leftover {
    pub temporary: String,
    /// No request to publish it was sent, and none will be.
    pub never_sent: bool,
}

impl Leftover {
    /// Removes it, through a fresh session where the line was lost, and has the answer recorded.
    pub async fn remove(self, work: &Work, record: &dyn Record, session: &Session, terminal: &Terminal) {
        // Without the record of its end, the next look has to find things as they are.
        if !self.never_sent && !matches!(terminal, Terminal::Written(_)) {
            tracing::info!(job = %work.job.id, attempt = %work.job.attempt, temporary = self.temporary, "the temporary file stays at the partner until a later look has settled the outcome");
            return;
        }
        let answer = if session.is_usable() {
            asked_away(session, &self.temporary).await
        } else {
            match reconnect(work).await {
                Ok(fresh) => {
                    let answer = asked_away(&fresh, &self.temporary).await;
                    fresh.close().await;
                    answer
                }
                Err(why) => Answer::Refused { code: None, text: format!("not sent: {why}") },
            }
        };
        if answer != Answer::Acknowledged {
            tracing::warn!(job = %work.job.id, attempt = %work.job.attempt, temporary = self.temporary, ?answer, "the temporary file of a delivery that failed stays at the partner");
        }
        let evidence = Evidence::RemovalAnswered { temporary: self.temporary, answer };
        if let Err(error) = record.append(&evidence).await {
            tracing::error!(job = %work.job.id, attempt = %work.job.attempt, %error, "the removal of the temporary file could not be recorded");
        }
    }
}
