use anyhow::Context;
use time::{Duration, OffsetDateTime};
use uuid::Uuid;
use waybill::job::status::Role;
use waybill::store::{self, Creation, NewJob};

use super::world::World;

const TABLES: [&str; 4] = ["export_jobs", "deliveries", "outbox", "outbox_claims"];

#[tokio::test]
async fn cre_01_job_key_and_wake_up_appear_together() -> anyhow::Result<()> {
    let world = World::new().await?;
    let job = world.queued().await?;
    for table in TABLES {
        assert_eq!(world.count(&format!("SELECT count(*) FROM {table}")).await?, 1, "{table}");
    }
    let row = store::find_tenant_job(&world.api, world.tenant, job).await?.context("the job")?;
    assert_eq!((row.version, row.attempt_count, row.created_by.as_str()), (1, 0, "olga"));
    assert!(store::find_tenant_job(&world.api, Uuid::new_v4(), job).await?.is_none(), "another tenant's is missing");
    Ok(())
}

#[tokio::test]
async fn cre_01_if_one_insert_fails_none_happened() -> anyhow::Result<()> {
    let world = World::new().await?;
    let admin = world.database.admin().await?;
    sqlx::raw_sql(
        "CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS
         $$ BEGIN RAISE EXCEPTION 'as the test wants it' USING ERRCODE = 'WBXXX'; END $$",
    )
    .execute(&admin)
    .await?;
    for failing in TABLES {
        let toggle = |statement: String| sqlx::raw_sql(sqlx::AssertSqlSafe(statement)).execute(&admin);
        toggle(format!("CREATE TRIGGER fail AFTER INSERT ON {failing} FOR EACH ROW EXECUTE FUNCTION fail()")).await?;
        let refused = store::create(&world.api, world.new_job()).await.unwrap_err();
        assert_eq!(refused.code(), Some("WBXXX"), "{failing}");
        for table in TABLES {
            assert_eq!(world.count(&format!("SELECT count(*) FROM {table}")).await?, 0, "{failing} failed");
        }
        toggle(format!("DROP TRIGGER fail ON {failing}")).await?;
    }
    Ok(())
}

#[tokio::test]
async fn cre_02_a_key_is_minted_once_a_tenant() -> anyhow::Result<()> {
    let world = World::new().await?;
    let first = world.new_job();
    world.create(&first).await?;

    let second = NewJob { id: Uuid::new_v4(), ..first.clone() };
    assert_eq!(store::create(&world.api, second.clone()).await?, Creation::KeyTaken);
    let direct = format!(
        "INSERT INTO export_jobs (id, tenant_id, status, version, destination_id, delivery_key, created_by, woken_at,
                                  known_system, known_timeline)
         VALUES (gen_random_uuid(), '{}', 'Queued', 1, '{}', '{}', 'olga', clock_timestamp(), 1, 1)",
        world.tenant, world.destination, first.delivery_key
    );
    assert_eq!(world.refused(Role::Api, &direct).await?, "23505", "also without the statement");

    let other = Uuid::new_v4();
    let elsewhere =
        NewJob { tenant: other, destination: world.destination(other, serde_json::json!({})).await?, ..second };
    assert_eq!(store::create(&world.api, elsewhere).await?, Creation::Created, "another tenant has keys of its own");
    assert_eq!(world.count("SELECT count(*) FROM export_jobs").await?, 2);
    Ok(())
}

#[tokio::test]
async fn cre_02_a_job_names_only_a_destination_of_its_tenant() -> anyhow::Result<()> {
    let world = World::new().await?;
    let foreign = world.destination(Uuid::new_v4(), serde_json::json!({})).await?;
    let job = NewJob { destination: foreign, ..world.new_job() };
    assert_eq!(store::create(&world.api, job).await?, Creation::NoSuchDestination);
    Ok(())
}

#[tokio::test]
async fn cre_04_a_scheduled_job_is_not_claimed_before_its_time_and_woken_at_it() -> anyhow::Result<()> {
    let world = World::new().await?;
    let mut connection = world.login(Role::Reader).await?;
    let now: OffsetDateTime = sqlx::query_scalar("SELECT clock_timestamp()").fetch_one(&mut connection).await?;
    let later = now + Duration::hours(2);
    let scheduled = NewJob { not_before: Some(later), priority: 7, ..world.new_job() };
    let job = world.create(&scheduled).await?;

    match store::claim(&world.worker, World::claim(job, 1)).await? {
        store::Write::Refused(found) => assert!(!found.due && found.destination_enabled && found.history_known),
        answer => panic!("{answer:?}"),
    }
    let (ready_at, priority): (OffsetDateTime, i16) =
        sqlx::query_as("SELECT ready_at, priority FROM outbox_claims").fetch_one(&mut connection).await?;
    let row = store::find_job(&world.worker, job).await?.context("the job")?;
    assert_eq!(ready_at, row.not_before.context("a time")?, "the wake-up is ready at the job's time");
    assert_eq!(row.woken_at, ready_at, "and the sweeper counts from there");
    assert_eq!(priority, 7);

    let due = NewJob { not_before: Some(now - Duration::hours(2)), ..world.new_job() };
    world.claimed(world.create(&due).await?).await?;
    Ok(())
}
