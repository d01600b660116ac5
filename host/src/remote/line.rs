//! Whether a connection still stands, and if not, what really ended it.
//!
//! The SFTP library reports every end of a connection as the same dropped request; the cause is known only to the SSH
//! handler, the normaliser and the timers. They write it here, the first one wins, and errors are joined with it. A directory
//! has no connection, and ends its session by the same word.

use std::sync::OnceLock;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

/// How long an error waits for the SSH layer to tell the cause, which arrives from another task.
const CAUSE_WITHIN: Duration = Duration::from_millis(500);

#[derive(Debug, Default)]
pub(super) struct Line {
    cause: OnceLock<String>,
    down: CancellationToken,
}

impl Line {
    /// Ends the connection for good. The first cause stays.
    pub(super) fn fail(&self, cause: impl Into<String>) {
        self.cause.get_or_init(|| cause.into());
        self.down.cancel();
    }

    pub(super) fn is_up(&self) -> bool {
        !self.down.is_cancelled()
    }

    /// Fires when the connection has ended, or must end.
    pub(super) fn down(&self) -> &CancellationToken {
        &self.down
    }

    pub(super) fn cause(&self) -> &str {
        self.cause.get().map_or("the connection is closed", String::as_str)
    }

    /// The cause of a loss that was just noticed: the SSH layer's if it tells in time, else what the noticer saw.
    pub(super) async fn cause_or(&self, noticed: &str) -> String {
        if tokio::time::timeout(CAUSE_WITHIN, self.down.cancelled()).await.is_err() {
            self.fail(noticed);
        }
        self.cause().to_owned()
    }
}
