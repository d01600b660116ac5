//! Streaming a query's rows from PostgreSQL in batches.
//!
//! One task owns the connection and fills a short queue; the reader's pace holds it back. When the reader goes away
//! the task ends and the connection with it. A database that computes and sends nothing would notice that only at its end: so it
//! is told to look for it, and is given a time after which it ends the query in any case.
//!
//! In memory lie at most three batches a query: one that is read, one that waits, one that is handed over. A batch is closed at 1 MiB and a
//! row has at most 16 MiB, so that is 3 MiB where rows are small, and 51 MiB at the very worst. Beside it stands the one row that the
//! connection has just received: it is measured when it is there, and let go if it is too large.

use std::time::Duration;

use futures::future::BoxFuture;
use futures::{FutureExt as _, StreamExt as _};
use sqlx::postgres::{PgConnectOptions, PgConnection, PgDatabaseError, PgErrorPosition, PgRow, PgStatement};
use sqlx::{
    AssertSqlSafe, Column as _, ConnectOptions as _, Connection as _, Executor as _, Row as _, SqlSafeStr as _,
    Statement as _,
};
use tokio::sync::mpsc;

use super::query::Bound;
use super::value::Reading;
use super::{Column, Database, Rows, SourceError, Value};

/// Rows handed over at once, as long as they are small.
const BATCH_ROWS: usize = 256;
/// Bytes of values at which a batch is closed.
const BATCH_BYTES: usize = 1 << 20;
/// Bytes that one row may have as the database sends it.
const ROW_BYTES: usize = 16 << 20;
const QUEUED_BATCHES: usize = 1;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(15);
/// What the database has beyond the time of whoever asks, whose own end says more.
const BEYOND: Duration = Duration::from_secs(5);
/// How often the database looks whether a connection that it computes for is still there.
const STILL_THERE: Duration = Duration::from_secs(2);

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

/// Connects, describes the result, and starts to read. `within`: the longest that anybody waits for its end.
pub(super) async fn open(
    query: &str,
    database: &Database,
    bound: Bound,
    within: Option<Duration>,
) -> Result<PostgresRows, SourceError> {
    let query = query.to_owned();
    let (connection, statement) = prepare(&query, database, &bound, within).await?;
    let (columns, readings) = described(&query, &statement)?;
    let (sender, batches) = mpsc::channel(QUEUED_BATCHES);
    let reader = tokio::spawn(read(query.clone(), connection, statement, bound.values, readings, sender));
    Ok(PostgresRows { columns, query, batches, ended: false, handed_over: 0, rest: Vec::new().into_iter(), reader })
}

/// Connects and describes the result. The query is not run.
pub(super) async fn describe(
    query: &str,
    database: &Database,
    bound: &Bound,
    within: Duration,
) -> Result<Vec<Column>, SourceError> {
    let prepared = tokio::time::timeout(within, prepare(query, database, bound, Some(within))).await;
    let (connection, statement) =
        prepared.map_err(|_| SourceError::NotDescribed { query: query.to_owned(), within })??;
    let (columns, _) = described(query, &statement)?;
    // What it said is known; a goodbye that fails changes nothing of it.
    if let Err(error) = connection.close().await {
        tracing::debug!(query, %error, "a connection did not end well");
    }
    Ok(columns)
}

async fn prepare(
    query: &str,
    database: &Database,
    bound: &Bound,
    within: Option<Duration>,
) -> Result<(PgConnection, PgStatement), SourceError> {
    let query = query.to_owned();
    let options = options(&query, database)?;
    let at = place(&options);
    let unreachable = |why: String| SourceError::Unreachable { query: query.clone(), at: at.clone(), why };
    let mut connection: PgConnection = match tokio::time::timeout(CONNECT_TIMEOUT, options.connect()).await {
        Ok(Ok(connection)) => connection,
        Ok(Err(error)) => return Err(unconnected(&query, &at, &error)),
        Err(_) => return Err(unreachable(format!("no answer within {} s", CONNECT_TIMEOUT.as_secs()))),
    };
    (&mut connection).execute(AS_STORED).await.map_err(|error| unreachable(error.to_string()))?;
    if let Some(within) = within {
        let bounded = (&mut connection).execute(at_most("statement_timeout", within + BEYOND)).await;
        bounded.map_err(|error| unreachable(error.to_string()))?;
    }
    // PostgreSQL has it since version 14, and refuses it on systems that cannot tell.
    if let Err(error) = (&mut connection).execute(at_most("client_connection_check_interval", STILL_THERE)).await {
        tracing::debug!(query, %error, "the database cannot look whether its client is still there");
    }
    let text = sqlx::postgres::PgTypeInfo::with_name("TEXT");
    let types = vec![text; bound.values.len()];
    let sql = AssertSqlSafe(bound.sql.as_str()).into_sql_str();
    let prepared = (&mut connection).prepare_with(sql, &types).await;
    let statement = prepared.map_err(|error| unprepared(&query, &bound.sql, &error))?;
    Ok((connection, statement))
}

/// Sets a time of the session where the database's own is longer, or none: an operator may have given the login a shorter one.
fn at_most(setting: &'static str, time: Duration) -> AssertSqlSafe<String> {
    let milliseconds = time.as_millis();
    AssertSqlSafe(format!(
        "SELECT set_config(name, '{milliseconds}', false) FROM pg_settings \
         WHERE name = '{setting}' AND (setting = '0' OR setting::bigint > {milliseconds})"
    ))
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
            value.map_err(|_| failed(format!("the environment variable {name} is not set; set it for the service")))?
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
    let mut rows = execution.persistent(false).fetch(&mut connection);
    let mut batch = Batch::new();
    let mut bytes = 0;
    loop {
        // What is there is gathered; what must be waited for does not hold back what was gathered.
        let next = match rows.next().now_or_never() {
            Some(next) => next,
            None if batch.is_empty() => rows.next().await,
            None => {
                bytes = 0;
                if batches.send(Ok(std::mem::take(&mut batch))).await.is_err() {
                    return;
                }
                continue;
            }
        };
        let row = match next {
            None => break,
            Some(Ok(row)) => read_row(&query, done + 1, &row, &readings),
            Some(Err(error)) => Err(broken_off(&query, done, &error)),
        };
        let values = match row {
            Ok(values) => values,
            Err(error) => {
                // A reader that went away needs no error.
                let _ = batches.send(Err(error)).await;
                return;
            }
        };
        done += 1;
        bytes += values.iter().map(held).sum::<usize>();
        batch.push(values);
        if batch.len() >= BATCH_ROWS || bytes >= BATCH_BYTES {
            bytes = 0;
            if batches.send(Ok(std::mem::take(&mut batch))).await.is_err() {
                return;
            }
        }
    }
    // Nobody to tell is no fault: the reader went away between the last row and the end.
    if !batch.is_empty() {
        let _ = batches.send(Ok(batch)).await;
    }
    let _ = batches.send(Ok(Batch::new())).await;
}

fn read_row(query: &str, number: u64, row: &PgRow, readings: &[Reading]) -> Result<Vec<Value>, SourceError> {
    let unreadable = |at: usize, why: String| SourceError::Unreadable {
        query: query.to_owned(),
        row: number,
        column: row.columns().get(at).map(|column| column.name().to_owned()).unwrap_or_default(),
        why,
    };
    let sizes =
        (0..readings.len()).map(|at| row.try_get_raw(at).ok().and_then(|raw| raw.as_bytes().ok().map(<[u8]>::len)));
    let sizes: Vec<usize> = sizes.map(Option::unwrap_or_default).collect();
    let whole: usize = sizes.iter().sum();
    if whole > ROW_BYTES {
        let largest = sizes.iter().enumerate().max_by_key(|(_, size)| **size).map_or(0, |(at, _)| at);
        return Err(unreadable(
            largest,
            format!(
                "the row has {whole} bytes, most of them here, and one may have {ROW_BYTES} (16 MiB); select less of it, or make \
                 several rows of it in the query"
            ),
        ));
    }
    let value = |(at, reading): (usize, &Reading)| {
        let raw = row.try_get_raw(at).map_err(|error| unreadable(at, error.to_string()))?;
        reading.read(raw).map_err(|why| unreadable(at, why))
    };
    readings.iter().enumerate().map(value).collect()
}

/// What a value takes in memory, about.
fn held(value: &Value) -> usize {
    size_of::<Value>()
        + match value {
            Value::Text(text) => text.len(),
            Value::Bytes(bytes) => bytes.len(),
            Value::Null | Value::Boolean(_) | Value::Integer(_) | Value::Float(_) => 0,
        }
}

/// No connection. A login that is refused, a database that is not there and options that cannot be used wait for a person.
fn unconnected(query: &str, at: &str, error: &sqlx::Error) -> SourceError {
    let (query, at, why) = (query.to_owned(), at.to_owned(), error.to_string());
    let refused = match error {
        sqlx::Error::Database(answer) => {
            answer.code().is_some_and(|code| code.starts_with("28") || code.starts_with("3D") || code == "42501")
        }
        sqlx::Error::Configuration(_) => true,
        _ => false,
    };
    if refused { SourceError::Login { query, at, why } } else { SourceError::Unreachable { query, at, why } }
}

/// How an error of the database is to be taken.
enum Answer {
    /// It is the query, or a row's data.
    No,
    /// The connection is gone, or the server ends it, whatever the statement was: classes 08 and 57P.
    Gone,
    /// The server could not go on with it now: a conflict (40), no resources (53), an operator or a time limit (57), a lock that was
    /// not to be had, the server's disk (58).
    NotNow,
}

impl Answer {
    fn of(error: &sqlx::Error) -> Self {
        let code = match error {
            sqlx::Error::Database(answer) => answer.code().unwrap_or_default(),
            sqlx::Error::Io(_) | sqlx::Error::Protocol(_) => return Self::Gone,
            _ => return Self::No,
        };
        if code.starts_with("08") || code.starts_with("57P") {
            Self::Gone
        } else if ["40", "53", "57", "58"].iter().any(|class| code.starts_with(class)) || code == "55P03" {
            Self::NotNow
        } else {
            Self::No
        }
    }
}

/// An end before any row was touched.
fn unprepared(query: &str, sql: &str, error: &sqlx::Error) -> SourceError {
    // Its own words, without the line of PostgreSQL's source that the library adds.
    let own = error.as_database_error().map(|answer| answer.message().to_owned());
    let (query, mut why) = (query.to_owned(), own.unwrap_or_else(|| error.to_string()));
    match Answer::of(error) {
        Answer::Gone => SourceError::Lost { query, row: 0, why },
        Answer::NotNow => SourceError::BrokenOff { query, row: 0, why },
        Answer::No => {
            let answer = error.as_database_error().and_then(|answer| answer.try_downcast_ref::<PgDatabaseError>());
            if let Some(PgErrorPosition::Original(position)) = answer.and_then(PgDatabaseError::position) {
                why.push_str(&whereabouts(sql, position));
            }
            if why.contains("operator does not exist") {
                why.push_str("; parameters are bound as text, so cast them, for example :tenant::uuid");
            }
            SourceError::Refused { query, why }
        }
    }
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

/// An end in the middle: the statement failed on some row's data, was broken off, or the connection is gone.
fn broken_off(query: &str, row: u64, error: &sqlx::Error) -> SourceError {
    let query = query.to_owned();
    let why = match error.as_database_error() {
        Some(answer) => without_values(&answer.code().unwrap_or_default(), answer.message()),
        None => error.to_string(),
    };
    match Answer::of(error) {
        Answer::Gone => SourceError::Lost { query, row, why },
        Answer::NotNow => SourceError::BrokenOff { query, row, why },
        Answer::No => SourceError::Refused { query, why },
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
