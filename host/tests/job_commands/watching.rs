//! `waybill job watch`.

use std::io::{BufRead as _, BufReader};
use std::process::Command;

use anyhow::Context as _;
use serde_json::Value;
use uuid::Uuid;
use waybill::store::DeliveryOutcome;

use crate::stage::Stage;

#[tokio::test(flavor = "multi_thread")]
async fn cli_01_watch_follows_a_job_until_it_is_settled() -> anyhow::Result<()> {
    let stage = Stage::new().await?;
    let job = stage.queued().await?;
    let mut watching = stage.start(&["watch", &job.to_string(), "--json"])?;
    let mut lines = BufReader::new(watching.stdout.take().context("no output")?).lines();
    let mut next = || -> anyhow::Result<Value> { Ok(serde_json::from_str(&lines.next().context("it ended")??)?) };
    assert_eq!(next()?["kind"], "Created");
    let stands = next()?;
    assert_eq!(
        (&stands["kind"], &stands["state"], &stands["settled"]),
        (&"Stands".into(), &"Queued".into(), &false.into())
    );
    let of = stage.claim(job).await?;
    let claimed = next()?;
    assert_eq!((&claimed["kind"], &claimed["attempt"]), (&"Claimed".into(), &of.attempt.to_string().into()));
    stage.authorize(of).await?;
    assert_eq!(next()?["kind"], "DeliveryAuthorized");
    stage.intend(of).await?;
    assert_eq!(next()?["kind"], "PublishIntended");
    stage.finish(of, DeliveryOutcome::Completed).await?;
    assert_eq!(next()?["kind"], "Finished");
    let last = next()?;
    assert_eq!((&last["state"], &last["settled"]), (&"Completed".into(), &true.into()));
    assert_eq!(watching.wait()?.code(), Some(0));
    assert!(lines.next().is_none());
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn cli_01_an_interrupt_ends_the_watch_of_what_is_not_settled() -> anyhow::Result<()> {
    let stage = Stage::new().await?;
    let unknown = stage.unknown(true).await?;
    let mut watching = stage.start(&["watch", &unknown.job.to_string()])?;
    let mut lines = BufReader::new(watching.stdout.take().context("no output")?).lines();
    // An outcome that is not known is not settled: it says so, and goes on.
    while !lines.next().context("it ended")??.starts_with("OutcomeUnknown: whether it was delivered is not known") {}
    assert!(Command::new("kill").args(["-INT", &watching.id().to_string()]).status()?.success());
    assert_eq!(watching.wait()?.code(), Some(5));
    stage.waybill(&["watch", &Uuid::new_v4().to_string()])?.says(3, &["NotFound"]);
    Ok(())
}
