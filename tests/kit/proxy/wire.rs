//! Framing of PostgreSQL's protocol, version 3: a tag, a length that counts itself, a body.

use std::io;

use tokio::io::{AsyncRead, AsyncReadExt};

/// A message as it stands on the wire.
pub struct Message {
    /// 0 for the first message of a connection, which has none.
    pub tag: u8,
    pub bytes: Vec<u8>,
}

const LENGTH: usize = 4;
/// Far above what a test sends; a wrong length would otherwise be believed.
const LONGEST: usize = 64 << 20;

/// The next message, or `None` at the end of the connection.
pub async fn read(from: &mut (impl AsyncRead + Unpin)) -> io::Result<Option<Message>> {
    let mut tag = [0];
    if from.read(&mut tag).await? == 0 {
        return Ok(None);
    }
    let [tag] = tag;
    let bytes = with_length(from, vec![tag]).await?;
    Ok(Some(Message { tag, bytes }))
}

/// A connection's first message: start, or a request to cancel or to encrypt.
pub async fn read_first(from: &mut (impl AsyncRead + Unpin)) -> io::Result<Message> {
    Ok(Message { tag: 0, bytes: with_length(from, Vec::new()).await? })
}

async fn with_length(from: &mut (impl AsyncRead + Unpin), mut bytes: Vec<u8>) -> io::Result<Vec<u8>> {
    let length = from.read_u32().await?;
    let body = usize::try_from(length).ok().and_then(|length| length.checked_sub(LENGTH));
    let body = body.filter(|body| *body <= LONGEST).ok_or_else(|| broken("a message of an impossible length"))?;
    bytes.extend(length.to_be_bytes());
    let head = bytes.len();
    bytes.resize(head + body, 0);
    from.read_exact(bytes.get_mut(head..).unwrap_or_default()).await?;
    Ok(bytes)
}

impl Message {
    /// What follows tag and length.
    pub fn body(&self) -> &[u8] {
        let head = LENGTH + usize::from(self.tag != 0);
        self.bytes.get(head..).unwrap_or_default()
    }

    /// A message with this body.
    pub fn new(tag: u8, body: &[u8]) -> io::Result<Self> {
        let length = u32::try_from(body.len() + LENGTH).map_err(|_| broken("a message that is too long"))?;
        let mut bytes = vec![tag];
        bytes.extend(length.to_be_bytes());
        bytes.extend(body);
        Ok(Self { tag, bytes })
    }
}

/// The text up to the next zero byte, and what follows it.
pub fn text(body: &[u8]) -> io::Result<(&str, &[u8])> {
    let end = body.iter().position(|byte| *byte == 0).ok_or_else(|| broken("a text without its end"))?;
    let (text, rest) = body.split_at(end);
    let text = std::str::from_utf8(text).map_err(|_| broken("a text that is not UTF-8"))?;
    Ok((text, rest.get(1..).unwrap_or_default()))
}

fn broken(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}
