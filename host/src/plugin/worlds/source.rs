//! `source`: rows of the tenant's data, by queries that the operator named.

use wasmtime::component::Resource;

use super::State;
use crate::plugin::bindings::source::{Column, Host, HostRows, Value};
use crate::plugin::bindings::types::{Failure, Setting};
use crate::plugin::call::HostTrap;
use crate::source::{self, Rows, SourceError};

/// Rows of one batch: more gains nothing in speed, and a batch lies in memory twice.
const MOST_ROWS: u32 = 1000;

/// An open result.
pub struct OpenRows(Box<dyn Rows>);

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
        let parameters: Vec<(String, String)> =
            parameters.into_iter().map(|setting| (setting.name, setting.value)).collect();
        match source.open(&query, &parameters).await {
            Ok(rows) => self.push(OpenRows(rows)).map(Ok),
            Err(error) => Ok(Err(self.failure(&error))),
        }
    }
}

impl HostRows for State {
    async fn columns(&mut self, rows: Resource<OpenRows>) -> wasmtime::Result<Vec<Column>> {
        let columns = self.table.get(&rows)?.0.columns();
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
        let batch = self.table.get_mut(&rows)?.0.next(most.min(MOST_ROWS)).await;
        Ok(match batch {
            Ok(batch) => {
                self.handed.remember(&batch);
                Ok(batch.into_iter().map(|row| row.into_iter().map(value).collect()).collect())
            }
            Err(error) => Err(self.failure(&error)),
        })
    }

    async fn drop(&mut self, rows: Resource<OpenRows>) -> wasmtime::Result<()> {
        self.table.delete(rows)?;
        Ok(())
    }
}

impl State {
    /// The contract's failure for a fault of the source. Whatever another attempt may find mended is noted as the host's.
    fn failure(&mut self, error: &SourceError) -> Failure {
        let text = error.to_string();
        match error {
            SourceError::UnknownQuery { .. }
            | SourceError::NoTenant
            | SourceError::ManyStatements
            | SourceError::MissingParameter { .. }
            | SourceError::TenantIsBound { .. } => Failure::Invalid(text),
            SourceError::Refused { .. } | SourceError::UnsupportedType { .. } => Failure::Refused(text),
            SourceError::Unreadable { .. } => Failure::Other(text),
            SourceError::Address { .. } | SourceError::Unreachable { .. } | SourceError::Lost { .. } => {
                self.note_fault(text);
                Failure::Other("the host cannot reach the data".to_owned())
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
