//! Single requests: what is known about a failure's effect is its type, and a lost session stays lost.

use std::time::Duration;

use sha2::{Digest as _, Sha256 as Hasher};
use tokio_util::sync::CancellationToken;
use waybill::job::facts::{FileFacts, Found, Sha256};
use waybill::job::verdict::compare::likeness;
use waybill::job::verdict::{Compared, Likeness};
use waybill::remote::{RemoteError, Session, SessionLimits, look};
use waybill_tests::sftp_raw::request;
use waybill_tests::sftp_server::{Action, Behaviour, Fault, Listing, When, Wire};
use waybill_tests::wait;
use waybill_tests::{SftpServer, Sshd};

use super::{Partner, built, openssh_session};

#[tokio::test]
async fn del_12_a_refusal_that_the_library_cannot_read_is_a_refusal_with_its_raw_code() -> anyhow::Result<()> {
    let wire = Wire {
        refusal_codes: [(request::RENAME, 11)].into(),
        bare_statuses: true,
        binary_handles: true,
        foreign_name: Some(b"caf\xe9".to_vec()),
    };
    let partner = Partner::around(SftpServer::start_with(Behaviour::default(), wire).await?)?;
    let session = partner.session().await?;
    session.create("there", b"1".to_vec()).await?;
    session.create("mine", b"22".to_vec()).await?;
    let refused = session.rename("mine", "there").await.unwrap_err();
    assert!(matches!(refused, RemoteError::Refused { code: Some(11), .. }), "{refused:?}");
    let entries = session.list("", "", 100, |_| true).await?;
    let foreign: Vec<_> = entries.iter().filter(|entry| entry.name == "caf%E9").collect();
    assert!(foreign.len() == 1 && foreign[0].kind == "other", "{entries:?}");
    // Binary handles carry a whole upload and a reading back.
    let content: Vec<u8> = (0..3_000_000_u32).map(|number| (number % 251) as u8).collect();
    let file = built(&partner.directory, &content).await?;
    session.upload("whole", &file, &CancellationToken::new()).await?;
    assert_eq!(session.read_digest("whole", file.bytes()).await?, (file.sha256(), file.bytes()));
    assert!(session.is_usable());
    Ok(())
}

#[tokio::test]
async fn an_upload_arrives_byte_for_byte_at_openssh() -> anyhow::Result<()> {
    let sshd = Sshd::start().await?;
    let session = openssh_session(&sshd).await?;
    let directory = tempfile::tempdir()?;
    for bytes in [0, 1, 32_739, 32_740, 5_000_001] {
        let content: Vec<u8> = (0..bytes).map(|number: u32| (number % 253) as u8).collect();
        let file = built(&directory, &content).await?;
        let name = format!("{bytes}.bin");
        session.upload(&name, &file, &CancellationToken::new()).await?;
        assert!(std::fs::read(sshd.files().join(&name))? == content, "{bytes} bytes");
        let seen = look(&session, &name, file.bytes()).await;
        assert_eq!(seen.sha256, Some(file.sha256()));
        assert_eq!(look(&session, &name, file.bytes().saturating_sub(1)).await.sha256.is_some(), bytes == 0);
    }
    let again = session.upload("1.bin", &built(&directory, b"x").await?, &CancellationToken::new()).await.unwrap_err();
    assert!(!again.may_exist && again.error.is_refusal(), "an existing file is not opened: {again:?}");
    Ok(())
}

#[tokio::test]
async fn a_lost_line_is_unknown_and_the_session_is_never_used_again() -> anyhow::Result<()> {
    for (when, fault) in [
        (When::Before, Fault::Cut),
        (When::After, Fault::Cut),
        (When::Before, Fault::CloseChannel),
        (When::After, Fault::CloseChannel),
        (When::Before, Fault::Hang),
    ] {
        let partner = Partner::start(Behaviour::default()).await?;
        partner.server.put("a", "1")?;
        let session = partner.impatient_session().await?;
        partner.server.once(when, Action::Rename, fault.clone());
        let lost = session.rename("a", "b").await.unwrap_err();
        let RemoteError::Unknown { why } = &lost else { panic!("{when:?} {fault:?}: {lost:?}") };
        assert!(!why.contains("sender dropped"), "the true cause is told: {why}");
        assert!(!session.is_usable());
        let requests = partner.server.log().len();
        let next = session.rename("a", "c").await.unwrap_err();
        assert!(matches!(next, RemoteError::NotSent { .. }), "{next:?}");
        assert_eq!(partner.server.log().len(), requests, "nothing was sent on the lost session");
    }
    Ok(())
}

#[tokio::test]
async fn a_server_that_lost_what_stands_behind_it_answered_nothing() -> anyhow::Result<()> {
    // Two codes of a gateway: the request may have been done behind it.
    for code in [6, 7] {
        let partner = Partner::start(Behaviour::default()).await?;
        partner.server.put("a", "1")?;
        let session = partner.session().await?;
        partner.server.once(When::After, Action::Rename, Fault::refuse(code, "backend gone"));
        let lost = session.rename("a", "b").await.unwrap_err();
        let RemoteError::Unknown { why } = &lost else { panic!("{code}: {lost:?}") };
        assert!(why.contains("backend gone") && !session.is_usable(), "{why}");
    }
    Ok(())
}

#[tokio::test]
async fn a_reading_back_that_takes_too_long_is_given_up_and_the_session_goes_on() -> anyhow::Result<()> {
    let partner = Partner::start(Behaviour::default()).await?;
    partner.server.put("long", vec![7; 200_000])?;
    let limits = SessionLimits { look: Duration::ZERO, ..SessionLimits::default() };
    let session = Session::connect(&partner.endpoint(), &limits).await?;
    let given_up = session.read_digest("long", 200_000).await.unwrap_err();
    assert!(matches!(&given_up, RemoteError::Invalid { why } if why.contains("longer than")), "{given_up:?}");
    // What the host looks at afterwards is still seen.
    assert!(session.is_usable());
    assert!(matches!(session.stat("long").await?, Found::Present(_)));
    Ok(())
}

#[tokio::test]
async fn del_12_a_server_that_returns_little_at_once_is_read_whole() -> anyhow::Result<()> {
    let partner = Partner::start(Behaviour { read_bytes: 4096, ..Behaviour::default() }).await?;
    let content: Vec<u8> = (0..100_000_u32).map(|number| (number % 251) as u8).collect();
    partner.server.put("whole", content.clone())?;
    let session = partner.session().await?;
    assert_eq!(session.read("whole", 10, 50_000).await?, &content[10..50_010]);
    assert_eq!(session.read_digest("whole", 100_000).await?.1, 100_000);
    Ok(())
}

#[tokio::test]
async fn del_12_a_server_that_tells_no_kinds_shows_files_that_are_read_back() -> anyhow::Result<()> {
    let partner = Partner::start(Behaviour { permissions: false, ..Behaviour::default() }).await?;
    partner.server.put("k.csv", "content")?;
    let seen = look(&partner.session().await?, "k.csv", 100).await;
    assert!(matches!(&seen.found, Found::Present(entry) if entry.kind == "unknown"), "{seen:?}");
    let known = FileFacts { name: "k.csv".to_owned(), bytes: 7, sha256: Sha256(Hasher::digest("content").into()) };
    assert_eq!(likeness(&known, &seen), Likeness { size: Compared::Same, checksum: Compared::Same });
    Ok(())
}

#[tokio::test]
async fn a_request_whose_caller_is_dropped_is_still_finished() -> anyhow::Result<()> {
    let partner = Partner::start(Behaviour::default()).await?;
    partner.server.put("a", "1")?;
    let session = partner.session().await?;
    let gate = partner.server.hold(When::Before, Action::Rename);
    let request = tokio::spawn({
        let session = session.clone();
        async move { session.rename("a", "b").await }
    });
    gate.reached().await?;
    request.abort();
    assert!(request.await.unwrap_err().is_cancelled());
    gate.open();
    wait::until("the rename to be done", async || Ok(partner.server.read("b"))).await?;
    assert_eq!(session.stat("a").await?, Found::Absent, "and the session goes on");
    Ok(())
}

#[tokio::test]
async fn absent_is_said_by_the_server_or_not_at_all() -> anyhow::Result<()> {
    let partner = Partner::start(Behaviour::default()).await?;
    let session = partner.impatient_session().await?;
    assert_eq!(look(&session, "a", 0).await.found, Found::Absent);
    partner.server.once(When::Before, Action::Stat, Fault::refuse(4, "no"));
    assert!(matches!(look(&session, "a", 0).await.found, Found::Unknown { .. }));
    partner.server.put("hidden", "1")?;
    partner.server.set_behaviour(Behaviour { listing: Listing::Forbidden, ..Behaviour::default() });
    assert!(matches!(look(&session, "hidden", 0).await.found, Found::NotVisible { .. }));
    partner.server.once(When::Before, Action::Stat, Fault::Hang);
    assert!(matches!(look(&session, "a", 0).await.found, Found::Unknown { .. }));
    assert!(matches!(look(&session, "a", 0).await.found, Found::Unknown { .. }), "nor on a dead session");
    Ok(())
}

#[tokio::test]
async fn a_channel_that_dies_under_a_full_window_ends_the_upload() -> anyhow::Result<()> {
    let partner = Partner::start(Behaviour::default()).await?;
    let session = partner.session().await?;
    let file = built(&partner.directory, &vec![7; 8_000_000]).await?;
    partner.server.hook(|event| (event.action == Action::Write && event.nth == 40).then_some(Fault::CloseChannel));
    let failed = session.upload("big", &file, &CancellationToken::new()).await.unwrap_err();
    assert!(failed.may_exist && matches!(failed.error, RemoteError::Unknown { .. }), "{failed:?}");
    assert!(!session.is_usable());
    Ok(())
}
