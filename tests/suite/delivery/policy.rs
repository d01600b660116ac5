//! Policy and cutoff 1, seen from outside the worker.

use waybill::job::status::{EventKind, Status};
use waybill::store::{self, Edit, TermsEdit, Write};
use waybill_tests::house::{DESTINATION, TENANT};
use waybill_tests::{House, Plan, Reach, Sshd, wait};

use super::kinds;

#[tokio::test]
async fn clm_05_a_job_that_policy_refuses_is_rejected_with_its_reason() -> anyhow::Result<()> {
    let server = Sshd::start().await?;
    let plan = Plan {
        destination: "settings = { name = 'contacts-{key}.csv', query = 'rows' }\nrules = { scope = ['region'] }\n"
            .to_owned(),
        ..Plan::default()
    };
    let house = House::before(&Reach::openssh(&server)?, plan).await?;
    let (_worker, _dispatcher) = (house.worker().await?, house.dispatcher().await?);
    let id = house.create_with(serde_json::json!({ "everything": "yes" })).await?;
    let job = house.until_ended(id).await?;
    assert_eq!((job.status, job.attempt_count), (Status::Rejected, 0));
    assert_eq!(job.rejection.unwrap_or_default()["code"], "scope_forbidden");
    assert_eq!(kinds(&house.events(id).await?), []);
    assert_eq!(server.operations()?, []);
    Ok(())
}

#[tokio::test]
async fn clm_06_a_job_of_a_disabled_destination_waits_and_is_delivered_once_it_is_enabled() -> anyhow::Result<()> {
    let server = Sshd::start().await?;
    let house = House::before(&Reach::openssh(&server)?, Plan::default()).await?;
    sqlx::query("UPDATE destinations SET enabled = false WHERE id = $1")
        .bind(DESTINATION)
        .execute(&house.admin)
        .await?;
    let (_worker, _dispatcher) = (house.worker().await?, house.dispatcher().await?);
    let id = house.create().await?;
    // Deferred twice: each time the wake-up is made ready at once, and comes back deferred.
    for receipts in 1..=2 {
        wait::until("the wake-up to be deferred", async || {
            let row: Option<(i32, bool)> =
                sqlx::query_as("SELECT deliveries, ready_at > clock_timestamp() AND taken_until IS NULL FROM wakeups WHERE job_id = $1")
                    .bind(id)
                    .fetch_optional(&house.admin)
                    .await?;
            Ok(row.filter(|(deliveries, deferred)| *deliveries >= receipts && *deferred).map(drop))
        })
        .await?;
        sqlx::query("UPDATE wakeups SET ready_at = clock_timestamp()").execute(&house.admin).await?;
    }
    sqlx::query("UPDATE destinations SET enabled = true WHERE id = $1").bind(DESTINATION).execute(&house.admin).await?;
    wait::until("the job to be delivered", async || {
        sqlx::query("UPDATE wakeups SET ready_at = clock_timestamp() WHERE taken_until IS NULL")
            .execute(&house.admin)
            .await?;
        Ok((house.job(id).await?.status == Status::Completed).then_some(()))
    })
    .await?;
    assert_eq!(house.job(id).await?.attempt_count, 1, "being deferred spends no attempt");
    Ok(())
}

#[tokio::test]
async fn clm_03_the_edits_own_wake_up_brings_the_job_back_with_its_new_terms() -> anyhow::Result<()> {
    let server = Sshd::start().await?;
    let house = House::before(&Reach::openssh(&server)?, Plan::default()).await?;
    let id = house.create().await?;
    let edit = TermsEdit {
        tenant: TENANT,
        job: id,
        expected_version: 1,
        destination: DESTINATION,
        scope: serde_json::json!({ "note": "edited" }),
        not_before: None,
        edited_by: "operator".to_owned(),
    };
    let edited = store::edit_terms(&house.api, edit).await?;
    assert!(matches!(edited, Edit::Answered(Write::Written(2))), "{edited:?}");
    // The first wake-up is lost; only the edit's own is left.
    sqlx::query("DELETE FROM outbox_claims WHERE message_id = (SELECT message_id FROM outbox WHERE job_id = $1 ORDER BY created_at LIMIT 1)")
        .bind(id)
        .execute(&house.admin)
        .await?;
    let (_worker, _dispatcher) = (house.worker().await?, house.dispatcher().await?);
    let job = house.until_ended(id).await?;
    assert_eq!((job.status, job.version), (Status::Completed, 2));
    let events = house.events(id).await?;
    assert_eq!(events.first().map(|event| (event.kind, event.version)), Some((EventKind::Claimed, Some(2))));
    Ok(())
}
