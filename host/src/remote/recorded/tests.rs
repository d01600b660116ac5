//! Sessions in a directory, recorded and held again.

use tokio_util::sync::CancellationToken;

use super::*;
use crate::job::facts::{Entry, Found};
use crate::remote::{self, DirectoryEndpoint, Endpoint, SessionLimits};
use crate::spool::{Spool, SpoolFile};

async fn recording(directory: &std::path::Path) -> (Session, remote::Session) {
    let endpoint = Endpoint::Directory(DirectoryEndpoint { path: directory.to_owned(), marker: None });
    let server = remote::Session::connect(&endpoint, &SessionLimits::default()).await.unwrap();
    let session = Session::recording(server);
    (session.clone(), remote::Session::Recorded(session))
}

async fn file(spool: &Spool, content: &[u8]) -> SpoolFile {
    let mut draft = spool.create(1 << 20).unwrap();
    draft.write(content).await.unwrap();
    draft.finish().await.unwrap()
}

async fn bytes(over: &remote::Session, name: &str) -> Option<u64> {
    match over.stat(name).await.unwrap() {
        Found::Present(Entry { bytes, .. }) => bytes,
        other => panic!("{name}: {other:?}"),
    }
}

#[tokio::test]
async fn plg_06_of_the_built_file_a_record_keeps_that_it_was_that() {
    let (directory, spools) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let spool = Spool::open(spools.path()).unwrap();
    let (first, lost) = (file(&spool, b"number;name\n1;Ada Lovelace\n").await, CancellationToken::new());
    let (session, over) = recording(directory.path()).await;
    over.upload("t", &first, &lost).await.unwrap();
    over.hardlink("t", "final").await.unwrap();
    assert_eq!(bytes(&over, "final").await, Some(first.bytes()));
    // As long as the built file, and another.
    over.create("small", vec![b'x'; usize::try_from(first.bytes()).unwrap()]).await.unwrap();
    assert_eq!(bytes(&over, "small").await, Some(first.bytes()));
    over.read("final", 12, 100).await.unwrap();
    over.read_digest("final", first.bytes()).await.unwrap();
    over.read("small", 0, 3).await.unwrap();
    let steps = session.recorded().unwrap();
    let text = serde_json::to_string(&steps).unwrap();
    assert!(!text.contains("Ada") && !text.contains(&first.sha256().to_string()), "{text}");
    assert_eq!((unfounded(&steps), steps.len()), (None, 8));

    let other = file(&spool, b"number;name\n1;Grace Hopper, of the navy\n").await;
    let again = Session::replaying(session.described(), steps);
    let over = remote::Session::Recorded(again.clone());
    over.upload("t", &other, &lost).await.unwrap();
    over.hardlink("t", "final").await.unwrap();
    assert_eq!(bytes(&over, "final").await, Some(other.bytes()));
    over.create("small", vec![b'x'; usize::try_from(first.bytes()).unwrap()]).await.unwrap();
    assert_eq!(bytes(&over, "small").await, Some(first.bytes()));
    assert_eq!(over.read("final", 12, 100).await.unwrap(), b"1;Grace Hopper, of the navy\n");
    assert_eq!(over.read_digest("final", other.bytes()).await.unwrap(), (other.sha256(), other.bytes()));
    let left = again.difference().unwrap();
    assert_eq!((left.number, left.asked), (8, None));
    assert_eq!(over.read("small", 0, 3).await.unwrap(), b"xxx");
    assert_eq!(again.difference(), None);

    assert!(over.remove("small").await.is_err() && !over.is_usable());
    let one_more = again.difference().unwrap();
    assert_eq!((one_more.number, one_more.recorded), (9, None));
}

#[tokio::test]
async fn plg_06_requests_that_overlap_or_are_given_up_make_no_record() {
    let directory = tempfile::tempdir().unwrap();
    let (session, over) = recording(directory.path()).await;
    assert_eq!(over.stat("a").await, Ok(Found::Absent));
    assert_eq!(session.recorded().map(|steps| steps.len()), Ok(1));
    let (_, _) = tokio::join!(over.stat("a"), over.stat("b"));
    assert!(session.recorded().unwrap_err().contains("request 3 was made while another one"));

    let (session, over) = recording(directory.path()).await;
    let mut given_up = Box::pin(over.stat("a"));
    assert!(futures::poll!(given_up.as_mut()).is_pending());
    drop(given_up);
    assert_eq!(session.recorded(), Err("a request was not waited for".to_owned()));
}
