//! A running Waybill inside a test: a database of its own, a partner's server, a bundle, workers and a dispatcher, made of
//! the same parts as `waybill serve` and with short times.
//!
//! Nothing here is faked: jobs are created by the API's role, wake-ups go through outbox and broker, files are built by
//! the CSV guest from rows in PostgreSQL and delivered over SSH.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use sqlx::{AssertSqlSafe, PgConnection, PgPool};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;
use waybill::attempt::Means;
use waybill::broker::{Publisher, Receiver};
use waybill::delivery::{Bounds, Worker, WorkerParts};
use waybill::job::model::Job;
use waybill::job::status::{Role, Status};
use waybill::plugin::{Bundle, PluginSettings, Plugins, Registry};
use waybill::remote::{SessionLimits, Sessions};
use waybill::spool::Spool;
use waybill::store::{self, AttemptEvent, Cancellation, CancellationRequest, ConnectOptions, Creation, NewJob, Pool};
use waybill::upkeep::{Dispatcher, DispatcherSettings, Registered, Registrar};

use crate::services::TestDirectory;
use crate::{Database, Proxy, SftpServer, Sshd, wait};

/// The tenant whose jobs a house delivers.
pub const TENANT: Uuid = Uuid::from_u128(0x7e4a_0001);
/// Its one destination.
pub const DESTINATION: Uuid = Uuid::from_u128(0xde57_0001);

/// What a house is made of; the defaults deliver a small CSV file.
pub struct Plan {
    /// The manifest without `partner` and `revision`.
    pub manifest: String,
    /// Lines of the destination's entry in `destinations.toml`, without endpoint and secret.
    pub destination: String,
    /// Components by the crate that builds them.
    pub builder: &'static str,
    pub plugin: &'static str,
    pub rows: i32,
    pub lease: Duration,
    pub renew_every: Duration,
    /// `None`: no stop watcher.
    pub watch_stop_every: Option<Duration>,
    pub concurrency: usize,
    pub max_attempts: i32,
    pub first_backoff: Duration,
    /// How long its workers wait for the partner's server.
    pub limits: SessionLimits,
    /// Where the destination's query runs instead of the house's own database, and what it asks.
    pub query: Option<PlannedQuery>,
}

/// The query of a destination, in place of the house's own.
pub struct PlannedQuery {
    pub url: String,
    pub sql: &'static str,
}

impl Default for Plan {
    fn default() -> Self {
        Self {
            manifest: "[names]\nfinal = 'contacts-{key}.csv'\n\
                       [contract]\npublishes_whole = true\none_name_space = true\nmay_remove_temporaries = true\nrename_one_step = true\n"
                .to_owned(),
            destination: "settings = { name = 'contacts-{key}.csv', query = 'rows' }\n".to_owned(),
            builder: "csv-builder",
            plugin: "sftp-destination",
            rows: 100,
            lease: Duration::from_secs(60),
            renew_every: Duration::from_secs(20),
            watch_stop_every: Some(Duration::from_millis(50)),
            concurrency: 4,
            max_attempts: 5,
            first_backoff: Duration::from_millis(50),
            limits: SessionLimits::default(),
            query: None,
        }
    }
}

/// How a partner's server is reached.
pub struct Reach {
    pub port: u16,
    pub user: String,
    pub host_key: String,
    pub directory: String,
    /// `key_file = …` or `password_file = …`.
    pub secret: String,
}

impl Reach {
    /// A private OpenSSH server, in its own start directory.
    pub fn openssh(server: &Sshd) -> anyhow::Result<Self> {
        Ok(Self {
            port: server.port(),
            user: server.user().to_owned(),
            host_key: server.host_key()?,
            directory: ".".to_owned(),
            secret: format!("key_file = '{}'", server.client_key().display()),
        })
    }

    /// The in-process server, whose password is written to a private file.
    pub fn in_process(server: &SftpServer, directory: &Path) -> anyhow::Result<Self> {
        use std::os::unix::fs::PermissionsExt;
        let file = directory.join("password");
        std::fs::write(&file, crate::ssh::PASSWORD)?;
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600))?;
        Ok(Self {
            port: server.port(),
            user: crate::ssh::USER.to_owned(),
            host_key: server.host_key().to_owned(),
            directory: "/".to_owned(),
            secret: format!("password_file = '{}'", file.display()),
        })
    }
}

/// A house. Workers and dispatchers are started by the test.
pub struct House {
    pub database: Database,
    pub admin: PgPool,
    pub api: Pool,
    /// The bundle that it was built with.
    pub bundle: Arc<Bundle>,
    /// What its workers serve now.
    pub registry: Registry,
    pub(crate) plan: Plan,
    directory: TestDirectory,
}

/// A worker or dispatcher that runs until it is stopped or dropped.
pub struct Running {
    shutdown: CancellationToken,
    task: tokio::task::JoinHandle<bool>,
}

impl Running {
    /// Tells it to stop and waits. True if nothing was under way at its end.
    pub async fn stop(mut self) -> anyhow::Result<bool> {
        self.shutdown.cancel();
        Ok((&mut self.task).await?)
    }

    /// Ends it in the middle of whatever it does, as a crash would. Writes under way may still commit.
    pub fn crash(self) {
        self.task.abort();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// The folder of the built guests.
pub fn plugins() -> anyhow::Result<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).with_file_name("target").join("plugins");
    anyhow::ensure!(folder.is_dir(), "the guests are not built ({} is missing); run `make plugins`", folder.display());
    Ok(folder)
}

/// Compiled components, shared by all tests of this target directory: a Python guest takes seconds to compile. Its files
/// are named by their content, so what one test writes serves every other. It lies where `waybill plugin` looks for it when
/// `XDG_CACHE_HOME` is `target/cache`.
pub fn compiled() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).with_file_name("target").join("cache/waybill/compiled")
}

/// One test at a time loads what may have to be compiled, so that the others find it compiled.
pub async fn compiling() -> anyhow::Result<std::fs::File> {
    let directory = compiled();
    if let Some(parent) = directory.parent() {
        std::fs::create_dir_all(parent)?;
    }
    let lock = std::fs::File::create(directory.with_extension("lock"))?;
    tokio::task::spawn_blocking(move || lock.lock().map(|()| lock)).await?.context("waiting to compile plugins")
}

impl House {
    /// Builds a house before this server.
    pub async fn before(reach: &Reach, plan: Plan) -> anyhow::Result<Self> {
        let Reach { port, user, host_key, directory, secret } = reach;
        let place = format!(
            "host = '127.0.0.1'\nport = {port}\nuser = '{user}'\ndirectory = '{directory}'\nhost_keys = ['{host_key}']\n{secret}"
        );
        Self::at(&place, plan).await
    }

    /// Builds a house whose destination lies where these lines of `destinations.toml` say.
    pub async fn at(place: &str, plan: Plan) -> anyhow::Result<Self> {
        let directory = TestDirectory::new("house")?;
        let database = Database::fresh().await?;
        let admin = database.admin().await?;
        fill(&admin, plan.rows).await?;
        let partner = directory.path().join("partners").join("acme");
        std::fs::create_dir_all(&partner)?;
        let guests = plugins()?;
        for (file, guest) in [("builder.wasm", plan.builder), ("destination.wasm", plan.plugin)] {
            let from = guests.join(format!("{guest}.wasm"));
            std::fs::copy(&from, partner.join(file)).with_context(|| format!("copying {}", from.display()))?;
        }
        std::fs::write(partner.join("partner.toml"), format!("partner = 'acme'\nrevision = 1\n{}", plan.manifest))?;
        let rules_and_settings = &plan.destination;
        let own = PlannedQuery {
            url: database.url(),
            sql: "select id, name, email from crm.contacts where tenant_id = :tenant::uuid order by id",
        };
        let PlannedQuery { url, sql } = plan.query.as_ref().unwrap_or(&own);
        std::fs::write(
            partner.join("destinations.toml"),
            format!(
                "[[destination]]\nid = '{DESTINATION}'\nname = 'acme'\ntenant = '{TENANT}'\n{place}\n{rules_and_settings}\n\
                 [destination.queries.rows]\nurl = '{url}'\nsql = '{sql}'\n"
            ),
        )?;
        let registry = Registry::default();
        let registrar = registrar(&database, &directory.path().join("partners"), &compiled(), &registry).await?;
        let turn = compiling().await?;
        registrar.run_once().await?;
        for registered in registrar.run_once().await? {
            if let Registered::Refused { why, .. } = registered {
                anyhow::bail!("{why}");
            }
        }
        drop(turn);
        let bundle = registry.bundles().into_iter().next().context("no bundle was loaded")?;
        let api = database.store(Role::Api).await?;
        Ok(Self { database, admin, api, bundle, registry, plan, directory })
    }

    /// Where its bundles lie.
    pub fn partners(&self) -> PathBuf {
        self.directory.path().join("partners")
    }

    /// What keeps its registry in step with its partners directory, one run at a time.
    pub async fn registrar(&self) -> anyhow::Result<Registrar> {
        registrar(&self.database, &self.partners(), &compiled(), &self.registry).await
    }

    /// A job as the API creates it.
    pub async fn create(&self) -> anyhow::Result<Uuid> {
        self.create_with(serde_json::json!({})).await
    }

    pub async fn create_with(&self, scope: serde_json::Value) -> anyhow::Result<Uuid> {
        self.create_job(NewJob { scope, ..Self::new_job() }).await
    }

    pub async fn create_job(&self, job: NewJob) -> anyhow::Result<Uuid> {
        let id = job.id;
        let created = store::create(&self.api, job).await?;
        anyhow::ensure!(created == Creation::Created, "the job was not created: {created:?}");
        Ok(id)
    }

    /// A job for its destination with nothing of interest.
    pub fn new_job() -> NewJob {
        let id = Uuid::now_v7();
        NewJob {
            id,
            tenant: TENANT,
            destination: DESTINATION,
            scope: serde_json::json!({}),
            not_before: None,
            priority: 0,
            delivery_key: id.simple().to_string(),
            created_by: "test".to_owned(),
        }
    }

    /// The final name of a job under the default plan.
    pub fn final_name(job: Uuid) -> String {
        format!("contacts-{}.csv", job.simple())
    }

    /// A new click on cancel.
    pub async fn cancel(&self, job: Uuid) -> anyhow::Result<Cancellation> {
        let request = CancellationRequest {
            tenant: TENANT,
            job,
            id: Uuid::new_v4(),
            requested_by: "operator".to_owned(),
            reason: None,
            lock_timeout: Duration::from_secs(2),
        };
        Ok(store::request_cancellation(&self.api, request).await?)
    }

    pub async fn job(&self, job: Uuid) -> anyhow::Result<Job> {
        store::find_job(&self.api, job).await?.context("the job is not there")
    }

    pub async fn events(&self, job: Uuid) -> anyhow::Result<Vec<AttemptEvent>> {
        Ok(store::events_of(&self.api, job).await?)
    }

    /// Waits until the job stands so.
    pub async fn until(&self, job: Uuid, status: Status) -> anyhow::Result<Job> {
        wait::until(&format!("the job to be {status}"), async || {
            let job = self.job(job).await?;
            Ok((job.status == status).then_some(job))
        })
        .await
    }

    /// Waits until the job has ended, one way or another.
    pub async fn until_ended(&self, job: Uuid) -> anyhow::Result<Job> {
        wait::until("the job to end", async || {
            let job = self.job(job).await?;
            Ok(job.status.is_terminal().then_some(job))
        })
        .await
    }

    /// Moves pauses and delays into the past, as time would, until the job has ended.
    pub async fn until_woken(&self, job: Uuid) -> anyhow::Result<Job> {
        wait::until("the job to end", async || {
            for statement in [
                "UPDATE destinations SET paused_at = paused_at - interval '1 hour', paused_until = paused_until - interval '1 hour'",
                "UPDATE outbox_claims SET ready_at = clock_timestamp() WHERE ready_at > clock_timestamp()",
                "UPDATE wakeups SET ready_at = clock_timestamp() WHERE ready_at > clock_timestamp()",
            ] {
                sqlx::query(statement).execute(&self.admin).await?;
            }
            let job = self.job(job).await?;
            Ok(job.status.is_terminal().then_some(job))
        })
        .await
    }

    /// Waits until a person has to mend its destination, and says what.
    pub async fn until_attention(&self) -> anyhow::Result<String> {
        wait::until("the destination to need attention", async || {
            let state = store::destination_state(&self.api, DESTINATION).await?;
            Ok(state.and_then(|state| state.attention).map(|attention| attention.why))
        })
        .await
    }

    /// A worker of its own name, with its own pools and sessions.
    pub async fn worker(&self) -> anyhow::Result<Running> {
        self.worker_named(&format!("worker-{}", Uuid::new_v4().simple())).await
    }

    pub async fn worker_named(&self, name: &str) -> anyhow::Result<Running> {
        let (pool, keeper) = (self.database.store(Role::Worker).await?, self.database.store(Role::Worker).await?);
        self.run_worker(name, pool, keeper)
    }

    /// A worker whose every statement goes through this line; its renewals take their own.
    pub async fn worker_on(&self, line: &Proxy) -> anyhow::Result<Running> {
        let pool = line.store(&self.database, Role::Worker).await?;
        let keeper = self.database.store(Role::Worker).await?;
        self.run_worker(&format!("worker-{}", Uuid::new_v4().simple()), pool, keeper)
    }

    fn run_worker(&self, name: &str, pool: Pool, keeper_pool: Pool) -> anyhow::Result<Running> {
        let parts = WorkerParts {
            name: name.to_owned(),
            receiver: Receiver::new(pool.clone(), name, Duration::from_secs(30)),
            poll: Duration::from_millis(50),
            pool,
            keeper_pool,
            registry: self.registry.clone(),
            means: Means {
                spool: Spool::open(&self.spool())?,
                sessions: Sessions::new(self.plan.limits, Duration::from_secs(60)),
            },
            lease: self.plan.lease,
            renew_every: self.plan.renew_every,
            watch_stop_every: self.plan.watch_stop_every,
            concurrency: self.plan.concurrency,
            bounds: Bounds {
                max_attempts: self.plan.max_attempts,
                first_backoff: self.plan.first_backoff,
                longest_backoff: Duration::from_secs(2),
                look_after: Duration::from_secs(60),
            },
        };
        let worker = Worker::new(parts);
        let shutdown = CancellationToken::new();
        let told = shutdown.clone();
        Ok(Running { shutdown, task: tokio::spawn(async move { worker.run(told, Duration::from_secs(30)).await }) })
    }

    /// A dispatcher that looks often.
    pub async fn dispatcher(&self) -> anyhow::Result<Running> {
        let pool = self.database.store(Role::Dispatcher).await?;
        let shutdown = CancellationToken::new();
        let settings = DispatcherSettings::new("dispatcher");
        let dispatcher = Dispatcher::new(pool.clone(), Publisher::new(pool), settings, shutdown.clone())?;
        let told = shutdown.clone();
        let task = tokio::spawn(async move {
            while !told.is_cancelled() {
                if let Err(error) = dispatcher.run_once().await {
                    tracing::warn!(%error, "the dispatcher's run failed");
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            true
        });
        Ok(Running { shutdown, task })
    }

    /// A connection on which the guards are off, for what only time could do. Only the superuser may switch them off.
    pub async fn unguarded(&self) -> anyhow::Result<PgConnection> {
        let mut connection = self.admin.acquire().await?.detach();
        sqlx::query("SET session_replication_role = replica").execute(&mut connection).await?;
        Ok(connection)
    }

    /// Moves a job's lease into the past, as time would.
    pub async fn expire_lease(&self, job: Uuid) -> anyhow::Result<()> {
        sqlx::query("UPDATE export_jobs SET lease_expires_at = clock_timestamp() - interval '1 second' WHERE id = $1")
            .bind(job)
            .execute(&mut self.unguarded().await?)
            .await?;
        Ok(())
    }

    /// Where its workers build files.
    pub fn spool(&self) -> PathBuf {
        self.directory.path().join("spool")
    }

    /// Bytes in files of the spool directory that this process still holds, named or not.
    pub fn spooled_bytes(&self) -> anyhow::Result<u64> {
        let spool = self.spool();
        let mut bytes = 0;
        for entry in std::fs::read_dir("/proc/self/fd")? {
            let path = entry?.path();
            // A descriptor may be closed between the listing and the look.
            let Ok(target) = std::fs::read_link(&path) else { continue };
            if target.starts_with(&spool) {
                bytes += std::fs::metadata(&path).map_or(0, |metadata| metadata.len());
            }
        }
        for entry in std::fs::read_dir(&spool)? {
            bytes += entry?.metadata()?.len();
        }
        Ok(bytes)
    }
}

async fn registrar(
    database: &Database,
    partners: &Path,
    compiled: &Path,
    registry: &Registry,
) -> anyhow::Result<Registrar> {
    let plugins = Plugins::open(&PluginSettings::new(compiled.to_owned()))?;
    Ok(Registrar::new(database.store(Role::Worker).await?, plugins, partners.to_owned(), registry.clone()))
}

/// The tenant's data: contacts of this tenant and of another one, which must never be seen.
async fn fill(admin: &PgPool, rows: i32) -> anyhow::Result<()> {
    for statement in [
        "CREATE SCHEMA crm".to_owned(),
        "CREATE TABLE crm.contacts (tenant_id uuid NOT NULL, id integer NOT NULL, name text NOT NULL, email text NOT NULL)".to_owned(),
        format!(
            "INSERT INTO crm.contacts SELECT '{TENANT}', n, 'Contact ' || n, 'contact' || n || '@example.com' FROM generate_series(1, {rows}) AS n"
        ),
        format!("INSERT INTO crm.contacts VALUES ('{}', 1, 'Somebody else''s', 'other@example.com')", Uuid::from_u128(0xbad)),
    ] {
        sqlx::query(AssertSqlSafe(statement)).execute(admin).await?;
    }
    Ok(())
}

/// Connect options with a name of the test's own, to find its connections.
pub fn options(database: &Database, application: &str) -> ConnectOptions {
    ConnectOptions::new(database.url(), application)
}
