//! The sweeper as the backstop of everything before it.

use std::time::Duration;

use waybill::job::status::{Role, Status};
use waybill::upkeep::Sweeper;
use waybill_tests::{House, Plan, Reach, Sshd};

#[tokio::test]
async fn swp_01_a_job_whose_only_wake_up_was_lost_is_delivered() -> anyhow::Result<()> {
    let server = Sshd::start().await?;
    let house = House::before(&Reach::openssh(&server)?, Plan::default()).await?;
    let (_worker, dispatcher) = (house.worker().await?, house.dispatcher().await?);
    dispatcher.stop().await?;
    let id = house.create().await?;
    sqlx::query("DELETE FROM outbox_claims").execute(&house.admin).await?;
    sqlx::query("UPDATE export_jobs SET woken_at = woken_at - interval '31 minutes'")
        .execute(&mut house.unguarded().await?)
        .await?;
    let sweeper = Sweeper::new(house.database.store(Role::Recovery).await?, Duration::from_mins(30));
    assert_eq!(sweeper.run_once().await?, 1);
    assert_eq!(sweeper.run_once().await?, 0, "a job that was just woken is left alone");
    let _dispatcher = house.dispatcher().await?;
    let job = house.until(id, Status::Completed).await?;
    assert_eq!((job.sweep_count, job.attempt_count), (1, 1));
    Ok(())
}
