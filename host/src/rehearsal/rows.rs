//! The queries of a case: rows from files, under the rules that hold for the operator's queries too.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use futures::future::BoxFuture;

use serde::Deserialize;

use super::RehearsalError;
use crate::plugin::OpenQuery;
use crate::source::{FileRows, Rows, SourceError, parameters};

/// What the operator copies. It is the author's own word on the queries; the operator's file is no part of the bundle.
const EXAMPLE: &str = "destinations.example.toml";

/// The parameter that only the host binds.
const TENANT: &str = "tenant";

/// Parameters that the operator's queries will need, by the name of the query.
pub(super) type Needed = BTreeMap<String, BTreeSet<String>>;

/// Rows by the name of their query. What its parameters are choose nothing: the file holds what the query gives.
pub(super) struct RowFiles {
    pub rows: BTreeMap<String, FileRows>,
    pub needed: Arc<Needed>,
}

impl OpenQuery for RowFiles {
    fn open<'a>(
        &'a self,
        query: &'a str,
        parameters: &'a [(String, String)],
    ) -> BoxFuture<'a, Result<Box<dyn Rows>, SourceError>> {
        Box::pin(async move {
            let Some(rows) = self.rows.get(query) else {
                let known: Vec<&str> = self.rows.keys().map(String::as_str).collect();
                let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
                let known = format!("the case has {known} under [rows]");
                return Err(SourceError::UnknownQuery { name: query.chars().take(64).collect(), known });
            };
            if parameters.iter().any(|(parameter, _)| parameter == TENANT) {
                return Err(SourceError::TenantIsBound { query: query.to_owned() });
            }
            if !self.needed.is_empty() && !self.needed.contains_key(query) {
                let known = self.needed.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
                let known = format!("{EXAMPLE} has {known}, and is what the operator copies: add the query there");
                return Err(SourceError::UnknownQuery { name: query.chars().take(64).collect(), known });
            }
            let given = |needed: &&String| parameters.iter().any(|(parameter, _)| parameter == *needed);
            if let Some(missing) = self.needed.get(query).and_then(|needed| needed.iter().find(|one| !given(one))) {
                return Err(SourceError::MissingParameter { query: query.to_owned(), parameter: missing.clone() });
            }
            Ok(Box::new(rows.clone()) as Box<dyn Rows>)
        })
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Example {
    destination: Vec<ExampleDestination>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ExampleDestination {
    queries: BTreeMap<String, ExampleQuery>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ExampleQuery {
    sql: String,
}

/// What the queries of a bundle's example need. Without an example there is nothing to hold a builder against.
pub(super) fn needed(bundle: &Path) -> Result<Needed, RehearsalError> {
    let path = bundle.join(EXAMPLE);
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Needed::new()),
        Err(source) => return Err(RehearsalError::File { path, source }),
    };
    let example: Example = toml::from_str(&text)
        .map_err(|error| RehearsalError::Example { why: error.to_string().trim_end().to_owned() })?;
    let mut needed = Needed::new();
    for (query, ExampleQuery { sql }) in example.destination.into_iter().flat_map(|destination| destination.queries) {
        needed.entry(query).or_default().extend(parameters(&sql).map(str::to_owned));
    }
    Ok(needed)
}
