//! The store tests' world with the logins that come after the worker, and what a partner's silence leaves behind.

use std::ops::Deref;
use std::time::Duration;

use anyhow::{Context, bail};
use serde_json::json;
use sqlx::Executor;
use uuid::Uuid;
use waybill::job::evidence::{Evidence, Receipt};
use waybill::job::facts::Sha256;
use waybill::job::status::{EventKind, FailureReason, Role};
use waybill::store::take_over::{self, Resolution, Resolve, TakeOver};
use waybill::store::{
    self, Authorization, Case, Conclusion, Corrected, Correction, Decision, DeliveryOutcome, Ground, NewReplacement,
    Pool, Reconciliation, ReconciliationByHand, StoreError, Write,
};

use crate::store::world::{Attempt, Held, MAX_ATTEMPTS, World};

pub struct Actors {
    world: World,
    pub recovery: Pool,
    pub reconciler: Pool,
    pub corrector: Pool,
}

impl Deref for Actors {
    type Target = World;
    fn deref(&self) -> &World {
        &self.world
    }
}

impl Actors {
    pub async fn new() -> anyhow::Result<Self> {
        let world = World::new().await?;
        let recovery = world.pool(Role::Recovery).await?;
        let reconciler = world.pool(Role::Reconciler).await?;
        let corrector = world.pool(Role::Corrector).await?;
        Ok(Self { world, recovery, reconciler, corrector })
    }

    /// An attempt that went silent in the state that each takeover is for.
    pub async fn silent(&self, case: Case) -> anyhow::Result<Attempt> {
        let of = match case {
            Case::Requeue | Case::Stop => self.running().await?,
            Case::Exhaust => self.running_at_the_cap().await?,
            Case::Resolve => self.intended().await?,
        };
        if case == Case::Stop {
            self.cancel(of.job).await?;
        }
        self.expire(of).await?;
        Ok(of)
    }

    async fn running_at_the_cap(&self) -> anyhow::Result<Attempt> {
        let job = self.queued().await?;
        for _ in 1..MAX_ATTEMPTS {
            let attempt = self.claimed(job).await?.attempt;
            let release = World::release(Attempt { job, attempt });
            store::release(&self.worker, release).await?.written().context("the release was refused")?;
        }
        Ok(Attempt { job, attempt: self.claimed(job).await?.attempt })
    }

    /// Tries the takeover of a case, with `OutcomeUnknown` for a delivery.
    pub async fn take_over(&self, case: Case, of: Attempt, run: &str) -> Result<Write<()>, StoreError> {
        take_over(&self.recovery, case, of, run).await
    }

    pub async fn resolve(&self, of: Attempt, resolution: Resolution) -> anyhow::Result<Write<()>> {
        Ok(take_over::resolve(&self.recovery, resolving(of, resolution, "run-1")).await?)
    }

    /// A delivery that recovery could not settle.
    pub async fn unknown(&self, passed_the_fence: bool) -> anyhow::Result<Attempt> {
        let of = if passed_the_fence { self.intended().await? } else { self.delivering().await? };
        self.expire(of).await?;
        self.resolve(of, Resolution::OutcomeUnknown).await?.written().context("the takeover was refused")?;
        Ok(of)
    }

    pub async fn reconcile(&self, of: Attempt, conclusion: Conclusion) -> anyhow::Result<Write<()>> {
        Ok(store::reconcile(&self.reconciler, reconciliation(of, conclusion)).await?)
    }

    pub fn by_hand(&self, of: Attempt, delivered: bool) -> ReconciliationByHand {
        ReconciliationByHand {
            tenant: self.tenant,
            job: of.job,
            attempt: of.attempt,
            delivered,
            decision: decision(),
            look_after: Duration::from_secs(60),
            acknowledgment_within: None,
        }
    }

    pub fn correction(&self, of: Attempt, corrected: Corrected) -> Correction {
        Correction { tenant: self.tenant, job: of.job, attempt: of.attempt, corrected, decision: decision() }
    }

    /// A replacement of an original, with words for what is open.
    pub fn new_replacement(&self, original: Uuid) -> NewReplacement {
        NewReplacement {
            id: Uuid::new_v4(),
            tenant: self.tenant,
            original,
            created_by: "rosa".to_owned(),
            reason: "the partner never saw it".to_owned(),
            overwrite_agreement_ref: None,
            cannot_upload: Some("its host was switched off for good".to_owned()),
        }
    }

    pub async fn replacement(&self, original: Uuid) -> anyhow::Result<Uuid> {
        let new = self.new_replacement(original);
        let id = new.id;
        match store::create_replacement(&self.api, new).await? {
            Ok(()) => Ok(id),
            Err(refused) => bail!("{refused}"),
        }
    }

    /// Authorizes a replacement's attempt under its original's name, with content of its own or with the same.
    pub async fn authorize_replacement(
        &self,
        original: Uuid,
        of: Attempt,
        sha256: Sha256,
    ) -> anyhow::Result<Authorization> {
        let mut delivery = World::delivery(Attempt { job: original, attempt: of.attempt });
        delivery.job = of.job;
        delivery.expected.sha256 = sha256;
        Ok(store::authorize_delivery(&self.worker, delivery).await?)
    }

    /// A replacement that is Delivering, past its fence.
    pub async fn replacement_under_way(&self, original: Uuid, sha256: Sha256) -> anyhow::Result<Attempt> {
        let job = self.replacement(original).await?;
        let of = Attempt { job, attempt: self.claimed(job).await?.attempt };
        match self.authorize_replacement(original, of, sha256).await? {
            Authorization::Authorized => {}
            refused => bail!("{refused:?}"),
        }
        self.intend(of).await?.written().context("the fence was refused")?;
        Ok(of)
    }

    /// The host's own confirmation that the attempt's temporary file is gone.
    pub async fn confirm_removal(&self, of: Attempt) -> anyhow::Result<()> {
        let receipt = Receipt { temporary_removed: Some(true), ..Receipt::default() };
        store::append_evidence(&self.reconciler, of.job, of.attempt, "reconciler-1", &Evidence::Observation(receipt))
            .await?
            .written()
            .context("the attempt was never claimed")?;
        Ok(())
    }

    /// As if the database had been restored since this job was claimed.
    pub async fn forget_history(&self, job: Uuid) -> anyhow::Result<()> {
        self.unguarded("UPDATE export_jobs SET known_timeline = known_timeline + 1 WHERE id = $1", job).await
    }

    /// As if its creator had said nothing of the attempts before a replacement.
    pub async fn take_words(&self, replacement: Uuid) -> anyhow::Result<()> {
        self.unguarded("UPDATE export_jobs SET cannot_upload_statement = NULL WHERE id = $1", replacement).await
    }

    /// As if it had a lease that ran out.
    pub async fn lapse(&self, job: Uuid) -> anyhow::Result<()> {
        let statement = "UPDATE export_jobs SET lease_expires_at = clock_timestamp() - interval '1 s' WHERE id = $1";
        self.unguarded(statement, job).await
    }

    /// Writes its row anew, as it is.
    pub async fn touch(&self, job: Uuid) -> anyhow::Result<()> {
        self.unguarded("UPDATE export_jobs SET known_timeline = known_timeline WHERE id = $1", job).await
    }

    pub async fn forget_look(&self, job: Uuid) -> anyhow::Result<()> {
        self.unguarded("DELETE FROM looks WHERE job_id = $1", job).await
    }

    /// As time would.
    pub async fn make_looks_due(&self) -> anyhow::Result<()> {
        self.unguarded(
            "UPDATE looks SET next_at = clock_timestamp() - interval '1 s' WHERE $1 IS NOT NULL",
            Uuid::nil(),
        )
        .await
    }

    /// As time would.
    pub async fn end_pauses(&self) -> anyhow::Result<()> {
        let statement = "UPDATE destinations SET paused_until = clock_timestamp() - interval '1 s'
                         WHERE paused_until IS NOT NULL AND $1 IS NOT NULL";
        self.unguarded(statement, Uuid::nil()).await
    }

    /// As time would.
    pub async fn end_probes(&self) -> anyhow::Result<()> {
        let statement = "UPDATE destinations SET probe_until = clock_timestamp() - interval '1 s'
                         WHERE probe_until IS NOT NULL AND $1 IS NOT NULL";
        self.unguarded(statement, Uuid::nil()).await
    }

    /// A destination whose partner acknowledges within an hour.
    pub async fn promise_acknowledgments(&self, destination: Uuid) -> anyhow::Result<()> {
        let statement = r#"UPDATE destinations SET contract = '{"acknowledgment":
            {"name": "{final}.ack", "accept": "ok", "period_seconds": 3600}}' WHERE id = $1"#;
        self.unguarded(statement, destination).await
    }

    /// Of one job the name and endpoint of another, in a folder of its own; of that one's stranger the same name elsewhere.
    pub async fn uses_of_names_alike(&self, neighbour: Uuid, stranger: Uuid) -> anyhow::Result<()> {
        let spring = "contacts-spring.csv";
        for statement in [
            format!("UPDATE final_name_uses SET folded_name = '{spring}', directory = '/elsewhere' WHERE job_id = $1"),
            format!("UPDATE final_name_uses SET folded_name = '{spring}', endpoint = 'sftp.other.test:22', directory = '/{}' WHERE job_id = $1", self.tenant),
        ].into_iter().zip([neighbour, stranger]) {
            let (statement, job) = statement;
            self.unguarded(&statement, job).await?;
        }
        Ok(())
    }

    /// Makes what was recorded of a job a thousand seconds older.
    pub async fn age_events(&self, job: Uuid) -> anyhow::Result<()> {
        let statement =
            "UPDATE export_attempt_events SET recorded_at = recorded_at - interval '1000 s' WHERE job_id = $1";
        self.unguarded(statement, job).await
    }

    /// Evidence as no statement of the host would record it.
    pub async fn record(&self, job: Uuid, attempt: Uuid, detail: &str) -> anyhow::Result<()> {
        let statement = format!(
            "INSERT INTO export_attempt_events (job_id, attempt_id, kind, observed_by, detail, recorded_at)
             VALUES ($1, '{attempt}', 'DeliveryEvidence', 'test', '{detail}', clock_timestamp())"
        );
        self.unguarded(&statement, job).await
    }

    pub async fn created_at(&self, job: Uuid) -> anyhow::Result<time::OffsetDateTime> {
        Ok(store::find_job(&self.worker, job).await?.context("the job")?.created_at)
    }

    /// What only the superuser can do to a row.
    async fn unguarded(&self, statement: &str, job: Uuid) -> anyhow::Result<()> {
        let mut connection = self.database.admin().await?.acquire().await?.detach();
        connection.execute("SET session_replication_role = replica").await?;
        sqlx::query(sqlx::AssertSqlSafe(statement)).bind(job).execute(&mut connection).await?;
        sqlx::Connection::close(connection).await?;
        Ok(())
    }

    /// A person says what the restored database lost.
    pub async fn accept_loss(&self, job: Uuid, fences_intact: bool) -> anyhow::Result<()> {
        let statement = format!(
            "INSERT INTO accepted_losses (job_id, system, timeline, fences_intact, statement, accepted_by)
             SELECT '{job}', system, timeline, {fences_intact}, 'nothing after noon', 'rosa' FROM database_history()"
        );
        anyhow::ensure!(self.run(Role::Corrector, &statement).await? == 1);
        Ok(())
    }

    /// An uncommitted event: the statement that records the same kind does its other work, then waits here. So the test
    /// can stop it just before its commit.
    pub async fn hold(&self, role: Role, of: Attempt, kind: EventKind) -> anyhow::Result<Held> {
        let statement = format!(
            "INSERT INTO export_attempt_events (job_id, attempt_id, kind, worker_id, observed_by, detail)
             VALUES ('{}', '{}', '{kind}', 'holder', 'holder', '{{}}')",
            of.job, of.attempt
        );
        self.world.hold(role, &statement).await
    }

    /// A transaction of a role that has run this statement and stays open.
    pub async fn hold_statement(&self, role: Role, statement: &str) -> anyhow::Result<Held> {
        self.world.hold(role, statement).await
    }

    /// The correction of a Failed job to Completed, by its own statement, not committed yet. The other way to hold a
    /// statement open would lock the job's row by itself, since an event refers to it.
    pub async fn open_correction(&self, of: Attempt) -> anyhow::Result<Held> {
        let (tenant, job, attempt) = (self.tenant.to_string(), of.job.to_string(), of.attempt.to_string());
        let values = [&tenant, &job, &attempt, "Failed", "Completed", "NotDelivered", "rosa", "{}"];
        let mut statement = include_str!("../../../host/src/store/correct.sql").to_owned();
        for (number, value) in values.iter().enumerate().map(|(index, value)| (index + 1, value)) {
            statement = statement.replace(&format!("${number}"), &format!("'{value}'"));
        }
        self.world.hold(Role::Corrector, &statement).await
    }

    /// Detail of the one event of a kind.
    pub async fn detail(&self, job: Uuid, kind: EventKind) -> anyhow::Result<(Option<String>, serde_json::Value)> {
        let mut events = store::events_of(&self.worker, job).await?;
        events.retain(|event| event.kind == kind);
        let [event] = events.as_slice() else { bail!("{} events {kind}", events.len()) };
        Ok((event.observed_by.clone(), event.detail.clone().unwrap_or_default()))
    }
}

pub async fn take_over(pool: &Pool, case: Case, of: Attempt, run: &str) -> Result<Write<()>, StoreError> {
    let taking = TakeOver { job: of.job, attempt: of.attempt, run: run.to_owned() };
    match case {
        Case::Requeue => take_over::requeue(pool, taking, MAX_ATTEMPTS).await,
        Case::Stop => take_over::stop(pool, taking).await,
        Case::Exhaust => take_over::exhaust(pool, taking, MAX_ATTEMPTS).await,
        Case::Resolve => take_over::resolve(pool, resolving(of, Resolution::OutcomeUnknown, run)).await,
    }
}

pub fn resolving(of: Attempt, resolution: Resolution, run: &str) -> Resolve {
    Resolve {
        take_over: TakeOver { job: of.job, attempt: of.attempt, run: run.to_owned() },
        resolution,
        proof: json!({ "look": "absent" }),
        look_after: Duration::from_secs(10),
        acknowledgment_within: None,
    }
}

pub fn reconciliation(of: Attempt, conclusion: Conclusion) -> Reconciliation {
    Reconciliation {
        job: of.job,
        attempt: of.attempt,
        conclusion,
        proof: json!({ "look": "as the test says" }),
        run: "reconciler-1".to_owned(),
        look_after: Duration::from_secs(60),
        acknowledgment_within: None,
    }
}

#[expect(clippy::expect_used, reason = "the words stand beside it")]
pub fn decision() -> Decision {
    Decision::new("rosa", "the partner sent its log", "case 4711").expect("all words are there")
}

pub const CASES: [Case; 4] = [Case::Requeue, Case::Stop, Case::Exhaust, Case::Resolve];
pub const COMPLETED: Resolution = Resolution::Completed(Ground::Attempt);
pub const NOT_DELIVERED: DeliveryOutcome = DeliveryOutcome::Failed(FailureReason::NotDelivered);

/// The event that a takeover of this case records.
pub const fn kind(case: Case) -> EventKind {
    match case {
        Case::Requeue => EventKind::RequeuedByRecovery,
        Case::Stop => EventKind::StoppedByRecovery,
        Case::Exhaust => EventKind::AttemptsExhausted,
        Case::Resolve => EventKind::ResolvedByRecovery,
    }
}
