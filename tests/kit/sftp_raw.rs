//! A server that answers each request with the very bytes that a test wrote.

use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
pub use waybill::remote::simulated::packets::{Request, packet, read, request, string};

use crate::ssh::{Opened, SshServer};

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

/// Attributes with nothing but the mode of a directory.
pub fn directory(id: u32) -> Vec<u8> {
    const HAS_MODE: u32 = 4;
    const MODE: u32 = 0o40_755;
    packet(request::ATTRS, &[id.to_be_bytes(), HAS_MODE.to_be_bytes(), MODE.to_be_bytes()].concat())
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
    let server = SshServer::start(move |Opened { stream, line }| {
        let script = script.clone();
        tokio::spawn(async move {
            if let Err(error) = serve(stream, script).await {
                tracing::debug!(%error, connection = line.connection, "a raw SFTP session ended");
            }
        });
    })
    .await?;
    Ok(server)
}
