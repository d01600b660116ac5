//! Answers rewritten on their way out: what real servers send and russh-sftp's server cannot.

use std::collections::{BTreeMap, HashMap};

use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _, DuplexStream};

use super::error::SimulatedError;
use super::packets::{self, Request, packet, request};

/// Handles of `ProFTPD`'s kind are text; OpenSSH's are not, and neither are these.
const BINARY_HANDLE: &[u8] = &[0x00, 0x85, 0xff, 0xfe];

const BUFFER_BYTES: usize = 1024 * 1024;

/// Nothing is changed by default.
#[derive(Debug, Clone, Default)]
pub struct Wire {
    /// For a request of this type (the packet's type byte, see [`request`]), the code with which it is refused.
    pub refusal_codes: BTreeMap<u8, u32>,
    /// Statuses without text and language, as the oldest servers send them.
    pub bare_statuses: bool,
    /// Handles that are no UTF-8.
    pub binary_handles: bool,
    /// One more name in each listing, in these very bytes.
    pub foreign_name: Option<Vec<u8>>,
}

impl Wire {
    pub fn changes_nothing(&self) -> bool {
        self.refusal_codes.is_empty() && !self.bare_statuses && !self.binary_handles && self.foreign_name.is_none()
    }

    /// Puts itself between the client's stream and the server, which gets the other end.
    pub fn between<S>(self, client: S) -> DuplexStream
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let (ours, servers) = tokio::io::duplex(BUFFER_BYTES);
        tokio::spawn(async move {
            if let Err(error) = self.relay(client, ours).await {
                tracing::debug!(%error, "a rewritten line ended");
            }
        });
        servers
    }

    async fn relay<S>(self, client: S, server: DuplexStream) -> Result<(), SimulatedError>
    where
        S: AsyncRead + AsyncWrite + Send + Unpin,
    {
        let (mut from_client, mut to_client) = tokio::io::split(client);
        let (mut from_server, mut to_server) = tokio::io::split(server);
        // The server answers every request in order, but INIT has no id; so requests are told apart by id.
        let kinds = std::sync::Mutex::new(HashMap::<u32, u8>::new());
        let inbound = async {
            while let Some(mut asked) = packets::read(&mut from_client).await? {
                if asked.kind != request::INIT {
                    super::files::locked(&kinds).insert(asked.id()?, asked.kind);
                    self.rewrite_request(&mut asked);
                }
                to_server.write_all(&packet(asked.kind, &asked.body)).await?;
            }
            to_server.shutdown().await?;
            Ok::<(), SimulatedError>(())
        };
        let outbound = async {
            while let Some(mut answer) = packets::read(&mut from_server).await? {
                let kind = answer.id().ok().and_then(|id| super::files::locked(&kinds).get(&id).copied());
                self.rewrite_answer(&mut answer, kind)?;
                to_client.write_all(&packet(answer.kind, &answer.body)).await?;
                to_client.flush().await?;
            }
            to_client.shutdown().await?;
            Ok::<(), SimulatedError>(())
        };
        tokio::try_join!(inbound, outbound)?;
        Ok(())
    }

    fn rewrite_request(&self, asked: &mut Request) {
        let has_handle = [
            request::CLOSE,
            request::READ,
            request::WRITE,
            request::FSTAT,
            request::FSETSTAT,
            request::READDIR,
            request::EXTENDED,
        ];
        if !self.binary_handles || !has_handle.contains(&asked.kind) {
            return;
        }
        // The handle is the only string that can contain these bytes: they are no UTF-8.
        let Some(at) = asked.body.windows(BINARY_HANDLE.len()).position(|bytes| bytes == BINARY_HANDLE) else { return };
        // Its length stands in the four bytes before it.
        let Some(length) = at.checked_sub(4).and_then(|start| asked.body.get_mut(start..at)) else { return };
        let shorter = length.iter().fold(0_u32, |sum, byte| (sum << 8) | u32::from(*byte)) - 4;
        length.copy_from_slice(&shorter.to_be_bytes());
        asked.body.drain(at..at + BINARY_HANDLE.len());
    }

    fn rewrite_answer(&self, answer: &mut Request, asked: Option<u8>) -> Result<(), SimulatedError> {
        match answer.kind {
            request::STATUS => {
                let id = answer.id()?;
                let code = answer.status_code()?;
                let told = asked
                    .filter(|_| code != 0 && code != 1)
                    .and_then(|kind| self.refusal_codes.get(&kind).copied())
                    .unwrap_or(code);
                let text = answer.body.get(8..).unwrap_or_default().to_vec();
                answer.body = [id.to_be_bytes(), told.to_be_bytes()].concat();
                if !self.bare_statuses {
                    answer.body.extend(text);
                }
            }
            request::HANDLE if self.binary_handles => {
                let id = answer.id()?;
                let text = answer.body.get(8..).unwrap_or_default();
                answer.body = [&id.to_be_bytes()[..], &packets::string(&[BINARY_HANDLE, text].concat())].concat();
            }
            request::NAME if asked == Some(request::READDIR) => {
                if let (Some(name), Some(count)) = (&self.foreign_name, answer.body.get_mut(4..8)) {
                    let more = count.iter().fold(0_u32, |sum, byte| (sum << 8) | u32::from(*byte)) + 1;
                    count.copy_from_slice(&more.to_be_bytes());
                    answer.body.extend(packets::string(name));
                    answer.body.extend(packets::string(b""));
                    // No attributes.
                    answer.body.extend(0_u32.to_be_bytes());
                }
            }
            _ => {}
        }
        Ok(())
    }
}
