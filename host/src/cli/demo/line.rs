//! A line to a partner's server that can be held, slowed and cut, as a bad one looks from the host.
//!
//! It passes bytes in both directions. Once a client has sent more than a login and a few looks ever take, what it sends is
//! held, piece by piece, until it is let through: the host is then provably uploading, and nothing rests on how long
//! anything takes.

use std::net::Ipv4Addr;

use anyhow::Context as _;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

/// A login, a proof on scratch names and the looks before an upload take some 20 KiB.
const HOLD_AFTER_BYTES: usize = 512 * 1024;

/// What passes at a time.
const PIECE: usize = 16 * 1024;

/// A line that holds at first. Dropping it cuts every connection.
pub(super) struct Line {
    port: u16,
    rules: watch::Sender<Rules>,
    /// The number of the piece that is held, from 1.
    holding: watch::Receiver<u64>,
    _connections: JoinSet<()>,
}

#[derive(Debug, Clone, Copy)]
struct Rules {
    up: bool,
    /// Pieces of an upload that pass, counted from where a line begins to hold.
    pieces: u64,
    /// What the server says passes.
    answers: bool,
}

impl Line {
    /// Listens on a free port and passes what comes to the server's port.
    pub async fn start(server: u16) -> anyhow::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.context("no port for the slow line")?;
        let port = listener.local_addr().context("no port for the slow line")?.port();
        let (rules, obeyed) = watch::channel(Rules { up: true, pieces: 0, answers: true });
        let (held, holding) = watch::channel(0);
        let mut connections = JoinSet::new();
        connections.spawn(async move {
            let mut open = JoinSet::new();
            while let Ok((client, _)) = listener.accept().await {
                let (obeyed, held) = (obeyed.clone(), held.clone());
                // A cut connection is what its two ends see; there is nothing else to report.
                open.spawn(async move { drop(until_cut(client, server, obeyed, held).await) });
                while open.try_join_next().is_some() {}
            }
        });
        Ok(Self { port, rules, holding, _connections: connections })
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// Waits until a piece of an upload is held.
    pub async fn held(&mut self) -> anyhow::Result<()> {
        self.holding.wait_for(|piece| *piece > 0).await.context("the slow line is gone")?;
        Ok(())
    }

    /// Lets the held piece through, and waits until the next one is held.
    pub async fn step(&mut self) -> anyhow::Result<()> {
        let piece = *self.holding.borrow_and_update();
        self.rules.send_modify(|rules| rules.pieces = piece);
        self.holding.wait_for(|next| *next > piece).await.context("the slow line is gone")?;
        Ok(())
    }

    /// Lets everything through from now on.
    pub fn release(&self) {
        self.rules.send_replace(Rules { up: true, pieces: u64::MAX, answers: true });
    }

    /// Lets everything through that is sent to the server, and nothing that it says.
    pub fn silence(&self) {
        self.rules.send_replace(Rules { up: true, pieces: u64::MAX, answers: false });
    }

    /// Ends every connection, and every new one at once, until the line is released.
    pub fn cut(&self) {
        self.rules.send_modify(|rules| rules.up = false);
    }
}

async fn until_cut(
    client: TcpStream,
    server: u16,
    obeyed: watch::Receiver<Rules>,
    held: watch::Sender<u64>,
) -> anyhow::Result<()> {
    let mut cut = obeyed.clone();
    tokio::select! {
        biased;
        cut = cut.wait_for(|rules| !rules.up) => {
            cut?;
            Ok(())
        }
        passed = pass(client, server, obeyed, held) => passed,
    }
}

async fn pass(
    client: TcpStream,
    server: u16,
    mut for_pieces: watch::Receiver<Rules>,
    held: watch::Sender<u64>,
) -> anyhow::Result<()> {
    let mut for_answers = for_pieces.clone();
    let server = TcpStream::connect((Ipv4Addr::LOCALHOST, server)).await?;
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = server.into_split();
    let up = async {
        let (mut sent, mut piece) = (0_usize, 0_u64);
        let mut buffer = vec![0; PIECE];
        loop {
            let read = from_client.read(&mut buffer).await?;
            if read == 0 {
                return anyhow::Ok(to_server.shutdown().await?);
            }
            sent += read;
            if sent > HOLD_AFTER_BYTES {
                piece += 1;
                if for_pieces.borrow().pieces < piece {
                    held.send_replace(piece);
                    for_pieces.wait_for(|rules| rules.pieces >= piece).await?;
                }
            }
            to_server.write_all(buffer.get(..read).unwrap_or_default()).await?;
        }
    };
    let down = async {
        let mut buffer = vec![0; PIECE];
        loop {
            let read = from_server.read(&mut buffer).await?;
            if read == 0 {
                return anyhow::Ok(to_client.shutdown().await?);
            }
            for_answers.wait_for(|rules| rules.answers).await?;
            to_client.write_all(buffer.get(..read).unwrap_or_default()).await?;
        }
    };
    tokio::try_join!(up, down)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A server that counts what it gets and answers each piece.
    async fn server() -> (u16, watch::Receiver<usize>) {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (got, counted) = watch::channel(0);
        tokio::spawn(async move {
            while let Ok((mut client, _)) = listener.accept().await {
                let mut buffer = vec![0; PIECE];
                while let Ok(read @ 1..) = client.read(&mut buffer).await {
                    got.send_modify(|bytes| *bytes += read);
                    if client.write_all(b"!").await.is_err() {
                        break;
                    }
                }
            }
        });
        (port, counted)
    }

    #[tokio::test]
    async fn an_upload_is_held_let_through_by_pieces_silenced_and_cut() {
        let (port, mut got) = server().await;
        let mut line = Line::start(port).await.unwrap();
        let client = TcpStream::connect((Ipv4Addr::LOCALHOST, line.port())).await.unwrap();
        let (mut answers, mut upload) = client.into_split();
        let reader = tokio::spawn(async move {
            let mut all = Vec::new();
            // A line that is cut ends in an error or in nothing.
            let _ = answers.read_to_end(&mut all).await;
            all.len()
        });
        upload.write_all(&vec![7; HOLD_AFTER_BYTES]).await.unwrap();
        got.wait_for(|bytes| *bytes == HOLD_AFTER_BYTES).await.unwrap();
        for _ in 0..3 {
            upload.write_all(&vec![7; PIECE]).await.unwrap();
        }
        line.held().await.unwrap();
        assert_eq!(*got.borrow(), HOLD_AFTER_BYTES, "a held piece came through");
        line.step().await.unwrap();
        got.wait_for(|bytes| *bytes > HOLD_AFTER_BYTES).await.unwrap();
        assert!(*got.borrow() < HOLD_AFTER_BYTES + 3 * PIECE, "all came through at one step");
        line.silence();
        got.wait_for(|bytes| *bytes == HOLD_AFTER_BYTES + 3 * PIECE).await.unwrap();
        line.cut();
        assert!(reader.await.unwrap() > 0, "nothing was answered before");
        let mut refused = TcpStream::connect((Ipv4Addr::LOCALHOST, line.port())).await.unwrap();
        assert_eq!(refused.read(&mut [0; 8]).await.unwrap_or(0), 0, "a line that is down answers");
        line.release();
        let mut again = TcpStream::connect((Ipv4Addr::LOCALHOST, line.port())).await.unwrap();
        again.write_all(b"?").await.unwrap();
        assert_eq!(again.read(&mut [0; 8]).await.unwrap(), 1);
    }
}
