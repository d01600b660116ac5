//! The queries of a case: rows from files, under the rules that hold for the operator's queries too.

use std::collections::BTreeMap;

use futures::future::BoxFuture;

use crate::plugin::OpenQuery;
use crate::source::{FileRows, Rows, SourceError};

/// The parameter that only the host binds.
const TENANT: &str = "tenant";

/// Rows by the name of their query. Parameters other than the tenant choose nothing: the file holds what the query gives.
pub(super) struct RowFiles(pub BTreeMap<String, FileRows>);

impl OpenQuery for RowFiles {
    fn open<'a>(
        &'a self,
        query: &'a str,
        parameters: &'a [(String, String)],
    ) -> BoxFuture<'a, Result<Box<dyn Rows>, SourceError>> {
        Box::pin(async move {
            let Some(rows) = self.0.get(query) else {
                let known: Vec<&str> = self.0.keys().map(String::as_str).collect();
                let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
                return Err(SourceError::UnknownQuery { name: query.chars().take(64).collect(), known });
            };
            if parameters.iter().any(|(parameter, _)| parameter == TENANT) {
                return Err(SourceError::TenantIsBound { query: query.to_owned() });
            }
            Ok(Box::new(rows.clone()) as Box<dyn Rows>)
        })
    }
}
