//! A line between the host and the database that loses chosen answers.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UnixStream};
use waybill::job::status::Role;
use waybill::store::{ConnectOptions, Pool, connect};
use waybill_tests::Database;

/// Forwards bytes both ways until it is told to lose an answer.
pub struct Line {
    port: u16,
    database: String,
    orders: Arc<Orders>,
    listening: tokio::task::JoinHandle<()>,
}

#[derive(Default)]
struct Orders {
    /// Cut the next connection that answers a write, instead of handing its answer on. The server sends the answer of a
    /// statement outside a transaction after its commit.
    lose_the_next_answer: AtomicBool,
    /// Take no new connection.
    down: AtomicBool,
}

impl Line {
    pub async fn to(database: &Database) -> anyhow::Result<Self> {
        let options = database.options(Role::Reader.login());
        let directory = options.get_socket().map_or_else(|| PathBuf::from(options.get_host()), Clone::clone);
        let socket = directory.join(format!(".s.PGSQL.{}", options.get_port()));
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let port = listener.local_addr()?.port();
        let orders = Arc::new(Orders::default());
        let listening = tokio::spawn({
            let orders = orders.clone();
            async move {
                while let Ok((client, _)) = listener.accept().await {
                    if orders.down.load(Ordering::SeqCst) {
                        continue;
                    }
                    let Ok(server) = UnixStream::connect(&socket).await else { continue };
                    tokio::spawn(carry(client, server, orders.clone()));
                }
            }
        });
        Ok(Self { port, database: database.name().to_owned(), orders, listening })
    }

    pub async fn pool(&self, role: Role) -> anyhow::Result<Pool> {
        let url = format!("postgres://127.0.0.1:{}/{}?sslmode=disable", self.port, self.database);
        Ok(connect(role, &ConnectOptions::new(url, "waybill-tests-line")).await?)
    }

    pub fn lose_the_next_answer(&self) {
        self.orders.lose_the_next_answer.store(true, Ordering::SeqCst);
    }

    pub fn is_intact(&self) -> bool {
        self.orders.lose_the_next_answer.load(Ordering::SeqCst)
    }

    pub fn take_down(&self) {
        self.orders.down.store(true, Ordering::SeqCst);
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        self.listening.abort();
    }
}

/// `CommandComplete` of a statement that met a row.
fn answers_a_write(bytes: &[u8]) -> bool {
    [b"INSERT 0 1\0".as_slice(), b"SELECT 1\0", b"UPDATE 1\0"]
        .iter()
        .any(|tag| bytes.windows(tag.len()).any(|window| window == *tag))
}

async fn carry(mut client: TcpStream, mut server: UnixStream, orders: Arc<Orders>) {
    let (mut from_client, mut from_server) = (vec![0; 65_536], vec![0; 65_536]);
    loop {
        tokio::select! {
            read = client.read(&mut from_client) => {
                let Ok(read @ 1..) = read else { return };
                if server.write_all(from_client.get(..read).unwrap_or_default()).await.is_err() { return }
            }
            read = server.read(&mut from_server) => {
                let Ok(read @ 1..) = read else { return };
                let bytes = from_server.get(..read).unwrap_or_default();
                if answers_a_write(bytes) && orders.lose_the_next_answer.swap(false, Ordering::SeqCst) { return }
                if client.write_all(bytes).await.is_err() { return }
            }
        }
    }
}
