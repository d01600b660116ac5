use std::collections::BTreeMap;

use russh_sftp::client::error::Error;
use russh_sftp::protocol::{FileAttributes, OpenFlags, StatusCode};
use waybill_tests::sftp_raw::{self, Request, request};
use waybill_tests::sftp_server::{Behaviour, SftpServer, Wire};

use super::client::Client;

/// The client library as it is ends the session on such a code; that it does is why the host needs a normaliser.
#[tokio::test]
async fn kit_wire_tells_a_refusal_by_a_code_above_8() -> anyhow::Result<()> {
    let wire = Wire { refusal_codes: BTreeMap::from([(request::RENAME, 11)]), ..Wire::default() };
    let server = SftpServer::start_with(Behaviour::default(), wire).await?;
    server.put("a", "x")?;
    server.put("b", "y")?;
    let client = Client::to(&server).await?;
    let answer = client.sftp.rename("a", "b").await;
    assert!(matches!(answer, Err(Error::UnexpectedBehavior(_))), "{answer:?}");
    Ok(())
}

#[tokio::test]
async fn kit_wire_leaves_other_answers_alone() -> anyhow::Result<()> {
    let wire = Wire { refusal_codes: BTreeMap::from([(request::RENAME, 11)]), ..Wire::default() };
    let server = SftpServer::start_with(Behaviour::default(), wire).await?;
    let client = Client::to(&server).await?;
    client.put("a", b"x").await?;
    client.sftp.rename("a", "b").await?;
    let missing = client.sftp.stat("a").await.map(drop).unwrap_err();
    assert!(matches!(missing, Error::Status(status) if status.status_code == StatusCode::NoSuchFile));
    Ok(())
}

/// Asked with raw packets, because the client library decodes handles and names lossily.
#[tokio::test]
async fn kit_wire_carries_binary_handles_and_names() -> anyhow::Result<()> {
    use tokio::io::AsyncWriteExt;
    let script = |asked: &Request| {
        let id = asked.id().unwrap_or_default();
        match asked.kind {
            request::OPEN | request::OPENDIR => sftp_raw::handle(id, b"h1"),
            request::READDIR => sftp_raw::names(id, &[b"known"]),
            request::CLOSE if asked.first_string().ok() == Some(b"h1") => sftp_raw::status(id, 0, "closed"),
            _ => sftp_raw::status(id, 4, "not that handle"),
        }
    };
    let (mut client, clients_server) = tokio::io::duplex(4096);
    let wire = Wire { binary_handles: true, foreign_name: Some(b"Gr\xfc\xdfe.csv".to_vec()), ..Wire::default() };
    tokio::spawn(sftp_raw::serve(wire.between(clients_server), std::sync::Arc::new(script)));

    client.write_all(&sftp_raw::packet(request::INIT, &3_u32.to_be_bytes())).await?;
    assert_eq!(sftp_raw::read(&mut client).await?.unwrap().kind, request::VERSION);
    let ask =
        |kind: u8, text: &[u8]| sftp_raw::packet(kind, &[&9_u32.to_be_bytes()[..], &sftp_raw::string(text)].concat());
    client.write_all(&ask(request::OPENDIR, b"/")).await?;
    let opened = sftp_raw::read(&mut client).await?.unwrap();
    let handle = opened.first_string()?.to_vec();
    assert!(std::str::from_utf8(&handle).is_err(), "{handle:?}");
    client.write_all(&ask(request::READDIR, &handle)).await?;
    let names = sftp_raw::read(&mut client).await?.unwrap();
    assert!(names.body.windows(9).any(|bytes| bytes == b"Gr\xfc\xdfe.csv"));
    client.write_all(&ask(request::CLOSE, &handle)).await?;
    assert_eq!(sftp_raw::read(&mut client).await?.unwrap().status_code()?, 0);
    Ok(())
}

#[tokio::test]
async fn kit_wire_strips_a_status_of_its_strings() -> anyhow::Result<()> {
    let server = SftpServer::start_with(Behaviour::default(), Wire { bare_statuses: true, ..Wire::default() }).await?;
    server.put("a", "x")?;
    let client = Client::to(&server).await?;
    assert!(client.sftp.rename("a", "b").await.is_err(), "the client library cannot read a bare status");
    assert_eq!(server.read("b").unwrap(), b"x");
    Ok(())
}

#[tokio::test]
async fn kit_raw_server_answers_by_its_script() -> anyhow::Result<()> {
    let server = sftp_raw::start(|asked| {
        let id = asked.id().unwrap_or_default();
        match asked.kind {
            request::STAT => sftp_raw::size(id, 42),
            request::OPEN => sftp_raw::handle(id, b"h"),
            _ => sftp_raw::status(id, 4, "scripted"),
        }
    })
    .await?;
    let client = Client::with_password(server.port()).await?;
    assert_eq!(client.sftp.stat("any").await?.attrs.size, Some(42));
    client.sftp.open("any", OpenFlags::READ, FileAttributes::empty()).await?;
    let refused = client.sftp.rename("any", "other").await.map(drop).unwrap_err();
    assert!(matches!(refused, Error::Status(status) if status.error_message == "scripted"));
    Ok(())
}
