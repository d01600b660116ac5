//! Lost answers: the line between a worker and the database is cut at a chosen statement, before its commit or after it,
//! while the worker delivers to a real SFTP server.

mod repeated;
mod reread;
mod unowned;
mod unread;

use sqlx::Row as _;
use uuid::Uuid;
use waybill::job::status::{EventKind, Role, Status};
use waybill::store::take_over::{self, Resolution, Resolve, TakeOver};
use waybill::store::{self, Write};
use waybill_tests::house::Running;
use waybill_tests::sftp_server::Behaviour;
use waybill_tests::{House, Operation, Plan, Proxy, Reach, SftpServer, wait};

use crate::delivery::{LONG, kinds};

/// A house before the in-process server, with a worker on the line. Renewals come far apart, so that nothing but the test
/// moves a lease.
struct OnTheLine {
    server: SftpServer,
    house: House,
    line: Proxy,
    worker: Running,
    _dispatcher: Running,
    _secret: tempfile::TempDir,
}

/// The events of a job that was delivered by its first attempt.
const DELIVERED: [EventKind; 4] =
    [EventKind::Claimed, EventKind::DeliveryAuthorized, EventKind::PublishIntended, EventKind::Finished];

impl OnTheLine {
    async fn new() -> anyhow::Result<Self> {
        let server = SftpServer::start(Behaviour::default()).await?;
        let secret = tempfile::tempdir()?;
        let plan = Plan { renew_every: LONG, watch_stop_every: None, ..Plan::default() };
        let house = House::before(&Reach::in_process(&server, secret.path())?, plan).await?;
        let line = Proxy::before(&house.database)?;
        let (worker, dispatcher) = (house.worker_on(&line).await?, house.dispatcher().await?);
        Ok(Self { server, house, line, worker, _dispatcher: dispatcher, _secret: secret })
    }

    /// Delivers one job, so that how the server publishes is known to the jobs that follow.
    async fn proven(self) -> anyhow::Result<Self> {
        self.house.until(self.house.create().await?, Status::Completed).await?;
        Ok(self)
    }

    /// The job was delivered by its first attempt, every step of it once.
    async fn assert_delivered_once(&self, job: Uuid) -> anyhow::Result<()> {
        let ended = self.house.until_ended(job).await?;
        assert_eq!((ended.status, ended.attempt_count), (Status::Completed, 1));
        assert_eq!(kinds(&self.house.events(job).await?), DELIVERED);
        assert_eq!(self.server.times_created(&House::final_name(job)), 1, "published once");
        Ok(())
    }

    /// What is held or handed back comes again now, as it would in time. Only where no worker is at it.
    async fn redeliver(&self, job: Uuid) -> anyhow::Result<()> {
        sqlx::query(
            "UPDATE wakeups SET ready_at = clock_timestamp(), taken_by = NULL, taken_token = NULL, taken_until = NULL
             WHERE job_id = $1",
        )
        .bind(job)
        .execute(&self.house.admin)
        .await?;
        Ok(())
    }

    async fn wakeups(&self, job: Uuid) -> anyhow::Result<i64> {
        let count = sqlx::query_scalar("SELECT count(*) FROM wakeups WHERE job_id = $1").bind(job);
        Ok(count.fetch_one(&self.house.admin).await?)
    }

    /// Waits until every message about the job was received and settled.
    async fn until_settled(&self, job: Uuid) -> anyhow::Result<()> {
        wait::until("the wake-up to be settled", async || Ok((self.wakeups(job).await? == 0).then_some(()))).await
    }

    /// Ends the worker, which waits for what it has under way, and puts a new one in its place.
    async fn worker_ended(self) -> anyhow::Result<Self> {
        assert!(self.worker.stop().await?, "the worker had something under way");
        let worker = self.house.worker_on(&self.line).await?;
        Ok(Self { worker, ..self })
    }

    /// The same where the line refuses new connections, so that the row could not be read again; then it takes them again.
    async fn worker_ended_unread(self) -> anyhow::Result<Self> {
        assert!(self.worker.stop().await?, "the worker had something under way");
        self.line.take_connections_again();
        let worker = self.house.worker_on(&self.line).await?;
        Ok(Self { worker, ..self })
    }

    /// Everything that was asked of the partner's server that changes something under a name of this job's.
    fn writes_about(&self, job: Uuid) -> Vec<Operation> {
        let key = job.simple().to_string();
        let of_the_job = |path: &str| path.contains(&key);
        let operations = self.server.operations().into_iter().map(|done| done.operation);
        operations
            .filter(|operation| match operation {
                Operation::Open { path, mode } => mode.write && of_the_job(path),
                Operation::Rename { from, to } | Operation::PosixRename { from, to } | Operation::Link { from, to } => {
                    of_the_job(from) || of_the_job(to)
                }
                Operation::Remove { path } | Operation::MakeDirectory { path } | Operation::SetStat { path } => {
                    of_the_job(path)
                }
                Operation::Close { .. } | Operation::List { .. } | Operation::Stat { .. } | Operation::Fsync { .. } => {
                    false
                }
            })
            .collect()
    }

    /// The job's whole row, as text.
    async fn row(&self, job: Uuid) -> anyhow::Result<String> {
        let row = sqlx::query("SELECT row_to_json(job)::text AS row FROM export_jobs AS job WHERE id = $1").bind(job);
        Ok(row.fetch_one(&self.house.admin).await?.try_get("row")?)
    }

    async fn attempt(&self, job: Uuid) -> anyhow::Result<Uuid> {
        self.house.job(job).await?.attempt.ok_or_else(|| anyhow::anyhow!("no attempt owns the job"))
    }

    /// Recovery's part, after the lease ran out: a Running attempt goes back to the queue.
    async fn requeue(&self, job: Uuid) -> anyhow::Result<()> {
        let attempt = self.attempt(job).await?;
        self.house.expire_lease(job).await?;
        let recovery = self.house.database.store(Role::Recovery).await?;
        let expired = store::find_expired(&recovery, None, 1).await?;
        assert_eq!(expired.iter().map(|expired| expired.job).collect::<Vec<_>>(), [job], "recovery finds it");
        let taken = take_over::requeue(&recovery, taking(job, attempt), 5).await?;
        assert!(taken.is_written(), "{taken:?}");
        Ok(())
    }

    /// The same of a Delivering attempt, of whose outcome nothing is known.
    async fn resolve(&self, job: Uuid) -> anyhow::Result<()> {
        let attempt = self.attempt(job).await?;
        self.house.expire_lease(job).await?;
        let resolve = Resolve {
            take_over: taking(job, attempt),
            resolution: Resolution::OutcomeUnknown,
            proof: serde_json::json!({ "because": "no evidence" }),
            look_after: LONG,
            acknowledgment_within: None,
        };
        let recovery = self.house.database.store(Role::Recovery).await?;
        let taken = take_over::resolve(&recovery, resolve).await?;
        assert_eq!(taken, Write::Written(()));
        Ok(())
    }
}

fn taking(job: Uuid, attempt: Uuid) -> TakeOver {
    TakeOver { job, attempt, run: Uuid::new_v4().to_string() }
}
