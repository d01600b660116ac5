//! Data and settings that do not fit: the build fails with the reason, and the partner never hears of it.

use sqlx::{AssertSqlSafe, Executor as _};
use waybill::job::status::{FailureReason, Status};
use waybill_tests::house::{PlannedQuery, TENANT};
use waybill_tests::{Database, House, Plan, Reach, Sshd};

use super::{assert_sentence, cause};

/// Runs one job to its failed build and returns the cause, after checking that the partner has seen nothing.
async fn failed_build(plan: Plan) -> anyhow::Result<String> {
    let server = Sshd::start().await?;
    let house = House::before(&Reach::openssh(&server)?, plan).await?;
    let (_worker, _dispatcher) = (house.worker().await?, house.dispatcher().await?);
    let id = house.create().await?;
    let job = house.until_ended(id).await?;
    assert_eq!((job.status, job.failure_reason), (Status::Failed, Some(FailureReason::BuildFailed)));
    assert_eq!(job.attempt_count, 1, "the same input fails the same way");
    assert_eq!(house.spooled_bytes()?, 0, "a half-built file is kept");
    assert_eq!(server.operations()?, [], "the partner was asked for something");
    assert_eq!(std::fs::read_dir(server.files())?.count(), 0);
    cause(&house, id).await
}

#[tokio::test]
async fn bad_input_a_missing_column_is_named_with_those_that_exist() -> anyhow::Result<()> {
    let destination =
        "settings = { name = 'contacts-{key}.csv', query = 'rows', columns = 'id, street=Street' }\n".to_owned();
    let cause = failed_build(Plan { destination, ..Plan::default() }).await?;
    assert_sentence(&cause, &["columns", "street", "rows", "id, name, email"]);
    Ok(())
}

#[tokio::test]
async fn bad_input_text_of_an_sql_ascii_database_is_named_by_row_and_column() -> anyhow::Result<()> {
    let tenants = Database::sql_ascii().await?;
    let admin = tenants.admin().await?;
    for statement in [
        "CREATE TABLE people (tenant_id uuid NOT NULL, id integer NOT NULL, name text NOT NULL)".to_owned(),
        format!("INSERT INTO people VALUES ('{TENANT}', 1, 'Plain'), ('{TENANT}', 2, E'canary-M\\xe4rz')"),
    ] {
        admin.execute(AssertSqlSafe(statement)).await?;
    }
    let query = PlannedQuery {
        url: tenants.url(),
        sql: "select id, name from people where tenant_id = :tenant::uuid order by id",
    };
    let cause = failed_build(Plan { query: Some(query), ..Plan::default() }).await?;
    assert_sentence(&cause, &["row 2", "column", "name", "not UTF-8 from byte 9", "SQL_ASCII", "convert_from("]);
    assert!(!cause.contains("canary"), "a value was told: {cause}");
    Ok(())
}

#[tokio::test]
async fn bad_input_an_error_of_the_query_itself_is_named() -> anyhow::Result<()> {
    let tenants = Database::fresh().await?;
    let query = PlannedQuery {
        url: tenants.url(),
        sql: "select 1/(n - 2) as id from generate_series(1, 3) n where :tenant is not null",
    };
    let cause = failed_build(Plan { query: Some(query), ..Plan::default() }).await?;
    assert_sentence(&cause, &["rows", "refused the query", "division by zero", "22012"]);
    Ok(())
}
