//! One connection, both ways. Whichever side ends it, or a cut, ends both.

use std::io;

use tokio::io::{AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};

use super::Rewrite;
use super::orders::{self, Moment, Orders, UnderWay};
use super::statements::Statements;
use super::wire::{self, Message};

/// The codes of a first message that asks for encryption: TLS and GSSAPI.
const ENCRYPT: [u32; 2] = [80_877_103, 80_877_104];
/// Answers collected before they are passed on, where more stand in the buffer.
const TOGETHER: usize = 64 << 10;

pub async fn carry(
    client: UnixStream,
    server: UnixStream,
    orders: &Orders,
    rewrite: Option<Rewrite>,
) -> io::Result<()> {
    let (from_client, mut to_client) = client.into_split();
    let (from_server, mut to_server) = server.into_split();
    let mut from_client = BufReader::new(from_client);
    let mut first = wire::read_first(&mut from_client).await?;
    while first.body().get(..4).is_some_and(|code| ENCRYPT.iter().any(|encrypt| encrypt.to_be_bytes() == code)) {
        to_client.write_all(b"N").await?;
        first = wire::read_first(&mut from_client).await?;
    }
    to_server.write_all(&first.bytes).await?;
    let under_way = UnderWay::default();
    // The start is answered like a statement, up to the first `ReadyForQuery`.
    orders::sent(&under_way, None);
    tokio::select! {
        ended = requests(from_client, to_server, orders, &under_way, rewrite.as_ref()) => ended,
        ended = answers(BufReader::new(from_server), to_client, orders, &under_way) => ended,
    }
}

async fn requests(
    mut from: BufReader<OwnedReadHalf>,
    mut to: OwnedWriteHalf,
    orders: &Orders,
    under_way: &UnderWay,
    rewrite: Option<&Rewrite>,
) -> io::Result<()> {
    let mut known = Statements::default();
    let (mut batch, mut executes) = (Vec::new(), Vec::new());
    while let Some(mut message) = wire::read(&mut from).await? {
        executes.extend(known.take(&mut message, rewrite)?);
        batch.extend_from_slice(&message.bytes);
        match message.tag {
            b'S' | b'Q' => {
                let order = orders.take(&std::mem::take(&mut executes));
                match order {
                    Some(order) if order.fault.moment == Moment::Before => {
                        if orders.obey(&order).await {
                            return Ok(());
                        }
                        orders::sent(under_way, None);
                    }
                    order => orders::sent(under_way, order),
                }
            }
            // Parts of a batch that is sent on when it is whole.
            b'P' | b'B' | b'D' | b'E' | b'C' => continue,
            _ => {}
        }
        to.write_all(&std::mem::take(&mut batch)).await?;
    }
    Ok(())
}

async fn answers(
    mut from: BufReader<OwnedReadHalf>,
    mut to: OwnedWriteHalf,
    orders: &Orders,
    under_way: &UnderWay,
) -> io::Result<()> {
    let mut out = Vec::new();
    while let Some(Message { tag, bytes }) = wire::read(&mut from).await? {
        out.extend_from_slice(&bytes);
        if tag == b'Z' {
            if let Some(order) = orders::answered(under_way)
                && orders.obey(&order).await
            {
                return Ok(());
            }
        } else if orders::withholds(under_way) || (!from.buffer().is_empty() && out.len() < TOGETHER) {
            continue;
        }
        to.write_all(&std::mem::take(&mut out)).await?;
    }
    // What the server said last, such as why it ends.
    to.write_all(&out).await
}
