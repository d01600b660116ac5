//! The named queries of a destination, as plugins and checks reach them.

use std::time::Duration;

use futures::future::BoxFuture;

use super::destinations::Destination;
use crate::source::{Described, Queries, Rows, SourceError};

/// Opens the named queries of a destination. In operation [`Queries`]; rehearsals and tests give rows of their own.
pub trait OpenQuery: Send + Sync {
    fn open<'a>(
        &'a self,
        query: &'a str,
        parameters: &'a [(String, String)],
    ) -> BoxFuture<'a, Result<Box<dyn Rows>, SourceError>>;

    /// Has each query described by its database within this time, without running it. Rows that no database gives have nothing
    /// to try.
    fn describe(&self, _within: Duration) -> BoxFuture<'_, Vec<Described>> {
        Box::pin(async { Vec::new() })
    }
}

impl Destination {
    /// What the databases say of its queries, each within this time.
    pub async fn describe_queries(&self, within: Duration) -> Vec<Described> {
        self.source.describe(within).await
    }
}

impl OpenQuery for Queries {
    fn open<'a>(
        &'a self,
        query: &'a str,
        parameters: &'a [(String, String)],
    ) -> BoxFuture<'a, Result<Box<dyn Rows>, SourceError>> {
        Queries::open(self, query, parameters)
    }

    fn describe(&self, within: Duration) -> BoxFuture<'_, Vec<Described>> {
        Queries::describe(self, within)
    }
}
