//! Single requests: what their types say must be what lies in the directory.

use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use uuid::Uuid;
use waybill::job::contract::Contract;
use waybill::job::evidence::{Answer, PublishForm};
use waybill::job::facts::Found;
use waybill::job::names::NamePattern;
use waybill::remote::{
    DirectoryEndpoint, Endpoint, RemoteError, ScratchNames, Session, SessionLimits, Sessions, choose_form, look, prove,
};

use super::{mode, names};
use crate::remote::{PATIENCE, Record, built, names as names_of, writer};

fn endpoint(path: &Path) -> Endpoint {
    Endpoint::Directory(DirectoryEndpoint { path: path.to_owned(), marker: None })
}

async fn session(path: &Path) -> anyhow::Result<Session> {
    Ok(Session::connect(&endpoint(path), &SessionLimits::default()).await?)
}

#[tokio::test]
async fn del_05_a_directory_shows_that_it_refuses_and_is_left_clean() -> anyhow::Result<()> {
    let directory = tempfile::tempdir()?;
    let session = session(directory.path()).await?;
    let scratch = ScratchNames::mint(&NamePattern::parse(".{attempt}.part")?, "k.csv")?;
    let proof = prove(&session, &scratch).await?;
    let shown = [
        &proof.size_after_close,
        &proof.create_refuses,
        &proof.link_creates,
        &proof.link_refuses,
        &proof.rename_moves,
        &proof.rename_refuses,
        &proof.posix_rename_replaces,
    ];
    assert!(shown.iter().all(|shown| shown.shown) && !proof.rename_replaces.shown, "{proof:#?}");
    assert_eq!(choose_form(&proof, &Contract::default(), false), Some(PublishForm::Link));
    assert_eq!(choose_form(&proof, &Contract::default(), true), Some(PublishForm::PosixRename));
    assert!(proof.left_behind.is_empty() && names(directory.path())?.is_empty());
    assert!(session.server().banner.starts_with("a directory on "), "{}", session.server().banner);
    assert!(session.free_bytes().await?.is_some_and(|free| free > 0));
    Ok(())
}

#[tokio::test]
async fn plg_04_no_symbolic_link_leads_a_write_or_a_look_out_of_the_directory() -> anyhow::Result<()> {
    let around = tempfile::tempdir()?;
    let (inside, outside) = (around.path().join("inside"), around.path().join("outside"));
    std::fs::create_dir(&inside)?;
    std::fs::create_dir(&outside)?;
    std::fs::write(outside.join("secret"), b"canary")?;
    symlink(&outside, inside.join("folder"))?;
    symlink(outside.join("secret"), inside.join("there"))?;
    symlink(outside.join("new"), inside.join("dangling"))?;
    let session = session(&inside).await?;
    session.create("ours", b"ours".to_vec()).await?;

    for name in ["folder/k.csv", "folder/secret", "there", "dangling", "../outside/k.csv", "../outside/secret"] {
        let created = session.create(name, b"x".to_vec()).await.expect_err(name);
        assert!(!created.may_exist, "{name}: {created:?}");
        assert!(session.hardlink("ours", name).await.is_err() && session.rename("ours", name).await.is_err(), "{name}");
        let read = session.read(name, 0, 100).await.expect_err(name);
        assert!(!read.to_string().contains("canary"), "{read}");
        assert!(session.read_digest(name, 100).await.is_err(), "{name}");
    }
    for name in ["folder/secret", "../outside/secret", "folder/k.csv"] {
        assert!(session.stat(name).await.is_err(), "{name} was looked at");
        assert!(session.remove(name).await.is_err() && session.make_directory(name).await.is_err(), "{name}");
    }
    // A link itself is shown as what it is, and what it points at is not.
    let Found::Present(there) = session.stat("there").await? else { panic!("not there") };
    assert_eq!(there.kind, "other");
    assert!(session.list("folder", "", 10, |_| true).await.is_err());
    // Replacing one replaces the link, and not what it points at.
    session.posix_rename("ours", "there").await?;
    assert_eq!(std::fs::read(outside.join("secret"))?, b"canary");
    assert_eq!(names(&outside)?, ["secret"]);
    assert!(session.is_usable());
    Ok(())
}

#[tokio::test]
async fn absent_not_visible_and_no_regular_file_are_told_apart() -> anyhow::Result<()> {
    let directory = tempfile::tempdir()?;
    let session = session(directory.path()).await?;
    assert_eq!(session.stat("k.csv").await?, Found::Absent);
    assert_eq!(session.stat("no/such/folder/k.csv").await?, Found::Absent);
    assert!(session.read("k.csv", 0, 10).await.expect_err("nothing is there").says_absent());
    session.make_directory("in").await?;
    assert_eq!(mode(&directory.path().join("in"))? & 0o027, 0);
    session.create("in/k.csv", b"0123456789".to_vec()).await?;
    assert_eq!(session.read("in/k.csv", 4, 3).await?, b"456");
    assert_eq!(session.read("in/k.csv", 8, 100).await?, b"89");
    let listing = look(&session, "in/k.csv", 10).await;
    assert!(matches!(&listing.found, Found::Present(entry) if entry.bytes == Some(10) && entry.kind == "file"));
    assert!(listing.sha256.is_some_and(|sha256| sha256.to_string().starts_with("84d89877f0d4041efb6bf91a16f0248f")));
    assert!(matches!(session.read_digest("in/k.csv", 9).await, Err(RemoteError::Invalid { .. })));

    // A pipe is not waited for, and a name in no encoding is shown and is nobody's.
    let pipe = std::process::Command::new("mkfifo").arg(directory.path().join("in/pipe")).status()?;
    assert!(pipe.success());
    assert!(session.read("in/pipe", 0, 10).await.expect_err("a pipe").is_refusal());
    std::fs::write(directory.path().join("in").join(std::ffi::OsStr::from_bytes(b"k\xff.csv")), b"")?;
    let mut listed = session.list("in", "k", 10, |_| true).await?;
    listed.sort_by(|one, other| one.name.cmp(&other.name));
    let listed: Vec<_> = listed.iter().map(|entry| (entry.name.as_str(), entry.kind.as_str())).collect();
    assert_eq!(listed, [("in/k%FF.csv", "other"), ("in/k.csv", "file")]);
    assert_eq!(session.list("in", "", 1, |name| name == "in/pipe").await?.len(), 1);
    Ok(())
}

#[tokio::test]
async fn a_directory_that_is_no_longer_there_proves_no_absence() -> anyhow::Result<()> {
    let around = tempfile::tempdir()?;
    let path = around.path().join("outbox");
    std::fs::create_dir(&path)?;
    let sessions = Sessions::new(SessionLimits::default(), Duration::from_secs(60));
    let destination = Uuid::new_v4();
    let kept = sessions.checkout(destination, &endpoint(&path)).await?;
    kept.create("k.csv", b"one".to_vec()).await?;
    let stale = session(&path).await?;
    sessions.give_back(destination, &endpoint(&path), kept).await;

    std::fs::rename(&path, around.path().join("away"))?;
    std::fs::create_dir(&path)?;
    let looked = stale.stat("k.csv").await.expect_err("the directory is another one");
    assert!(matches!(&looked, RemoteError::NotSent { why } if why.contains("another directory")), "{looked}");
    assert!(!stale.is_usable());
    // A session that was kept for the next job is replaced.
    let fresh = sessions.checkout(destination, &endpoint(&path)).await?;
    assert_eq!(fresh.stat("k.csv").await?, Found::Absent);
    Ok(())
}

/// One thread makes all calls of this runtime, and is kept busy when the fence is committed: so the link waits until after its
/// bound, and takes effect then.
#[test]
fn del_03_a_link_that_is_late_is_unanswered_and_may_still_take_effect() -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().max_blocking_threads(1).enable_all().build()?;
    runtime.block_on(async {
        let directory = tempfile::tempdir()?;
        let limits = SessionLimits { request: Duration::from_secs(1), ..SessionLimits::default() };
        let spool = tempfile::tempdir()?;
        let file = built(&spool, b"content").await?;
        let session = Session::connect(&endpoint(directory.path()), &limits).await?;
        let (names_of_it, record) = (names_of("k")?, Arc::new(Record::default()));
        let (release, held) = std::sync::mpsc::channel::<()>();
        let mut held = Some(held);
        record.when_asked(move || {
            let held = held.take();
            tokio::task::spawn_blocking(move || held.map(|held| held.recv()));
        });
        let writer = writer(&session, &names_of_it, &file, PublishForm::Link, &record);
        writer.send().await?;
        let late = writer.publish().await.expect_err("the only thread is busy");
        assert!(matches!(late, RemoteError::Unknown { .. }), "{late}");
        assert!(matches!(&record.answers()[..], [(PublishForm::Link, Answer::Unanswered { .. })]));
        assert!(!session.is_usable() && writer.publish().await.is_err());
        assert_eq!(names(directory.path())?, [".attempt-k.part"]);
        assert_eq!(writer.leftover(), None);
        // The kernel is asked now, after everybody stopped waiting.
        release.send(())?;
        let sending = writer.outcome(PATIENCE).await;
        assert!(matches!(sending.publish, Some((PublishForm::Link, Answer::Unanswered { .. }))), "{sending:?}");
        waybill_tests::wait::until("the late link", async || {
            Ok((names(directory.path())? == [".attempt-k.part", "k.csv"]).then_some(()))
        })
        .await?;
        Ok(())
    })
}
