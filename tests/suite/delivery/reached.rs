//! Partners that cannot be reached, or that refuse us: found before cutoff 2, and no failure of the job.

use std::time::Duration;

use anyhow::Context as _;
use uuid::Uuid;
use waybill::job::status::{EventKind, FailureReason, Status};
use waybill::store::{self, Cancellation};
use waybill_tests::house::{DESTINATION, TENANT};
use waybill_tests::sftp_server::{Action, Behaviour, Fault, When};
use waybill_tests::{House, Plan, Reach, SftpServer, Sshd, wait};

use super::{HeldBuilds, kinds};

/// Waits for the first release and returns its words.
async fn released(house: &House, job: uuid::Uuid) -> anyhow::Result<String> {
    wait::until("the job to be handed back", async || {
        let events = house.events(job).await?;
        let event = events.iter().find(|event| event.kind == EventKind::ReleasedByWorker);
        Ok(event.map(|event| event.detail.clone().unwrap_or_default()["why"].as_str().unwrap_or_default().to_owned()))
    })
    .await
}

#[tokio::test]
async fn del_08_an_unknown_host_key_needs_attention_and_spends_one_attempt() -> anyhow::Result<()> {
    let server = Sshd::start().await?;
    let other = Sshd::start().await?;
    let reach = Reach { host_key: other.host_key()?, ..Reach::openssh(&server)? };
    let house = House::before(&reach, Plan::default()).await?;
    let (_worker, _dispatcher) = (house.worker().await?, house.dispatcher().await?);
    let id = house.create().await?;
    let why = released(&house, id).await?;
    assert!(why.contains("host_keys") && why.contains("SHA256:"), "the fix is not named: {why}");
    assert_one_attempt_then_deferred(&house, id).await
}

#[tokio::test]
async fn del_08_a_wrong_password_needs_attention_and_no_secret_is_told() -> anyhow::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    let server = waybill_tests::SftpServer::start(waybill_tests::sftp_server::Behaviour::default()).await?;
    let directory = tempfile::tempdir()?;
    let reach = Reach::in_process(&server, directory.path())?;
    let file = directory.path().join("password");
    std::fs::write(&file, "canary-5c1e")?;
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600))?;
    let house = House::before(&reach, Plan::default()).await?;
    let (_worker, _dispatcher) = (house.worker().await?, house.dispatcher().await?);
    let id = house.create().await?;
    let why = released(&house, id).await?;
    assert!(why.contains("does not accept") && why.contains("password"), "{why}");
    assert!(!why.contains("canary-5c1e"), "a secret was told: {why}");
    assert_one_attempt_then_deferred(&house, id).await
}

#[tokio::test]
async fn del_08_a_mended_destination_is_resumed_by_a_named_person_and_its_job_is_delivered() -> anyhow::Result<()> {
    let server = waybill_tests::SftpServer::start(waybill_tests::sftp_server::Behaviour::default()).await?;
    let directory = tempfile::tempdir()?;
    let reach = Reach::in_process(&server, directory.path())?;
    let file = directory.path().join("password");
    let right = std::fs::read(&file)?;
    std::fs::write(&file, "wrong")?;
    let house = House::before(&reach, Plan::default()).await?;
    let (_worker, _dispatcher) = (house.worker().await?, house.dispatcher().await?);
    let id = house.create().await?;
    assert_one_attempt_then_deferred(&house, id).await?;
    std::fs::write(&file, right)?;
    assert_eq!(store::resume_destination(&house.api, Uuid::new_v4(), DESTINATION, "ada").await?, None);
    let found = store::resume_destination(&house.api, TENANT, DESTINATION, "ada").await?;
    assert!(found.is_some_and(|found| found.attention_why.is_some_and(|why| why.contains("does not accept"))));
    let recorded: (String, String) = sqlx::query_as(
        "SELECT actor, detail ->> 'attention_why' FROM audit WHERE action = 'resume_destination' AND target = $1",
    )
    .bind(DESTINATION.to_string())
    .fetch_one(&house.admin)
    .await?;
    assert!(recorded.0 == "ada" && recorded.1.contains("does not accept"), "{recorded:?}");
    // It is woken by that.
    let job = house.until(id, Status::Completed).await?;
    assert_eq!(job.attempt_count, 2);
    let states = store::destinations_of(&house.api, TENANT).await?;
    assert!(states.len() == 1 && states.iter().all(|state| state.attention.is_none()), "{states:?}");
    Ok(())
}

async fn assert_one_attempt_then_deferred(house: &House, id: uuid::Uuid) -> anyhow::Result<()> {
    waits_for_a_person(house, id, 1).await.map(drop)
}

/// The destination waits for a person: policy defers, and no further attempt is spent. What has to be mended.
pub(super) async fn waits_for_a_person(house: &House, id: uuid::Uuid, attempts: i32) -> anyhow::Result<String> {
    wait::until("the attempt", async || Ok((house.job(id).await?.attempt_count == attempts).then_some(()))).await?;
    house.until(id, Status::Queued).await?;
    let deferred = wait::until("the wake-up to be deferred by policy", async || {
        let row: Option<(i32, bool)> = sqlx::query_as(
            "SELECT deliveries, ready_at > clock_timestamp() + interval '1 minute' FROM wakeups WHERE job_id = $1",
        )
        .bind(id)
        .fetch_optional(&house.admin)
        .await?;
        Ok(row.filter(|(_, later)| *later))
    })
    .await?;
    assert!(deferred.0 >= 1);
    let job = house.job(id).await?;
    assert_eq!((job.status, job.attempt_count), (Status::Queued, attempts));
    house.until_attention().await
}

#[tokio::test]
async fn del_08_an_unreachable_partner_pauses_and_the_job_is_delivered_when_it_is_back() -> anyhow::Result<()> {
    let mut server = Sshd::start().await?;
    let house = House::before(&Reach::openssh(&server)?, Plan::default()).await?;
    server.stop().await?;
    let (_worker, _dispatcher) = (house.worker().await?, house.dispatcher().await?);
    let id = house.create().await?;
    let why = released(&house, id).await?;
    assert!(why.contains("127.0.0.1") && why.contains("cannot be reached"), "{why}");
    let state =
        store::destination_state(&house.api, DESTINATION).await?.ok_or_else(|| anyhow::anyhow!("no destination"))?;
    assert!(state.pause.is_some() && state.attention.is_none(), "{state:?}");
    server.start_again().await?;
    // What the pause would take is moved into the past, as time would.
    sqlx::query("UPDATE destinations SET paused_at = paused_at - interval '1 hour', paused_until = paused_until - interval '1 hour'")
        .execute(&house.admin)
        .await?;
    sqlx::query("UPDATE wakeups SET ready_at = clock_timestamp()").execute(&house.admin).await?;
    let job = house.until(id, Status::Completed).await?;
    assert_eq!(job.attempt_count, 2);
    // The pause ends right after the job's own last write.
    wait::until("the pause to end", async || {
        let state = store::destination_state(&house.api, DESTINATION).await?;
        Ok(state.is_some_and(|state| state.pause.is_none()).then_some(()))
    })
    .await?;
    Ok(())
}

#[tokio::test]
async fn lse_08_a_line_cut_under_any_look_before_cutoff_two_costs_the_job_nothing() -> anyhow::Result<()> {
    // The first look at the final name is the host's, the second the plugin's.
    for nth in [1, 2] {
        let server = SftpServer::start(Behaviour::default()).await?;
        let directory = tempfile::tempdir()?;
        let house = House::before(&Reach::in_process(&server, directory.path())?, Plan::default()).await?;
        let mut looks = 0;
        server.hook(move |event| {
            let look = event.action == Action::Stat && event.when == When::Before && event.path.contains("contacts-");
            looks += usize::from(look);
            (look && looks == nth).then_some(Fault::Cut)
        });
        let (_worker, _dispatcher) = (house.worker().await?, house.dispatcher().await?);
        let id = house.create().await?;
        released(&house, id).await.with_context(|| format!("look {nth}"))?;
        let job = house.job(id).await?;
        assert_eq!((job.status, job.failure_reason, job.delivery_authorized_at), (Status::Queued, None, None), "{nth}");
    }
    Ok(())
}

#[tokio::test]
async fn lse_08_at_the_cap_a_release_ends_the_job() -> anyhow::Result<()> {
    let mut server = Sshd::start().await?;
    let house = House::before(&Reach::openssh(&server)?, Plan { max_attempts: 1, ..Plan::default() }).await?;
    server.stop().await?;
    let (_worker, _dispatcher) = (house.worker().await?, house.dispatcher().await?);
    let id = house.create().await?;
    let job = house.until_ended(id).await?;
    assert_eq!((job.status, job.failure_reason), (Status::Failed, Some(FailureReason::AttemptsExhausted)));
    assert_eq!(kinds(&house.events(id).await?), [EventKind::Claimed, EventKind::AttemptsExhausted]);
    Ok(())
}

#[tokio::test]
async fn lse_08_a_stop_request_found_by_a_release_ends_stopped() -> anyhow::Result<()> {
    let mut server = Sshd::start().await?;
    let plan = Plan { watch_stop_every: None, first_backoff: Duration::from_secs(3600), ..Plan::default() };
    let house = House::before(&Reach::openssh(&server)?, plan).await?;
    server.stop().await?;
    let (_worker, _dispatcher) = (house.worker().await?, house.dispatcher().await?);
    let held = HeldBuilds::hold(&house).await?;
    let id = house.create().await?;
    held.reached_by(1).await?;
    assert!(matches!(house.cancel(id).await?, Cancellation::Recorded(_)));
    held.let_go().await?;
    house.until(id, Status::Stopped).await?;
    assert_eq!(kinds(&house.events(id).await?), [EventKind::Claimed, EventKind::Stopped]);
    Ok(())
}
