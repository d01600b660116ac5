//! Streaming a query's rows from PostgreSQL in batches.
//!
//! One task owns the connection and fills a short queue; the reader's pace holds it back. When the reader goes away
//! the task ends and the connection with it.

use std::time::Duration;

use futures::future::BoxFuture;
use futures::{StreamExt as _, TryStreamExt as _};
use sqlx::postgres::{PgConnectOptions, PgConnection, PgDatabaseError, PgErrorPosition, PgRow, PgStatement};
use sqlx::{
    AssertSqlSafe, Column as _, ConnectOptions as _, Connection as _, Executor as _, Row as _, SqlSafeStr as _,
    Statement as _,
};
use tokio::sync::mpsc;

use super::query::Bound;
use super::value::Reading;
use super::{Column, Database, Rows, SourceError, Value};

/// Rows handed over at once. With the queue's length it bounds what lies in memory to some thousand rows.
const BATCH_ROWS: usize = 256;
const QUEUED_BATCHES: usize = 4;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(15);

/// Everything comes as UTF-8. A database with the encoding `SQL_ASCII` does not know what its texts are, and fails the
/// whole query at the first that is not UTF-8; taken as they are stored, the row and the column can be named.
const AS_STORED: &str =
    "SELECT set_config('client_encoding', 'SQL_ASCII', false) WHERE current_setting('server_encoding') = 'SQL_ASCII'";

type Batch = Vec<Vec<Value>>;

pub(super) struct PostgresRows {
    columns: Vec<Column>,
    query: String,
    /// Ends with an empty batch. A queue that closes without one is no end: a reader that died must not make a short file.
    batches: mpsc::Receiver<Result<Batch, SourceError>>,
    ended: bool,
    handed_over: u64,
    /// Rows of the batch that was handed over only in part.
    rest: std::vec::IntoIter<Vec<Value>>,
    reader: tokio::task::JoinHandle<()>,
}

impl Drop for PostgresRows {
    fn drop(&mut self) {
        self.reader.abort();
    }
}

impl Rows for PostgresRows {
    fn columns(&self) -> &[Column] {
        &self.columns
    }

    fn next(&mut self, most: u32) -> BoxFuture<'_, Result<Vec<Vec<Value>>, SourceError>> {
        Box::pin(async move {
            if self.rest.len() == 0 && !self.ended {
                let Some(batch) = self.batches.recv().await else {
                    let why = "it was not read to its end".to_owned();
                    return Err(SourceError::Lost { query: self.query.clone(), row: self.handed_over, why });
                };
                self.rest = batch?.into_iter();
                self.ended = self.rest.len() == 0;
            }
            let rows: Vec<Vec<Value>> = self.rest.by_ref().take(most.max(1) as usize).collect();
            self.handed_over += rows.len() as u64;
            Ok(rows)
        })
    }
}

/// Connects, describes the result, and starts to read.
pub(super) async fn open(query: &str, database: &Database, bound: Bound) -> Result<PostgresRows, SourceError> {
    let query = query.to_owned();
    let (connection, statement) = prepare(&query, database, &bound).await?;
    let (columns, readings) = described(&query, &statement)?;
    let (sender, batches) = mpsc::channel(QUEUED_BATCHES);
    let reader = tokio::spawn(read(query.clone(), connection, statement, bound.values, readings, sender));
    Ok(PostgresRows { columns, query, batches, ended: false, handed_over: 0, rest: Vec::new().into_iter(), reader })
}

/// Connects and describes the result. The query is not run.
pub(super) async fn describe(query: &str, database: &Database, bound: &Bound) -> Result<Vec<Column>, SourceError> {
    let (connection, statement) = prepare(query, database, bound).await?;
    let (columns, _) = described(query, &statement)?;
    // What it said is known; a goodbye that fails changes nothing of it.
    if let Err(error) = connection.close().await {
        tracing::debug!(query, %error, "a connection did not end well");
    }
    Ok(columns)
}

async fn prepare(query: &str, database: &Database, bound: &Bound) -> Result<(PgConnection, PgStatement), SourceError> {
    let query = query.to_owned();
    let options = options(&query, database)?;
    let at = place(&options);
    let unreachable = |why: String| SourceError::Unreachable { query: query.clone(), at: at.clone(), why };
    let mut connection: PgConnection = match tokio::time::timeout(CONNECT_TIMEOUT, options.connect()).await {
        Ok(Ok(connection)) => connection,
        Ok(Err(error)) => return Err(unreachable(error.to_string())),
        Err(_) => return Err(unreachable(format!("no answer within {} s", CONNECT_TIMEOUT.as_secs()))),
    };
    (&mut connection).execute(AS_STORED).await.map_err(|error| unreachable(error.to_string()))?;
    let text = sqlx::postgres::PgTypeInfo::with_name("TEXT");
    let types = vec![text; bound.values.len()];
    let sql = AssertSqlSafe(bound.sql.as_str()).into_sql_str();
    let prepared = (&mut connection).prepare_with(sql, &types).await;
    let statement = prepared.map_err(|error| refused(&query, &bound.sql, &error))?;
    Ok((connection, statement))
}

fn options(query: &str, database: &Database) -> Result<PgConnectOptions, SourceError> {
    let failed = |why: String| SourceError::Address { query: query.to_owned(), why };
    let url = match database {
        Database::Url(url) => url.clone(),
        Database::UrlFile(path) => std::fs::read_to_string(path)
            .map_err(|error| failed(format!("the file {} cannot be read: {error}", path.display())))?
            .trim()
            .to_owned(),
        Database::UrlEnv(name) => {
            #[expect(clippy::disallowed_methods, reason = "the operator names the variable, so config cannot know it")]
            let value = std::env::var(name);
            value.map_err(|_| failed(format!("the environment variable {name} is not set")))?
        }
    };
    // The parser's own message may repeat the address, and with it a password.
    let options: PgConnectOptions =
        url.parse().map_err(|_| failed("it is no address of the form postgres://user@host/database".to_owned()))?;
    // A stream lasts as long as its reader takes, which says nothing about the statement; and its text is not ours to log.
    let options = options.disable_statement_logging();
    Ok(options.application_name("waybill-source").options([("default_transaction_read_only", "on")]))
}

/// Where the database is, without user and password.
fn place(options: &PgConnectOptions) -> String {
    let host = options.get_socket().map_or(options.get_host().into(), |socket| socket.display().to_string());
    format!("{host}:{}/{}", options.get_port(), options.get_database().unwrap_or_default())
}

fn described(query: &str, statement: &PgStatement) -> Result<(Vec<Column>, Vec<Reading>), SourceError> {
    let mut columns = Vec::new();
    let mut readings = Vec::new();
    for column in statement.columns() {
        let Some(reading) = Reading::of(column.type_info()) else {
            return Err(SourceError::UnsupportedType {
                query: query.to_owned(),
                column: column.name().to_owned(),
                of: column.type_info().to_string(),
            });
        };
        columns.push(Column { name: column.name().to_owned(), of: reading.word().to_owned() });
        readings.push(reading);
    }
    Ok((columns, readings))
}

async fn read(
    query: String,
    mut connection: PgConnection,
    statement: PgStatement,
    values: Vec<String>,
    readings: Vec<Reading>,
    batches: mpsc::Sender<Result<Batch, SourceError>>,
) {
    let mut done: u64 = 0;
    let mut execution = statement.query();
    for value in values {
        execution = execution.bind(value);
    }
    let mut rows = execution.persistent(false).fetch(&mut connection).try_ready_chunks(BATCH_ROWS);
    while let Some(chunk) = rows.next().await {
        let batch = match chunk {
            Ok(chunk) => convert(&query, &mut done, &chunk, &readings),
            Err(error) => Err(broken_off(&query, done, &error.1)),
        };
        let failed = batch.is_err();
        if batches.send(batch).await.is_err() || failed {
            return;
        }
    }
    // Nobody to tell is no fault: the reader went away between the last row and the end.
    let _ = batches.send(Ok(Batch::new())).await;
}

fn convert(query: &str, done: &mut u64, rows: &[PgRow], readings: &[Reading]) -> Result<Batch, SourceError> {
    let mut batch = Vec::with_capacity(rows.len());
    for row in rows {
        *done += 1;
        let mut values = Vec::with_capacity(readings.len());
        for (at, reading) in readings.iter().enumerate() {
            let value = row.try_get_raw(at).map_err(|error| error.to_string()).and_then(|raw| reading.read(raw));
            values.push(value.map_err(|why| SourceError::Unreadable {
                query: query.to_owned(),
                row: *done,
                column: row.columns().get(at).map(|column| column.name().to_owned()).unwrap_or_default(),
                why,
            })?);
        }
        batch.push(values);
    }
    Ok(batch)
}

/// The database's no to the query itself, before any row was touched.
fn refused(query: &str, sql: &str, error: &sqlx::Error) -> SourceError {
    let mut why = error.to_string();
    let answer = error.as_database_error().and_then(|answer| answer.try_downcast_ref::<PgDatabaseError>());
    if let Some(PgErrorPosition::Original(position)) = answer.and_then(PgDatabaseError::position) {
        why.push_str(&whereabouts(sql, position));
    }
    if why.contains("operator does not exist") {
        why.push_str("; parameters are bound as text, so cast them, for example :tenant::uuid");
    }
    SourceError::Refused { query: query.to_owned(), why }
}

/// Which line of the query it is, and what stands there. The position counts characters from 1; parameters hold no line break.
fn whereabouts(sql: &str, position: usize) -> String {
    const SHOWN: usize = 24;
    let before = position.saturating_sub(1);
    let line = sql.chars().take(before).filter(|character| *character == '\n').count() + 1;
    let rest: String = sql.chars().skip(before).take_while(|character| *character != '\n').collect();
    let there: String = rest.chars().take(SHOWN).collect();
    let more = if rest.len() > there.len() { "…" } else { "" };
    if there.trim().is_empty() { format!(", in line {line}") } else { format!(", in line {line} at {there:?}{more}") }
}

/// An end in the middle: the statement failed on some row's data, or the connection is gone.
fn broken_off(query: &str, row: u64, error: &sqlx::Error) -> SourceError {
    let query = query.to_owned();
    match error.as_database_error() {
        // Classes 08 and 57P: the server ends the connection, whatever the statement was.
        Some(answer) if !answer.code().is_some_and(|code| code.starts_with("08") || code.starts_with("57P")) => {
            let code = answer.code().unwrap_or_default();
            SourceError::Refused { query, why: without_values(&code, answer.message()) }
        }
        Some(_) | None => SourceError::Lost { query, row, why: error.to_string() },
    }
}

/// While rows are read, the database's messages may quote them (`invalid input syntax for type integer: "Ada"`), and
/// those of functions, constraints and encodings (22021, 22P05) may carry anything.
fn without_values(code: &str, message: &str) -> String {
    if code.starts_with("23") || code.starts_with("P0") || ["22021", "22P05"].contains(&code) {
        return format!("SQLSTATE {code}; its message may carry data and stands in the server's log only");
    }
    // Every second piece stood between quotes.
    let pieces = message.split('"').enumerate();
    let kept: String = pieces.map(|(at, piece)| if at % 2 == 0 { piece } else { "\"…\"" }).collect();
    format!("{kept} (SQLSTATE {code})")
}
