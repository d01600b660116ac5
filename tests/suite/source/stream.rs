//! Rows on their way: in order, in bounded batches, and ended with their reader. And how the database's refusals read.

use std::collections::BTreeMap;
use std::time::Duration;

use sqlx::Executor as _;
use waybill::job::remedy::Remedy;
use waybill::source::{Database as Place, Queries, Query, Value};
use waybill_tests::{Database, wait};

use super::{TENANT, open, queries, refusal};

#[tokio::test]
async fn source_rows_come_in_order_and_in_bounded_batches() -> anyhow::Result<()> {
    let database = Database::fresh().await?;
    let sql = "select n::bigint as n from generate_series(1, 5000) n where :tenant is not null order by n";
    for most in [1000_u32, 7] {
        let mut rows = open(&database, sql).await?;
        let mut seen = Vec::new();
        loop {
            let batch = rows.next(most).await?;
            if batch.is_empty() {
                break;
            }
            assert!(batch.len() <= most as usize, "{} rows at once", batch.len());
            seen.extend(batch);
        }
        let expected: Vec<Vec<Value>> = (1..=5000).map(|n| vec![Value::Integer(n)]).collect();
        assert_eq!(seen, expected);
    }
    Ok(())
}

#[tokio::test]
async fn source_a_batch_of_large_rows_is_closed_early() -> anyhow::Result<()> {
    const ROW: usize = 200_000;
    let database = Database::fresh().await?;
    let sql = "select repeat('x', 200000) as note from generate_series(1, 40) n where :tenant is not null";
    let mut rows = open(&database, sql).await?;
    let mut seen = 0;
    loop {
        let batch = rows.next(1000).await?;
        if batch.is_empty() {
            break;
        }
        assert!((batch.len() - 1) * ROW < 1 << 20, "{} rows of {ROW} bytes at once", batch.len());
        seen += batch.len();
    }
    assert_eq!(seen, 40);
    Ok(())
}

#[tokio::test]
async fn source_a_row_has_at_most_16_mib_and_a_larger_one_is_told_by_its_number() -> anyhow::Result<()> {
    let database = Database::fresh().await?;
    let at_the_limit = "select repeat('x', 16777216) as note where :tenant is not null";
    let row = open(&database, at_the_limit).await?.next(10).await?;
    assert!(matches!(&row[0][0], Value::Text(text) if text.len() == 16 << 20));
    let larger = "select n::text as id, repeat('x', case n when 3 then 16777216 else 9 end) as note \
                  from generate_series(1, 5) n where :tenant is not null";
    let sentence = refusal(&database, larger).await?;
    for part in ["row 3, column \"note\"", "16777217 bytes", "16 MiB", "select less of it"] {
        assert!(sentence.contains(part), "{sentence}");
    }
    Ok(())
}

#[tokio::test]
async fn source_letting_go_of_the_rows_ends_the_query() -> anyhow::Result<()> {
    let (database, admin) = {
        let database = Database::fresh().await?;
        let admin = database.admin().await?;
        (database, admin)
    };
    let count = async || -> anyhow::Result<i64> {
        let sql = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'waybill-source'";
        Ok(sqlx::query_scalar(sql).fetch_one(&admin).await?)
    };
    let sql = "select n from generate_series(1, 100000000) n where :tenant is not null";
    let mut rows = open(&database, sql).await?;
    assert!(!rows.next(10).await?.is_empty());
    assert_eq!(count().await?, 1);
    drop(rows);
    wait::until("the query's connection to end", async || Ok((count().await? == 0).then_some(()))).await
}

#[tokio::test]
async fn source_letting_go_ends_a_query_that_computes_and_sends_nothing() -> anyhow::Result<()> {
    let database = Database::fresh().await?;
    let admin = database.admin().await?;
    let running = async || -> anyhow::Result<i64> {
        let sql = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'select pg_sleep%' AND state = 'active'";
        Ok(sqlx::query_scalar(sql).fetch_one(&admin).await?)
    };
    let rows = open(&database, "select pg_sleep(3600)::text as n where :tenant is not null").await?;
    wait::until("the query to run", async || Ok((running().await? == 1).then_some(()))).await?;
    drop(rows);
    wait::until("the query to end", async || Ok((running().await? == 0).then_some(()))).await
}

#[tokio::test]
async fn source_a_query_is_given_the_time_of_whoever_waits_for_it_and_no_more_than_its_login_has() -> anyhow::Result<()>
{
    let database = Database::fresh().await?;
    let sql = "select current_setting('statement_timeout') as n where :tenant is not null";
    let given = async |url: String, minutes| -> anyhow::Result<Vec<Vec<Value>>> {
        let query = Query { sql: sql.to_owned(), database: Place::Url(url) };
        let queries = Queries::new(TENANT, BTreeMap::from([("rows".to_owned(), query)]));
        let mut rows = queries.within(Duration::from_mins(minutes)).open("rows", &[]).await?;
        Ok(rows.next(10).await?)
    };
    let text = |text: &str| vec![vec![Value::Text(text.to_owned())]];
    assert_eq!(given(database.url(), 15).await?, text("905s"));
    let url = database.url();
    let separator = if url.contains('?') { '&' } else { '?' };
    let short = format!("{url}{separator}options=-c%20statement_timeout%3D30s");
    assert_eq!(given(short, 15).await?, text("30s"), "the operator's own is shorter");
    Ok(())
}

#[tokio::test]
async fn source_a_query_that_is_not_described_in_time_is_told() -> anyhow::Result<()> {
    let database = Database::fresh().await?;
    let admin = database.admin().await?;
    admin.execute("CREATE TABLE held (n integer)").await?;
    let mut holder = admin.begin().await?;
    holder.execute("LOCK TABLE held IN ACCESS EXCLUSIVE MODE").await?;
    let queries = queries(&database, "select n from held where :tenant is not null");
    let described = tokio::time::timeout(wait::BOUND, queries.describe(Duration::from_secs(1))).await?;
    let error = described.into_iter().next().and_then(|described| described.columns.err());
    let sentence = error.as_ref().map(ToString::to_string).unwrap_or_default();
    for part in ["\"rows\"", "within 1 s", "no other session holds a lock"] {
        assert!(sentence.contains(part), "{sentence}");
    }
    assert_eq!(error.and_then(|error| error.remedy()), Some(Remedy::AnotherAttempt));
    Ok(())
}

#[tokio::test]
async fn source_a_connection_that_is_ended_in_the_middle_is_no_end_of_rows() -> anyhow::Result<()> {
    let database = Database::fresh().await?;
    let admin = database.admin().await?;
    let sql = "select n, repeat('x', 1000) as filler from generate_series(1, 1000000) n where :tenant is not null";
    let mut rows = open(&database, sql).await?;
    assert!(!rows.next(10).await?.is_empty());
    admin
        .execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'waybill-source'")
        .await?;
    let error = loop {
        match rows.next(1000).await {
            Err(error) => break error.to_string(),
            Ok(batch) => assert!(!batch.is_empty(), "the rows ended as if they were all"),
        }
    };
    assert!(error.contains("was lost after row"), "{error}");
    Ok(())
}

#[tokio::test]
async fn source_refusals_hint_at_the_fix_and_tell_no_value() -> anyhow::Result<()> {
    let database = Database::fresh().await?;
    let admin = database.admin().await?;
    admin.execute("CREATE TABLE owned (tenant_id uuid, note text)").await?;
    admin.execute("INSERT INTO owned SELECT NULL, n::text FROM generate_series(1, 2000) n").await?;
    admin.execute("INSERT INTO owned VALUES (NULL, 'canary-2')").await?;
    let sentence = refusal(&database, "select note from owned where tenant_id = :tenant").await?;
    assert!(sentence.contains("uuid = text") && sentence.contains(":tenant::uuid"), "{sentence}");
    let sentence = refusal(&database, "select missing from owned where tenant_id = :tenant::uuid").await?;
    assert!(sentence.contains("\"missing\"") && sentence.contains("\"rows\""), "{sentence}");
    // The row that breaks comes after many that were read.
    let sentence = refusal(&database, "select note::integer as n from owned where :tenant is not null").await?;
    assert!(sentence.contains("refused the query") && sentence.contains("22P02"), "{sentence}");
    assert!(!sentence.contains("canary"), "a value was told: {sentence}");
    let raising =
        "CREATE FUNCTION loud(text) RETURNS text LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'no: %', $1; END $$";
    admin.execute(raising).await?;
    let sentence =
        refusal(&database, "select loud(note) as n from owned where note > 'a' and :tenant is not null").await?;
    assert!(sentence.contains("P0001") && !sentence.contains("canary"), "{sentence}");
    Ok(())
}
