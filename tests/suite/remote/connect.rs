//! Opening sessions: each thing that an operator can get wrong is a sentence that names the fix and no secret.

use std::time::Duration;

use uuid::Uuid;
use waybill::remote::{ConnectError, Endpoint, SecretRef, Session, SessionLimits, Sessions, SftpEndpoint};
use waybill_tests::sftp_server::{Behaviour, Fault, When};
use waybill_tests::{Sshd, sftp_server::Action};

use super::{Partner, openssh_endpoint, private_file};

async fn connect(endpoint: &SftpEndpoint) -> Result<Session, ConnectError> {
    Session::connect(&Endpoint::Sftp(endpoint.clone()), &SessionLimits::default()).await
}

async fn refusal(endpoint: &SftpEndpoint) -> ConnectError {
    match connect(endpoint).await {
        Err(error) => error,
        Ok(_) => panic!("the session was opened"),
    }
}

#[tokio::test]
async fn del_08_an_unknown_host_key_is_named_with_the_line_that_would_admit_it() -> anyhow::Result<()> {
    let sshd = Sshd::start().await?;
    let mut endpoint = openssh_endpoint(&sshd)?;
    let pinned = std::mem::replace(&mut endpoint.host_keys, vec![format!("SHA256:{}", "A".repeat(43))]);
    let error = refusal(&endpoint).await;
    assert!(error.needs_attention());
    let ConnectError::HostKey { fingerprint, line, .. } = &error else { panic!("{error}") };
    assert!(pinned[0].starts_with(line.as_str()) && fingerprint.starts_with("SHA256:"), "{error}");
    assert!(error.to_string().contains("destinations.toml") && error.to_string().contains(line), "{error}");
    // Both forms that the sentence shows are what mends it.
    for line in [line.clone(), fingerprint.clone()] {
        endpoint.host_keys = vec![line];
        let session = connect(&endpoint).await?;
        assert!(session.server().banner.starts_with("SSH-2.0-OpenSSH"), "{}", session.server().banner);
        assert_eq!(session.server().directory, sshd.files().to_string_lossy());
    }
    Ok(())
}

#[tokio::test]
async fn del_08_a_wrong_credential_names_user_and_place_and_no_secret() -> anyhow::Result<()> {
    let mut partner = Partner::start(Behaviour::default()).await?;
    partner.endpoint.secret = SecretRef::PasswordFile(private_file(&partner.directory, "wrong", "canary-c0ffee")?);
    let error = refusal(&partner.endpoint).await;
    assert!(matches!(error, ConnectError::Credential { .. }) && error.needs_attention(), "{error}");
    let sentence = format!("{error} {error:?}");
    assert!(sentence.contains("partner") && sentence.contains("wrong") && !sentence.contains("canary"), "{sentence}");
    partner.endpoint.secret = SecretRef::KeyFile(private_file(&partner.directory, "key", "canary-c0ffee")?);
    let error = refusal(&partner.endpoint).await;
    assert!(matches!(error, ConnectError::SecretMissing { .. }), "{error}");
    assert!(!format!("{error} {error:?}").contains("canary"), "{error}");
    Ok(())
}

#[tokio::test]
async fn del_08_an_unreachable_host_may_pass_by_itself() -> anyhow::Result<()> {
    let mut sshd = Sshd::start().await?;
    let endpoint = openssh_endpoint(&sshd)?;
    sshd.stop().await?;
    let error = refusal(&endpoint).await;
    assert!(matches!(error, ConnectError::Unreachable { .. }) && !error.needs_attention(), "{error}");
    assert!(error.to_string().contains(&endpoint.port.to_string()), "{error}");
    Ok(())
}

#[tokio::test]
async fn del_08_a_server_that_never_greets_is_given_up_in_time() -> anyhow::Result<()> {
    let silent = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await?;
    let mut endpoint = Partner::start(Behaviour::default()).await?.endpoint;
    endpoint.port = silent.local_addr()?.port();
    endpoint.secret = SecretRef::PasswordEnv("PATH".to_owned());
    let limits = SessionLimits { connect: Duration::from_millis(200), ..SessionLimits::default() };
    let error = Session::connect(&Endpoint::Sftp(endpoint), &limits).await.expect_err("nothing answers there");
    assert!(matches!(error, ConnectError::Unreachable { .. }), "{error}");
    Ok(())
}

#[tokio::test]
async fn del_08_a_directory_that_is_not_there_is_named() -> anyhow::Result<()> {
    let sshd = Sshd::start().await?;
    let mut endpoint = openssh_endpoint(&sshd)?;
    endpoint.directory = "incoming".to_owned();
    let error = refusal(&endpoint).await;
    assert!(matches!(error, ConnectError::Protocol { .. }) && error.to_string().contains("incoming"), "{error}");
    std::fs::create_dir(sshd.files().join("incoming"))?;
    let session = connect(&endpoint).await?;
    assert_eq!(session.server().directory, sshd.files().join("incoming").to_string_lossy());
    Ok(())
}

#[tokio::test]
async fn one_session_is_kept_for_the_next_job_and_never_shared() -> anyhow::Result<()> {
    let partner = Partner::start(Behaviour::default()).await?;
    let sessions = Sessions::new(SessionLimits::default(), Duration::from_secs(60));
    let destination = Uuid::new_v4();
    let connections = || partner.server.log().iter().map(|logged| logged.connection).max();

    let first = sessions.checkout(destination, &partner.endpoint()).await?;
    let second = sessions.checkout(destination, &partner.endpoint()).await?;
    first.stat("a").await?;
    second.stat("a").await?;
    assert_eq!(connections(), Some(2), "two attempts at once have two sessions");

    // One of which someone still holds a clone is not kept.
    let held = second.clone();
    sessions.give_back(destination, &partner.endpoint(), second).await;
    assert!(!held.is_usable());
    sessions.give_back(destination, &partner.endpoint(), first).await;
    let again = sessions.checkout(destination, &partner.endpoint()).await?;
    again.stat("a").await?;
    assert_eq!(connections(), Some(2), "the first session was kept");

    // One that died while it was kept is replaced.
    sessions.give_back(destination, &partner.endpoint(), again).await;
    partner.server.once(When::Before, Action::RealPath, Fault::Cut);
    let fresh = sessions.checkout(destination, &partner.endpoint()).await?;
    fresh.stat("a").await?;
    assert_eq!(connections(), Some(3));
    Ok(())
}

#[tokio::test]
async fn a_kept_session_is_not_used_for_another_place_nor_after_its_time() -> anyhow::Result<()> {
    let partner = Partner::start(Behaviour::default()).await?;
    partner.server.make_directory("elsewhere")?;
    let connections = || partner.server.log().iter().map(|logged| logged.connection).max();
    let destination = Uuid::new_v4();
    let mut moved = partner.endpoint.clone();
    moved.directory = "elsewhere".to_owned();
    let moved = Endpoint::Sftp(moved);

    let sessions = Sessions::new(SessionLimits::default(), Duration::from_secs(60));
    let first = sessions.checkout(destination, &partner.endpoint()).await?;
    sessions.give_back(destination, &partner.endpoint(), first).await;
    let second = sessions.checkout(destination, &moved).await?;
    second.stat("a").await?;
    assert!(second.server().directory.ends_with("elsewhere") && connections() == Some(2), "{:?}", second.server());

    let impatient = Sessions::new(SessionLimits::default(), Duration::ZERO);
    let third = impatient.checkout(destination, &partner.endpoint()).await?;
    impatient.give_back(destination, &partner.endpoint(), third).await;
    impatient.checkout(destination, &partner.endpoint()).await?.stat("a").await?;
    assert_eq!(connections(), Some(4), "its time was over");
    Ok(())
}
