//! Each type's form, and what has none.

use sqlx::Executor as _;
use waybill::source::Value;
use waybill_tests::Database;

use super::{TENANT, only_row, refusal};

fn text(text: &str) -> Value {
    Value::Text(text.to_owned())
}

#[tokio::test]
async fn source_numerics_keep_their_scale() -> anyhow::Result<()> {
    let database = Database::fresh().await?;
    let cases = [
        ("2500.5::numeric(10, 2)", "2500.50"),
        ("0::numeric(10, 2)", "0.00"),
        ("-1.5::numeric", "-1.5"),
        ("-0.005::numeric(5, 3)", "-0.005"),
        ("10000::numeric", "10000"),
        ("1e-20::numeric", "0.00000000000000000001"),
        ("1e40::numeric", "10000000000000000000000000000000000000000"),
        ("12345678901234567890123456789.987654321::numeric", "12345678901234567890123456789.987654321"),
        ("100.00::numeric", "100.00"),
    ];
    for (sql, expected) in cases {
        let query = format!("select {sql} as amount where :tenant = '{TENANT}'");
        assert_eq!(only_row(&database, &query).await?, (vec!["text".to_owned()], vec![text(expected)]), "{sql}");
    }
    for endless in ["NaN", "Infinity", "-Infinity"] {
        let query = format!("select '{endless}'::numeric as amount where :tenant is not null");
        let sentence = refusal(&database, &query).await?;
        assert!(
            sentence.contains("row 1, column \"amount\"") && sentence.contains("cast the column to text"),
            "{sentence}"
        );
    }
    Ok(())
}

#[tokio::test]
async fn source_each_type_has_its_form() -> anyhow::Result<()> {
    let database = Database::fresh().await?;
    let admin = database.admin().await?;
    for statement in
        ["CREATE TYPE colour AS ENUM ('red', 'green')", "CREATE DOMAIN cents AS integer CHECK (value >= 0)"]
    {
        admin.execute(statement).await?;
    }
    let uuid = "6f1f6d3c-0000-4000-8000-00000000002a";
    let cases = [
        ("true".to_owned(), "boolean", Value::Boolean(true)),
        ("-7::smallint".to_owned(), "integer", Value::Integer(-7)),
        ("2147483647::integer".to_owned(), "integer", Value::Integer(2_147_483_647)),
        ("9223372036854775807::bigint".to_owned(), "integer", Value::Integer(i64::MAX)),
        ("4294967295::oid".to_owned(), "integer", Value::Integer(4_294_967_295)),
        ("1.5::real".to_owned(), "float", Value::Float(1.5)),
        ("0.1::double precision".to_owned(), "float", Value::Float(0.1)),
        ("'Zoë ✓'::text".to_owned(), "text", text("Zoë ✓")),
        ("'ab'::char(4)".to_owned(), "text", text("ab  ")),
        ("'\\x00ff'::bytea".to_owned(), "bytes", Value::Bytes(vec![0, 0xff])),
        ("'2026-02-28'::date".to_owned(), "text", text("2026-02-28")),
        ("'9999-12-31'::date".to_owned(), "text", text("9999-12-31")),
        ("'23:59:59.5'::time".to_owned(), "text", text("23:59:59.500000")),
        ("'24:00'::time".to_owned(), "text", text("24:00:00.000000")),
        ("'08:00+02'::timetz".to_owned(), "text", text("08:00:00.000000+02:00:00")),
        ("'2026-02-28 12:00:00.25'::timestamp".to_owned(), "timestamp", text("2026-02-28T12:00:00.250000")),
        ("'1969-07-20 20:17:40+02'::timestamptz".to_owned(), "timestamp", text("1969-07-20T18:17:40Z")),
        ("'{\"b\": 1, \"a\": 2.50}'::json".to_owned(), "json", text("{\"b\": 1, \"a\": 2.50}")),
        ("'{\"b\": 1, \"a\": 2.50}'::jsonb".to_owned(), "json", text("{\"a\": 2.50, \"b\": 1}")),
        (format!("'{uuid}'::uuid"), "text", text(uuid)),
        ("'green'::colour".to_owned(), "text", text("green")),
        ("5::cents".to_owned(), "integer", Value::Integer(5)),
        ("null::numeric".to_owned(), "text", Value::Null),
        ("null::timestamptz".to_owned(), "timestamp", Value::Null),
    ];
    for (sql, of, value) in cases {
        let query = format!("select {sql} as it where :tenant::uuid = '{TENANT}'");
        assert_eq!(only_row(&database, &query).await?, (vec![of.to_owned()], vec![value]), "{sql}");
    }
    Ok(())
}

#[tokio::test]
async fn source_times_without_a_form_are_an_error_and_no_short_file() -> anyhow::Result<()> {
    let database = Database::fresh().await?;
    for sql in [
        "'infinity'::date",
        "'-infinity'::date",
        "'infinity'::timestamp",
        "'-infinity'::timestamptz",
        "'0044-03-15 BC'::date",
        "'10000-01-01'::date",
        "'10000-01-01'::timestamptz",
    ] {
        let query = format!(
            "select n, case when n = 3 then {sql} end as due from generate_series(1, 5) n where :tenant is not null"
        );
        let sentence = refusal(&database, &query).await?;
        assert!(sentence.contains("row 3, column \"due\""), "{sql}: {sentence}");
        assert!(sentence.contains("cast the column to text"), "{sql}: {sentence}");
    }
    Ok(())
}

#[tokio::test]
async fn source_a_type_without_a_form_is_refused_by_its_column() -> anyhow::Result<()> {
    let database = Database::fresh().await?;
    for (sql, of) in [("array[1, 2]", "INT4[]"), ("interval '1 day'", "INTERVAL"), ("point(1, 2)", "POINT")] {
        let sentence = refusal(&database, &format!("select 1 as id, {sql} as shape where :tenant is not null")).await?;
        assert!(
            sentence.contains("\"shape\"") && sentence.contains(of) && sentence.contains("cast it to text"),
            "{sentence}"
        );
    }
    Ok(())
}
