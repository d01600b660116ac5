use waybill::embedded::openssh::{OpenSsh, OpenSshError, Settings};

fn settings(directory: &tempfile::TempDir, port: Option<u16>) -> Settings {
    Settings { directory: directory.path().join("server"), files: directory.path().join("files"), port }
}

#[tokio::test]
async fn kit_openssh_says_that_its_port_is_taken() -> anyhow::Result<()> {
    let taken = std::net::TcpListener::bind("127.0.0.1:0")?;
    let port = taken.local_addr()?.port();
    let directory = tempfile::tempdir()?;
    let refused = OpenSsh::start(&settings(&directory, Some(port))).await.unwrap_err();
    assert!(matches!(refused, OpenSshError::PortTaken { port: named } if named == port), "{refused:?}");
    Ok(())
}

#[tokio::test]
async fn kit_openssh_left_behind_is_ended_by_the_next_start() -> anyhow::Result<()> {
    let directory = tempfile::tempdir()?;
    let left = OpenSsh::start(&settings(&directory, None)).await?;
    let port = left.port();
    // A killed process drops nothing.
    std::mem::forget(left);
    let server = OpenSsh::start(&settings(&directory, Some(port))).await?;
    std::fs::write(server.files().join("here"), "again")?;
    assert_eq!(server.fetch("here").await?, b"again");
    Ok(())
}

#[tokio::test]
async fn kit_openssh_says_what_could_not_be_fetched() -> anyhow::Result<()> {
    let directory = tempfile::tempdir()?;
    let server = OpenSsh::start(&settings(&directory, None)).await?;
    let refused = server.fetch("missing").await.unwrap_err();
    assert!(refused.to_string().contains("missing"), "{refused}");
    Ok(())
}
