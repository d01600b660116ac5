//! The named queries of a destination, as plugins and checks reach them.

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

    /// Has each query described by its database, without running it. Rows that no database gives have nothing to try.
    fn describe(&self) -> BoxFuture<'_, Vec<Described>> {
        Box::pin(async { Vec::new() })
    }
}

impl Destination {
    /// What the databases say of its queries.
    pub async fn describe_queries(&self) -> Vec<Described> {
        self.source.describe().await
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

    fn describe(&self) -> BoxFuture<'_, Vec<Described>> {
        Queries::describe(self)
    }
}
