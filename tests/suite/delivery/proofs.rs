//! A server is checked once, and again when it is another server; what contradicts the contract holds the destination.

use waybill::job::evidence::{Evidence, PublishForm};
use waybill::job::status::{EventKind, Status};
use waybill::store;
use waybill_tests::house::{DESTINATION, TENANT};
use waybill_tests::sftp_server::{Action, Behaviour, Fault, HardLink, RenameOver, When};
use waybill_tests::{House, Plan, Reach, SftpServer, wait};

use super::reached::waits_for_a_person;
use super::{evidence, kinds};

/// Delivers one job by a worker that has no session yet; the form of its publish, and how many scratch files it made.
async fn delivered(house: &House, server: &SftpServer) -> anyhow::Result<(PublishForm, usize)> {
    let before = server.log().len();
    let worker = house.worker().await?;
    let job = house.create().await?;
    house.until(job, Status::Completed).await?;
    worker.stop().await?;
    let log = server.log();
    let temporary = |name: &str| name.strip_suffix(".part").is_some();
    let made = log[before..].iter().filter(|logged| logged.operation.creates().is_some_and(temporary)).count();
    let form = evidence(&house.events(job).await?)?.into_iter().find_map(|one| match one {
        Evidence::Publish { form, .. } => Some(form),
        _ => None,
    });
    // One of them is the delivery's own.
    Ok((form.ok_or_else(|| anyhow::anyhow!("no publish on record"))?, made - 1))
}

#[tokio::test]
async fn del_05_a_server_that_changed_is_tried_again_before_it_is_delivered_to() -> anyhow::Result<()> {
    let (server, directory) = (SftpServer::start(Behaviour::default()).await?, tempfile::tempdir()?);
    let house = House::before(&Reach::in_process(&server, directory.path())?, Plan::default()).await?;
    let _dispatcher = house.dispatcher().await?;
    let (form, tried) = delivered(&house, &server).await?;
    assert_eq!(form, PublishForm::Link);
    assert!(tried > 3, "nothing was tried: {tried}");
    assert_eq!(delivered(&house, &server).await?, (PublishForm::Link, 0), "tried twice");

    // An upgrade: it offers hard links as before, and answers yes without making any.
    let mut upgraded =
        Behaviour { hard_link: HardLink::Lies, rename_over: RenameOver::Refuses, ..Behaviour::default() };
    upgraded.extensions.insert("new@example.com".to_owned(), "1".to_owned());
    server.set_behaviour(upgraded);
    let (form, tried) = delivered(&house, &server).await?;
    assert_eq!(form, PublishForm::Rename, "delivered to by what the old server was shown to do");
    assert!(tried > 3, "nothing was tried: {tried}");
    let kept: i64 = sqlx::query_scalar("SELECT count(DISTINCT server_fingerprint) FROM destination_checks")
        .fetch_one(&house.admin)
        .await?;
    assert_eq!(kept, 2);
    Ok(())
}

/// An overwrite is agreed, which a server without POSIX renames cannot do. Nothing else that a delivery needs is missing there.
const OVERWRITES: &str = "[names]\nfinal = 'contacts-{key}.csv'\n[contract]\npublishes_whole = true\nnames_reused = true\n\
                          overwrites_last = 'mail of 3 May'\n";

fn without_posix_rename(extension: &str) -> Behaviour {
    let mut behaviour = Behaviour { posix_rename: false, ..Behaviour::default() };
    behaviour.extensions.insert(extension.to_owned(), "1".to_owned());
    behaviour
}

async fn overwriting(server: &SftpServer, directory: &std::path::Path) -> anyhow::Result<House> {
    let plan = Plan { manifest: OVERWRITES.to_owned(), ..Plan::default() };
    House::before(&Reach::in_process(server, directory)?, plan).await
}

/// A person says that it is mended.
async fn resume(house: &House) -> anyhow::Result<()> {
    let resumed = store::resume_destination(&house.api, TENANT, DESTINATION, "ada").await?;
    anyhow::ensure!(resumed.is_some_and(|found| found.attention_why.is_some()), "nothing had needed attention");
    sqlx::query("UPDATE wakeups SET ready_at = clock_timestamp()").execute(&house.admin).await?;
    Ok(())
}

fn created(server: &SftpServer) -> usize {
    server.log().iter().filter(|logged| logged.operation.creates().is_some()).count()
}

#[tokio::test]
async fn del_05_a_server_that_changed_against_the_contract_is_sent_nothing_until_it_is_mended() -> anyhow::Result<()> {
    let (server, directory) = (SftpServer::start(Behaviour::default()).await?, tempfile::tempdir()?);
    let house = overwriting(&server, directory.path()).await?;
    let _dispatcher = house.dispatcher().await?;
    let worker = house.worker().await?;
    let first = house.create().await?;
    house.until(first, Status::Completed).await?;
    worker.stop().await?;

    server.set_behaviour(without_posix_rename("new@example.com"));
    let worker = house.worker().await?;
    let id = house.create().await?;
    let why = waits_for_a_person(&house, id, 1).await?;
    let (check, resumed) =
        (format!("waybill partner check {DESTINATION}"), format!("waybill destination resume {DESTINATION}"));
    for part in ["overwrites_last", "mail of 3 May", "posix-rename@openssh.com", "partner.toml", &check, &resumed] {
        assert!(why.contains(part), "{part} is not in: {why}");
    }
    let job = house.job(id).await?;
    assert_eq!((job.delivery_authorized_at, job.publish_intended_at), (None, None), "it was authorized");
    assert_eq!(kinds(&house.events(id).await?), [EventKind::Claimed, EventKind::ReleasedByWorker]);
    assert_eq!(server.names_in("/"), [House::final_name(first)], "something was sent");

    // Nothing was mended: what is on record of this very server holds it again, and nothing is tried twice.
    let tried = created(&server);
    resume(&house).await?;
    assert_eq!(waits_for_a_person(&house, id, 2).await?, why);
    assert_eq!(created(&server), tried, "a server that was found out was tried again");

    let mended = Behaviour { posix_rename: true, ..without_posix_rename("new@example.com") };
    server.set_behaviour(mended);
    // The session that the first worker kept for its next job was the old server's.
    assert!(worker.stop().await?, "something was under way");
    let _worker = house.worker().await?;
    resume(&house).await?;
    let job = house.until(id, Status::Completed).await?;
    assert_eq!(job.attempt_count, 3);
    Ok(())
}

#[tokio::test]
async fn del_05_plg_01_a_destination_that_nobody_checked_is_checked_whole_by_its_first_attempt() -> anyhow::Result<()> {
    let (server, directory) = (SftpServer::start(without_posix_rename("old@example.com")).await?, tempfile::tempdir()?);
    let house = overwriting(&server, directory.path()).await?;
    let (_worker, _dispatcher) = (house.worker_named("the-worker").await?, house.dispatcher().await?);
    let id = house.create().await?;
    let why = waits_for_a_person(&house, id, 1).await?;
    assert!(why.contains("overwrites_last"), "{why}");
    assert_eq!(server.names_in("/"), [""; 0], "something is left");
    assert_eq!(server.times_created(&House::final_name(id)), 0);

    let digest = house.bundle.destinations.first().map(|one| one.digests.checked.clone()).unwrap_or_default();
    let kept =
        store::latest_check(&house.api, DESTINATION, &digest).await?.ok_or_else(|| anyhow::anyhow!("no check"))?;
    assert_eq!((kept.requested_by.as_str(), kept.problem), ("the-worker", None));
    let shown = |document: Option<serde_json::Value>, name: &str| document.unwrap_or_default()[name]["shown"].clone();
    assert_eq!(shown(kept.proof, "posix_rename_replaces"), false);
    for name in ["lists", "shows", "reads_back"] {
        assert_eq!(shown(kept.seen.clone(), name), true, "{name}");
    }
    Ok(())
}

#[tokio::test]
async fn del_05_a_server_that_takes_no_scratch_file_is_told_by_what_may_mend_it() -> anyhow::Result<()> {
    // Without the right to write a person has to ask for it; a disk that is full may be emptied.
    for (code, text, needs_a_person) in [(3, "no right to write", true), (4, "the disk is full", false)] {
        let (server, directory) = (SftpServer::start(Behaviour::default()).await?, tempfile::tempdir()?);
        server.always(When::Before, Action::Open, Fault::refuse(code, text));
        let house = House::before(&Reach::in_process(&server, directory.path())?, Plan::default()).await?;
        let (_worker, _dispatcher) = (house.worker().await?, house.dispatcher().await?);
        let id = house.create().await?;
        let state = wait::until("the destination to be held", async || {
            let state = store::destination_state(&house.api, DESTINATION).await?;
            Ok(state.filter(|state| state.attention.is_some() || state.pause.is_some()))
        })
        .await?;
        assert_eq!((state.attention.is_some(), state.pause.is_some()), (needs_a_person, !needs_a_person), "{text}");
        let job = house.until(id, Status::Queued).await?;
        assert_eq!(job.delivery_authorized_at, None, "{text}: it was authorized");
        let problem: String = sqlx::query_scalar("SELECT problem FROM destination_checks ORDER BY finished_at LIMIT 1")
            .fetch_one(&house.admin)
            .await?;
        assert!(problem.contains(text), "{problem}");
    }
    Ok(())
}

#[tokio::test]
async fn del_05_jobs_that_meet_a_new_server_at_once_check_it_once() -> anyhow::Result<()> {
    let (server, directory) = (SftpServer::start(Behaviour::default()).await?, tempfile::tempdir()?);
    let house = House::before(&Reach::in_process(&server, directory.path())?, Plan::default()).await?;
    let gate = server.hold(When::Before, Action::Write);
    let jobs = [house.create().await?, house.create().await?, house.create().await?];
    let (_worker, _dispatcher) = (house.worker().await?, house.dispatcher().await?);
    // The first is held in its check until every one of them runs.
    gate.reached().await?;
    for job in jobs {
        house.until(job, Status::Running).await?;
    }
    gate.open();
    for job in jobs {
        house.until(job, Status::Completed).await?;
    }
    let checks: i64 = sqlx::query_scalar("SELECT count(*) FROM destination_checks").fetch_one(&house.admin).await?;
    assert_eq!(checks, 1, "each job checked it");
    Ok(())
}
