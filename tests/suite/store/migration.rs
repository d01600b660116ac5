use sqlx::{AssertSqlSafe, ConnectOptions, Executor};
use waybill::embedded::postgres::SUPERUSER;
use waybill::job::status::Role;
use waybill::store;

use super::world::World;

/// An empty database beside the test's own, dropped at the end whether or not the test passed.
async fn empty(world: &World) -> anyhow::Result<String> {
    let name = format!("{}_empty", world.database.name());
    let mut admin = world.database.options(SUPERUSER).connect().await?;
    admin.execute(AssertSqlSafe(format!("CREATE DATABASE {name}"))).await?;
    Ok(name)
}

fn admin_url(world: &World, name: &str) -> String {
    super::world::url(&world.database).replace(&format!("///{}?", world.database.name()), &format!("///{name}?"))
        + &format!("&user={SUPERUSER}")
}

#[tokio::test]
async fn ops_01_migrating_twice_and_at_once_does_it_once_and_tells_what_was_done() -> anyhow::Result<()> {
    let world = World::new().await?;
    let name = empty(&world).await?;
    let url = admin_url(&world, &name);
    let (one, other) = tokio::join!(store::migrate(&url), store::migrate(&url));
    let (one, other) = (one?, other?);
    let (first, second) = if one.applied.is_empty() { (other, one) } else { (one, other) };
    assert!(first.already_applied == 0 && !first.applied.is_empty());
    assert!(second.applied.is_empty() && second.already_applied == first.applied.len());
    assert!(second.roles_created.is_empty());

    let mut admin = world.database.options(SUPERUSER).database(&name).connect().await?;
    let not_the_owners: Vec<String> = sqlx::query_scalar(
        "SELECT relname::text FROM pg_class WHERE relnamespace = 'public'::regnamespace
           AND relowner <> 'waybill_owner'::regrole
         UNION ALL
         SELECT proname::text FROM pg_proc WHERE pronamespace = 'public'::regnamespace
           AND proowner <> 'waybill_owner'::regrole",
    )
    .fetch_all(&mut admin)
    .await?;
    assert!(not_the_owners.is_empty(), "{not_the_owners:?}");
    drop(admin);
    world
        .database
        .options(SUPERUSER)
        .connect()
        .await?
        .execute(AssertSqlSafe(format!("DROP DATABASE {name} WITH (FORCE)")))
        .await?;
    Ok(())
}

#[tokio::test]
async fn ops_03_every_table_and_column_has_a_comment_for_operators() -> anyhow::Result<()> {
    let world = World::new().await?;
    let bare: Vec<String> = sqlx::query_scalar(
        "SELECT format('%s.%s', relname, attname)
         FROM pg_class JOIN pg_attribute ON attrelid = pg_class.oid AND attnum > 0 AND NOT attisdropped
         WHERE relnamespace = 'public'::regnamespace AND relkind = 'r' AND relname <> '_sqlx_migrations'
           AND col_description(pg_class.oid, attnum) IS NULL
         UNION ALL
         SELECT relname::text FROM pg_class
         WHERE relnamespace = 'public'::regnamespace AND relkind = 'r' AND relname <> '_sqlx_migrations'
           AND obj_description(oid, 'pg_class') IS NULL",
    )
    .fetch_all(&mut world.login(Role::Reader).await?)
    .await?;
    assert!(bare.is_empty(), "{bare:?}");
    Ok(())
}

#[tokio::test]
async fn ops_05_a_pools_session_is_set_as_promised() -> anyhow::Result<()> {
    let world = World::new().await?;
    let admin = world.database.admin().await?;
    let seen: i64 = sqlx::query_scalar(
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()
           AND application_name = 'waybill-tests' AND usename IN ('waybill_api', 'waybill_worker')",
    )
    .fetch_one(&admin)
    .await?;
    assert_eq!(seen, 2, "each pool is shown under its process and its role");
    Ok(())
}
