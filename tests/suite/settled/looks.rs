//! Later looks: their intervals, what they append, and what they may say of a recorded outcome.

use sqlx::Row as _;
use waybill::job::evidence::Evidence;
use waybill::job::status::Status;
use waybill::upkeep::Looked;
use waybill_tests::sftp_server::{Action, When};
use waybill_tests::wait;

use super::{COMPLETED, ONE_STEP, Silent, UNKNOWN, agreed, renames};

/// Looks so far, and seconds until the next one.
async fn next_look(silent: &Silent) -> anyhow::Result<(i32, f64, bool)> {
    let row = sqlx::query(
        "SELECT looks, extract(epoch FROM next_at - clock_timestamp())::float8 AS wait, ended_at IS NOT NULL AS ended FROM looks WHERE job_id = $1",
    )
    .bind(silent.job)
    .fetch_one(&silent.house.admin)
    .await?;
    Ok((row.try_get("looks")?, row.try_get("wait")?, row.try_get("ended")?))
}

#[tokio::test]
async fn rec_02_looks_come_at_growing_intervals_and_append_only_what_is_new() -> anyhow::Result<()> {
    let mut silent = Silent::at(renames(), agreed(ONE_STEP), When::Before, Action::Rename).await?;
    assert_eq!(silent.taken_over().await?.status, Status::OutcomeUnknown);
    silent.server.collect(&silent.temporary().await?);
    let mut waits = Vec::new();
    let mut appended = Vec::new();
    for _ in 0..3 {
        assert_eq!(silent.looked().await?, [Looked::Open]);
        waits.push(next_look(&silent).await?.1);
        appended.push(silent.evidence().await?.len());
    }
    assert!(waits[0] > 50.0 && waits[1] > 110.0 && waits[2] > 230.0, "{waits:?}");
    assert_eq!(next_look(&silent).await?.0, 3);
    assert_eq!(appended[0], appended[2], "looks that found the same were appended again");
    assert_eq!(silent.house.reconciler().await?.run_once().await?, [], "a look before its time");
    // Something new is appended, and settles it.
    let expected = silent.house.job(silent.job).await?.expected.unwrap();
    silent.server.put(&silent.name(), vec![b'x'; usize::try_from(expected.bytes)? + 1])?;
    assert_eq!(silent.looked().await?, [Looked::Open]);
    assert_eq!(silent.evidence().await?.len(), appended[0] + 1);
    assert_eq!(silent.stands().await?, UNKNOWN, "another size is a contradiction");
    Ok(())
}

#[tokio::test]
async fn rec_02_only_the_verdict_concludes_and_later_looks_settle_nothing_twice() -> anyhow::Result<()> {
    let mut silent = Silent::at(renames(), agreed(ONE_STEP), When::Before, Action::Rename).await?;
    assert_eq!(silent.taken_over().await?.status, Status::OutcomeUnknown);
    silent.gate.open();
    wait::until("the receipt", async || {
        Ok(silent.evidence().await?.iter().any(|one| matches!(one, Evidence::Receipt(_))).then_some(()))
    })
    .await?;
    assert_eq!(silent.looked().await?, [Looked::Reconciled(Status::Completed)]);
    assert_eq!(silent.stands().await?, COMPLETED);
    assert!(next_look(&silent).await?.2, "no acknowledgment is agreed, so nothing is left to look for");
    assert_eq!(silent.looked().await?, []);
    Ok(())
}

const ACKNOWLEDGED: &str = "publishes_whole = true\none_name_space = true\nmay_remove_temporaries = true\nrename_one_step = true\n\
    [contract.acknowledgment]\nname = '{final}.ack'\naccept = '^ok (?P<key>\\S+)'\nrefuse = '^no (?P<key>\\S+)'\nperiod_seconds = 3600";

#[tokio::test]
async fn rec_04_del_10_a_late_refusal_is_appended_and_changes_no_state() -> anyhow::Result<()> {
    let silent = Silent::at(renames(), agreed(ACKNOWLEDGED), When::Before, Action::Rename).await?;
    silent.gate.open();
    silent.house.until(silent.job, Status::Completed).await?;
    assert_eq!(silent.looked().await?, [Looked::Quiet]);
    let key = silent.house.job(silent.job).await?.delivery_key;
    silent.server.put(&format!("{}.ack", silent.name()), format!("no {key}\n").into_bytes())?;
    let before = silent.evidence().await?.len();
    assert_eq!(silent.looked().await?, [Looked::Contradicted]);
    let evidence = silent.evidence().await?;
    assert_eq!(evidence.len(), before + 1);
    let Some(Evidence::Observation(seen)) = evidence.last() else { panic!("{evidence:?}") };
    assert!(seen.differences.iter().any(|one| one.contains("refused")), "{seen:?}");
    assert_eq!(silent.stands().await?, COMPLETED);
    // The period ends: one more look, and then no more.
    sqlx::query("UPDATE looks SET until = clock_timestamp() - interval '1 second' WHERE job_id = $1")
        .bind(silent.job)
        .execute(&mut silent.house.unguarded().await?)
        .await?;
    assert_eq!(silent.looked().await?, [Looked::Contradicted]);
    assert_eq!(silent.evidence().await?.len(), before + 1);
    assert!(next_look(&silent).await?.2);
    Ok(())
}

#[tokio::test]
async fn rec_04_a_late_acceptance_settles_an_unknown_outcome_and_contradicts_a_failed_one() -> anyhow::Result<()> {
    let mut silent = Silent::at(renames(), agreed(ACKNOWLEDGED), When::Before, Action::Rename).await?;
    assert_eq!(silent.taken_over().await?.status, Status::OutcomeUnknown);
    silent.server.collect(&silent.temporary().await?);
    assert_eq!(silent.looked().await?, [Looked::Open]);
    let key = silent.house.job(silent.job).await?.delivery_key;
    silent.server.put(&format!("{}.ack", silent.name()), format!("ok {key}\n").into_bytes())?;
    assert_eq!(silent.looked().await?, [Looked::Reconciled(Status::Completed)]);
    Ok(())
}
