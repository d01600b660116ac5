//! The normaliser over packets as servers send them, and over seeded bytes that no server should.

use russh_sftp::client::RawSftpSession;
use russh_sftp::client::error::Error;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};

use super::*;

fn string(bytes: &[u8]) -> Vec<u8> {
    framed(bytes)
}

fn packet(kind: u8, parts: &[&[u8]]) -> Vec<u8> {
    [&[kind][..], &parts.concat()].concat()
}

#[test]
fn del_12_a_status_above_eight_is_a_failure_with_its_raw_code() {
    let exists = packet(STATUS, &[&7_u32.to_be_bytes(), &11_u32.to_be_bytes(), &string(b"exists"), &string(b"en")]);
    let mended = reply(&exists).unwrap().unwrap();
    assert_eq!(
        mended,
        packet(STATUS, &[&7_u32.to_be_bytes(), &FAILURE.to_be_bytes(), &string(b"exists"), &string(b"11")])
    );
}

#[test]
fn del_12_a_status_without_its_strings_is_completed() {
    let whole = packet(STATUS, &[&7_u32.to_be_bytes(), &0_u32.to_be_bytes(), &string(b""), &string(b"0")]);
    let bare = packet(STATUS, &[&7_u32.to_be_bytes(), &0_u32.to_be_bytes()]);
    assert_eq!(reply(&bare).unwrap(), Some(whole));
    let lying = packet(STATUS, &[&7_u32.to_be_bytes(), &4_u32.to_be_bytes(), &900_u32.to_be_bytes(), b"no"]);
    let mended = reply(&lying).unwrap().unwrap();
    assert!(mended.windows(2).any(|bytes| bytes == b"no"), "the words that are there are kept");
}

#[test]
fn del_12_handles_are_spelt_in_text_and_come_back_as_they_were() {
    for raw in [&b"\x00\x85\xff"[..], b"hex:00", b"", b"h1", b"\0\0\0\x05"] {
        let told = packet(HANDLE, &[&1_u32.to_be_bytes(), &string(raw)]);
        let mended = reply(&told).unwrap().unwrap_or_else(|| told.clone());
        let spelt = Fields(&mended[5..]).string().unwrap();
        let text = std::str::from_utf8(spelt).unwrap();
        assert_eq!(handle_length(text), raw.len());
        let write = packet(WRITE, &[&2_u32.to_be_bytes(), &string(spelt), &9_u64.to_be_bytes(), &string(b"data")]);
        let wire = packet(WRITE, &[&2_u32.to_be_bytes(), &string(raw), &9_u64.to_be_bytes(), &string(b"data")]);
        assert_eq!(request(&write).unwrap_or(write), wire);
        let fsync = packet(EXTENDED, &[&3_u32.to_be_bytes(), &string(FSYNC), &string(spelt)]);
        let wire = packet(EXTENDED, &[&3_u32.to_be_bytes(), &string(FSYNC), &string(raw)]);
        assert_eq!(request(&fsync).unwrap_or(fsync), wire);
    }
}

#[test]
fn del_12_a_name_that_is_not_utf_8_is_escaped_and_marked() {
    let attributes =
        [&0x8000_0001_u32.to_be_bytes()[..], &5_u64.to_be_bytes(), &1_u32.to_be_bytes(), &string(b"x"), &string(b"y")]
            .concat();
    let entry = |name: &[u8], long: &[u8]| [string(name), string(long), attributes.clone()].concat();
    let told = packet(
        NAME,
        &[
            &1_u32.to_be_bytes(),
            &2_u32.to_be_bytes(),
            &entry(b"caf\xe9 50%", b"long"),
            &entry("café".as_bytes(), b"long"),
        ],
    );
    let plain = [&1_u32.to_be_bytes()[..], &5_u64.to_be_bytes()].concat();
    let mended = packet(
        NAME,
        &[
            &1_u32.to_be_bytes(),
            &2_u32.to_be_bytes(),
            &string(b"caf%E9 50%25"),
            &string(ESCAPED.as_bytes()),
            &plain,
            &string("café".as_bytes()),
            &string(b""),
            &plain,
        ],
    );
    assert_eq!(reply(&told).unwrap(), Some(mended));
}

#[test]
fn del_12_no_bytes_make_it_panic_and_what_it_mends_can_be_read() {
    use rand::{RngExt as _, SeedableRng as _};
    let mut random = rand::rngs::StdRng::seed_from_u64(12);
    for round in 0..20_000_u32 {
        let length = random.random_range(0..80);
        let mut bytes: Vec<u8> = (0..length).map(|_| random.random()).collect();
        if let Some(kind) = bytes.first_mut() {
            let kinds = [STATUS, HANDLE, NAME, ATTRS, WRITE, EXTENDED, CLOSE, 103, *kind];
            *kind = kinds[round as usize % kinds.len()];
        }
        // Small lengths inside, so that more than the first field is reached.
        for at in (5..bytes.len()).step_by(4) {
            if random.random_bool(0.7) {
                let end = (at + 3).min(bytes.len());
                bytes[at..end].fill(0);
            }
        }
        if let Ok(Some(mended)) = reply(&bytes) {
            let again = reply(&mended).unwrap();
            if mended[0] != HANDLE {
                assert!(again.is_none() || mended[0] == NAME || mended[0] == STATUS);
            }
        }
        let _ = request(&bytes);
    }
}

/// A server that answers each request as `answer` says.
fn serve(mut stream: DuplexStream, answer: impl Fn(u8, &[u8]) -> Vec<u8> + Send + 'static) {
    tokio::spawn(async move {
        while let Ok(length) = stream.read_u32().await {
            let mut request = vec![0; length as usize];
            if stream.read_exact(&mut request).await.is_err() {
                return;
            }
            let bytes = match request[0] {
                1 => framed(&packet(2, &[&3_u32.to_be_bytes()])),
                kind => answer(kind, &request[1..]),
            };
            if stream.write_all(&bytes).await.is_err() {
                return;
            }
        }
    });
}

async fn session(answer: impl Fn(u8, &[u8]) -> Vec<u8> + Send + 'static) -> (RawSftpSession, Arc<Line>) {
    // Narrow, so that packets arrive and leave in pieces.
    let (near, far) = tokio::io::duplex(7);
    serve(far, answer);
    let line = Arc::new(Line::default());
    let raw = RawSftpSession::new(Normalised::new(near, Arc::clone(&line)));
    raw.init().await.unwrap();
    (raw, line)
}

#[tokio::test]
async fn del_12_the_session_survives_what_the_library_cannot_read() {
    let (raw, line) = session(|kind, body| {
        let id = &body[..4];
        framed(&match kind {
            3 => packet(HANDLE, &[id, &string(b"\x00\x85\xff")]),
            WRITE => {
                assert_eq!(&body[4..11], &string(b"\x00\x85\xff")[..], "the server's own handle comes back");
                packet(STATUS, &[id, &0_u32.to_be_bytes()])
            }
            _ => packet(STATUS, &[id, &11_u32.to_be_bytes(), &string(b"File already exists"), &string(b"en-US")]),
        })
    })
    .await;
    let Err(Error::Status(status)) = raw.rename("a", "b").await else { panic!("the refusal was lost") };
    assert_eq!((raw_code(&status.language_tag), status.error_message.as_str()), (Some(11), "File already exists"));
    let attributes = russh_sftp::protocol::FileAttributes::empty();
    let handle = raw.open("a", russh_sftp::protocol::OpenFlags::WRITE, attributes).await.unwrap().handle;
    raw.write(handle, 0, vec![7; 100]).await.unwrap();
    assert!(line.is_up());
}

#[tokio::test]
async fn del_12_a_giant_packet_ends_the_session_with_its_cause() {
    let (raw, line) = session(|_, _| u32::MAX.to_be_bytes().to_vec()).await;
    assert!(raw.stat("a").await.is_err());
    assert_eq!(line.cause(), Malformed::TooLong { bytes: u32::MAX as usize }.to_string());
}
