//! SFTP version 3 as bytes: packets, and a server that answers each request with the very bytes that a test wrote.

use std::sync::Arc;

use anyhow::Context;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use crate::ssh::{Opened, SshServer};

/// The type bytes of packets.
pub mod request {
    pub const INIT: u8 = 1;
    pub const VERSION: u8 = 2;
    pub const OPEN: u8 = 3;
    pub const CLOSE: u8 = 4;
    pub const READ: u8 = 5;
    pub const WRITE: u8 = 6;
    pub const LSTAT: u8 = 7;
    pub const FSTAT: u8 = 8;
    pub const SETSTAT: u8 = 9;
    pub const FSETSTAT: u8 = 10;
    pub const OPENDIR: u8 = 11;
    pub const READDIR: u8 = 12;
    pub const REMOVE: u8 = 13;
    pub const REALPATH: u8 = 16;
    pub const STAT: u8 = 17;
    pub const RENAME: u8 = 18;
    pub const STATUS: u8 = 101;
    pub const HANDLE: u8 = 102;
    pub const DATA: u8 = 103;
    pub const NAME: u8 = 104;
    pub const ATTRS: u8 = 105;
    pub const EXTENDED: u8 = 200;
}

/// The longest packet that this side reads.
const PACKET_LIMIT_BYTES: u32 = 1024 * 1024;

/// A packet: its type, and what follows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    pub kind: u8,
    pub body: Vec<u8>,
}

impl Request {
    /// Every packet but INIT and VERSION starts with it.
    pub fn id(&self) -> anyhow::Result<u32> {
        self.number(0)
    }

    /// Of a STATUS.
    pub fn status_code(&self) -> anyhow::Result<u32> {
        self.number(4)
    }

    /// The first string after the id: a path or a handle.
    pub fn first_string(&self) -> anyhow::Result<&[u8]> {
        let length = usize::try_from(self.number(4)?)?;
        self.body.get(8..8 + length).context("a packet ends inside its first string")
    }

    fn number(&self, at: usize) -> anyhow::Result<u32> {
        let bytes =
            self.body.get(at..at + 4).with_context(|| format!("a packet of type {} is too short", self.kind))?;
        Ok(u32::from_be_bytes(bytes.try_into()?))
    }
}

/// The next packet; `None` at the end of the stream.
pub async fn read(stream: &mut (impl AsyncRead + Unpin)) -> anyhow::Result<Option<Request>> {
    let length = match stream.read_u32().await {
        Ok(length) => length,
        Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    anyhow::ensure!((1..=PACKET_LIMIT_BYTES).contains(&length), "a packet of {length} bytes");
    let kind = stream.read_u8().await?;
    let mut body = vec![0; usize::try_from(length - 1)?];
    stream.read_exact(&mut body).await?;
    Ok(Some(Request { kind, body }))
}

/// A packet with its length.
pub fn packet(kind: u8, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len() + 1).unwrap_or(u32::MAX);
    [&length.to_be_bytes()[..], &[kind], body].concat()
}

/// A string with its length, of any bytes.
pub fn string(bytes: &[u8]) -> Vec<u8> {
    let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
    [&length.to_be_bytes()[..], bytes].concat()
}

/// A STATUS of any code, with its two strings.
pub fn status(id: u32, code: u32, text: &str) -> Vec<u8> {
    packet(
        request::STATUS,
        &[&id.to_be_bytes()[..], &code.to_be_bytes(), &string(text.as_bytes()), &string(b"en-US")].concat(),
    )
}

/// A STATUS without strings, as drafts before version 3 had it.
pub fn bare_status(id: u32, code: u32) -> Vec<u8> {
    packet(request::STATUS, &[id.to_be_bytes(), code.to_be_bytes()].concat())
}

pub fn handle(id: u32, handle: &[u8]) -> Vec<u8> {
    packet(request::HANDLE, &[&id.to_be_bytes()[..], &string(handle)].concat())
}

/// Attributes with nothing but a size.
pub fn size(id: u32, bytes: u64) -> Vec<u8> {
    const HAS_SIZE: u32 = 1;
    packet(request::ATTRS, &[&id.to_be_bytes()[..], &HAS_SIZE.to_be_bytes(), &bytes.to_be_bytes()].concat())
}

/// Names without attributes.
pub fn names(id: u32, names: &[&[u8]]) -> Vec<u8> {
    let count = u32::try_from(names.len()).unwrap_or(u32::MAX);
    let mut body = [id.to_be_bytes(), count.to_be_bytes()].concat();
    for name in names {
        body.extend(string(name));
        body.extend(string(b""));
        body.extend(0_u32.to_be_bytes());
    }
    packet(request::NAME, &body)
}

/// VERSION 3 without extensions.
pub fn version() -> Vec<u8> {
    packet(request::VERSION, &3_u32.to_be_bytes())
}

/// What a test wrote: the bytes that answer a request. An empty answer is silence.
pub type Script = Arc<dyn Fn(&Request) -> Vec<u8> + Send + Sync>;

/// Serves a stream by a script until it ends.
pub async fn serve<S>(mut stream: S, script: Script) -> anyhow::Result<()>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    while let Some(asked) = read(&mut stream).await? {
        let answer = if asked.kind == request::INIT { version() } else { script(&asked) };
        stream.write_all(&answer).await?;
        stream.flush().await?;
    }
    Ok(())
}

/// The same behind SSH on 127.0.0.1.
pub async fn start(script: impl Fn(&Request) -> Vec<u8> + Send + Sync + 'static) -> anyhow::Result<SshServer> {
    let script: Script = Arc::new(script);
    SshServer::start(move |Opened { stream, line }| {
        let script = script.clone();
        tokio::spawn(async move {
            if let Err(error) = serve(stream, script).await {
                tracing::debug!(%error, connection = line.connection, "a raw SFTP session ended");
            }
        });
    })
    .await
}
