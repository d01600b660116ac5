//! A database with one tenant and one destination, pools of the two roles that a job's way needs most, and jobs brought
//! to a state by the very statements that the host uses.

use std::time::Duration;

use anyhow::{Context, bail};
use serde_json::json;
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, PgConnection};
use uuid::Uuid;
use waybill::job::evidence::PublishForm;
use waybill::job::facts::{FileFacts, Sha256};
use waybill::job::model::{ClaimedJob, Digests};
use waybill::job::status::{EventKind, Role, Status};
use waybill::store::{
    self, Authorization, Cancellation, CancellationRequest, CheckedServer, Claim, ConnectOptions as StoreOptions,
    Creation, Delivery, DeliveryOutcome, Finish, FinishedCheck, NewJob, Pool, RecordedCancellation, Release, Showed,
    Write,
};
use waybill_tests::{Database, wait};

pub const LEASE: Duration = Duration::from_secs(60);
pub const MAX_ATTEMPTS: i32 = 3;

pub struct World {
    pub database: Database,
    pub api: Pool,
    pub worker: Pool,
    pub tenant: Uuid,
    pub destination: Uuid,
}

/// A job and the attempt that owns it.
#[derive(Debug, Clone, Copy)]
pub struct Attempt {
    pub job: Uuid,
    pub attempt: Uuid,
}

impl World {
    pub async fn new() -> anyhow::Result<Self> {
        Self::on(Database::fresh().await?).await
    }

    pub async fn on(database: Database) -> anyhow::Result<Self> {
        let (api, worker) = (pool(&database, Role::Api).await?, pool(&database, Role::Worker).await?);
        let mut world = Self { database, api, worker, tenant: Uuid::new_v4(), destination: Uuid::nil() };
        world.destination = world.destination(world.tenant, json!({})).await?;
        Ok(world)
    }

    /// The host's own pool of a role.
    pub async fn pool(&self, role: Role) -> anyhow::Result<Pool> {
        pool(&self.database, role).await
    }

    /// A bare connection of a role, for what a test holds open or tries on its own.
    pub async fn login(&self, role: Role) -> anyhow::Result<PgConnection> {
        Ok(self.database.options(role.login()).connect().await?)
    }

    /// Runs one statement as a role.
    pub async fn run(&self, role: Role, statement: &str) -> anyhow::Result<u64> {
        let mut connection = self.login(role).await?;
        let done = sqlx::query(AssertSqlSafe(statement)).execute(&mut connection).await;
        connection.close().await?;
        Ok(done?.rows_affected())
    }

    /// The SQLSTATE with which a role's statement is refused.
    pub async fn refused(&self, role: Role, statement: &str) -> anyhow::Result<String> {
        match self.run(role, statement).await {
            Ok(rows) => bail!("{} wrote {rows} rows with {statement}", role.login()),
            Err(error) => sqlstate(&error).with_context(|| format!("{statement}: {error:#}")),
        }
    }

    /// Reads one number as the reader.
    pub async fn count(&self, query: &str) -> anyhow::Result<i64> {
        let mut connection = self.login(Role::Reader).await?;
        let count = sqlx::query_scalar(AssertSqlSafe(query)).fetch_one(&mut connection).await?;
        connection.close().await?;
        Ok(count)
    }

    /// Another destination, as a worker's host writes it from its files.
    pub async fn destination(&self, tenant: Uuid, contract: serde_json::Value) -> anyhow::Result<Uuid> {
        let id = Uuid::new_v4();
        let mut connection = self.login(Role::Worker).await?;
        sqlx::query(
            "INSERT INTO destinations (id, tenant_id, name, partner, revision, manifest, contract, endpoint)
             VALUES ($1, $2, $3, 'partner', 1, '{}', $4, 'sftp.partner.test:22')",
        )
        .bind(id)
        .bind(tenant)
        .bind(id.to_string())
        .bind(contract)
        .execute(&mut connection)
        .await?;
        connection.close().await?;
        Ok(id)
    }

    pub fn new_job(&self) -> NewJob {
        NewJob {
            id: Uuid::new_v4(),
            tenant: self.tenant,
            destination: self.destination,
            scope: json!({ "list": "spring" }),
            not_before: None,
            priority: 0,
            delivery_key: Uuid::new_v4().to_string(),
            created_by: "olga".to_owned(),
        }
    }

    pub async fn create(&self, job: &NewJob) -> anyhow::Result<Uuid> {
        match store::create(&self.api, job.clone()).await? {
            Creation::Created => Ok(job.id),
            refused => bail!("{refused:?}"),
        }
    }

    pub async fn queued(&self) -> anyhow::Result<Uuid> {
        self.create(&self.new_job()).await
    }

    /// What a worker claims a job with.
    pub fn claim(job: Uuid, version: i32) -> Claim {
        Claim { job, version, attempt: Uuid::new_v4(), worker: "worker-1".to_owned(), lease: LEASE, digests: digests() }
    }

    pub async fn claimed(&self, job: Uuid) -> anyhow::Result<ClaimedJob> {
        let version = self.found(job).await?.version;
        store::claim(&self.worker, Self::claim(job, version)).await?.written().context("the claim was refused")
    }

    pub async fn running(&self) -> anyhow::Result<Attempt> {
        let claimed = self.claimed(self.queued().await?).await?;
        Ok(Attempt { job: claimed.id, attempt: claimed.attempt })
    }

    /// What the attempt asks to deliver: a name of its own.
    pub fn delivery(of: Attempt) -> Delivery {
        let name = format!("contacts-{}.csv", of.job);
        Delivery {
            job: of.job,
            attempt: of.attempt,
            expected: FileFacts { name: name.clone(), bytes: 1_234, sha256: Sha256([7; 32]) },
            endpoint: "sftp.partner.test:22".to_owned(),
            directory: "/upload".to_owned(),
            last_part: name,
            reused: false,
        }
    }

    pub async fn authorize(&self, of: Attempt) -> anyhow::Result<Authorization> {
        Ok(store::authorize_delivery(&self.worker, Self::delivery(of)).await?)
    }

    pub async fn delivering(&self) -> anyhow::Result<Attempt> {
        let of = self.running().await?;
        match self.authorize(of).await? {
            Authorization::Authorized => Ok(of),
            refused => bail!("{refused:?}"),
        }
    }

    pub async fn intended(&self) -> anyhow::Result<Attempt> {
        let of = self.delivering().await?;
        self.intend(of).await?.written().context("the fence was refused")?;
        Ok(of)
    }

    pub async fn intend(&self, of: Attempt) -> anyhow::Result<Write<()>> {
        Ok(store::intend_publish(&self.worker, of.job, of.attempt, PublishForm::Rename).await?)
    }

    pub async fn finish(&self, of: Attempt, outcome: DeliveryOutcome) -> anyhow::Result<Write<()>> {
        let finish = Finish {
            job: of.job,
            attempt: of.attempt,
            outcome,
            proof: json!({ "because": "the test says so" }),
            look_after: Duration::from_secs(10),
            acknowledgment_within: None,
        };
        Ok(store::finish_delivery(&self.worker, finish).await?)
    }

    pub async fn ended(&self, outcome: DeliveryOutcome) -> anyhow::Result<Attempt> {
        let of = self.intended().await?;
        self.finish(of, outcome).await?.written().context("the terminal write was refused")?;
        Ok(of)
    }

    pub fn release(of: Attempt) -> Release {
        Release {
            job: of.job,
            attempt: of.attempt,
            worker: "worker-1".to_owned(),
            why: "the partner could not be reached".to_owned(),
            backoff: Duration::from_secs(300),
            max_attempts: MAX_ATTEMPTS,
        }
    }

    pub fn cancellation(&self, job: Uuid) -> CancellationRequest {
        CancellationRequest {
            tenant: self.tenant,
            job,
            id: Uuid::new_v4(),
            requested_by: "olga".to_owned(),
            reason: Some("sent in error".to_owned()),
            lock_timeout: Duration::from_secs(10),
        }
    }

    /// Cancels, and returns the record.
    pub async fn cancel(&self, job: Uuid) -> anyhow::Result<RecordedCancellation> {
        match store::request_cancellation(&self.api, self.cancellation(job)).await? {
            Cancellation::Recorded(recorded) => Ok(recorded),
            other => bail!("{other:?}"),
        }
    }

    /// Recovery's takeover of an expired attempt, reduced to its condition and its effect.
    pub fn takeover(of: Attempt) -> String {
        format!(
            "UPDATE export_jobs SET status = CASE status WHEN 'Running' THEN 'Queued' ELSE 'OutcomeUnknown' END,
                    attempt_id = CASE status WHEN 'Running' THEN NULL ELSE attempt_id END,
                    claimed_by = CASE status WHEN 'Running' THEN NULL ELSE claimed_by END, lease_expires_at = NULL
             WHERE id = '{}' AND attempt_id = '{}' AND lease_expires_at < clock_timestamp()
               AND status IN ('Running', 'Delivering') AND stop_request_id IS NULL",
            of.job, of.attempt
        )
    }

    /// Lets the attempt's lease run out.
    pub async fn expire(&self, of: Attempt) -> anyhow::Result<()> {
        let statement = format!(
            "UPDATE export_jobs SET lease_expires_at = clock_timestamp() - interval '1 second'
             WHERE id = '{}' AND attempt_id = '{}'",
            of.job, of.attempt
        );
        anyhow::ensure!(self.run(Role::Worker, &statement).await? == 1, "the attempt does not own its job");
        Ok(())
    }

    pub async fn found(&self, job: Uuid) -> anyhow::Result<store::Found> {
        store::found(&self.worker, job).await?.context("no such job")
    }

    pub async fn status(&self, job: Uuid) -> anyhow::Result<Status> {
        Ok(self.found(job).await?.status)
    }

    pub async fn kinds(&self, job: Uuid) -> anyhow::Result<Vec<EventKind>> {
        Ok(store::events_of(&self.worker, job).await?.iter().map(|event| event.kind).collect())
    }

    /// Wake-ups that were written for a job.
    pub async fn wakeups(&self, job: Uuid) -> anyhow::Result<i64> {
        self.count(&format!("SELECT count(*) FROM outbox JOIN outbox_claims USING (message_id) WHERE job_id = '{job}'"))
            .await
    }

    /// Waits until some statement waits for what the holder has locked, and returns that statement's process.
    pub async fn blocked_by(&self, holder: i32) -> anyhow::Result<i32> {
        let mut watching = self.database.admin().await?.acquire().await?.detach();
        let pid = wait::until("a statement that waits for the holder", async || {
            Ok(sqlx::query_scalar(
                "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND $1 = ANY (pg_blocking_pids(pid))",
            )
            .bind(holder)
            .fetch_optional(&mut watching)
            .await?)
        })
        .await?;
        watching.close().await?;
        Ok(pid)
    }

    /// An uncommitted event of this kind: the statement that writes it for real does all its other work, then waits for
    /// the unique index. So a test can stop a single statement just before its commit.
    pub async fn hold_event(&self, of: Attempt, kind: EventKind) -> anyhow::Result<Held> {
        let mut connection = self.login(Role::Worker).await?;
        sqlx::query("BEGIN").execute(&mut connection).await?;
        sqlx::query(
            "INSERT INTO export_attempt_events (job_id, attempt_id, kind, version, worker_id, detail)
             VALUES ($1, $2, $3, 1, 'holder', '{}')",
        )
        .bind(of.job)
        .bind(of.attempt)
        .bind(kind.as_str())
        .execute(&mut connection)
        .await?;
        Held::of(connection).await
    }

    /// A transaction of a role that has run this statement and stays open.
    pub async fn hold(&self, role: Role, statement: &str) -> anyhow::Result<Held> {
        let mut connection = self.login(role).await?;
        sqlx::query("BEGIN").execute(&mut connection).await?;
        sqlx::query(AssertSqlSafe(statement)).execute(&mut connection).await?;
        Held::of(connection).await
    }
}

/// An open transaction.
pub struct Held {
    connection: PgConnection,
    pub pid: i32,
}

impl Held {
    async fn of(mut connection: PgConnection) -> anyhow::Result<Self> {
        let pid = waybill_tests::database::backend_pid(&mut connection).await?;
        Ok(Self { connection, pid })
    }

    pub async fn end(mut self, how: &'static str) -> anyhow::Result<()> {
        sqlx::query(how).execute(&mut self.connection).await?;
        self.connection.close().await?;
        Ok(())
    }

    pub async fn commit(self) -> anyhow::Result<()> {
        self.end("COMMIT").await
    }

    pub async fn roll_back(self) -> anyhow::Result<()> {
        self.end("ROLLBACK").await
    }
}

/// What a check of a destination is kept with here.
pub const CHECKED: &str = "as it is";

/// A finished check that met a server of this fingerprint.
pub fn check_of(destination: Uuid, fingerprint: &str, proof: serde_json::Value) -> FinishedCheck {
    FinishedCheck {
        destination,
        checked: CHECKED.to_owned(),
        requested_by: "olga".to_owned(),
        server: Some(CheckedServer { facts: json!({ "banner": fingerprint }), fingerprint: fingerprint.to_owned() }),
        result: Ok(Showed { proof, seen: json!({ "shows": true }) }),
    }
}

pub fn digests() -> Digests {
    let digest = |of: &str| of.repeat(64);
    Digests {
        builder: digest("a"),
        destination: digest("b"),
        manifest: digest("c"),
        settings: digest("d"),
        contract: digest("e"),
        checked: digest("f"),
    }
}

pub fn sqlstate(error: &anyhow::Error) -> Option<String> {
    let error = error.downcast_ref::<sqlx::Error>()?;
    Some(error.as_database_error()?.code()?.into_owned())
}

pub fn url(database: &Database) -> String {
    let options = database.options(Role::Reader.login());
    let directory =
        options.get_socket().map_or_else(|| options.get_host().to_owned(), |path| path.display().to_string());
    format!("postgres:///{}?host={directory}&port={}", database.name(), options.get_port())
}

async fn pool(database: &Database, role: Role) -> anyhow::Result<Pool> {
    Ok(store::connect(role, &StoreOptions::new(url(database), "waybill-tests")).await?)
}
