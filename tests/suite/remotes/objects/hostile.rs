//! A store that answers with more than anybody asked for: it is cut off, and does not fill this process's memory.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use waybill::remote::{Session, SessionLimits};
use waybill_tests::ObjectStore;

use super::endpoint;

/// What it would send if it were let.
const MOST_SENT: usize = 256 * 1024 * 1024;
/// What may lie in buffers on the way when it is cut off, with the answer that was taken.
const MUCH: usize = 48 * 1024 * 1024;

const NOTHING_LISTED: &str = "<?xml version=\"1.0\" encoding=\"UTF-8\"?><ListBucketResult><Name>deliveries</Name><Prefix></Prefix>\
    <KeyCount>0</KeyCount><MaxKeys>1</MaxKeys><IsTruncated>false</IsTruncated></ListBucketResult>";

/// Answers each request with this beginning and then without end, but for the listing that opens a session. Returns its address,
/// and how much it could send.
async fn endless(begins: &'static str) -> anyhow::Result<(String, Arc<AtomicUsize>)> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
    let url = format!("http://127.0.0.1:{}", listener.local_addr()?.port());
    let sent = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&sent);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(answer(stream, begins, Arc::clone(&counted)));
        }
    });
    Ok((url, sent))
}

async fn answer(mut stream: TcpStream, begins: &str, sent: Arc<AtomicUsize>) -> std::io::Result<()> {
    let mut request = Vec::new();
    while !request.ends_with(b"\r\n\r\n") {
        request.push(stream.read_u8().await?);
    }
    if String::from_utf8_lossy(&request).contains("waybill-asks-for-an-answer") {
        let length = NOTHING_LISTED.len();
        let whole = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{NOTHING_LISTED}");
        return stream.write_all(whole.as_bytes()).await;
    }
    stream.write_all(begins.as_bytes()).await?;
    let block = vec![b' '; 64 * 1024];
    while sent.load(Ordering::Relaxed) < MOST_SENT {
        stream.write_all(&block).await?;
        sent.fetch_add(block.len(), Ordering::Relaxed);
    }
    Ok(())
}

#[tokio::test]
async fn bad_input_an_answer_without_end_is_cut_off() -> anyhow::Result<()> {
    let keys = ObjectStore::start().await?;
    let (url, sent) = endless("HTTP/1.1 200 OK\r\nContent-Type: application/xml\r\n\r\n").await?;
    let session = Session::connect(&endpoint(&url, keys.key_files(), "", None), &SessionLimits::default()).await?;
    assert!(session.list("", "", 10, |_| true).await.is_err(), "it was taken for a listing");
    assert!(sent.load(Ordering::Relaxed) < MUCH, "{} bytes of a listing", sent.load(Ordering::Relaxed));

    let (url, sent) = endless(
        "HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 0-9/1000000000\r\nContent-Length: 1000000000\r\n\
         Last-Modified: Mon, 02 Mar 2026 08:15:00 GMT\r\nETag: \"e\"\r\n\r\n",
    )
    .await?;
    let session = Session::connect(&endpoint(&url, keys.key_files(), "", None), &SessionLimits::default()).await?;
    let read = session.read("k.csv", 0, 10).await?;
    assert_eq!(read, b"          ");
    assert!(sent.load(Ordering::Relaxed) < MUCH, "{} bytes of ten", sent.load(Ordering::Relaxed));
    Ok(())
}
