//! Rows from a file, for rehearsals and tests: JSON lines, the columns first, then one array a row.
//!
//! ```text
//! [{"name": "number", "of": "integer"}, {"name": "name", "of": "text"}, {"name": "photo", "of": "bytes"}]
//! [1, "Ada", "AP8="]
//! [2, null, null]
//! ```
//!
//! `of` is a column's type in the contract's words. Bytes are base64; exact numerics, dates, times and timestamps are text, as
//! plugins see them; of a `json` column a string is the JSON text itself, and any other value is written as one. Empty lines
//! count for nothing. The whole file is read and checked at once, so that every fault is told with its line.
//!
//! Batches are as ragged as a database's: a reader that takes a short one for the end loses rows here too.

use std::path::Path;
use std::sync::Arc;

use futures::future::BoxFuture;
use serde::Deserialize;
use serde_json::Value as Json;

use super::{Column, Rows, SourceError, Value};

/// Rows of the first batches, however many are asked for.
const FIRST_BATCHES: [usize; 2] = [1, 2];
/// Rows of every further one at most, as of a query's.
const BATCH_ROWS: usize = 256;

const TYPES: [&str; 7] = ["boolean", "integer", "float", "text", "bytes", "timestamp", "json"];

/// What is wrong with a file of rows.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {what}")]
pub struct RowsFault {
    /// Counted from 1; 0 where the file itself cannot be read.
    pub line: usize,
    pub what: String,
}

/// The rows of one file. Clones share them.
#[derive(Debug, Clone)]
pub struct FileRows {
    columns: Arc<[Column]>,
    rows: Arc<[Vec<Value>]>,
    given: usize,
    batches: usize,
}

impl FileRows {
    pub fn read(path: &Path) -> Result<Self, RowsFault> {
        let text = std::fs::read_to_string(path)
            .map_err(|error| RowsFault { line: 0, what: format!("it cannot be read ({error})") })?;
        Self::parse(&text)
    }

    pub fn parse(text: &str) -> Result<Self, RowsFault> {
        let mut lines =
            text.lines().enumerate().map(|(at, line)| (at + 1, line)).filter(|(_, line)| !line.trim().is_empty());
        let Some((at, first)) = lines.next() else {
            return Err(RowsFault {
                line: 1,
                what: "it is empty; its first line holds the columns, such as [{\"name\": \"number\", \"of\": \"integer\"}]".to_owned(),
            });
        };
        let columns = columns(first).map_err(|what| RowsFault { line: at, what })?;
        let rows = lines
            .map(|(at, line)| row(line, &columns).map_err(|what| RowsFault { line: at, what }))
            .collect::<Result<Vec<_>, _>>()?;
        Ok(Self { columns: columns.into(), rows: rows.into(), given: 0, batches: 0 })
    }

    /// How many rows there are.
    pub fn count(&self) -> usize {
        self.rows.len()
    }
}

impl Rows for FileRows {
    fn columns(&self) -> &[Column] {
        &self.columns
    }

    fn next(&mut self, most: u32) -> BoxFuture<'_, Result<Vec<Vec<Value>>, SourceError>> {
        let rows = FIRST_BATCHES.get(self.batches).copied().unwrap_or(BATCH_ROWS);
        let most = usize::try_from(most).map_or(rows, |most| most.min(rows));
        let batch: Vec<Vec<Value>> = self.rows.iter().skip(self.given).take(most).cloned().collect();
        self.given += batch.len();
        self.batches += 1;
        Box::pin(async move { Ok(batch) })
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    name: String,
    of: String,
}

fn columns(line: &str) -> Result<Vec<Column>, String> {
    let written: Vec<Written> = serde_json::from_str(line).map_err(|error| {
        format!("the first line holds the columns, such as [{{\"name\": \"number\", \"of\": \"integer\"}}]: {error}")
    })?;
    let mut columns: Vec<Column> = Vec::new();
    for Written { name, of } in written {
        if !TYPES.contains(&of.as_str()) {
            return Err(format!("the column {name:?} is of {of:?}; it is of one of {}", TYPES.join(", ")));
        }
        if columns.iter().any(|column| column.name == name) {
            return Err(format!("the column {name:?} is there twice; give each a name of its own"));
        }
        columns.push(Column { name, of });
    }
    if columns.is_empty() {
        return Err("there is no column; a query has one at least".to_owned());
    }
    Ok(columns)
}

fn row(line: &str, columns: &[Column]) -> Result<Vec<Value>, String> {
    let values: Vec<Json> = serde_json::from_str(line).map_err(|error| format!("a row is one JSON array: {error}"))?;
    if values.len() != columns.len() {
        return Err(format!("the row has {} values for {} columns", values.len(), columns.len()));
    }
    values.into_iter().zip(columns).map(|(value, column)| read(value, column)).collect()
}

fn read(value: Json, column: &Column) -> Result<Value, String> {
    let Column { name, of } = column;
    let wrong = |wanted: &str| format!("column {name:?} is of {of}: {wanted}, or null");
    Ok(match (of.as_str(), value) {
        (_, Json::Null) => Value::Null,
        ("boolean", Json::Bool(value)) => Value::Boolean(value),
        ("boolean", _) => return Err(wrong("true or false")),
        ("integer", value) => Value::Integer(value.as_i64().ok_or_else(|| wrong("a whole number of 64 bits"))?),
        ("float", value) => Value::Float(value.as_f64().ok_or_else(|| wrong("a number"))?),
        ("bytes", Json::String(text)) => {
            let bytes = data_encoding::BASE64.decode(text.as_bytes());
            Value::Bytes(bytes.map_err(|error| wrong(&format!("base64 text ({error})")))?)
        }
        ("bytes", _) => return Err(wrong("base64 text")),
        ("text" | "timestamp" | "json", Json::String(text)) => Value::Text(text),
        ("json", value) => Value::Text(value.to_string()),
        _ => return Err(wrong("text in quotes")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const COLUMNS: &str =
        r#"[{"name":"n","of":"integer"},{"name":"t","of":"text"},{"name":"b","of":"bytes"},{"name":"j","of":"json"}]"#;

    #[tokio::test]
    async fn plg_06_rows_of_a_file_come_in_order_and_in_batches() {
        let text = format!("{COLUMNS}\n[1,\"a\",\"AP8=\",{{\"x\":1}}]\n\n[2,null,null,\"[1, 2]\"]\n");
        let mut rows = FileRows::parse(&text).unwrap();
        assert_eq!(rows.columns()[1].of, "text");
        let first = rows.next(1).await.unwrap();
        let values =
            [Value::Integer(1), Value::Text("a".into()), Value::Bytes(vec![0, 255]), Value::Text("{\"x\":1}".into())];
        assert_eq!(first, [values.to_vec()]);
        assert_eq!(rows.next(9).await.unwrap()[0][3], Value::Text("[1, 2]".into()));
        assert!(rows.next(9).await.unwrap().is_empty());
    }

    #[tokio::test]
    async fn plg_06_batches_of_a_file_are_as_ragged_as_a_databases() {
        let lines = (0..300).map(|number| format!("[{number}]\n")).collect::<Vec<_>>().concat();
        let mut rows = FileRows::parse(&format!("[{{\"name\":\"n\",\"of\":\"integer\"}}]\n{lines}")).unwrap();
        let mut batches = Vec::new();
        for most in [500, 500, 500, 9, 500, 500] {
            batches.push(rows.next(most).await.unwrap().len());
        }
        assert_eq!(batches, [1, 2, 256, 9, 32, 0], "only the empty one is the end");
    }

    #[test]
    fn plg_06_a_fault_in_a_file_of_rows_is_told_with_its_line() {
        for (text, line, what) in [
            (String::new(), 1, "it is empty"),
            ("{}".to_owned(), 1, "the first line holds the columns"),
            ("[{\"name\":\"n\",\"of\":\"number\"}]".to_owned(), 1, "one of boolean, integer"),
            ("[]".to_owned(), 1, "there is no column"),
            (format!("{COLUMNS}\n[1,\"a\",null]"), 2, "3 values for 4 columns"),
            (
                format!("{COLUMNS}\n[1,\"a\",null,null]\n[\"1\",\"a\",null,null]"),
                3,
                "column \"n\" is of integer: a whole number",
            ),
            (format!("{COLUMNS}\n\n[1,\"a\",\"not base64\",null]"), 3, "base64"),
            (format!("{COLUMNS}\n[1,2,null,null]"), 2, "text in quotes"),
        ] {
            let fault = FileRows::parse(&text).unwrap_err();
            assert_eq!(fault.line, line, "{text}: {fault}");
            assert!(fault.what.contains(what), "{text}: {fault}");
        }
    }
}
