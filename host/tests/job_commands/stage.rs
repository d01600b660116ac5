//! A database with one tenant and jobs brought to a state by the host's own statements, and the program on it.

use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, bail};
use serde_json::{Value, json};
use uuid::Uuid;
use waybill::job::evidence::PublishForm;
use waybill::job::facts::{FileFacts, Sha256};
use waybill::job::model::Digests;
use waybill::job::status::Role;
use waybill::store::take_over::{self, Resolution, Resolve, TakeOver};
use waybill::store::{self, Authorization, Claim, Creation, Delivery, DeliveryOutcome, Finish, NewJob, Pool};
use waybill_tests::Database;

pub struct Stage {
    pub database: Database,
    pub api: Pool,
    pub worker: Pool,
    recovery: Pool,
    pub tenant: Uuid,
    pub destination: Uuid,
}

/// A job and the attempt that owns it.
#[derive(Debug, Clone, Copy)]
pub struct Attempt {
    pub job: Uuid,
    pub attempt: Uuid,
}

/// How a command ended.
#[derive(Debug)]
pub struct Ended {
    pub code: i32,
    pub said: String,
}

impl Ended {
    /// Checks the exit code and that all of these were said.
    pub fn says(&self, code: i32, parts: &[&str]) {
        assert_eq!(self.code, code, "{}", self.said);
        for part in parts {
            assert!(self.said.contains(part), "{part:?} is not in: {}", self.said);
        }
    }

    pub fn json(&self) -> anyhow::Result<Value> {
        serde_json::from_str(&self.said).with_context(|| self.said.clone())
    }
}

impl Stage {
    pub async fn new() -> anyhow::Result<Self> {
        let database = Database::fresh().await?;
        let (api, worker) = (database.store(Role::Api).await?, database.store(Role::Worker).await?);
        let recovery = database.store(Role::Recovery).await?;
        let mut stage = Self { database, api, worker, recovery, tenant: Uuid::new_v4(), destination: Uuid::nil() };
        stage.destination = stage.new_destination().await?;
        Ok(stage)
    }

    pub async fn new_destination(&self) -> anyhow::Result<Uuid> {
        let id = Uuid::new_v4();
        sqlx::query(
            "INSERT INTO destinations (id, tenant_id, name, partner, revision, manifest, contract, endpoint)
             VALUES ($1, $2, $3, 'partner', 1, '{}', '{}', 'sftp.partner.test:22')",
        )
        .bind(id)
        .bind(self.tenant)
        .bind(id.to_string())
        .execute(&self.database.pool(Role::Worker.login()).await?)
        .await?;
        Ok(id)
    }

    fn command(&self, group: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_waybill"));
        command
            .env_clear()
            .env("WAYBILL_DATABASE_URL", self.database.url())
            .env("WAYBILL_TENANT", self.tenant.to_string())
            .env("WAYBILL_AS", "rosa")
            .arg(group)
            .args(arguments);
        command
    }

    /// Runs `waybill job …` as rosa, in this tenant.
    pub fn waybill(&self, arguments: &[&str]) -> anyhow::Result<Ended> {
        self.program("job", arguments)
    }

    /// Runs `waybill GROUP …` in the same way.
    pub fn program(&self, group: &str, arguments: &[&str]) -> anyhow::Result<Ended> {
        let output = self.command(group, arguments).output()?;
        let said = String::from_utf8(output.stdout)? + &String::from_utf8(output.stderr)?;
        Ok(Ended { code: output.status.code().context("ended by a signal")?, said })
    }

    /// Starts it and leaves it running.
    pub fn start(&self, arguments: &[&str]) -> anyhow::Result<std::process::Child> {
        Ok(self.command("job", arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?)
    }

    pub async fn queued(&self) -> anyhow::Result<Uuid> {
        let id = Uuid::now_v7();
        let job = NewJob {
            id,
            tenant: self.tenant,
            destination: self.destination,
            scope: json!({ "region": "emea" }),
            not_before: None,
            priority: 0,
            delivery_key: format!("key-{id}"),
            created_by: "olga".to_owned(),
        };
        match store::create(&self.api, job).await? {
            Creation::Created => Ok(id),
            refused => bail!("{refused:?}"),
        }
    }

    pub async fn claim(&self, job: Uuid) -> anyhow::Result<Attempt> {
        let version = store::found(&self.worker, job).await?.context("no such job")?.version;
        let digest = |of: &str| of.repeat(64);
        let digests = Digests {
            builder: digest("a"),
            destination: digest("b"),
            manifest: digest("c"),
            settings: digest("d"),
            contract: digest("e"),
            checked: digest("f"),
        };
        let claim = Claim {
            job,
            version,
            attempt: Uuid::new_v4(),
            worker: "worker-1".to_owned(),
            lease: Duration::from_secs(60),
            digests,
        };
        let claimed = store::claim(&self.worker, claim).await?.written().context("the claim was refused")?;
        Ok(Attempt { job, attempt: claimed.attempt })
    }

    pub async fn authorize(&self, of: Attempt) -> anyhow::Result<()> {
        let original = store::find_job(&self.worker, of.job).await?.context("no such job")?.replaces;
        let name = format!("contacts-{}.csv", original.unwrap_or(of.job));
        let delivery = Delivery {
            job: of.job,
            attempt: of.attempt,
            expected: FileFacts { name: name.clone(), bytes: 1_234, sha256: Sha256([7; 32]) },
            endpoint: "sftp.partner.test:22".to_owned(),
            directory: "/upload".to_owned(),
            last_part: name,
            reused: false,
        };
        match store::authorize_delivery(&self.worker, delivery).await? {
            Authorization::Authorized => Ok(()),
            refused => bail!("{refused:?}"),
        }
    }

    pub async fn intend(&self, of: Attempt) -> anyhow::Result<()> {
        let intended = store::intend_publish(&self.worker, of.job, of.attempt, PublishForm::Link).await?;
        intended.written().context("the fence was refused")
    }

    pub async fn delivering(&self) -> anyhow::Result<Attempt> {
        let of = self.claim(self.queued().await?).await?;
        self.authorize(of).await?;
        Ok(of)
    }

    pub async fn finish(&self, of: Attempt, outcome: DeliveryOutcome) -> anyhow::Result<()> {
        let finish = Finish {
            job: of.job,
            attempt: of.attempt,
            outcome,
            proof: json!({ "because": "The test says so." }),
            look_after: Duration::from_secs(10),
            acknowledgment_within: None,
        };
        store::finish_delivery(&self.worker, finish).await?.written().context("the end was refused")
    }

    /// A job whose delivery passed the publish fence and ended so.
    pub async fn ended(&self, outcome: DeliveryOutcome) -> anyhow::Result<Attempt> {
        let of = self.delivering().await?;
        self.intend(of).await?;
        self.finish(of, outcome).await?;
        Ok(of)
    }

    /// A delivery that went silent, and that recovery could not settle.
    pub async fn unknown(&self, passed_the_fence: bool) -> anyhow::Result<Attempt> {
        let of = self.delivering().await?;
        if passed_the_fence {
            self.intend(of).await?;
        }
        sqlx::query("UPDATE export_jobs SET lease_expires_at = clock_timestamp() - interval '1 second' WHERE id = $1")
            .bind(of.job)
            .execute(&self.database.pool(Role::Worker.login()).await?)
            .await?;
        let resolve = Resolve {
            take_over: TakeOver { job: of.job, attempt: of.attempt, run: "recovery-1".to_owned() },
            resolution: Resolution::OutcomeUnknown,
            proof: json!({ "because": "Nothing was seen." }),
            look_after: Duration::from_secs(10),
            acknowledgment_within: None,
        };
        take_over::resolve(&self.recovery, resolve).await?.written().context("the takeover was refused")?;
        Ok(of)
    }

    pub async fn state(&self, job: Uuid) -> anyhow::Result<String> {
        let found = store::found(&self.worker, job).await?.context("no such job")?;
        Ok(found.failure_reason.map_or_else(|| found.status.to_string(), |reason| format!("{}/{reason}", found.status)))
    }

    /// The id of a replacement that the program creates.
    pub fn replaced(&self, original: Uuid, arguments: &[&str]) -> anyhow::Result<Uuid> {
        let original = original.to_string();
        let made =
            self.waybill(&[&["replace", &original, "--reason", "they lost it", "--json"], arguments].concat())?;
        assert_eq!(made.code, 0, "{}", made.said);
        Ok(made.json()?.get("replacement").and_then(Value::as_str).context("no id")?.parse()?)
    }
}
