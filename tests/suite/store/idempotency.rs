//! Creation under an idempotency key.

use std::time::Duration;

use anyhow::{Context, bail};
use uuid::Uuid;
use waybill::job::status::Role;
use waybill::store::{self, CreatedOnce, KeyedCreation, Made, NewJob};

use super::world::World;

const TABLES: [&str; 5] = ["export_jobs", "deliveries", "outbox", "outbox_claims", "idempotency_keys"];

/// A submission of the same request: other ids and another minted delivery key each time.
fn request(world: &World) -> KeyedCreation {
    KeyedCreation {
        idempotency_key: "order-4711".to_owned(),
        job: world.new_job(),
        names_delivery_key: false,
        lock_timeout: Duration::from_secs(10),
    }
}

async fn created(world: &World, request: KeyedCreation) -> anyhow::Result<Made> {
    match store::create_once(&world.api, request).await? {
        CreatedOnce::Created(made) => Ok(made),
        other => bail!("{other:?}"),
    }
}

async fn counts(world: &World) -> anyhow::Result<Vec<i64>> {
    let admin = world.database.admin().await?;
    let mut counts = Vec::new();
    for table in TABLES {
        let statement = sqlx::AssertSqlSafe(format!("SELECT count(*) FROM {table}"));
        counts.push(sqlx::query_scalar(statement).fetch_one(&admin).await?);
    }
    Ok(counts)
}

#[tokio::test]
async fn cre_03_the_same_request_twice_makes_one_job_and_one_answer() -> anyhow::Result<()> {
    let world = World::new().await?;
    let made = created(&world, request(&world)).await?;
    for _ in 0..2 {
        assert_eq!(store::create_once(&world.api, request(&world)).await?, CreatedOnce::Again(made.clone()));
    }
    assert_eq!(counts(&world).await?, [1; 5]);
    let row = store::find_tenant_job(&world.api, world.tenant, made.job).await?.context("the job")?;
    assert_eq!(row.delivery_key, made.delivery_key, "the answer names what was made");
    // Also when the job has gone on meanwhile.
    world.claimed(made.job).await?;
    assert_eq!(store::create_once(&world.api, request(&world)).await?, CreatedOnce::Again(made));
    Ok(())
}

#[tokio::test]
async fn cre_03_the_same_key_with_other_content_is_refused_and_names_who_used_it() -> anyhow::Result<()> {
    let world = World::new().await?;
    let made = created(&world, request(&world)).await?;
    let other = KeyedCreation { job: NewJob { priority: 5, ..world.new_job() }, ..request(&world) };
    assert_eq!(store::create_once(&world.api, other).await?, CreatedOnce::OtherContent { used_by: "olga".to_owned() });
    assert_eq!(counts(&world).await?, [1; 5]);
    assert_eq!(store::create_once(&world.api, request(&world)).await?, CreatedOnce::Again(made));
    Ok(())
}

#[tokio::test]
async fn cre_03_another_tenants_same_key_is_another_request() -> anyhow::Result<()> {
    let world = World::new().await?;
    let made = created(&world, request(&world)).await?;
    let tenant = Uuid::new_v4();
    let destination = world.destination(tenant, serde_json::json!({})).await?;
    let theirs = KeyedCreation { job: NewJob { tenant, destination, ..world.new_job() }, ..request(&world) };
    assert_ne!(created(&world, theirs).await?, made);
    assert_eq!(counts(&world).await?, [2; 5]);
    Ok(())
}

#[tokio::test]
async fn cre_03_one_in_flight_is_said_so_and_its_rollback_leaves_the_key_free() -> anyhow::Result<()> {
    let world = World::new().await?;
    let begun = format!(
        "INSERT INTO idempotency_keys (tenant_id, key, operation, fingerprint, started_by)
         VALUES ('{}', 'order-4711', 'create', decode(repeat('ab', 32), 'hex'), 'olga')",
        world.tenant
    );
    let held = world.hold(Role::Api, &begun).await?;
    let hasty = KeyedCreation { lock_timeout: Duration::from_millis(50), ..request(&world) };
    assert_eq!(store::create_once(&world.api, hasty).await?, CreatedOnce::InFlight);
    assert_eq!(counts(&world).await?, [0; 5]);

    // A patient one waits for exactly that transaction, and goes on when it has left nothing.
    let (pool, patient) = (world.api.clone(), request(&world));
    let waiting = tokio::spawn(async move { store::create_once(&pool, patient).await });
    world.blocked_by(held.pid).await?;
    held.roll_back().await?;
    assert!(matches!(waiting.await??, CreatedOnce::Created(_)));
    assert_eq!(counts(&world).await?, [1; 5]);
    Ok(())
}

#[tokio::test]
async fn cre_03_of_requests_sent_at_once_one_makes_the_job() -> anyhow::Result<()> {
    let world = World::new().await?;
    let tasks: Vec<_> = (0..6)
        .map(|_| {
            let (pool, request) = (world.api.clone(), request(&world));
            tokio::spawn(async move { store::create_once(&pool, request).await })
        })
        .collect();
    let (mut first, mut answers) = (0, Vec::new());
    for task in tasks {
        match task.await?? {
            CreatedOnce::Created(made) => {
                first += 1;
                answers.push(made);
            }
            CreatedOnce::Again(made) => answers.push(made),
            other => bail!("{other:?}"),
        }
    }
    answers.dedup();
    assert_eq!((first, answers.len()), (1, 1));
    assert_eq!(counts(&world).await?, [1; 5]);
    Ok(())
}

#[tokio::test]
async fn cre_03_a_refused_creation_leaves_nothing_and_its_key_free() -> anyhow::Result<()> {
    let world = World::new().await?;
    let nowhere = KeyedCreation { job: NewJob { destination: Uuid::new_v4(), ..world.new_job() }, ..request(&world) };
    assert_eq!(store::create_once(&world.api, nowhere).await?, CreatedOnce::NoSuchDestination);
    assert_eq!(counts(&world).await?, [0; 5]);
    let made = created(&world, request(&world)).await?;
    let taken = KeyedCreation {
        idempotency_key: "another".to_owned(),
        job: NewJob { delivery_key: made.delivery_key, ..world.new_job() },
        names_delivery_key: true,
        ..request(&world)
    };
    assert_eq!(store::create_once(&world.api, taken).await?, CreatedOnce::KeyTaken);
    assert_eq!(counts(&world).await?, [1; 5]);
    Ok(())
}
