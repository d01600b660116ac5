//! A line to a partner's server that can be held in the middle of an upload, as a slow one looks from the host.
//!
//! It passes bytes in both directions. Once a client has sent more than a login and a few looks ever take, what it sends is
//! held until it is released: the host is then provably uploading, and nothing rests on how long anything takes.

use std::net::Ipv4Addr;

use anyhow::Context as _;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

/// A login, a proof on scratch names and the looks before an upload take some 20 KiB.
const HOLD_AFTER_BYTES: usize = 512 * 1024;

/// A held line. Dropping it cuts every connection.
pub(super) struct Line {
    port: u16,
    released: watch::Sender<bool>,
    holding: watch::Receiver<bool>,
    _connections: JoinSet<()>,
}

impl Line {
    /// Listens on a free port and passes what comes to the server's port.
    pub async fn start(server: u16) -> anyhow::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.context("no port for the slow line")?;
        let port = listener.local_addr().context("no port for the slow line")?.port();
        let (released, until) = watch::channel(false);
        let (held, holding) = watch::channel(false);
        let mut connections = JoinSet::new();
        connections.spawn(async move {
            let mut open = JoinSet::new();
            while let Ok((client, _)) = listener.accept().await {
                let (until, held) = (until.clone(), held.clone());
                // A cut connection is what its two ends see; there is nothing else to report.
                open.spawn(async move { drop(pass(client, server, until, held).await) });
            }
        });
        Ok(Self { port, released, holding, _connections: connections })
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// Waits until an upload is held.
    pub async fn held(&mut self) -> anyhow::Result<()> {
        self.holding.wait_for(|held| *held).await.context("the slow line is gone")?;
        Ok(())
    }

    /// Lets everything through from now on.
    pub fn release(&self) {
        self.released.send_replace(true);
    }
}

async fn pass(
    client: TcpStream,
    server: u16,
    mut until: watch::Receiver<bool>,
    held: watch::Sender<bool>,
) -> anyhow::Result<()> {
    let server = TcpStream::connect((Ipv4Addr::LOCALHOST, server)).await?;
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = server.into_split();
    let up = async {
        let mut sent = 0_usize;
        let mut buffer = vec![0; 16 * 1024];
        loop {
            let read = from_client.read(&mut buffer).await?;
            if read == 0 {
                return anyhow::Ok(to_server.shutdown().await?);
            }
            sent += read;
            if sent > HOLD_AFTER_BYTES && !*until.borrow() {
                held.send_replace(true);
                until.wait_for(|released| *released).await?;
            }
            to_server.write_all(buffer.get(..read).unwrap_or_default()).await?;
        }
    };
    let down = async {
        tokio::io::copy(&mut from_server, &mut to_client).await?;
        anyhow::Ok(to_client.shutdown().await?)
    };
    tokio::try_join!(up, down)?;
    Ok(())
}
