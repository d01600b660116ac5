//! A line between the host and PostgreSQL that is cut at a chosen statement, on either side of its commit.
//!
//! It speaks the frontend/backend protocol far enough to know which statement is run: by the comment on its first line,
//! `-- store::NAME`, also where a prepared statement is only named. What is sent is passed on a batch at a time (up to
//! Sync or a simple query), so that a cut before it reaches nothing; an answer is withheld up to `ReadyForQuery`, which
//! the server sends after the commit. It runs on a thread of its own and knows no TLS. Texts may be rewritten as they pass.

mod carry;
pub mod mutants;
mod orders;
mod statements;
mod wire;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context;
use tokio::net::{UnixListener, UnixStream};
use tokio_util::sync::CancellationToken;
use waybill::embedded::postgres::{Address, SUPERUSER};
use waybill::job::status::Role;
use waybill::store::{ConnectOptions, Pool, connect};

pub use orders::{Fault, Moment, Struck};

use crate::{Database, wait};

/// Another text in place of a statement's; `None` leaves it as it is.
pub type Rewrite = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// Forwards connections until it is dropped.
#[derive(Debug)]
pub struct Proxy {
    address: Address,
    orders: Arc<orders::Orders>,
    stop: CancellationToken,
    /// Holds the socket; removed last.
    _directory: tempfile::TempDir,
}

impl Proxy {
    /// Before PostgreSQL at this address.
    pub fn start(server: &Address, rewrite: Option<Rewrite>) -> anyhow::Result<Self> {
        // A socket's path is short, which paths below the repository may not be.
        let directory = tempfile::Builder::new().prefix("waybill-line-").tempdir()?;
        let listener = std::os::unix::net::UnixListener::bind(socket(directory.path(), server.port))
            .context("listening between host and database")?;
        listener.set_nonblocking(true)?;
        let (orders, stop) = (Arc::new(orders::Orders::default()), CancellationToken::new());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let carrying = forward(listener, socket(&server.socket_directory, server.port), Arc::clone(&orders), rewrite);
        let told = stop.clone();
        std::thread::Builder::new().name("proxy".to_owned()).spawn(move || {
            runtime.block_on(async {
                tokio::select! {
                    () = told.cancelled() => {}
                    ended = carrying => if let Err(error) = ended {
                        tracing::error!(%error, "the line between host and database ended");
                    },
                }
            });
        })?;
        let address = Address { socket_directory: directory.path().to_owned(), port: server.port };
        Ok(Self { address, orders, stop, _directory: directory })
    }

    /// Before a test's database.
    pub fn before(database: &Database) -> anyhow::Result<Self> {
        Self::start(database.address(), None)
    }

    /// Where it is reached: the database server's address, one step ahead.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// The host's own pool of a role, through this line.
    pub async fn store(&self, database: &Database, role: Role) -> anyhow::Result<Pool> {
        let url = self.address.url(SUPERUSER, database.name());
        let options = ConnectOptions { acquire_timeout: wait::BOUND, ..ConnectOptions::new(url, "test-line") };
        connect(role, &options).await.with_context(|| format!("opening the pool of {} on the line", role.login()))
    }

    /// Orders a fault at the next execution of the statement `-- store::<statement>`.
    pub fn at(&self, statement: &str, fault: Fault) -> Struck {
        self.at_nth(statement, 1, fault)
    }

    /// Orders a fault at its `nth` execution from now on, counted from 1.
    pub fn at_nth(&self, statement: &str, nth: usize, fault: Fault) -> Struck {
        self.orders.add(statement, nth, fault)
    }

    /// Takes new connections again after [`Fault::then_refusing`].
    pub fn take_connections_again(&self) {
        self.orders.refuse(false);
    }

    /// The statements that were executed so far, in order, by name.
    pub fn executed(&self) -> Vec<String> {
        self.orders.executed()
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

fn socket(directory: &Path, port: u16) -> PathBuf {
    directory.join(format!(".s.PGSQL.{port}"))
}

async fn forward(
    listener: std::os::unix::net::UnixListener,
    server: PathBuf,
    orders: Arc<orders::Orders>,
    rewrite: Option<Rewrite>,
) -> std::io::Result<()> {
    let listener = UnixListener::from_std(listener)?;
    loop {
        let (client, _) = listener.accept().await?;
        if orders.refuses() {
            continue;
        }
        let (server, orders, rewrite) = (server.clone(), Arc::clone(&orders), rewrite.clone());
        tokio::spawn(async move {
            let Ok(server) = UnixStream::connect(&server).await else { return };
            if let Err(error) = carry::carry(client, server, &orders, rewrite).await {
                tracing::debug!(%error, "a connection on the line ended");
            }
        });
    }
}
