//! Mends SFTP packets between the channel and the client library, so that no answer of a server ends the session.
//!
//! The library knows the status codes 0 to 8, wants a status to carry its strings, and decodes handles and names as
//! text. Servers send more: ProFTPD and MINA answer 11 for "exists", old ones leave the strings out, handles are any
//! bytes, names any encoding. What the packets carry through is spelt so that [`super::session`] can read it again:
//! - a status's language tag, of no use here, holds the raw status code in decimal;
//! - a handle that is not text is `hex:` and its bytes, and is turned back on the way out;
//! - a name that is not UTF-8 is percent-escaped, and its long name, of no use either, says [`ESCAPED`].
//!
//! The functions over packets are pure; [`Normalised`] applies them to a stream.

use std::borrow::Cow;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes, BytesMut};
use data_encoding::HEXLOWER_PERMISSIVE;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::remote::line::Line;
use crate::remote::readable::readable;

/// The largest packet that is accepted: what OpenSSH sends and takes at most, and what the library accepts.
pub(super) const LARGEST_PACKET: usize = 256 * 1024;
/// Marks a name that had to be escaped.
pub(super) const ESCAPED: &str = "escaped";
/// Opens a handle that is spelt in hexadecimal.
const HEX: &str = "hex:";

const CLOSE: u8 = 4;
const READ: u8 = 5;
const WRITE: u8 = 6;
const FSTAT: u8 = 8;
const FSETSTAT: u8 = 10;
const READDIR: u8 = 12;
const STATUS: u8 = 101;
const HANDLE: u8 = 102;
const NAME: u8 = 104;
const ATTRS: u8 = 105;
const EXTENDED: u8 = 200;
const FSYNC: &[u8] = b"fsync@openssh.com";

/// The highest status code of protocol version 3, and the one that stands for "failure".
const HIGHEST_CODE: u32 = 8;
const FAILURE: u32 = 4;
const ATTR_EXTENDED: u32 = 0x8000_0000;

/// What cannot be mended: the stream is out of step, and the session ends.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    #[error("the server announced a packet of {bytes} bytes; {LARGEST_PACKET} are accepted")]
    TooLong { bytes: usize },
    #[error("the server sent a packet without content")]
    Empty,
    #[error("the server sent a packet of type {kind} that ends too early")]
    CutShort { kind: u8 },
}

/// A packet from the server, without its length; `None` if it can stay as it is.
pub fn reply(packet: &[u8]) -> Result<Option<Vec<u8>>, Malformed> {
    let (&kind, body) = packet.split_first().ok_or(Malformed::Empty)?;
    let fields = Fields(body);
    let normal = match kind {
        STATUS => status(fields).map(Normal::Rewritten),
        HANDLE => handle(fields),
        NAME => names(fields).map(Normal::Rewritten),
        ATTRS => attributes_alone(fields),
        _ => Some(Normal::AsItIs),
    };
    match normal.ok_or(Malformed::CutShort { kind })? {
        Normal::AsItIs => Ok(None),
        Normal::Rewritten(packet) => Ok(Some(packet)),
    }
}

/// A packet to the server, without its length; `None` if it can stay as it is.
pub fn request(packet: &[u8]) -> Option<Vec<u8>> {
    let (&kind, body) = packet.split_first()?;
    let mut fields = Fields(body);
    let id = fields.u32()?;
    let before = match kind {
        CLOSE | READ | WRITE | FSTAT | FSETSTAT | READDIR => None,
        EXTENDED => match fields.string()? {
            FSYNC => Some(FSYNC),
            _ => return None,
        },
        _ => return None,
    };
    let raw = raw_handle(fields.string()?)?;
    let mut out = vec![kind];
    put_u32(&mut out, id);
    if let Some(name) = before {
        put_string(&mut out, name);
    }
    put_string(&mut out, &raw);
    out.extend_from_slice(fields.0);
    Some(out)
}

/// The length that a handle has on the wire.
pub(super) fn handle_length(handle: &str) -> usize {
    raw_handle(handle.as_bytes()).map_or(handle.len(), |raw| raw.len())
}

/// The raw code that [`reply`] wrote into a status's language tag.
pub(super) fn raw_code(language_tag: &str) -> Option<u32> {
    language_tag.parse().ok()
}

/// What a reply that was not cut short becomes.
enum Normal {
    AsItIs,
    Rewritten(Vec<u8>),
}

fn status(mut fields: Fields<'_>) -> Option<Vec<u8>> {
    let (id, code) = (fields.u32()?, fields.u32()?);
    // Without a message, or with one whose announced length runs past the packet, what is left is all there is.
    let message = match fields.u32() {
        Some(length) => fields.0.get(..length as usize).unwrap_or(fields.0),
        None => &[],
    };
    let mut out = vec![STATUS];
    put_u32(&mut out, id);
    put_u32(&mut out, if code > HIGHEST_CODE { FAILURE } else { code });
    put_string(&mut out, message);
    put_string(&mut out, code.to_string().as_bytes());
    Some(out)
}

fn handle(mut fields: Fields<'_>) -> Option<Normal> {
    let (id, raw) = (fields.u32()?, fields.string()?);
    if std::str::from_utf8(raw).is_ok_and(|text| !text.starts_with(HEX)) {
        return Some(Normal::AsItIs);
    }
    let mut out = vec![HANDLE];
    put_u32(&mut out, id);
    put_string(&mut out, format!("{HEX}{}", HEXLOWER_PERMISSIVE.encode(raw)).as_bytes());
    Some(Normal::Rewritten(out))
}

fn raw_handle(handle: &[u8]) -> Option<Vec<u8>> {
    HEXLOWER_PERMISSIVE.decode(handle.strip_prefix(HEX.as_bytes())?).ok()
}

fn names(mut fields: Fields<'_>) -> Option<Vec<u8>> {
    let (id, count) = (fields.u32()?, fields.u32()?);
    let mut out = vec![NAME];
    put_u32(&mut out, id);
    put_u32(&mut out, count);
    for _ in 0..count {
        let name = fields.string()?;
        fields.string()?;
        let shown = readable(name);
        put_string(&mut out, shown.as_bytes());
        put_string(&mut out, if matches!(shown, Cow::Owned(_)) { ESCAPED.as_bytes() } else { b"" });
        attributes(&mut fields, &mut out)?;
    }
    Some(out)
}

fn attributes_alone(mut fields: Fields<'_>) -> Option<Normal> {
    let id = fields.u32()?;
    if Fields(fields.0).u32()? & ATTR_EXTENDED == 0 {
        return Some(Normal::AsItIs);
    }
    let mut out = vec![ATTRS];
    put_u32(&mut out, id);
    attributes(&mut fields, &mut out)?;
    Some(Normal::Rewritten(out))
}

/// Copies one set of attributes without its extended pairs, which the library would take for the next entry.
fn attributes(fields: &mut Fields<'_>, out: &mut Vec<u8>) -> Option<()> {
    let flags = fields.u32()?;
    put_u32(out, flags & !ATTR_EXTENDED);
    // Size; user and group; permissions; times.
    for (flag, bytes) in [(1, 8), (2, 8), (4, 4), (8, 8)] {
        if flags & flag != 0 {
            out.extend_from_slice(fields.take(bytes)?);
        }
    }
    if flags & ATTR_EXTENDED != 0 {
        for _ in 0..fields.u32()? {
            fields.string()?;
            fields.string()?;
        }
    }
    Some(())
}

/// The fields of a packet that are not yet read.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn take(&mut self, bytes: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(bytes)?;
        self.0 = rest;
        Some(taken)
    }

    fn u32(&mut self) -> Option<u32> {
        Some(u32::from_be_bytes(self.take(4)?.try_into().ok()?))
    }

    fn string(&mut self) -> Option<&'a [u8]> {
        let length = self.u32()?;
        self.take(length as usize)
    }
}

fn put_u32(out: &mut Vec<u8>, value: u32) {
    out.extend_from_slice(&value.to_be_bytes());
}

/// Every string here comes from a packet of bounded length, so its length fits.
fn put_string(out: &mut Vec<u8>, value: &[u8]) {
    put_u32(out, u32::try_from(value.len()).unwrap_or(u32::MAX));
    out.extend_from_slice(value);
}

/// The packet with its length before it.
fn framed(packet: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(4 + packet.len());
    put_string(&mut out, packet);
    out
}

/// The announced length of a packet that begins here, once its four bytes are there.
fn announced(bytes: &[u8]) -> Option<usize> {
    Fields(bytes).u32().map(|length| length as usize)
}

/// How far the packet that is being written has come.
enum Writing {
    /// Between two packets.
    Between,
    /// A packet that stays as it is goes straight through.
    Through { left: usize },
    /// A packet that arrives in pieces is collected.
    Collecting { held: Vec<u8> },
    /// A mended packet goes out; `taken` bytes are reported as written once it is gone.
    Sending { packet: Bytes, taken: usize },
}

/// A stream of SFTP packets, mended in both directions.
pub(super) struct Normalised<S> {
    inner: S,
    line: Arc<Line>,
    arrived: BytesMut,
    ready: Bytes,
    scratch: Box<[u8]>,
    writing: Writing,
}

impl<S> Normalised<S> {
    pub(super) fn new(inner: S, line: Arc<Line>) -> Self {
        Self {
            inner,
            line,
            arrived: BytesMut::new(),
            ready: Bytes::new(),
            scratch: vec![0; 32 * 1024].into_boxed_slice(),
            writing: Writing::Between,
        }
    }

    /// Takes the next whole packet out of what has arrived, mended; false if it is not yet whole.
    fn take_packet(&mut self) -> Result<bool, Malformed> {
        let Some(length) = announced(&self.arrived) else { return Ok(false) };
        if length > LARGEST_PACKET {
            return Err(Malformed::TooLong { bytes: length });
        }
        if self.arrived.len() < 4 + length {
            return Ok(false);
        }
        let whole = self.arrived.split_to(4 + length).freeze();
        self.ready = match reply(whole.get(4..).unwrap_or_default())? {
            Some(mended) => framed(&mended).into(),
            None => whole,
        };
        Ok(true)
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Normalised<S> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        loop {
            if this.ready.has_remaining() {
                let bytes = this.ready.split_to(this.ready.len().min(buf.remaining()));
                buf.put_slice(&bytes);
                return Poll::Ready(Ok(()));
            }
            match this.take_packet() {
                Ok(true) => continue,
                Ok(false) => {}
                Err(malformed) => {
                    this.line.fail(malformed.to_string());
                    return Poll::Ready(Err(io::Error::new(io::ErrorKind::InvalidData, malformed)));
                }
            }
            let mut more = ReadBuf::new(&mut this.scratch);
            ready!(Pin::new(&mut this.inner).poll_read(cx, &mut more))?;
            if more.filled().is_empty() {
                return Poll::Ready(Ok(()));
            }
            this.arrived.extend_from_slice(more.filled());
        }
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Normalised<S> {
    /// A write reports its last bytes only once the packet is handed on: the library never flushes.
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        loop {
            match &mut this.writing {
                Writing::Between => {
                    let whole = announced(buf).and_then(|length| buf.get(..4 + length));
                    this.writing = match whole {
                        None => Writing::Collecting { held: Vec::new() },
                        Some(whole) => match request(whole.get(4..).unwrap_or_default()) {
                            None => Writing::Through { left: whole.len() },
                            Some(mended) => Writing::Sending { packet: framed(&mended).into(), taken: whole.len() },
                        },
                    };
                }
                Writing::Through { left } => {
                    let part = buf.get(..*left).unwrap_or(buf);
                    let written = ready!(Pin::new(&mut this.inner).poll_write(cx, part))?;
                    *left = left.saturating_sub(written);
                    if *left == 0 {
                        this.writing = Writing::Between;
                    }
                    return Poll::Ready(Ok(written));
                }
                Writing::Collecting { held } => {
                    let wanted = announced(held).map_or(4, |length| 4 + length).saturating_sub(held.len());
                    let part = buf.get(..wanted).unwrap_or(buf);
                    held.extend_from_slice(part);
                    if announced(held).is_none_or(|length| held.len() < 4 + length) {
                        return Poll::Ready(Ok(part.len()));
                    }
                    let packet = match request(held.get(4..).unwrap_or_default()) {
                        Some(mended) => framed(&mended).into(),
                        None => std::mem::take(held).into(),
                    };
                    this.writing = Writing::Sending { packet, taken: part.len() };
                }
                Writing::Sending { packet, taken } => {
                    while packet.has_remaining() {
                        let written = ready!(Pin::new(&mut this.inner).poll_write(cx, packet))?;
                        if written == 0 {
                            return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
                        }
                        packet.advance(written);
                    }
                    let taken = *taken;
                    this.writing = Writing::Between;
                    return Poll::Ready(Ok(taken));
                }
            }
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().inner).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().inner).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests;
