//! What every session that was opened has, whatever it was opened at: its server's facts, its bounds, the line, and requests.
//!
//! A request is bounded, and finished even when nobody waits for it any more: it runs in a task of its own, so that dropping its
//! caller leaves nothing half asked and no answer unread. One that is late, or whose answer is none, ends the session: what was
//! asked may still happen, and nothing after it could be told apart from it.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tokio_util::task::TaskTracker;

use super::error::RemoteError;
use super::line::Line;
use super::session::{ServerFacts, SessionLimits};

/// A session of one kind. Clones share it; it ends with the last of them.
pub struct Opened<Kind> {
    pub(super) inner: Arc<Inner<Kind>>,
}

pub struct Inner<Kind> {
    /// What this kind asks with.
    pub(super) own: Kind,
    pub(super) line: Arc<Line>,
    pub(super) facts: ServerFacts,
    pub(super) limits: SessionLimits,
    tasks: TaskTracker,
}

impl<Kind> Clone for Opened<Kind> {
    fn clone(&self) -> Self {
        Self { inner: Arc::clone(&self.inner) }
    }
}

impl<Kind> std::fmt::Debug for Opened<Kind> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session").field("server", &self.inner.facts).field("usable", &self.inner.line.is_up()).finish()
    }
}

impl<Kind> Drop for Inner<Kind> {
    fn drop(&mut self) {
        self.line.fail(CLOSED);
    }
}

const CLOSED: &str = "the session was closed";

impl<Kind> Opened<Kind> {
    pub(super) fn new(own: Kind, line: Arc<Line>, facts: ServerFacts, limits: SessionLimits) -> Self {
        Self { inner: Arc::new(Inner { own, line, facts, limits, tasks: TaskTracker::new() }) }
    }

    pub fn server(&self) -> &ServerFacts {
        &self.inner.facts
    }

    /// False from the first lost, late or unreadable answer on.
    pub fn is_usable(&self) -> bool {
        self.inner.line.is_up()
    }

    /// True if no clone and no request of this session is alive elsewhere.
    pub(super) fn is_sole(&self) -> bool {
        Arc::strong_count(&self.inner) == 1
    }

    /// Waits for requests in flight, within the bound for taking leave, and ends the session.
    pub async fn close(&self) {
        self.inner.tasks.close();
        if tokio::time::timeout(self.inner.limits.goodbye, self.inner.tasks.wait()).await.is_err() {
            tracing::debug!("the session is closed with requests in flight");
        }
        self.inner.line.fail(CLOSED);
    }

    /// One request within the usual bound.
    pub(super) async fn request<T, F>(
        &self,
        what: &'static str,
        request: impl FnOnce(Arc<Inner<Kind>>) -> F,
    ) -> Result<T, RemoteError>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, RemoteError>> + Send + 'static,
    {
        self.run(what, self.inner.limits.request, request).await
    }

    /// Runs an operation to its end, unless the session has ended already.
    pub(super) async fn run<T, F>(
        &self,
        what: &'static str,
        bound: Duration,
        operation: impl FnOnce(Arc<Inner<Kind>>) -> F,
    ) -> Result<T, RemoteError>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, RemoteError>> + Send + 'static,
    {
        if !self.is_usable() {
            return Err(RemoteError::NotSent { why: self.inner.line.cause().to_owned() });
        }
        let line = Arc::clone(&self.inner.line);
        let operation = operation(Arc::clone(&self.inner));
        let task = self.inner.tasks.spawn(async move {
            let answer = tokio::time::timeout(bound, operation).await.unwrap_or_else(|_| {
                Err(RemoteError::Unknown { why: format!("no answer to {what} within {} s", bound.as_secs_f32()) })
            });
            if let Err(RemoteError::Unknown { why }) = &answer {
                line.fail(why.clone());
            }
            answer
        });
        task.await.unwrap_or_else(|error| Err(RemoteError::Unknown { why: format!("{what} did not end: {error}") }))
    }
}
