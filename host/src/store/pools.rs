//! Connections. A pool logs in as one role, which is what the schema's triggers compare; a process opens only the pools
//! of the roles that it runs.

use std::collections::BTreeMap;
use std::time::Duration;

use sqlx::postgres::{PgConnectOptions, PgListener, PgPool, PgPoolOptions};
use sqlx::{Connection, PgConnection, Postgres};
use tokio_util::task::TaskTracker;

use super::error::StoreError;
use crate::job::status::Role;

/// How to reach the database.
#[derive(Clone)]
pub struct ConnectOptions {
    /// A PostgreSQL URL. Its user is replaced by the role's login.
    pub url: String,
    /// The login's password, where the database asks for one.
    pub password: Option<String>,
    /// Shown in `pg_stat_activity`: the process, so that an operator finds it.
    pub application: String,
    /// Most connections of this pool.
    pub connections: u32,
    /// Longest wait for a free connection, and for a new one.
    pub acquire_timeout: Duration,
    /// Longest run of one statement; the database ends it.
    pub statement_timeout: Duration,
}

impl ConnectOptions {
    /// Options with the defaults of a host: eight connections, five seconds for a connection, thirty for a statement.
    pub fn new(url: impl Into<String>, application: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            password: None,
            application: application.into(),
            connections: 8,
            acquire_timeout: Duration::from_secs(5),
            statement_timeout: Duration::from_secs(30),
        }
    }

    /// Where the database is, for people: no user and no password.
    pub fn place(&self) -> String {
        let Ok(settings) = self.url.parse::<PgConnectOptions>() else {
            return "an address that is not of the form postgres://user@host/database".to_owned();
        };
        let host = settings.get_socket().map_or(settings.get_host().into(), |socket| socket.display().to_string());
        format!("{host}:{}/{}", settings.get_port(), settings.get_database().unwrap_or_default())
    }
}

/// Connections of one role. Cheap to clone.
///
/// The lease keeper has a pool of its own, so that a burst of other statements never keeps a renewal waiting.
#[derive(Clone, Debug)]
pub struct Pool {
    role: Role,
    inner: PgPool,
    writes: TaskTracker,
}

/// The pools that a process opened, by role.
#[derive(Clone, Default, Debug)]
pub struct Pools(BTreeMap<Role, Pool>);

impl Pools {
    /// Adds a pool under its role. A second one of the same role takes its place.
    pub fn add(&mut self, pool: Pool) {
        self.0.insert(pool.role, pool);
    }

    /// The pool of a role, if this process opened it.
    pub fn get(&self, role: Role) -> Option<&Pool> {
        self.0.get(&role)
    }

    /// Every pool that was opened.
    pub fn iter(&self) -> impl Iterator<Item = &Pool> {
        self.0.values()
    }

    /// Closes every pool, after the writes under way.
    pub async fn close(&self) {
        for pool in self.iter() {
            pool.close().await;
        }
    }
}

/// Opens a pool that logs in as the role, and proves with one connection that it works.
pub async fn connect(role: Role, options: &ConnectOptions) -> Result<Pool, StoreError> {
    const ACT: &str = "connect";
    let settings = session(role, options).map_err(|error| StoreError::never_sent(ACT, error))?;
    let inner = PgPoolOptions::new()
        .max_connections(options.connections)
        .acquire_timeout(options.acquire_timeout)
        // A round trip before each statement costs as much as the statement; only a connection that rested is tried.
        .test_before_acquire(false)
        .before_acquire(|connection, meta| {
            Box::pin(async move { Ok(meta.idle_for < RESTED || connection.ping().await.is_ok()) })
        })
        .connect_with(settings.clone())
        .await;
    let inner = match inner {
        Ok(inner) => inner,
        Err(sqlx::Error::PoolTimedOut) => {
            return Err(StoreError::never_sent(ACT, why_none(&settings, options.acquire_timeout).await));
        }
        Err(error) => return Err(StoreError::never_sent(ACT, error)),
    };
    Ok(Pool { role, inner, writes: TaskTracker::new() })
}

/// The pool tries until its time is over, and then tells only that. One more try tells why.
async fn why_none(settings: &PgConnectOptions, within: Duration) -> sqlx::Error {
    match tokio::time::timeout(within, PgConnection::connect_with(settings)).await {
        Ok(Err(error)) => error,
        Ok(Ok(_)) | Err(_) => sqlx::Error::PoolTimedOut,
    }
}

/// A connection that rested this long may have been closed by the server or by something between.
const RESTED: Duration = Duration::from_secs(2);

fn session(role: Role, options: &ConnectOptions) -> Result<PgConnectOptions, sqlx::Error> {
    let settings: PgConnectOptions = options.url.parse()?;
    let mut settings = settings.username(role.login()).application_name(&options.application).options([
        ("default_transaction_isolation", "read committed".to_owned()),
        ("statement_timeout", options.statement_timeout.as_millis().to_string()),
        ("idle_in_transaction_session_timeout", "30s".to_owned()),
        ("timezone", "UTC".to_owned()),
    ]);
    if let Some(password) = &options.password {
        settings = settings.password(password);
    }
    Ok(settings)
}

impl Pool {
    /// The role that it logs in as.
    pub fn role(&self) -> Role {
        self.role
    }

    /// Waits for writes under way, then closes every connection.
    pub async fn close(&self) {
        self.writes.close();
        self.writes.wait().await;
        self.inner.close().await;
    }

    /// True while writes run whose callers may be gone.
    pub fn is_writing(&self) -> bool {
        !self.writes.is_empty()
    }

    pub(super) fn writes(&self) -> &TaskTracker {
        &self.writes
    }

    /// A connection for one statement. That it was not to be had means that nothing was sent.
    pub(super) async fn acquire(&self, act: &'static str) -> Result<sqlx::pool::PoolConnection<Postgres>, StoreError> {
        self.inner.acquire().await.map_err(|error| StoreError::never_sent(act, error))
    }

    /// A connection outside the pool: after a lost answer, those inside may be lost too.
    pub(super) async fn fresh(&self) -> Result<PgConnection, sqlx::Error> {
        PgConnection::connect_with(&self.inner.connect_options()).await
    }

    /// A connection that only listens. It is none of the pool's, so that it keeps no statement waiting.
    pub(super) async fn listener(&self) -> Result<PgListener, sqlx::Error> {
        let own = PgPoolOptions::new()
            .max_connections(1)
            .max_lifetime(None)
            .idle_timeout(None)
            .acquire_timeout(self.inner.options().get_acquire_timeout())
            .connect_with((*self.inner.connect_options()).clone())
            .await?;
        let mut listener = PgListener::connect_with(&own).await?;
        listener.ignore_pool_close_event(true);
        Ok(listener)
    }
}
