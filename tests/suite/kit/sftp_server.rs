use russh_sftp::client::error::Error;
use russh_sftp::protocol::{FileAttributes, OpenFlags, StatusCode};
use waybill_tests::operations::{Answer, Operation};
use waybill_tests::sftp_server::{
    Action, Behaviour, Fault, HardLink, Listing, RenameOver, RenameSteps, SftpServer, When,
};

use super::client::Client;

async fn with_file(behaviour: Behaviour) -> anyhow::Result<(SftpServer, Client)> {
    let server = SftpServer::start(behaviour).await?;
    server.put("a", "content")?;
    let client = Client::to(&server).await?;
    Ok((server, client))
}

#[tokio::test]
async fn kit_server_renames_as_it_is_told() -> anyhow::Result<()> {
    for (over, replaced) in [(RenameOver::Refuses, false), (RenameOver::Replaces, true)] {
        let (server, client) = with_file(Behaviour { rename_over: over, ..Behaviour::default() }).await?;
        server.put("b", "in the way")?;
        assert_eq!(client.sftp.rename("a", "b").await.is_ok(), replaced, "{over:?}");
        assert_eq!(server.read("b").unwrap(), if replaced { &b"content"[..] } else { b"in the way" });
        assert_eq!((server.times_created("b"), server.times_written("b")), (1, usize::from(replaced)));
    }
    Ok(())
}

#[tokio::test]
async fn kit_server_links_honestly_lies_or_does_not_offer() -> anyhow::Result<()> {
    for (how, answered, made) in
        [(HardLink::Honest, true, true), (HardLink::Lies, true, false), (HardLink::NotOffered, false, false)]
    {
        let (server, client) = with_file(Behaviour { hard_link: how, ..Behaviour::default() }).await?;
        assert_eq!(client.sftp.hardlink("a", "b").await.is_ok(), answered, "{how:?}");
        assert_eq!(server.read("b").is_some(), made, "{how:?}");
        assert_eq!(server.times_written("b"), usize::from(made), "{how:?}");
    }
    Ok(())
}

#[tokio::test]
async fn kit_server_holds_an_operation_until_released() -> anyhow::Result<()> {
    let (server, client) = with_file(Behaviour::default()).await?;
    let gate = server.hold(When::Before, Action::Rename);
    let renaming = tokio::spawn(async move { client.sftp.rename("a", "b").await.map(drop) });
    gate.reached().await?;
    assert!(server.read("b").is_none());
    assert_eq!(server.log().last().unwrap().answer, None);
    gate.open();
    renaming.await??;
    assert_eq!(server.log().last().unwrap().answer, Some(Answer::Ok));
    Ok(())
}

#[tokio::test]
async fn kit_server_cuts_before_and_after_the_effect() -> anyhow::Result<()> {
    for fault in [Fault::Cut, Fault::CloseChannel] {
        for (when, done) in [(When::Before, false), (When::After, true)] {
            let (server, client) = with_file(Behaviour::default()).await?;
            server.once(when, Action::Rename, fault.clone());
            let answer = client.sftp.rename("a", "b").await;
            assert!(matches!(answer, Err(Error::UnexpectedBehavior(_))), "{fault:?} {when:?}: {answer:?}");
            assert_eq!(server.read("b").is_some(), done, "{fault:?} {when:?}");
            let last = server.log().pop().unwrap();
            assert_eq!((last.took_effect, last.answer), (done, None), "{fault:?} {when:?}");
            // The next connection is served.
            Client::to(&server).await?.sftp.stat(if done { "b" } else { "a" }).await?;
        }
    }
    Ok(())
}

#[tokio::test]
async fn kit_server_refuses_with_the_code_and_text_of_the_test() -> anyhow::Result<()> {
    let (server, client) = with_file(Behaviour::default()).await?;
    server.once(When::Before, Action::Rename, Fault::refuse(3, "quota"));
    let refused = client.sftp.rename("a", "b").await.map(drop).unwrap_err();
    let Error::Status(status) = refused else { panic!("{refused:?}") };
    assert_eq!((status.status_code, status.error_message.as_str()), (StatusCode::PermissionDenied, "quota"));
    assert!(server.read("b").is_none());
    client.sftp.rename("a", "b").await?;
    Ok(())
}

#[tokio::test]
async fn kit_server_renames_in_two_steps_and_undoes_the_first() -> anyhow::Result<()> {
    let behaviour = Behaviour { rename_steps: RenameSteps::LinkThenRemove, ..Behaviour::default() };
    let (server, client) = with_file(behaviour).await?;
    let gate = server.hold(When::Between, Action::Rename);
    let renaming = tokio::spawn(async move { client.sftp.rename("a", "b").await.map(drop) });
    gate.reached().await?;
    assert!(server.read("a").is_some() && server.read("b").is_some());
    assert!(server.collect("a"));
    gate.open();
    assert!(renaming.await?.is_err());
    assert!(server.read("b").is_none(), "the delivered file must be lost, as on the real server");
    Ok(())
}

#[tokio::test]
async fn kit_server_hides_fills_collects_and_lies_about_size() -> anyhow::Result<()> {
    let (_server, client) = with_file(Behaviour { listing: Listing::Forbidden, ..Behaviour::default() }).await?;
    assert!(client.sftp.stat("a").await.is_err() && client.sftp.opendir("/").await.is_err());

    let (server, client) = with_file(Behaviour { capacity_bytes: Some(10), ..Behaviour::default() }).await?;
    assert!(client.put("b", b"four").await.is_err());
    assert_eq!(server.read("b").unwrap(), b"");

    let (server, client) = with_file(Behaviour::default().collecting(|name| name == "/b")).await?;
    client.sftp.rename("a", "b").await?;
    assert!(server.read("a").is_none() && server.read("b").is_none());

    let (server, client) = with_file(Behaviour::default()).await?;
    server.once(When::Before, Action::Stat, Fault::ReportSize(3));
    assert_eq!(client.sftp.stat("a").await?.attrs.size, Some(3));
    assert_eq!(client.sftp.stat("a").await?.attrs.size, Some(7));
    Ok(())
}

#[tokio::test]
async fn kit_server_shows_a_size_only_after_close() -> anyhow::Result<()> {
    let (_server, client) = with_file(Behaviour { listing: Listing::SizeAfterClose, ..Behaviour::default() }).await?;
    let handle = client.sftp.open("b", OpenFlags::WRITE | OpenFlags::CREATE, FileAttributes::empty()).await?.handle;
    client.sftp.write(handle.clone(), 0, b"four".to_vec()).await?;
    assert_eq!(client.sftp.stat("b").await?.attrs.size, Some(0));
    client.sftp.close(handle).await?;
    assert_eq!(client.sftp.stat("b").await?.attrs.size, Some(4));
    Ok(())
}

#[tokio::test]
async fn kit_server_ignores_exclusive_creation_where_told() -> anyhow::Result<()> {
    let (_honest, client) = with_file(Behaviour::default()).await?;
    assert!(client.put("a", b"other").await.is_err());
    let (server, client) = with_file(Behaviour { exclusive_create: false, ..Behaviour::default() }).await?;
    client.put("a", b"other").await?;
    assert_eq!(server.read("a").unwrap(), b"othernt");
    Ok(())
}

#[tokio::test]
async fn kit_server_remembers_what_was_asked_in_order() -> anyhow::Result<()> {
    let server = SftpServer::start(Behaviour::default()).await?;
    let (first, second) = (Client::to(&server).await?, Client::to(&server).await?);
    first.put("a", b"12").await?;
    second.sftp.remove("a").await?;
    let log = server.log();
    let asked: Vec<(u64, bool)> =
        log.iter().map(|logged| (logged.connection, logged.operation.creates().is_some())).collect();
    assert_eq!(asked, [(1, true), (1, false), (2, false)]);
    assert_eq!(log[1].operation, Operation::Close { path: "/a".into(), read: 0, written: 2 });
    Ok(())
}
