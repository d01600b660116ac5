//! Who may say that it is the store: the authorities of `ca_file` alone, for the name that is asked for, today. Before that is
//! shown nothing is sent.

use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use tempfile::TempDir;
use time::macros::datetime;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_rustls::rustls::version::{TLS12, TLS13};
use waybill::remote::{ConnectError, Endpoint, Session, SessionLimits};
use waybill_tests::ObjectStore;
use waybill_tests::certificates::{Authority, Identity};
use waybill_tests::object_store::{ACCESS_KEY, KeyFiles, SECRET_KEY};

use super::endpoint;

/// What a destination's `ca_file` holds.
struct CaFile(TempDir);

impl CaFile {
    fn new(content: &str) -> anyhow::Result<Self> {
        let directory = tempfile::tempdir()?;
        std::fs::write(directory.path().join("ca.pem"), content)?;
        Ok(Self(directory))
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("ca.pem")
    }
}

async fn failed(endpoint: &Endpoint) -> ConnectError {
    match Session::connect(endpoint, &SessionLimits::default()).await {
        Err(error) => error,
        Ok(session) => panic!("{session:?}"),
    }
}

/// A person must mend it; returns the sentence.
async fn told(endpoint: &Endpoint) -> String {
    let error = failed(endpoint).await;
    assert!(matches!(error, ConnectError::Protocol { .. }) && error.needs_attention(), "{error:?}");
    let sentence = error.to_string();
    assert!(!sentence.contains(ACCESS_KEY) && !sentence.contains(SECRET_KEY), "{sentence}");
    sentence
}

#[tokio::test]
async fn del_08_a_certificate_that_is_not_to_be_trusted_is_told_with_what_to_do_and_nothing_is_sent()
-> anyhow::Result<()> {
    let (house, other) = (Authority::new("the house")?, Authority::new("somebody else")?);
    let ca_file = CaFile::new(&house.pem())?;
    let ours = Some(ca_file.path());
    let (past, future) = (datetime!(2020-01-01 0:00 UTC), datetime!(2100-01-01 0:00 UTC));
    let expired = house.signed_for(&["localhost"], past..datetime!(2021-01-01 0:00 UTC))?;
    let early = house.signed_for(&["localhost"], future..datetime!(2101-01-01 0:00 UTC))?;
    for (identity, ca_file, words) in [
        (house.signed(&["store.example"])?, &ours, ["store.example", "not for localhost", "`store`"]),
        (house.signed(&["127.0.0.1"])?, &ours, ["127.0.0.1", "not for localhost", "`store`"]),
        (other.signed(&["localhost"])?, &ours, ["signed by no authority", "ca.pem", "put its certificate there"]),
        (Identity::self_signed(&["localhost"])?, &ours, ["signed by no authority", "ca.pem", "(`ca_file`)"]),
        (expired, &ours, ["ended at 2021-01-01T00:00:00Z", "renewed", "clock"]),
        (early, &ours, ["begins at 2100-01-01T00:00:00Z", "clock", "another made"]),
        // Without a file of its own: whom this machine trusts.
        (house.signed(&["localhost"])?, &None, ["authority", "`ca_file`", "destinations.toml"]),
    ] {
        let store = ObjectStore::start_secure(identity.serving()?).await?;
        let sentence = told(&endpoint(&store.url(), store.key_files(), "in", ca_file.clone())).await;
        assert!(words.iter().all(|word| sentence.contains(word)), "{words:?}: {sentence}");
        assert_eq!(store.log(), [], "{sentence}");
    }
    Ok(())
}

#[tokio::test]
async fn a_store_that_an_authority_of_the_file_vouches_for_is_delivered_to_whatever_it_speaks() -> anyhow::Result<()> {
    let house = Authority::new("the house")?;
    let alone = Identity::self_signed(&["localhost"])?;
    let both = format!("{}\nfor people\n{}", Authority::new("the one before")?.pem(), house.pem());
    for (config, ca_file) in [
        (house.signed(&["localhost"])?.serving_only(&[&TLS12])?, house.pem()),
        (house.signed(&["*.example", "localhost"])?.serving_only(&[&TLS13])?, both),
        // A server's own certificate, where nobody else signed it.
        (alone.serving()?, alone.pem()),
    ] {
        let (store, ca_file) = (ObjectStore::start_secure(config).await?, CaFile::new(&ca_file)?);
        let place = endpoint(&store.url(), store.key_files(), "in", Some(ca_file.path()));
        let session = Session::connect(&place, &SessionLimits::default()).await?;
        session.create("k.csv", b"0123456789".to_vec()).await?;
        assert_eq!(session.read("k.csv", 4, 3).await?, b"456");
        assert_eq!(store.content("in/k.csv").as_deref(), Some(&b"0123456789"[..]));
    }
    Ok(())
}

#[tokio::test]
async fn del_08_a_file_of_authorities_that_cannot_be_used_is_named_with_what_to_do() -> anyhow::Result<()> {
    let house = Authority::new("the house")?;
    let store = ObjectStore::start_secure(house.signed(&["localhost"])?.serving()?).await?;
    let broken = house.pem().replace("-----END", "!!\n-----END");
    for (content, mode, words) in [
        (None, 0o644, "no such file is there; put the authority's certificate there"),
        (Some(String::new()), 0o644, "it holds no certificate"),
        (Some("a certificate\n".to_owned()), 0o644, "it holds no certificate"),
        (Some(Identity::self_signed(&["localhost"])?.key_pem()), 0o600, "it holds no certificate"),
        (Some(format!("{}{broken}", house.pem())), 0o644, "not every certificate in it can be read"),
        (Some(house.pem()), 0o666, "chmod o-w"),
    ] {
        let ca_file = CaFile::new(content.as_deref().unwrap_or_default())?;
        let path = ca_file.path();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode))?;
        if content.is_none() {
            std::fs::remove_file(&path)?;
        }
        let sentence = told(&endpoint(&store.url(), store.key_files(), "in", Some(path.clone()))).await;
        let named = format!("`ca_file` in destinations.toml names {}", path.display());
        assert!(sentence.contains(words) && sentence.contains(&named), "{words}: {sentence}");
    }
    assert_eq!(store.log(), []);
    Ok(())
}

/// Answers the first bytes that come with these, and ends; what came is the task's result.
async fn answering(answer: &'static [u8]) -> anyhow::Result<(String, JoinHandle<std::io::Result<Vec<u8>>>)> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
    let url = format!("https://localhost:{}", listener.local_addr()?.port());
    let heard = tokio::spawn(async move {
        let (mut line, _) = listener.accept().await?;
        let mut heard = vec![0; 4096];
        let length = line.read(&mut heard).await?;
        heard.truncate(length);
        line.write_all(answer).await?;
        line.shutdown().await?;
        // The other side ends too, by a reset where it has not read all.
        if let Err(error) = line.read_to_end(&mut heard).await {
            tracing::debug!(%error, "the other side ended early");
        }
        Ok(heard)
    });
    Ok((url, heard))
}

#[tokio::test]
async fn del_08_what_answers_without_tls_is_told_and_hears_no_request() -> anyhow::Result<()> {
    const HANDSHAKE_RECORD: u8 = 22;
    let (keys, house) = (KeyFiles::write()?, CaFile::new(&Authority::new("the house")?.pem())?);
    let no_tls = "does not speak TLS; correct `store` in destinations.toml";
    for (answer, words) in [
        (&b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n"[..], Some(no_tls)),
        (b"SSH-2.0-OpenSSH_9.2\r\n", Some(no_tls)),
        // An alert: handshake failure.
        (b"\x15\x03\x03\x00\x02\x02\x28", Some("agree on no TLS")),
        // It may only just be starting.
        (b"", None),
    ] {
        let (url, heard) = answering(answer).await?;
        let place = endpoint(&url, &keys, "in", Some(house.path()));
        let sentence = match words {
            Some(words) => {
                let sentence = told(&place).await;
                assert!(sentence.contains(words), "{sentence}");
                sentence
            }
            None => {
                let error = failed(&place).await;
                assert!(matches!(error, ConnectError::Unreachable { .. }) && !error.needs_attention(), "{error:?}");
                error.to_string()
            }
        };
        let heard = heard.await??;
        assert_eq!(heard.first(), Some(&HANDSHAKE_RECORD), "{sentence}");
        let heard = String::from_utf8_lossy(&heard);
        assert!(!heard.contains(ACCESS_KEY) && !heard.contains("HTTP/1.1\r\n"), "{sentence}");
    }
    Ok(())
}
