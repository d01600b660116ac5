//! `source`: rows of the tenant's data, by queries that the operator named.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use wasmtime::component::Resource;

use super::{QUERIES, State};
use crate::plugin::bindings::source::{Column, Host, HostRows, Value};
use crate::plugin::bindings::types::{Failure, Setting};
use crate::plugin::call::{Fault, HostTrap, LimitKind};
use crate::source::{self, Rows, SourceError};

/// Rows of one batch: more gains nothing in speed, and a batch lies in memory twice.
const MOST_ROWS: u32 = 1000;

/// How long it may take to find out whether there is more than a guest read.
const LOOK_AHEAD: Duration = Duration::from_secs(1);

/// An open result.
pub struct OpenRows {
    query: String,
    rows: Box<dyn Rows>,
    /// The guest was given the empty batch, or a failure: it cannot take anything else for the end.
    ended: bool,
}

impl OpenRows {
    /// True if the guest left rows unread. Without this look a query of one row, of which nobody asks for the end, is not told
    /// from one that a guest gave up at its first short batch.
    async fn left_unread(&mut self) -> bool {
        if self.ended {
            return false;
        }
        let more = tokio::time::timeout(LOOK_AHEAD, self.rows.next(1)).await;
        // What is late, or failed, is not read either.
        !matches!(more, Ok(Ok(batch)) if batch.is_empty())
    }
}

impl Host for State {
    async fn open(
        &mut self,
        query: String,
        parameters: Vec<Setting>,
    ) -> wasmtime::Result<Result<Resource<OpenRows>, Failure>> {
        let Some(source) = self.source.clone() else {
            return Err(HostTrap::Host("a call without data was handed a source".to_owned()).into());
        };
        self.usage.host_call("source.open");
        if self.queries >= QUERIES {
            let detail =
                format!("more than {QUERIES} queries were open at once; let go of one before the next is opened");
            return Err(HostTrap::Limit { limit: LimitKind::Handles, detail }.into());
        }
        let parameters: Vec<(String, String)> =
            parameters.into_iter().map(|setting| (setting.name, setting.value)).collect();
        match source.open(&query, &parameters).await {
            Ok(rows) => {
                self.queries += 1;
                self.push(OpenRows { query, rows, ended: false }).map(Ok)
            }
            Err(error) => Ok(Err(self.failure(&error))),
        }
    }
}

impl HostRows for State {
    async fn columns(&mut self, rows: Resource<OpenRows>) -> wasmtime::Result<Vec<Column>> {
        let columns = self.table.get(&rows)?.rows.columns();
        Ok(columns.iter().map(|column| Column { name: column.name.clone(), of: column.of.clone() }).collect())
    }

    async fn next(
        &mut self,
        rows: Resource<OpenRows>,
        most: u32,
    ) -> wasmtime::Result<Result<Vec<Vec<Value>>, Failure>> {
        self.usage.host_call("rows.next");
        if most == 0 {
            return Ok(Err(Failure::Invalid(
                "a batch of 0 rows could not be told from the end; ask for 100 to 1000".to_owned(),
            )));
        }
        let open = self.table.get_mut(&rows)?;
        let batch = open.rows.next(most.min(MOST_ROWS)).await;
        open.ended = batch.as_ref().map_or(true, Vec::is_empty);
        Ok(match batch {
            Ok(batch) => {
                let json: Vec<bool> = open.rows.columns().iter().map(|column| column.of == "json").collect();
                // Before older values give way to these.
                self.settle_last_error();
                Arc::make_mut(&mut self.handed).remember(&json, &batch);
                Ok(batch.into_iter().map(|row| row.into_iter().map(value).collect()).collect())
            }
            Err(error) => Err(self.failure(&error)),
        })
    }

    async fn drop(&mut self, rows: Resource<OpenRows>) -> wasmtime::Result<()> {
        let mut open = self.table.delete(rows)?;
        self.queries -= 1;
        if open.left_unread().await {
            self.unread.insert(open.query);
        }
        Ok(())
    }
}

impl State {
    /// The queries of which the guest left rows unread: those that it let go of, and those that it still holds.
    pub(in crate::plugin) async fn unread(&mut self) -> BTreeSet<String> {
        let mut unread = std::mem::take(&mut self.unread);
        for open in self.table.iter_mut().filter_map(|object| object.downcast_mut::<OpenRows>()) {
            if open.left_unread().await {
                unread.insert(open.query.clone());
            }
        }
        unread
    }

    /// The contract's failure for a fault of the source. What leaves rows out is noted; a query or a parameter that is not
    /// there is the guest's own affair.
    fn failure(&mut self, error: &SourceError) -> Failure {
        let text = error.to_string();
        if let Some(remedy) = error.remedy() {
            self.note_fault(Fault::Host { what: text, remedy });
            return Failure::Other("the host cannot reach the data".to_owned());
        }
        match error {
            SourceError::UnknownQuery { .. }
            | SourceError::NoTenant
            | SourceError::ManyStatements
            | SourceError::MissingParameter { .. }
            | SourceError::TenantIsBound { .. } => Failure::Invalid(text),
            SourceError::Refused { .. } | SourceError::UnsupportedType { .. } => {
                self.note_fault(Fault::Rows { what: text.clone() });
                Failure::Refused(text)
            }
            SourceError::Unreadable { .. }
            | SourceError::Address { .. }
            | SourceError::Login { .. }
            | SourceError::Unreachable { .. }
            | SourceError::NotDescribed { .. }
            | SourceError::Lost { .. }
            | SourceError::BrokenOff { .. } => {
                self.note_fault(Fault::Rows { what: text.clone() });
                Failure::Other(text)
            }
        }
    }
}

fn value(value: source::Value) -> Value {
    match value {
        source::Value::Null => Value::Null,
        source::Value::Boolean(boolean) => Value::Boolean(boolean),
        source::Value::Integer(integer) => Value::Integer(integer),
        source::Value::Float(float) => Value::Float(float),
        source::Value::Text(text) => Value::Text(text),
        source::Value::Bytes(bytes) => Value::Bytes(bytes),
    }
}
