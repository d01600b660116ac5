//! The requests of one session: each is bounded, and finished even when nobody waits for it any more.
//!
//! A request runs in a task of its own, so that dropping its caller leaves nothing half asked and no answer unread. One that is
//! late ends the session: what was asked may still happen, and nothing after it could be told apart from it.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tokio_util::task::TaskTracker;

use super::error::RemoteError;
use super::line::Line;

#[derive(Debug)]
pub(super) struct Requests {
    line: Arc<Line>,
    tasks: TaskTracker,
}

impl Requests {
    pub(super) fn new(line: Arc<Line>) -> Self {
        Self { line, tasks: TaskTracker::new() }
    }

    /// Runs an operation to its end, unless the session has ended already.
    pub(super) async fn run<T, F>(
        &self,
        what: &'static str,
        bound: Duration,
        operation: impl FnOnce() -> F,
    ) -> Result<T, RemoteError>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, RemoteError>> + Send + 'static,
    {
        if !self.line.is_up() {
            return Err(RemoteError::NotSent { why: self.line.cause().to_owned() });
        }
        let line = Arc::clone(&self.line);
        let operation = operation();
        let task = self.tasks.spawn(async move {
            let Ok(result) = tokio::time::timeout(bound, operation).await else {
                let why = format!("no answer to {what} within {} s", bound.as_secs_f32());
                line.fail(why.clone());
                return Err(RemoteError::Unknown { why });
            };
            result
        });
        task.await.unwrap_or_else(|error| Err(RemoteError::Unknown { why: format!("{what} did not end: {error}") }))
    }

    /// Waits for requests in flight, within the bound, and ends the session.
    pub(super) async fn close(&self, within: Duration) {
        self.tasks.close();
        if tokio::time::timeout(within, self.tasks.wait()).await.is_err() {
            tracing::debug!("the session is closed with requests in flight");
        }
        self.line.fail("the session was closed");
    }
}
