//! SFTP version 3 as bytes.

use tokio::io::{AsyncRead, AsyncReadExt as _};

use super::error::SimulatedError;

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
    pub fn id(&self) -> Result<u32, SimulatedError> {
        self.number(0)
    }

    /// Of a STATUS.
    pub fn status_code(&self) -> Result<u32, SimulatedError> {
        self.number(4)
    }

    /// The first string after the id: a path or a handle.
    pub fn first_string(&self) -> Result<&[u8], SimulatedError> {
        let length = usize::try_from(self.number(4)?).unwrap_or(usize::MAX);
        let end = length.saturating_add(8);
        self.body.get(8..end).ok_or_else(|| packet_fault("a packet ends inside its first string".to_owned()))
    }

    fn number(&self, at: usize) -> Result<u32, SimulatedError> {
        let bytes = self.body.get(at..).and_then(|rest| rest.first_chunk::<4>());
        let bytes = bytes.ok_or_else(|| packet_fault(format!("a packet of type {} is too short", self.kind)))?;
        Ok(u32::from_be_bytes(*bytes))
    }
}

/// The next packet; `None` at the end of the stream.
pub async fn read(stream: &mut (impl AsyncRead + Unpin)) -> Result<Option<Request>, SimulatedError> {
    let length = match stream.read_u32().await {
        Ok(length) => length,
        Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    if !(1..=PACKET_LIMIT_BYTES).contains(&length) {
        return Err(packet_fault(format!("a packet of {length} bytes")));
    }
    let kind = stream.read_u8().await?;
    let mut body = vec![0; usize::try_from(length - 1).unwrap_or(usize::MAX)];
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

fn packet_fault(what: String) -> SimulatedError {
    SimulatedError::Packet { what }
}
