//! The tenant's data, by queries that the operator named for one destination.
//!
//! The host binds the tenant itself, so no plugin can ask for another one's rows. Rows stream in batches over a
//! connection of their own, which ends with the last handle: no whole result lies in memory (what does is bounded in bytes,
//! see `postgres`), and no snapshot is held while a file is delivered. This is the only place with SQL that was not written by us; it runs read-only,
//! under the login that the operator gave.

mod file;
mod postgres;
mod query;
mod value;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

pub use file::{FileRows, RowsFault};
use futures::future::BoxFuture;
pub use query::{check_query, parameters};
use uuid::Uuid;

use crate::job::remedy::Remedy;

/// A column of a result. `of` is one of: boolean, integer, float, text, bytes, timestamp, json.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    pub name: String,
    pub of: String,
}

/// A value as plugins see it. Exact numerics, dates, times and JSON are text; timestamps are RFC 3339 text.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    Null,
    Boolean(bool),
    Integer(i64),
    Float(f64),
    Text(String),
    Bytes(Vec<u8>),
}

/// An open result, read in batches and in order.
pub trait Rows: Send {
    fn columns(&self) -> &[Column];
    /// At most `most` rows; none at the end, and none again after that.
    fn next(&mut self, most: u32) -> BoxFuture<'_, Result<Vec<Vec<Value>>, SourceError>>;
}

/// Where a query runs. The address carries a password, so it is a reference; `Url` is for addresses without one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Database {
    Url(String),
    UrlFile(PathBuf),
    UrlEnv(String),
}

/// One named query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Query {
    /// Parameters are `:name` and are bound as text: cast them where the column is of another type (`:tenant::uuid`).
    pub sql: String,
    pub database: Database,
}

/// The named queries of one destination, bound to its tenant.
#[derive(Debug, Clone)]
pub struct Queries {
    tenant: Uuid,
    within: Option<Duration>,
    by_name: Arc<BTreeMap<String, Query>>,
}

/// What a database said of a query that it was not asked to run.
#[derive(Debug)]
pub struct Described {
    pub query: String,
    /// Its columns, or why it cannot be run.
    pub columns: Result<Vec<Column>, SourceError>,
}

/// What can go wrong between a plugin and the tenant's data. The texts carry no value of any row.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    #[error("there is no query named {name:?}; {known}")]
    UnknownQuery { name: String, known: String },
    #[error(
        "a query without :tenant would read every tenant's rows; add a condition such as `where tenant_id = :tenant::uuid`"
    )]
    NoTenant,
    #[error("the query has more than one statement; only one is run")]
    ManyStatements,
    #[error("the query {query:?} needs the parameter :{parameter}, which neither the plugin nor the job's scope gives")]
    MissingParameter { query: String, parameter: String },
    #[error("the parameter :tenant of the query {query:?} is bound by the host; a plugin cannot set it")]
    TenantIsBound { query: String },
    #[error("the address of the database for the query {query:?} cannot be had: {why}")]
    Address { query: String, why: String },
    #[error(
        "the database of the query {query:?} at {at} cannot be reached ({why}); see that it runs there and admits the login of this destination's url"
    )]
    Unreachable { query: String, at: String, why: String },
    #[error(
        "the database of the query {query:?} at {at} refuses the login of this destination's url ({why}); correct the url, or have the \
         database admit it"
    )]
    Login { query: String, at: String, why: String },
    #[error(
        "the database of the query {query:?} did not say within {} s what it makes of it; see that it answers, and that no other \
         session holds a lock on the tables",
        .within.as_secs()
    )]
    NotDescribed { query: String, within: Duration },
    #[error("the database refused the query {query:?}: {why}")]
    Refused { query: String, why: String },
    #[error(
        "the column {column:?} of the query {query:?} has the type {of}, which has no agreed text form; cast it to text in the query"
    )]
    UnsupportedType { query: String, column: String, of: String },
    #[error("row {row}, column {column:?} of the query {query:?} cannot be read: {why}")]
    Unreadable { query: String, row: u64, column: String, why: String },
    #[error("the connection to the database of the query {query:?} was lost after row {row}: {why}")]
    Lost { query: String, row: u64, why: String },
    #[error("the database broke the query {query:?} off after row {row}: {why}")]
    BrokenOff { query: String, row: u64, why: String },
}

impl SourceError {
    /// What another attempt needs; `None` where the query, the data or the plugin is at fault, and it fails the same way again.
    pub fn remedy(&self) -> Option<Remedy> {
        match self {
            Self::Address { .. } | Self::Login { .. } => Some(Remedy::Person),
            Self::Unreachable { .. } | Self::Lost { .. } => Some(Remedy::Reachable),
            Self::BrokenOff { .. } | Self::NotDescribed { .. } => Some(Remedy::AnotherAttempt),
            Self::UnknownQuery { .. }
            | Self::NoTenant
            | Self::ManyStatements
            | Self::MissingParameter { .. }
            | Self::TenantIsBound { .. }
            | Self::Refused { .. }
            | Self::UnsupportedType { .. }
            | Self::Unreadable { .. } => None,
        }
    }
}

impl Queries {
    pub fn new(tenant: Uuid, queries: BTreeMap<String, Query>) -> Self {
        Self { tenant, within: None, by_name: Arc::new(queries) }
    }

    /// A query goes on in its database for no longer than this, whatever becomes of whoever opened it.
    #[must_use]
    pub fn within(self, within: Duration) -> Self {
        Self { within: Some(within), ..self }
    }

    /// The names, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.by_name.keys().map(String::as_str)
    }

    /// Has every query prepared and described by its database, each within this time; none is run. Whatever parameters a query
    /// names besides the tenant are there.
    pub fn describe(&self, within: Duration) -> BoxFuture<'_, Vec<Described>> {
        Box::pin(async move {
            let mut described = Vec::with_capacity(self.by_name.len());
            for (name, query) in self.by_name.iter() {
                let columns = match query::bind_nothing(name, &query.sql, self.tenant) {
                    Ok(bound) => postgres::describe(name, &query.database, &bound, within).await,
                    Err(error) => Err(error),
                };
                described.push(Described { query: name.clone(), columns });
            }
            described
        })
    }

    /// Runs a query by its name with the tenant and the given parameters bound. Parameters that it does not use are ignored.
    pub fn open<'a>(
        &'a self,
        name: &'a str,
        parameters: &'a [(String, String)],
    ) -> BoxFuture<'a, Result<Box<dyn Rows>, SourceError>> {
        Box::pin(async move {
            let Some(query) = self.by_name.get(name) else {
                let known: Vec<&str> = self.names().collect();
                let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
                let known = format!("the destination in destinations.toml has {known}");
                return Err(SourceError::UnknownQuery { name: bounded(name), known });
            };
            if parameters.iter().any(|(parameter, _)| parameter == query::TENANT) {
                return Err(SourceError::TenantIsBound { query: name.to_owned() });
            }
            let bound = query::bind(name, &query.sql, self.tenant, parameters)?;
            let rows = postgres::open(name, &query.database, bound, self.within).await?;
            Ok(Box::new(rows) as Box<dyn Rows>)
        })
    }
}

/// A guest's word in an error text, bounded.
fn bounded(text: &str) -> String {
    text.chars().take(64).collect()
}
