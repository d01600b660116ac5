//! `waybill job create` under an idempotency key, and `waybill database`.

use crate::stage::Stage;

#[tokio::test]
async fn cre_03_the_same_command_sent_twice_prints_the_same_job_and_another_one_is_refused() -> anyhow::Result<()> {
    let stage = Stage::new().await?;
    let destination = stage.destination.to_string();
    let create = |scope: &str| {
        stage.waybill(&[
            "create",
            "--destination",
            &destination,
            "--scope",
            scope,
            "--idempotency-key",
            "order-4711",
            "--json",
        ])
    };
    let first = create("region=emea")?;
    first.says(0, &["delivery_key"]);
    let again = create("region=emea")?;
    assert_eq!((again.code, again.json()?), (0, first.json()?));
    create("region=apac")?.says(4, &["OtherContent", "rosa", "order-4711"]);
    stage.waybill(&["list"])?.says(0, &[first.json()?["job"].as_str().unwrap_or("no id")]);
    let jobs: i64 =
        sqlx::query_scalar("SELECT count(*) FROM export_jobs").fetch_one(&stage.database.admin().await?).await?;
    assert_eq!(jobs, 1);
    Ok(())
}

#[tokio::test]
async fn a_delivery_key_that_no_file_can_bear_is_refused_before_anything_is_created() -> anyhow::Result<()> {
    let stage = Stage::new().await?;
    let destination = stage.destination.to_string();
    let create = |key: &str| stage.waybill(&["create", "--destination", &destination, "--key", key]);
    create("LF 8/../x")?.says(2, &["--key", "a part of the file's name", "has a slash", "nothing was created"]);
    create("..")?.says(2, &["the name of a folder"]);
    create(&"k".repeat(201))?.says(2, &["has 201 bytes"]);
    let jobs = "SELECT count(*) FROM export_jobs";
    let jobs: i64 = sqlx::query_scalar(jobs).fetch_one(&stage.database.admin().await?).await?;
    assert_eq!(jobs, 0);
    create("LF 8")?.says(0, &["LF 8"]);
    Ok(())
}

#[tokio::test]
async fn ops_04_what_waits_is_shown_and_a_persons_words_set_it_free() -> anyhow::Result<()> {
    let stage = Stage::new().await?;
    let job = stage.queued().await?.to_string();
    stage.program("database", &["show"])?.says(0, &["waiting    nothing"]);
    let lost = ["--lost", "nothing: the partner was asked", "--fences-intact"];
    let accept = |of: &[&str]| stage.program("database", &[&["accept"], of, &lost[..]].concat());
    accept(&["--job", &job])?.says(4, &["NothingLost", "waybill database show"]);
    let mut admin = stage.database.admin().await?.acquire().await?.detach();
    sqlx::query("SET session_replication_role = replica").execute(&mut admin).await?;
    sqlx::query("UPDATE export_jobs SET known_timeline = known_timeline + 1").execute(&mut admin).await?;
    stage.program("database", &["show"])?.says(0, &["1 jobs", "1 queued", "waybill database accept"]);
    let shown = stage.program("database", &["show", "--json"])?;
    assert_eq!(shown.json()?["waiting"]["queued"], 1);
    accept(&["--job", "0190a6c4-0000-7000-8000-000000000001"])?.says(3, &["NotFound"]);
    accept(&[])?.says(2, &["--all"]);
    accept(&["--job", &job, "--all"])?.says(2, &["--all"]);
    accept(&["--job", &job, "--standing"])?.says(2, &["--standing"]);
    accept(&["--job", &job])?.says(0, &["Recorded", &job, "proves again"]);
    stage.program("database", &["show"])?.says(0, &["waiting    nothing"]);
    Ok(())
}
