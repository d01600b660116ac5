//! A takeover during the upload, as the lease keeper finds it.

use std::time::Duration;

use waybill::job::evidence::Answer;
use waybill::job::status::{EventKind, Status};
use waybill_tests::house::PlannedQuery;
use waybill_tests::sftp_server::{Action, When};
use waybill_tests::{Database, Operation, Plan, wait};

use super::{NOT_DELIVERED, ONE_STEP, Silent, agreed, renames};

#[tokio::test]
async fn lse_03_a_takeover_that_the_lease_keeper_finds_ends_the_upload_and_removes_its_temporary() -> anyhow::Result<()>
{
    // Three megabytes, so that much of the file is not on its way yet while the first write is held.
    let data = Database::fresh().await?;
    let sql = "select n as id, repeat(md5(n::text), 32) as name from generate_series(1, 3000) as n where :tenant::uuid is not null";
    let query = Some(PlannedQuery { url: data.url(), sql });
    let plan = Plan { query, renew_every: Duration::from_millis(200), ..agreed(ONE_STEP) };
    let first_write = |_: &str, when, action, _: &str| when == When::Before && action == Action::Write;
    let mut silent = Silent::held_at_a_known_server(renames(), plan, first_write).await?;
    let temporary = silent.temporary().await?;
    if let Some(dispatcher) = silent.dispatcher.take() {
        dispatcher.stop().await?;
    }
    // The keeper renews all the while, so it takes a moment at which recovery is faster.
    let recovery = silent.house.recovery().await?;
    wait::until("the takeover", async || {
        silent.house.expire_lease(silent.job).await?;
        recovery.run_once().await?;
        Ok((silent.house.job(silent.job).await?.status == Status::OutcomeUnknown).then_some(()))
    })
    .await?;
    // A renewal that matched nothing reads what was found, as its connection's last statement.
    wait::until("the renewal that finds the takeover", async || {
        let found: bool = sqlx::query_scalar(
            "SELECT EXISTS (
                SELECT FROM pg_stat_activity AS activity, export_attempt_events AS event
                WHERE activity.datname = current_database() AND activity.query LIKE '-- store::found%'
                  AND activity.state = 'idle' AND event.job_id = $1 AND event.kind = 'ResolvedByRecovery'
                  AND activity.query_start > event.recorded_at)",
        )
        .bind(silent.job)
        .fetch_one(&silent.house.admin)
        .await?;
        Ok(found.then_some(()))
    })
    .await?;
    silent.gate.open();
    assert_eq!(silent.until_removal().await?, Answer::Acknowledged);
    assert_eq!(silent.server.read(&temporary), None);
    let expected = silent.house.job(silent.job).await?.expected.map_or(0, |file| file.bytes);
    let written = silent.server.operations().into_iter().find_map(|done| match done.operation {
        Operation::Close { path, written, .. } if path.ends_with(&temporary) => Some(written),
        _ => None,
    });
    assert!(written.is_some_and(|written| written < expected), "{written:?} of {expected} bytes were sent");
    assert_eq!(silent.server.times_created(&silent.name()), 0);
    let events = silent.house.events(silent.job).await?;
    assert!(events.iter().all(|event| event.kind != EventKind::PublishIntended), "the fence was passed");
    silent.looked().await?;
    assert_eq!(silent.stands().await?, NOT_DELIVERED);
    Ok(())
}
