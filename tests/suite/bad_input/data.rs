//! The tenant's data that cannot be had: no failure of the job. It is handed back, and delivered once the data is there again.

use std::time::Duration;

use sqlx::{AssertSqlSafe, Executor as _};
use waybill::embedded::postgres::Address;
use waybill::job::status::{FailureReason, Status};
use waybill::store;
use waybill_tests::house::{DESTINATION, PlannedQuery, TENANT};
use waybill_tests::{Database, House, Plan, Reach, Sshd};

use super::{assert_sentence, handed_back};

const SQL: &str = "select id, name from people where tenant_id = :tenant::uuid order by id";

/// A tenant's database with three people.
async fn people() -> anyhow::Result<(Database, sqlx::PgPool)> {
    let tenants = Database::fresh().await?;
    let admin = tenants.admin().await?;
    admin.execute("CREATE TABLE people (tenant_id uuid NOT NULL, id integer NOT NULL, name text NOT NULL)").await?;
    let rows = format!("INSERT INTO people SELECT '{TENANT}', n, 'person ' || n FROM generate_series(1, 3) AS n");
    admin.execute(AssertSqlSafe(rows)).await?;
    Ok((tenants, admin))
}

fn plan(url: String, sql: &'static str) -> Plan {
    // What is handed back is not tried again while the test looks at it.
    Plan { query: Some(PlannedQuery { url, sql }), first_backoff: Duration::from_secs(2), ..Plan::default() }
}

/// The whole file, under its name at the partner.
fn delivered(server: &Sshd, job: uuid::Uuid) -> anyhow::Result<String> {
    Ok(std::fs::read_to_string(server.files().join(House::final_name(job)))?)
}

const WHOLE: &str = "id,name\r\n1,person 1\r\n2,person 2\r\n3,person 3\r\n";

#[tokio::test]
async fn lse_08_a_tenants_database_that_is_away_costs_no_job_and_pauses_the_destination() -> anyhow::Result<()> {
    let (server, (tenants, _)) = (Sshd::start().await?, people().await?);
    // A way there that is laid later.
    let directory = tempfile::Builder::new().prefix("waybill-crm-").tempdir()?;
    let there = tenants.address();
    let crm = Address { socket_directory: directory.path().join("crm"), port: there.port };
    let url = crm.url(waybill::embedded::postgres::SUPERUSER, tenants.name());
    let house = House::before(&Reach::openssh(&server)?, plan(url, SQL)).await?;
    let (_worker, _dispatcher) = (house.worker().await?, house.dispatcher().await?);
    let id = house.create().await?;
    let why = handed_back(&house, id).await?;
    assert_sentence(&why, &["rows", "cannot be reached", tenants.name(), "see that it runs"]);
    assert_eq!(house.spooled_bytes()?, 0, "a half-built file is kept");
    assert_eq!(server.operations()?, [], "the partner was asked for something");
    let job = house.job(id).await?;
    assert_eq!((job.status, job.attempt_count), (Status::Queued, 1));
    let state = store::destination_state(&house.api, DESTINATION).await?;
    assert!(state.is_some_and(|state| state.pause.is_some() && state.attention.is_none()));

    std::os::unix::fs::symlink(&there.socket_directory, &crm.socket_directory)?;
    let job = house.until_woken(id).await?;
    assert_eq!((job.status, job.attempt_count), (Status::Completed, 2));
    assert_eq!(delivered(&server, id)?, WHOLE);
    Ok(())
}

#[tokio::test]
async fn lse_08_a_query_that_is_broken_off_is_run_again_and_no_guest_makes_a_short_file_of_it() -> anyhow::Result<()> {
    let (server, (tenants, admin)) = (Sshd::start().await?, people().await?);
    for statement in [
        "CREATE TABLE conflict (code text)",
        "INSERT INTO conflict VALUES ('40001')",
        "CREATE FUNCTION met(name text) RETURNS text LANGUAGE plpgsql AS $$ BEGIN \
         IF name = 'person 3' AND EXISTS (SELECT FROM conflict) THEN \
         RAISE EXCEPTION 'could not serialize access' USING ERRCODE = (SELECT code FROM conflict); END IF; RETURN name; END $$",
    ] {
        admin.execute(statement).await?;
    }
    let sql = "select met(name) as name from people where tenant_id = :tenant::uuid order by id";
    let plan = Plan {
        builder: "misbehaving-builder",
        destination: "settings = { name = 'contacts-{key}.csv', behaviour = 'swallow-lost-rows' }\n".to_owned(),
        ..plan(tenants.url(), sql)
    };
    let house = House::before(&Reach::openssh(&server)?, plan).await?;
    let (_worker, _dispatcher) = (house.worker().await?, house.dispatcher().await?);
    let id = house.create().await?;
    assert_sentence(&handed_back(&house, id).await?, &["rows", "broke the query", "40001"]);
    assert_eq!(server.operations()?, [], "the partner was asked for something");
    let state = store::destination_state(&house.api, DESTINATION).await?;
    assert!(state.is_some_and(|state| state.pause.is_none() && state.attention.is_none()));

    admin.execute("DELETE FROM conflict").await?;
    let job = house.until_woken(id).await?;
    assert_eq!(job.status, Status::Completed);
    assert_eq!(delivered(&server, id)?, "person 1\nperson 2\nperson 3\n");
    Ok(())
}

#[tokio::test]
async fn lse_08_a_login_that_the_database_refuses_waits_for_a_person_and_nothing_is_claimed_in_vain()
-> anyhow::Result<()> {
    let (server, (tenants, admin)) = (Sshd::start().await?, people().await?);
    let role = format!("crm_{}", tenants.name());
    let url = tenants.address().url(&role, tenants.name());
    let house = House::before(&Reach::openssh(&server)?, plan(url, SQL)).await?;
    let (_worker, _dispatcher) = (house.worker().await?, house.dispatcher().await?);
    let id = house.create().await?;
    assert_sentence(&handed_back(&house, id).await?, &["rows", "refuses the login", &role, "correct the url"]);
    let state = store::destination_state(&house.api, DESTINATION).await?;
    let attention = state.and_then(|state| state.attention).map(|attention| attention.why);
    assert!(attention.as_deref().is_some_and(|why| why.contains("refuses the login")), "{attention:?}");
    // Another job waits without an attempt of its own.
    let other = house.create().await?;
    waybill_tests::wait::until("the other job to be deferred by policy", async || {
        let row: Option<(bool,)> = sqlx::query_as(
            "SELECT deliveries > 0 AND ready_at > clock_timestamp() + interval '1 minute' FROM wakeups WHERE job_id = $1",
        )
        .bind(other)
        .fetch_optional(&house.admin)
        .await?;
        Ok(row.filter(|(deferred,)| *deferred))
    })
    .await?;
    assert_eq!(house.job(other).await?.attempt_count, 0);

    admin.execute(AssertSqlSafe(format!("CREATE ROLE {role} LOGIN"))).await?;
    admin.execute(AssertSqlSafe(format!("GRANT SELECT ON people TO {role}"))).await?;
    assert!(store::resume_destination(&house.api, TENANT, DESTINATION, "ada").await?.is_some());
    let job = house.until_woken(id).await?;
    assert_eq!((job.status, job.attempt_count), (Status::Completed, 2));
    assert_eq!(house.until_ended(other).await?.status, Status::Completed);
    assert_eq!(delivered(&server, id)?, WHOLE);
    Ok(())
}

#[tokio::test]
async fn lse_08_data_that_stays_away_ends_a_job_at_the_cap_of_attempts() -> anyhow::Result<()> {
    let server = Sshd::start().await?;
    // A port that was just free.
    let port = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
    let plan = plan(format!("postgres://crm@127.0.0.1:{port}/crm"), "select 1 as id where :tenant is not null");
    let house = House::before(&Reach::openssh(&server)?, Plan { max_attempts: 1, ..plan }).await?;
    let (_worker, _dispatcher) = (house.worker().await?, house.dispatcher().await?);
    let id = house.create().await?;
    let job = house.until_ended(id).await?;
    assert_eq!((job.status, job.failure_reason), (Status::Failed, Some(FailureReason::AttemptsExhausted)));
    assert_eq!(server.operations()?, [], "the partner was asked for something");
    Ok(())
}
