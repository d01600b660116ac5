//! Database errors, sorted by the only thing that matters to a writer: was it written?

use std::error::Error;

use crate::job::status::UnknownName;

/// Why the database gave no answer that counts.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The statement never reached the database, so nothing was written.
    #[error("{act}: the database could not be reached, and nothing was sent; see that it runs and accepts this login")]
    NeverSent { act: &'static str, source: Box<dyn Error + Send + Sync> },
    /// The answer was lost. Only the row can tell.
    #[error("{act}: the database's answer was lost, and reading the row again failed too; it may have been written")]
    MaybeCommitted { act: &'static str, source: Box<dyn Error + Send + Sync> },
    /// The database said no, and wrote nothing.
    #[error("{act}: the database refused the statement (SQLSTATE {})", .code.as_deref().unwrap_or("unknown"))]
    Answered {
        act: &'static str,
        code: Option<String>,
        /// The constraint that refused it, where one did.
        constraint: Option<String>,
        source: Box<dyn Error + Send + Sync>,
    },
    /// A row holds what this version does not know. Nothing was written.
    #[error("{act}: a stored value cannot be read; a newer version of the host may have written it")]
    Unreadable { act: &'static str, source: Box<dyn Error + Send + Sync> },
}

impl StoreError {
    /// Sorts an error of a statement that was handed to a connection. A failure to get the connection is
    /// [`StoreError::never_sent`], since sqlx reports both as the same I/O error.
    pub(super) fn sort(act: &'static str, error: sqlx::Error) -> Self {
        use sqlx::Error as E;
        match error {
            E::PoolTimedOut
            | E::PoolClosed
            | E::Configuration(_)
            | E::InvalidArgument(_)
            | E::Encode(_)
            | E::Tls(_)
            | E::TypeNotFound { .. }
            | E::BeginFailed
            | E::InvalidSavePointStatement => Self::NeverSent { act, source: error.into() },
            E::Database(ref answer) if answer.code().is_some_and(|code| !ends_the_connection(&code)) => {
                Self::Answered {
                    act,
                    code: answer.code().map(Into::into),
                    constraint: answer.constraint().map(str::to_owned),
                    source: error.into(),
                }
            }
            // What is left reached the database: lost lines, shutdowns, answers that could not be read. The kinds that
            // sqlx may add later are sorted here too, which is the cautious side.
            _ => Self::MaybeCommitted { act, source: error.into() },
        }
    }

    pub(super) fn never_sent(act: &'static str, error: sqlx::Error) -> Self {
        Self::NeverSent { act, source: error.into() }
    }

    pub(super) fn unreadable(act: &'static str, error: impl Error + Send + Sync + 'static) -> Self {
        Self::Unreadable { act, source: Box::new(error) }
    }

    /// The SQLSTATE of an answer.
    pub fn code(&self) -> Option<&str> {
        match self {
            Self::Answered { code, .. } => code.as_deref(),
            Self::NeverSent { .. } | Self::MaybeCommitted { .. } | Self::Unreadable { .. } => None,
        }
    }

    /// The constraint that refused the statement.
    pub fn constraint(&self) -> Option<&str> {
        match self {
            Self::Answered { constraint, .. } => constraint.as_deref(),
            Self::NeverSent { .. } | Self::MaybeCommitted { .. } | Self::Unreadable { .. } => None,
        }
    }
}

/// Class 08 (connection exceptions), 57P (operator intervention: shutdown, crash, dropped database) and 40003
/// (completion unknown) say nothing about a commit that was on its way.
fn ends_the_connection(code: &str) -> bool {
    code.starts_with("08") || code.starts_with("57P") || code == "40003"
}

/// Reads a stored name, or says which one this version does not know.
pub(super) fn stored<T: std::str::FromStr<Err = UnknownName>>(act: &'static str, text: &str) -> Result<T, StoreError> {
    text.parse().map_err(|error| StoreError::unreadable(act, error))
}

/// SQLSTATEs that the store decides on. Class WB is raised by the schema's own triggers.
pub(super) mod sqlstate {
    pub const UNIQUE_VIOLATION: &str = "23505";
    pub const FOREIGN_KEY_VIOLATION: &str = "23503";
    pub const LOCK_NOT_AVAILABLE: &str = "55P03";
    pub const FINAL_NAME_HELD: &str = "WB006";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lost_line_may_have_committed_and_a_full_pool_never_sent() {
        let lost = sqlx::Error::Io(std::io::ErrorKind::ConnectionReset.into());
        assert!(matches!(StoreError::sort("claim", lost), StoreError::MaybeCommitted { .. }));
        assert!(matches!(StoreError::sort("claim", sqlx::Error::PoolTimedOut), StoreError::NeverSent { .. }));
        assert!(matches!(StoreError::sort("claim", sqlx::Error::WorkerCrashed), StoreError::MaybeCommitted { .. }));
    }

    #[test]
    fn a_shutdown_in_the_answer_is_no_answer() {
        for code in ["57P01", "57P02", "57P03", "08006", "08P01", "40003"] {
            assert!(ends_the_connection(code), "{code}");
        }
        for code in ["23505", "57014", "40001", "40P01", "55P03", "WB001"] {
            assert!(!ends_the_connection(code), "{code}");
        }
    }
}
