use sqlx::{Connection, Executor};
use waybill_tests::Database;
use waybill_tests::database::backend_pid;

#[tokio::test]
async fn kit_databases_are_apart_and_gone_with_their_handle() -> anyhow::Result<()> {
    let (one, other) = (Database::fresh().await?, Database::fresh().await?);
    one.admin().await?.execute("CREATE TABLE only_here ()").await?;
    let elsewhere = other.admin().await?.execute("SELECT FROM only_here").await;
    assert!(elsewhere.is_err(), "a table of one database is seen in another");
    let name = one.name().to_owned();
    drop(one);
    let left: bool = sqlx::query_scalar("SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)")
        .bind(name)
        .fetch_one(&other.admin().await?)
        .await?;
    assert!(!left, "a dropped handle leaves its database behind");
    Ok(())
}

#[tokio::test]
async fn kit_a_pool_logs_in_as_its_role_and_reads_committed() -> anyhow::Result<()> {
    let database = Database::fresh().await?;
    let pool = database.pool("waybill_worker").await?;
    let (role, isolation): (String, String) =
        sqlx::query_as("SELECT current_user::text, current_setting('transaction_isolation')").fetch_one(&pool).await?;
    assert_eq!((role.as_str(), isolation.as_str()), ("waybill_worker", "read committed"));
    Ok(())
}

#[tokio::test]
async fn kit_a_waiting_statement_names_its_blocker() -> anyhow::Result<()> {
    let database = Database::fresh().await?;
    let admin = database.admin().await?;
    admin.execute("CREATE TABLE rows AS SELECT 1 AS id").await?;
    let mut holder = admin.acquire().await?;
    let mut waiter = admin.acquire().await?;
    let (holds, waits) = (backend_pid(&mut holder).await?, backend_pid(&mut waiter).await?);
    let mut open = holder.begin().await?;
    open.execute("SELECT FROM rows FOR UPDATE").await?;
    let waiting = tokio::spawn(async move { waiter.execute("UPDATE rows SET id = 2").await.map(drop) });
    assert_eq!(database.wait_until_blocked(waits).await?, [holds]);
    assert!(!waiting.is_finished());
    open.commit().await?;
    waiting.await??;
    Ok(())
}
