//! Whatever statement of a delivery is lost, on either side of its commit: nothing that changes anything at the partner is
//! asked a second time. The server's own log is the judge.

use std::collections::{BTreeMap, BTreeSet};

use uuid::Uuid;
use waybill::job::status::Status;
use waybill_tests::proxy::{Fault, Moment};
use waybill_tests::{House, wait};

use super::OnTheLine;

/// Statements that run beside an attempt, as often as time allows; a lost one is tried again by its nature.
const BESIDE: [&str; 3] = ["receive_wakeups", "renew", "watch_stop"];

/// Every statement that a delivery executes, with which execution of it: read from a delivery that nothing disturbed.
async fn path(on: &OnTheLine) -> anyhow::Result<Vec<(String, usize)>> {
    let before = on.line.executed().len();
    on.house.until(on.house.create().await?, Status::Completed).await?;
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    let mut path = Vec::new();
    for statement in on.line.executed().split_off(before) {
        // The store's own; beside them the line carries what sqlx asks about types.
        if statement.chars().next().is_some_and(char::is_uppercase) || BESIDE.contains(&statement.as_str()) {
            continue;
        }
        let count = counts.entry(statement.clone()).or_default();
        *count += 1;
        path.push((statement, *count));
    }
    for boundary in ["claim", "authorize_delivery", "append_evidence", "intend_publish", "finish_delivery"] {
        anyhow::ensure!(counts.contains_key(boundary), "the delivery did not pass {boundary}: {path:?}");
    }
    Ok(path)
}

/// Delivers one job, of which this execution is cut, and lets whatever is left be taken up again.
async fn deliver(on: OnTheLine, cut: &(String, usize), moment: Moment) -> anyhow::Result<(OnTheLine, Uuid)> {
    let (statement, nth) = cut;
    let struck = on.line.at_nth(statement, *nth, Fault::cut(moment));
    let job = on.house.create().await?;
    struck.happened().await?;
    if !gives_up(cut) {
        wait::until(&format!("the job to come past cutoff 2 after {statement} was cut"), async || {
            let status = on.house.job(job).await?.status;
            if status == Status::Queued {
                on.redeliver(job).await?;
            }
            Ok((status.is_terminal() || status == Status::Delivering).then_some(()))
        })
        .await?;
    }
    let on = on.worker_ended().await?;
    match on.house.job(job).await?.status {
        Status::Delivering => on.resolve(job).await?,
        Status::Running => on.requeue(job).await?,
        _ => {}
    }
    on.house.until_ended(job).await?;
    // What is left of its messages finds the job over.
    on.redeliver(job).await?;
    on.until_settled(job).await?;
    Ok((on, job))
}

/// A reading that the attempt cannot do without, before anything was sent: it ends unwritten, and recovery requeues it.
fn gives_up((statement, nth): &(String, usize)) -> bool {
    matches!((statement.as_str(), *nth), ("key_history" | "find_check", 1))
}

async fn no_call_is_repeated(moment: Moment) -> anyhow::Result<()> {
    let mut on = OnTheLine::new().await?.proven().await?;
    for cut in path(&on).await? {
        let (after, job) = deliver(on, &cut, moment).await?;
        on = after;
        let place = format!("{cut:?} was cut {moment:?}");
        assert!(on.server.times_created(&House::final_name(job)) <= 1, "{place}: published twice");
        let asked: Vec<String> = on.writes_about(job).iter().map(|operation| format!("{operation:?}")).collect();
        let once: BTreeSet<&String> = asked.iter().collect();
        assert_eq!(once.len(), asked.len(), "{place}: something was asked twice: {asked:#?}");
        let ended = on.house.job(job).await?;
        assert_eq!(ended.attempt_count, if gives_up(&cut) { 2 } else { 1 }, "{place}: {ended:?}");
    }
    Ok(())
}

#[tokio::test]
async fn lst_05_no_external_call_is_repeated_after_a_request_that_never_arrived() -> anyhow::Result<()> {
    no_call_is_repeated(Moment::Before).await
}

#[tokio::test]
async fn lst_05_no_external_call_is_repeated_after_a_lost_answer() -> anyhow::Result<()> {
    no_call_is_repeated(Moment::After).await
}
