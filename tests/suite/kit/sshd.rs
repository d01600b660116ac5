use waybill_tests::operations::{Answer, Mode, Operation};
use waybill_tests::{Sshd, wait};

use super::client::Client;

#[tokio::test]
async fn kit_sshd_logs_every_operation_that_counts() -> anyhow::Result<()> {
    let server = Sshd::start().await?;
    let client = Client::to_sshd(&server).await?;
    client.put("part", b"twelve bytes").await?;
    client.sftp.hardlink("part", "linked").await?;
    assert!(client.sftp.rename("part", "linked").await.is_err(), "OpenSSH refuses to rename over a file");
    client.sftp.rename("part", "final").await?;
    client.sftp.remove("linked").await?;

    let operations = wait::until("the removal in the log", async || {
        let operations = server.operations()?;
        let removed = operations.iter().any(|done| matches!(done.operation, Operation::Remove { .. }));
        Ok(removed.then_some(operations))
    })
    .await?;
    let name = |name: &str| name.to_owned();
    let mode = Mode { write: true, create: true, exclusive: true, ..Mode::default() };
    let expected = [
        Operation::Open { path: name("part"), mode },
        Operation::Close { path: name("part"), read: 0, written: 12 },
        Operation::Link { from: name("part"), to: name("linked") },
        Operation::Rename { from: name("part"), to: name("linked") },
        Operation::Rename { from: name("part"), to: name("final") },
        Operation::Remove { path: name("linked") },
    ];
    assert_eq!(operations.iter().map(|done| done.operation.clone()).collect::<Vec<_>>(), expected);
    let refused: Vec<bool> = operations.iter().map(|done| matches!(done.answer, Some(Answer::Refused(_)))).collect();
    assert_eq!(refused, [false, false, false, true, false, false]);
    assert_eq!(server.times_created("final")?, 1);
    assert_eq!(server.fetch("final").await?, b"twelve bytes");
    Ok(())
}

#[tokio::test]
async fn kit_sshd_is_down_and_up_again_on_its_port() -> anyhow::Result<()> {
    let mut server = Sshd::start().await?;
    let (port, key) = (server.port(), server.host_key()?);
    let client = Client::to_sshd(&server).await?;
    client.put("before", b"1").await?;
    server.stop().await?;
    assert!(client.sftp.stat("before").await.is_err(), "a session outlived its server");
    assert!(Client::to_sshd(&server).await.is_err(), "a stopped server lets a client in");
    server.start_again().await?;
    assert_eq!((server.port(), server.host_key()?), (port, key));
    Client::to_sshd(&server).await?.sftp.stat("before").await?;
    Ok(())
}
