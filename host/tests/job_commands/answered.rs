//! What the partner answered, and what operators are told of it.

use serde_json::{Value, json};
use uuid::Uuid;
use waybill::job::evidence::{Acknowledged, Evidence, Receipt};
use waybill::job::facts::{Entry, Found, Listing, Sha256};
use waybill::job::status::{FailureReason, Role};
use waybill::store::{self, DeliveryOutcome};

use crate::stage::{Attempt, Ended, Stage};

const WORDS: [&str; 4] = ["--reason", "they refused and removed it", "--evidence", "case 4711"];
const CONTRACT: &str = r#"{"acknowledgment":{"name":"{key}.ack","accept":"ok","refuse":"no","period_seconds":3600}}"#;

/// Our file, under the final name of a job.
fn ours(job: Uuid) -> Found {
    let name = format!("contacts-{job}.csv");
    Found::Present(Entry { name, kind: "file".to_owned(), bytes: Some(1_234), modified: None })
}

impl Stage {
    /// A later look of a host: an answer, and what lies under the final name of `named`.
    async fn seen(&self, of: Attempt, says: Option<&str>, named: Uuid, found: Found) -> anyhow::Result<()> {
        let sha256 = matches!(found, Found::Present(_)).then_some(Sha256([7; 32]));
        let look = Listing { at: format!("contacts-{named}.csv"), found, sha256, hashed_by: None };
        let acknowledgments = says.map(|says| Acknowledged {
            name: "answers/4711.ack".to_owned(),
            says: says.to_owned(),
            key: None,
            attempt: None,
            sha256: None,
        });
        let acknowledgments = acknowledgments.into_iter().collect();
        let observation = Evidence::Observation(Receipt { look: Some(look), acknowledgments, ..Receipt::default() });
        let appended = store::append_evidence(&self.worker, of.job, of.attempt, "run-9", &observation).await?;
        anyhow::ensure!(appended.is_written(), "the evidence was refused");
        Ok(())
    }

    fn told(&self, job: Uuid, parts: &[&str]) -> anyhow::Result<Ended> {
        let told = self.waybill(&["explain", &job.to_string()])?;
        told.says(0, parts);
        Ok(told)
    }

    async fn agree(&self, contract: &str) -> anyhow::Result<()> {
        sqlx::query("UPDATE destinations SET contract = $1::jsonb WHERE id = $2")
            .bind(contract)
            .bind(self.destination)
            .execute(&self.database.pool(Role::Worker.login()).await?)
            .await?;
        Ok(())
    }
}

/// Checks that none of these were said.
fn silent(told: &Ended, parts: &[&str]) {
    for part in parts {
        assert!(!told.said.contains(part), "{part:?} is in: {}", told.said);
    }
}

#[tokio::test]
async fn cor_01_a_refusal_of_what_is_completed_comes_first_and_its_steps_work_in_their_order() -> anyhow::Result<()> {
    let stage = Stage::new().await?;
    let of = stage.ended(DeliveryOutcome::Completed).await?;
    stage.seen(of, Some("refused"), of.job, ours(of.job)).await?;
    let (id, tenant) = (of.job.to_string(), stage.tenant);
    let told = stage.told(
        of.job,
        &[
            "Where it stands: the partner refused it (answers/4711.ack, seen ",
            "which contradicts the record: it is recorded as delivered. The test says so. By the newest look",
            "was sent to you, and you refused it (your answer answers/4711.ack",
            "our file lies under its name",
            "create a new job: a delivery of its own, with its own key",
            "have them remove the file first",
            &format!(
                "waybill job correct {id} --tenant {tenant} --attempt {} --from completed --to failed",
                of.attempt
            ),
            &format!("waybill job replace {id} --tenant {tenant} --file-removed"),
        ],
    )?;
    silent(&told, &["Nothing is left to do", "was delivered"]);
    let json = stage.waybill(&["explain", &id, "--json"])?.json()?;
    let answer = json!({ "says": "refused", "file": "answers/4711.ack", "contradicts_the_record": true });
    for (name, value) in answer.as_object().unwrap() {
        assert_eq!(&json["answer"][name], value, "{json}");
    }
    stage.waybill(&["show", &id])?.says(0, &["refused it (answers/4711.ack, seen ", "against the record"]);
    assert_eq!(stage.waybill(&["show", &id, "--json"])?.json()?["answer"]["says"], "refused");
    stage.waybill(&["list"])?.says(0, &["refused it", &format!("key-{id}")]);

    stage
        .waybill(&[&["correct", &id, "--from", "completed", "--to", "failed"], &WORDS[..]].concat())?
        .says(0, &["It can then be replaced", "Corrected"]);
    let told = stage.told(of.job, &["it is recorded as not delivered", "was not delivered: you refused it"])?;
    silent(&told, &["contradicts the record"]);
    stage.replaced(of.job, &["--file-removed", "--cannot-upload", "its upload had ended"])?;
    Ok(())
}

#[tokio::test]
async fn rpl_01_no_replacement_is_made_in_passing_while_the_refused_file_lies_there() -> anyhow::Result<()> {
    let stage = Stage::new().await?;
    let of = stage.unknown(true).await?;
    stage.seen(of, Some("refused"), of.job, ours(of.job)).await?;
    let told = stage.told(
        of.job,
        &[
            "Where it stands: the partner refused it (answers/4711.ack",
            "and you refused it",
            "have them remove the file first",
            "--outcome not-delivered",
            "--file-removed",
            "ends as Failed/OriginalDelivered, and holds the place of every later one",
        ],
    )?;
    silent(&told, &["Ask the partner whether", "please look whether"]);
    let id = of.job.to_string();
    let replace = |more: &[&str]| {
        stage.waybill(
            &[&["replace", &id, "--reason", "mended", "--cannot-upload", "its host was scrapped"], more].concat(),
        )
    };
    let refused = replace(&["--overwrite-agreement", "case 1"])?;
    refused.says(4, &["FileStillThere", "our file lies under its name", "--file-removed"]);
    assert_eq!(stage.waybill(&["list", "--json"])?.json()?.as_array().map(Vec::len), Some(1), "nothing was created");
    replace(&["--file-removed"])?.says(0, &["You say that the file has been removed", "Created"]);

    // A look that finds it gone lets the plain command through.
    let gone = stage.unknown(true).await?;
    stage.seen(gone, Some("refused"), gone.job, ours(gone.job)).await?;
    stage.seen(gone, Some("refused"), gone.job, Found::Absent).await?;
    let told = stage.told(gone.job, &["nothing lies under its name", "waybill job replace"])?;
    silent(&told, &["--file-removed", "remove the file first"]);
    stage.replaced(gone.job, &["--cannot-upload", "its host was scrapped"])?;
    Ok(())
}

#[tokio::test]
async fn rpl_03_what_the_partner_is_told_follows_a_replacement_that_found_the_file() -> anyhow::Result<()> {
    let stage = Stage::new().await?;
    let of = stage.unknown(true).await?;
    let replacement = stage.claim(stage.replaced(of.job, &["--cannot-upload", "its host was scrapped"])?).await?;
    let cause = "the original's file is at the partner";
    let ended = store::finish_failed(
        &stage.worker,
        replacement.job,
        replacement.attempt,
        FailureReason::OriginalDelivered,
        cause,
    );
    assert!(ended.await?.is_written());
    // Published once.
    for job in [of.job, replacement.job] {
        let told = stage.told(job, &["was delivered"])?;
        silent(&told, &["more than once"]);
    }
    let told = stage.told(replacement.job, &["The original's file is at the partner."])?;
    silent(&told, &["No reason was recorded"]);
    stage.seen(of, Some("refused"), of.job, ours(of.job)).await?;
    stage.told(replacement.job, &["was sent to you, and you refused it"])?;

    let settle = ["reconcile", &of.job.to_string(), "--outcome", "not-delivered"];
    stage.waybill(&[&settle[..], &WORDS[..]].concat())?.says(0, &["Reconciled"]);
    for job in [of.job, replacement.job] {
        let told = stage.told(job, &["was not delivered"])?;
        silent(&told, &["was delivered"]);
    }
    Ok(())
}

#[tokio::test]
async fn rec_04_an_answer_that_was_agreed_is_awaited_until_its_time_is_over() -> anyhow::Result<()> {
    let stage = Stage::new().await?;
    stage.agree(CONTRACT).await?;
    let of = stage.ended(DeliveryOutcome::Completed).await?;
    let told = stage.told(
        of.job,
        &["Their answer is awaited until ", "We await your answer until ", "a host looks for it until "],
    )?;
    silent(&told, &["came within"]);
    let shown = stage.waybill(&["show", &of.job.to_string(), "--json"])?.json()?;
    assert!(shown["awaited"].as_str().is_some_and(|said| said.contains("awaited until")), "{shown}");

    stage.agree(&CONTRACT.replace("3600", "0")).await?;
    let over = stage.told(
        of.job,
        &["No answer of theirs came within the agreed 0 seconds", "Ask the partner for the answer that was agreed"],
    )?;
    silent(&over, &["awaited until"]);

    stage.agree(CONTRACT).await?;
    stage.seen(of, Some("accepted"), of.job, ours(of.job)).await?;
    let told = stage.told(of.job, &["The partner accepted it", "was delivered, and you accepted it"])?;
    silent(&told, &["awaited", "contradicts"]);
    Ok(())
}

#[tokio::test]
async fn cli_01_attention_names_the_command_that_ends_it() -> anyhow::Result<()> {
    let stage = Stage::new().await?;
    let job = stage.queued().await?;
    let destination = stage.destination;
    sqlx::query(
        "UPDATE destinations SET attention_since = clock_timestamp(), attention_why = 'our key was refused' WHERE id = $1",
    )
    .bind(destination)
    .execute(&stage.database.pool(Role::Worker.login()).await?)
    .await?;
    let command = format!("waybill destination resume {destination} --tenant {} --as YOU", stage.tenant);
    stage.told(job, &["our key was refused", &command])?;
    stage.program("destination", &["list"])?.says(0, &["needs attention", &command]);
    let listed: Value = stage.program("destination", &["list", "--json"])?.json()?;
    assert_eq!(listed[0]["next"], command.as_str());
    stage.program("destination", &["resume", &destination.to_string()])?.says(0, &["Resumed"]);
    let told = stage.told(job, &["it waits to be claimed"])?;
    silent(&told, &["destination resume"]);
    Ok(())
}

#[tokio::test]
async fn cli_01_one_failure_is_one_time() -> anyhow::Result<()> {
    let stage = Stage::new().await?;
    let job = stage.queued().await?;
    store::pause_destination(&stage.worker, stage.destination, job).await?;
    stage.told(job, &["was not reached, 1 time in a row"])?;
    stage.program("destination", &["list"])?.says(0, &["was not reached, 1 time in a row;"]);
    Ok(())
}

#[tokio::test]
async fn cli_01_a_key_in_place_of_an_id_is_told_apart() -> anyhow::Result<()> {
    let stage = Stage::new().await?;
    for command in [&["cancel", "R-CANCEL"][..], &["explain", "R-CANCEL"], &["show", "R-CANCEL"]] {
        stage.waybill(command)?.says(2, &["a job's id (UUID), not its key; `waybill job list` shows both"]);
    }
    Ok(())
}
