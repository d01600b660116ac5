//! `waybill job reconcile`.

use uuid::Uuid;
use waybill::job::status::Role;

use crate::stage::Stage;

const WORDS: [&str; 4] = ["--reason", "their log names it", "--evidence", "case 4711"];

#[tokio::test]
async fn rec_01_a_person_sees_the_record_settles_it_and_settles_it_once() -> anyhow::Result<()> {
    let stage = Stage::new().await?;
    let of = stage.unknown(true).await?;
    let (id, attempt) = (of.job.to_string(), of.attempt.to_string());
    let run = |arguments: &[&str]| stage.waybill(&[&["reconcile", &id], &WORDS[..], arguments].concat());

    let shown = run(&["--outcome", "completed", "--dry-run"])?;
    shown.says(
        0,
        &[
            &format!("No attempt was named: it is {attempt}"),
            "On record, OutcomeUnknown",
            "This step: records in your name",
            "Nothing was written",
        ],
    );
    assert_eq!(stage.state(of.job).await?, "OutcomeUnknown");

    let other = run(&["--outcome", "completed", "--attempt", &Uuid::new_v4().to_string()])?;
    other.says(4, &["AnotherAttempt", &attempt]);
    run(&["--outcome", "completed"])?
        .says(0, &["Nothing was seen.", "Reconciled: It is recorded as Completed, in your name"]);
    assert_eq!(stage.state(of.job).await?, "Completed");

    let second = run(&["--outcome", "not-delivered"])?;
    second.says(4, &["AlreadyReconciled", "only once can it be", "rosa did", "waybill job explain"]);
    assert_eq!(stage.state(of.job).await?, "Completed");
    stage
        .waybill(&["explain", &id])?
        .says(0, &["rosa settled the outcome: Completed. Reason: their log names it. Evidence: case 4711."]);
    Ok(())
}

#[tokio::test]
async fn rec_01_what_never_published_is_not_completed_by_a_person() -> anyhow::Result<()> {
    let stage = Stage::new().await?;
    let of = stage.unknown(false).await?;
    let id = of.job.to_string();
    let run =
        |outcome: &str| stage.waybill(&[&["reconcile", &id, "--json", "--outcome", outcome], &WORDS[..]].concat());
    let refused = run("completed")?;
    refused.says(4, &[]);
    assert_eq!(refused.json()?["outcome"], "NeverPublished");
    let recorded = run("not-delivered")?;
    recorded.says(0, &[]);
    let document = recorded.json()?;
    assert_eq!(document["was"], "OutcomeUnknown");
    assert_eq!(document["attempt"], of.attempt.to_string());
    assert!(document["told"].as_array().is_some_and(|told| told.len() >= 4), "{document}");
    assert_eq!(stage.state(of.job).await?, "Failed/NotDelivered");
    Ok(())
}

#[tokio::test]
async fn rec_01_a_job_without_an_unknown_outcome_is_refused_with_what_it_is() -> anyhow::Result<()> {
    let stage = Stage::new().await?;
    let run = |job: Uuid, words: &[&str]| {
        stage.waybill(&[&["reconcile", &job.to_string(), "--outcome", "completed"], words].concat())
    };
    let queued = stage.queued().await?;
    run(queued, &WORDS)?.says(4, &["NoAttempt", "The job is Queued"]);
    let running = stage.claim(queued).await?;
    run(running.job, &WORDS)?.says(4, &["NotEnded", "Running"]);
    run(Uuid::new_v4(), &WORDS)?.says(3, &["NotFound"]);
    let words_missing = run(running.job, &["--reason", " ", "--evidence", "case 1"])?;
    words_missing.says(4, &["WordsMissing", "the reason is empty"]);
    Ok(())
}

#[tokio::test]
async fn rec_04_the_contracts_acknowledgments_are_looked_for_after_a_person_settled_it() -> anyhow::Result<()> {
    let stage = Stage::new().await?;
    for (contract, goes_on) in
        [("{}", false), (r#"{"acknowledgment":{"name":"{key}.ack","accept":"ok","period_seconds":3600}}"#, true)]
    {
        sqlx::query("UPDATE destinations SET contract = $1::jsonb WHERE id = $2")
            .bind(contract)
            .bind(stage.destination)
            .execute(&stage.database.pool(Role::Worker.login()).await?)
            .await?;
        let of = stage.unknown(true).await?;
        let id = of.job.to_string();
        stage.waybill(&[&["reconcile", &id, "--outcome", "completed"], &WORDS[..]].concat())?.says(0, &[]);
        let looks_on: bool = sqlx::query_scalar(
            "SELECT purpose = 'acknowledgment' AND ended_at IS NULL AND until > clock_timestamp() + interval '50 minutes'
             FROM looks WHERE job_id = $1",
        )
        .bind(of.job)
        .fetch_one(&stage.database.pool(Role::Reader.login()).await?)
        .await?;
        assert_eq!(looks_on, goes_on, "{contract}");
    }
    Ok(())
}
