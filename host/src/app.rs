//! Puts a host together: pools by role, plugins, registrar, worker, dispatcher, recovery, reconciler, sweeper.
//!
//! The only place that knows all the parts. It opens only the pools of the roles that it runs.

use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, anyhow, bail};
use tokio_util::sync::CancellationToken;

use crate::attempt::Means;
use crate::broker::{Publisher, Receiver};
use crate::config::{self, Config};
use crate::delivery::{Bounds, Worker, WorkerParts};
use crate::embedded::postgres::{self, Postgres, PostgresError, SUPERUSER, Settings};
use crate::job::status::Role;
use crate::plugin::{PluginSettings, Plugins, Registry};
use crate::remote::{SessionLimits, Sessions};
use crate::spool::Spool;
use crate::store::{self, ConnectOptions, Pool};
use crate::upkeep::{
    self, Dispatcher, DispatcherSettings, Inspector, Reconciler, ReconcilerSettings, Recovery, RecoverySettings,
    Registered, Registrar, Sweeper,
};

/// The database of a private PostgreSQL that the host's schema lives in.
const EMBEDDED_DATABASE: &str = "postgres";

/// A private PostgreSQL in the data directory.
pub struct Embedded {
    server: Postgres,
}

/// Starts the private PostgreSQL and brings its schema up to date.
pub async fn start_embedded(config: &Config) -> anyhow::Result<Embedded> {
    let server = Postgres::start(&Settings::new(embedded_directory(&config.directories.data))).await?;
    let embedded = Embedded { server };
    store::migrate(&embedded.admin_url()).await.context("the private database was not migrated")?;
    Ok(embedded)
}

fn embedded_directory(data: &Path) -> std::path::PathBuf {
    data.join("postgres")
}

impl Embedded {
    /// For set-up; it logs in as the superuser.
    pub fn admin_url(&self) -> String {
        self.server.address().url(SUPERUSER, EMBEDDED_DATABASE)
    }

    /// For the host: each pool puts its role's login in.
    pub fn url(&self) -> String {
        self.admin_url()
    }

    /// Ends when the server does.
    pub async fn died(&mut self) -> PostgresError {
        self.server.died().await
    }

    pub async fn stop(self) -> anyhow::Result<()> {
        Ok(self.server.stop().await?)
    }
}

/// How long a received wake-up is kept from other workers; policy and claim fit into it many times.
const HOLD: Duration = Duration::from_secs(30);
/// How often wake-ups are looked for without a hint, which bounds how late a delayed one is.
const POLL: Duration = Duration::from_secs(1);
/// Between the two looks at the partners directory before a host begins, at most.
const LONGEST_GAP: Duration = Duration::from_secs(2);
/// How long connections may take to close; what is left then is closed by the process's end.
const CLOSE_WITHIN: Duration = Duration::from_secs(5);

/// One pool of one role, for a command.
pub async fn connect(config: &Config, embedded: bool, role: Role) -> anyhow::Result<Pool> {
    let url = if embedded {
        let directory = embedded_directory(&config.directories.data);
        let Some(address) = postgres::running(&directory) else {
            bail!(not_running(&directory));
        };
        address.url(SUPERUSER, EMBEDDED_DATABASE)
    } else {
        config.database_url()?.to_owned()
    };
    open(&url, role, 2).await
}

/// Most often it runs, and the command looks from elsewhere.
fn not_running(directory: &Path) -> String {
    let whole = std::path::absolute(directory).unwrap_or_else(|_| directory.to_owned());
    let relative = if directory.is_absolute() {
        ""
    } else {
        " That path is relative to the working directory: run this command where `serve --embedded` runs, or name the same data directory for both with WAYBILL_DATA."
    };
    format!("no private PostgreSQL runs in {}; start it with `waybill serve --embedded`.{relative}", whole.display())
}

async fn open(url: &str, role: Role, connections: u32) -> anyhow::Result<Pool> {
    let options = ConnectOptions {
        connections,
        password: config::password(role),
        ..ConnectOptions::new(url, format!("waybill {}", role.login().trim_start_matches("waybill_")))
    };
    store::connect(role, &options).await.map_err(|error| {
        // The store's own sentence says the same in fewer words; its cause is what an operator needs beside this one.
        let cause = std::error::Error::source(&error).map_or_else(|| error.to_string(), ToString::to_string);
        anyhow!(
            "logging in as {} at {} failed ({cause}); see that the database runs there, that `waybill migrate` has run, and how this login gets in",
            role.login(),
            options.place()
        )
    })
}

/// A host that is ready to run.
pub struct Host {
    registrar: Registrar,
    worker: Worker,
    dispatcher: Dispatcher,
    recovery: Recovery,
    reconciler: Reconciler,
    sweeper: Sweeper,
    pools: Vec<Pool>,
    shutdown: CancellationToken,
    grace: Duration,
    register_every: Duration,
    dispatch_every: Duration,
    recover_every: Duration,
    reconcile_every: Duration,
    sweep_every: Duration,
    summary: String,
}

impl Host {
    /// Connects, reads the partners directory, and serves what of it is compiled already. The rest comes while the host runs: one
    /// large component must not keep the other partners waiting.
    pub async fn start(config: &Config, shutdown: CancellationToken) -> anyhow::Result<Self> {
        let url = config.database_url()?;
        let worker_connections = u32::try_from(config.worker.concurrency).unwrap_or(u32::MAX).saturating_add(4).min(64);
        let worker_pool = open(url, Role::Worker, worker_connections).await?;
        let keeper_pool = open(url, Role::Worker, 4).await?;
        let dispatcher_pool = open(url, Role::Dispatcher, 3).await?;
        let recovery_pool = open(url, Role::Recovery, 4).await?;
        let reconciler_pool = open(url, Role::Reconciler, 4).await?;
        let data = &config.directories.data;
        std::fs::create_dir_all(data)
            .with_context(|| format!("the data directory {} cannot be made", data.display()))?;
        let spool = Spool::open(&data.join("spool"))?;
        let plugins = Plugins::open(&PluginSettings {
            most: Some(config.plugins.limits),
            ..PluginSettings::new(data.join("compiled"))
        })?;
        let registry = Registry::default();
        let partners = config.directories.partners.clone();
        let register_every = Duration::from_secs(config.plugins.every_seconds);
        let registrar = Registrar::new(worker_pool.clone(), plugins, partners.clone(), registry.clone())
            .looking_every(register_every)
            .until(shutdown.clone());
        // A host may be started while somebody copies a bundle, so what lies there is looked at twice now too.
        registrar.look_once().await?;
        tokio::time::sleep(register_every.min(LONGEST_GAP)).await;
        let registered = registrar.look_once().await?;
        let summary = summary(&registry, &registered, &registrar.uncompiled().await, &partners);
        let name = worker_name();
        let inspector = Inspector::new(registry.clone(), SessionLimits::default());
        let (recovery, reconciler) = upkeep_of(config, &name, &recovery_pool, &reconciler_pool, &inspector);
        let worker = Worker::new(WorkerParts {
            receiver: Receiver::new(worker_pool.clone(), &name, HOLD),
            poll: POLL,
            name: name.clone(),
            pool: worker_pool.clone(),
            keeper_pool: keeper_pool.clone(),
            registry,
            means: Means {
                spool,
                sessions: Sessions::new(
                    SessionLimits::default(),
                    Duration::from_secs(config.worker.session_idle_seconds),
                ),
            },
            lease: config.worker.lease(),
            renew_every: config.worker.renew(),
            watch_stop_every: Some(Duration::from_millis(config.worker.stop_poll_milliseconds)),
            concurrency: config.worker.concurrency,
            bounds: Bounds {
                max_attempts: config.worker.max_attempts,
                first_backoff: Duration::from_secs(config.worker.first_backoff_seconds),
                longest_backoff: Duration::from_secs(config.worker.longest_backoff_seconds),
                look_after: Duration::from_secs(config.reconciler.first_wait_seconds),
            },
        });
        let settings = DispatcherSettings {
            page: config.dispatcher.page,
            lease: Duration::from_secs(config.dispatcher.lease_seconds),
            ..DispatcherSettings::new(name)
        };
        let publisher = Publisher::new(dispatcher_pool.clone());
        let dispatcher = Dispatcher::new(dispatcher_pool.clone(), publisher, settings, shutdown.clone())?;
        Ok(Self {
            registrar,
            worker,
            dispatcher,
            sweeper: Sweeper::new(recovery_pool.clone(), Duration::from_secs(config.sweeper.threshold_seconds)),
            recovery,
            reconciler,
            pools: vec![worker_pool, keeper_pool, dispatcher_pool, recovery_pool, reconciler_pool],
            shutdown,
            grace: config.worker.shutdown(),
            register_every,
            dispatch_every: Duration::from_millis(config.dispatcher.poll_milliseconds),
            recover_every: Duration::from_secs(config.recovery.every_seconds),
            reconcile_every: Duration::from_secs(config.reconciler.every_seconds),
            sweep_every: Duration::from_secs(config.sweeper.every_seconds),
            summary,
        })
    }

    /// What this host serves at its start, in words.
    pub fn summary(&self) -> String {
        self.summary.clone()
    }

    /// Waits until everything in the partners directory is compiled and served, as far as it is not refused. A host that runs gets
    /// there by itself.
    pub async fn serve_all(&self) -> anyhow::Result<()> {
        self.registrar.run_once().await?;
        Ok(())
    }

    /// Runs until the shutdown, and after it no longer than the grace. True if nothing was under way at its end.
    pub async fn run(self) -> bool {
        let signal = upkeep::Signal::default();
        let registering =
            upkeep::keep("registrar", self.register_every, &signal, &self.shutdown, || self.registrar.run_once());
        let dispatching =
            upkeep::keep("dispatcher", self.dispatch_every, &signal, &self.shutdown, || self.dispatcher.run_once());
        let sweeping = upkeep::keep("sweeper", self.sweep_every, &signal, &self.shutdown, || self.sweeper.run_once());
        let recovering =
            upkeep::keep("recovery", self.recover_every, &signal, &self.shutdown, || self.recovery.run_once());
        let reconciling =
            upkeep::keep("reconciler", self.reconcile_every, &signal, &self.shutdown, || self.reconciler.run_once());
        let duties = async { tokio::join!(registering, dispatching, recovering, reconciling, sweeping) };
        let keeping = upkeep::within(&self.shutdown, self.grace, duties);
        let working = self.worker.run(self.shutdown.clone(), self.grace);
        let (kept, ended) = tokio::join!(keeping, working);
        let closing = futures::future::join_all(self.pools.iter().map(Pool::close));
        let closed = tokio::time::timeout(CLOSE_WITHIN, closing).await.is_ok();
        kept && ended && closed
    }
}

/// Recovery and reconciler, each over its own login.
fn upkeep_of(
    config: &Config,
    owner: &str,
    recovery_pool: &Pool,
    reconciler_pool: &Pool,
    inspector: &Inspector,
) -> (Recovery, Reconciler) {
    let first_wait = Duration::from_secs(config.reconciler.first_wait_seconds);
    let recovery = RecoverySettings {
        owner: owner.to_owned(),
        max_attempts: config.worker.max_attempts,
        lease: config.worker.lease(),
        look_after: first_wait,
    };
    let reconciler = ReconcilerSettings {
        owner: owner.to_owned(),
        lease: Duration::from_secs(config.reconciler.lease_seconds),
        first_wait,
        longest_wait: Duration::from_secs(config.reconciler.longest_wait_seconds),
    };
    (
        Recovery::new(recovery_pool.clone(), inspector.clone(), recovery),
        Reconciler::new(reconciler_pool.clone(), inspector.clone(), reconciler),
    )
}

fn summary(registry: &Registry, registered: &[Registered], uncompiled: &[String], partners: &Path) -> String {
    let bundles = registry.bundles();
    let partners_of = if bundles.len() == 1 { "partner" } else { "partners" };
    let mut text = format!("serving {} {partners_of} from {}, which is watched:\n", bundles.len(), partners.display());
    // Writing to a string cannot fail.
    for bundle in &bundles {
        for destination in &bundle.destinations {
            let _ = writeln!(text, "  {} → {} ({})", bundle.partner, destination.name, destination.id);
        }
    }
    for refused in registered {
        if let Registered::Refused { why, .. } = refused {
            let _ = writeln!(text, "  {why}");
        }
    }
    for bundle in uncompiled {
        let _ = writeln!(text, "  bundle {bundle} is compiled first, and served once that is done");
    }
    if bundles.is_empty() && uncompiled.is_empty() {
        let _ = writeln!(
            text,
            "  nothing can be delivered until a bundle is put there: a directory with partner.toml, builder.wasm, destination.wasm and destinations.toml"
        );
    }
    text
}

/// Unique to a process: host, process id, and a number of its own, since process ids are reused.
fn worker_name() -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let host = host.trim();
    let host = if host.is_empty() { "host" } else { host };
    format!("{host}-{}-{:08x}", std::process::id(), rand::random::<u32>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_private_database_that_is_looked_for_in_the_wrong_place_is_told_with_both_ways_out() {
        let told = not_running(Path::new("data/postgres"));
        assert!(told.contains("relative to the working directory") && told.contains("WAYBILL_DATA"), "{told}");
        let told = not_running(Path::new("/var/lib/waybill/postgres"));
        assert!(told.contains("in /var/lib/waybill/postgres;") && !told.contains("relative"), "{told}");
    }
}
