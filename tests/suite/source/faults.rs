//! What each fault asks for: another attempt, the database, a person; or it is the query's or its data's, and nothing helps.

use std::collections::BTreeMap;

use sqlx::{AssertSqlSafe, Executor as _};
use waybill::embedded::postgres::SUPERUSER;
use waybill::job::remedy::Remedy;
use waybill::source::{Database as Place, Queries, Query, SourceError};
use waybill_tests::Database;

use super::{TENANT, open};

const SQL: &str = "select 'x' as name where :tenant is not null";

/// Why nothing could be opened there.
async fn unopened(place: Place) -> anyhow::Result<SourceError> {
    let query = Query { sql: SQL.to_owned(), database: place };
    let queries = Queries::new(TENANT, BTreeMap::from([("rows".to_owned(), query)]));
    queries.open("rows", &[]).await.err().ok_or_else(|| anyhow::anyhow!("it was opened"))
}

#[tokio::test]
async fn source_what_another_attempt_needs_is_told_from_what_the_query_did_wrong() -> anyhow::Result<()> {
    let database = Database::fresh().await?;
    let admin = database.admin().await?;
    admin
        .execute(
            "CREATE FUNCTION fail_with(code text) RETURNS text LANGUAGE plpgsql AS $$ \
             BEGIN RAISE EXCEPTION 'no' USING ERRCODE = code; END $$",
        )
        .await?;
    for (code, remedy) in [
        ("08006", Some(Remedy::Reachable)),
        ("57P01", Some(Remedy::Reachable)),
        ("57P05", Some(Remedy::Reachable)),
        ("40001", Some(Remedy::AnotherAttempt)),
        ("40P01", Some(Remedy::AnotherAttempt)),
        ("53200", Some(Remedy::AnotherAttempt)),
        ("55P03", Some(Remedy::AnotherAttempt)),
        ("57014", Some(Remedy::AnotherAttempt)),
        ("58030", Some(Remedy::AnotherAttempt)),
        ("22012", None),
        ("23505", None),
        ("42501", None),
        ("55000", None),
        ("P0001", None),
    ] {
        let sql = format!("select fail_with('{code}') as name where :tenant is not null");
        let error = open(&database, &sql).await?.next(10).await.unwrap_err();
        assert_eq!(error.remedy(), remedy, "{code}: {error}");
    }
    let error = open(&database, "select nothing as name where :tenant is not null").await.err();
    assert_eq!(error.and_then(|error| error.remedy()), None, "an error of the query itself");
    Ok(())
}

#[tokio::test]
async fn source_a_connection_that_is_not_had_waits_for_the_database_or_for_a_person() -> anyhow::Result<()> {
    let database = Database::fresh().await?;
    let (admin, address) = (database.admin().await?, database.address());
    let (none, barred) = (format!("none_{}", database.name()), format!("barred_{}", database.name()));
    admin.execute(AssertSqlSafe(format!("CREATE ROLE {none} LOGIN CONNECTION LIMIT 0"))).await?;
    admin.execute(AssertSqlSafe(format!("CREATE ROLE {barred} NOLOGIN"))).await?;
    let url = |role: &str, name: &str| Place::Url(address.url(role, name));
    let nowhere = tempfile::tempdir()?;
    for (place, remedy, says) in [
        (Place::UrlEnv("WAYBILL_TEST_UNSET".to_owned()), Remedy::Person, "WAYBILL_TEST_UNSET is not set; set it"),
        (Place::UrlFile(nowhere.path().join("url")), Remedy::Person, "cannot be read"),
        (Place::Url("not an address".to_owned()), Remedy::Person, "it is no address"),
        (url("nobody_at_all", database.name()), Remedy::Person, "refuses the login"),
        (url(&barred, database.name()), Remedy::Person, "refuses the login"),
        (url(SUPERUSER, "no_such_database"), Remedy::Person, "correct the url"),
        (
            url(&none, database.name()),
            Remedy::Reachable,
            "cannot be reached (error returned from database: too many connections",
        ),
        (
            Place::Url(format!("postgres:///crm?host={}", nowhere.path().display())),
            Remedy::Reachable,
            "cannot be reached",
        ),
    ] {
        let error = unopened(place.clone()).await?;
        assert_eq!(error.remedy(), Some(remedy), "{place:?}: {error}");
        assert!(error.to_string().contains(says), "{error}");
    }
    Ok(())
}
