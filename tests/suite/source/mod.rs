//! The tenant's data as plugins see it, read by real queries from a real server.

mod faults;
mod stream;
mod values;

use std::collections::BTreeMap;

use uuid::Uuid;
use waybill::source::{Database, Queries, Query, Rows, SourceError, Value};

const TENANT: Uuid = Uuid::from_u128(0x7e4a_0002);

/// One query, named `rows`, in this test's database.
fn queries(database: &waybill_tests::Database, sql: &str) -> Queries {
    let query = Query { sql: sql.to_owned(), database: Database::Url(database.url()) };
    Queries::new(TENANT, BTreeMap::from([("rows".to_owned(), query)]))
}

async fn open(database: &waybill_tests::Database, sql: &str) -> Result<Box<dyn Rows>, SourceError> {
    queries(database, sql).open("rows", &[]).await
}

/// The columns' types in the contract's words, and the only row.
async fn only_row(database: &waybill_tests::Database, sql: &str) -> anyhow::Result<(Vec<String>, Vec<Value>)> {
    let mut rows = open(database, sql).await?;
    let types = rows.columns().iter().map(|column| column.of.clone()).collect();
    let mut batch = rows.next(10).await?;
    anyhow::ensure!(batch.len() == 1, "{} rows instead of one", batch.len());
    anyhow::ensure!(rows.next(10).await?.is_empty() && rows.next(10).await?.is_empty(), "the end is no end");
    Ok((types, batch.remove(0)))
}

/// Why the query, or reading its rows, was refused.
async fn refusal(database: &waybill_tests::Database, sql: &str) -> anyhow::Result<String> {
    let mut rows = match open(database, sql).await {
        Err(error) => return Ok(error.to_string()),
        Ok(rows) => rows,
    };
    loop {
        match rows.next(1000).await {
            Err(error) => {
                anyhow::ensure!(rows.next(1000).await.is_err(), "what failed looks like an end when it is asked again");
                return Ok(error.to_string());
            }
            Ok(batch) => anyhow::ensure!(!batch.is_empty(), "all rows were read"),
        }
    }
}
