//! What runs during a demo, and the order of what happens there.

use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, bail};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::contacts::contacts;
use super::directory::Directory;
use super::jobs::{self, Case, Planned, TENANTS, the_one};
use super::lost_workers::{Act, HostProcess};
use super::partners::{self, Servers, Site};
use super::psql::Psql;
use super::scenes::{self, Operator};
use super::table::{Explained, Told};
use super::verify::{Claims, FOREIGN, Witnesses};
use super::watch::{self, Watch};
use crate::app::{self, Embedded, Host};
use crate::cli::explain;
use crate::cli::output::Output;
use crate::config::{Config, Directories, Dispatcher, Recovery, Worker};
use crate::embedded::postgres;
use crate::job::status::{Role, Status};

/// Everything that the demo has started.
pub(super) struct Stage {
    watch: Watch,
    config: Config,
    database: Embedded,
    psql: Psql,
    servers: Servers,
    /// Of the worker and the dispatcher.
    shutdown: CancellationToken,
    hosts: TaskTracker,
    /// The host that settled what the second act's lost hosts have left.
    second: Option<HostProcess>,
}

/// How long the worker may take to end.
const GRACE: Duration = Duration::from_secs(5);

impl Stage {
    /// Starts PostgreSQL and the partners' servers.
    pub async fn set(directory: &Directory, output: Output) -> anyhow::Result<Self> {
        let watch = Watch::new(output);
        let mut config = Config {
            directories: Directories { data: directory.data(), partners: directory.partners() },
            // Short waits where a partner does not answer, and quick looks: a demo is watched.
            worker: Worker {
                stop_poll_milliseconds: 100,
                first_backoff_seconds: 1,
                longest_backoff_seconds: 2,
                shutdown_seconds: GRACE.as_secs(),
                ..Worker::default()
            },
            dispatcher: Dispatcher { poll_milliseconds: 100, ..Dispatcher::default() },
            // Its recovery would take over the second act's jobs, whose partner it does not serve.
            recovery: Recovery { every_seconds: 3600 },
            ..Config::default()
        };
        let (database, servers) = watch
            .step("starting PostgreSQL and four OpenSSH servers", async {
                let servers = directory.servers();
                tokio::try_join!(app::start_embedded(&config), Servers::start(&servers))
            })
            .await?;
        config.database.url = Some(database.url());
        let address =
            postgres::running(&directory.data().join("postgres")).context("the private PostgreSQL is gone")?;
        let psql = Psql::new(address, "postgres");
        watch.tell("PostgreSQL and four OpenSSH servers run, on loopback and a private socket")?;
        let (shutdown, hosts) = (CancellationToken::new(), TaskTracker::new());
        Ok(Self { watch, config, database, psql, servers, shutdown, hosts, second: None })
    }

    /// From the first contact to the last check.
    pub async fn perform(&mut self, directory: &Directory, plugins: &Path, within: Duration) -> anyhow::Result<Told> {
        let crm = self.psql.on("crm");
        let crm_url = crm_url(&directory.data().join("postgres"))?;
        let places = partners::onboard(&directory.partners(), plugins, &self.servers, &crm_url)?;
        let fill = self.watch.step("filling the customer database", fill(&self.psql, &crm));
        // Jobs are created for its destinations before it runs.
        let start = self.watch.step("compiling the partners' plugins", async {
            let host = Host::start(&self.config, self.shutdown.clone()).await?;
            host.serve_all().await?;
            anyhow::Ok(host)
        });
        let (contacts, host) = tokio::try_join!(fill, start)?;
        self.watch.tell(&format!("the customer database holds {contacts} contacts of two tenants"))?;
        self.watch.tell(&format!("two partners are onboarded, with {} destinations", places.len()))?;

        let operator = Operator {
            api: app::connect(&self.config, false, Role::Api).await?,
            reader: app::connect(&self.config, false, Role::Reader).await?,
        };
        let jobs = jobs::plan(&places)?;
        jobs::create(&operator.api, &jobs).await?;
        self.watch.tell(&format!("{} jobs are created; no worker runs yet", jobs.len()))?;
        self.occupy(&operator, &jobs).await?;
        scenes::cancel_while_queued(&operator, &jobs, &self.watch).await?;
        let lock = crm.hold("LOCK TABLE consents IN ACCESS EXCLUSIVE MODE;").await?;
        self.servers.west.stop().await?;

        self.watch.tell("worker and dispatcher start")?;
        // On a thread of its own, like a process of its own: the host's future stays where it was made.
        let runtime = tokio::runtime::Handle::current();
        self.hosts.spawn_blocking(move || runtime.block_on(host.run()));
        let watch = &self.watch;
        let (west, slow) = (&mut self.servers.west, &mut self.servers.slow);
        let all = async {
            tokio::try_join!(
                watch.until_all_ended(&operator.reader, &jobs),
                scenes::stop_while_building(&operator, &jobs, &crm, lock, watch),
                scenes::cancel_too_late(&operator, &jobs, slow, watch),
                scenes::partner_comes_back(&operator, &jobs, west, watch),
            )
        };
        match tokio::time::timeout(within, all).await {
            Ok(done) => drop(done?),
            Err(_) => {
                bail!("after {} s these jobs have not ended: {}", within.as_secs(), open(&operator, &jobs).await?)
            }
        }
        let act = Act {
            watch: &self.watch,
            operator: &operator,
            server: &self.servers.kestrel,
            crm: &crm,
            crm_url: &crm_url,
            database_url: self.database.url(),
            plugins,
            data: directory.data(),
            hosts: directory.hosts(),
        };
        let fetched = directory.path().join("fetched");
        let from_kestrel = fetched.join(Site::Kestrel.name());
        let performed = act.perform(&from_kestrel);
        let (second_act, second) =
            self.watch.step("killing and pausing hosts; another one settles it", performed).await?;
        self.second = Some(second);
        self.watch.clear();
        let witnesses = Witnesses { servers: &self.servers, crm: &crm, operator: &operator, fetched };
        let told = self
            .watch
            .step(
                "fetching every file with OpenSSH's sftp, and computing it again in PostgreSQL",
                tell(&witnesses, &jobs),
            )
            .await
            .map(|mut told| {
                told.add(second_act);
                told
            });
        operator.api.close().await;
        operator.reader.close().await;
        told
    }

    /// Somebody else puts a file under the name that one of our jobs is going to have.
    async fn occupy(&self, operator: &Operator, jobs: &[Planned]) -> anyhow::Result<()> {
        let job = the_one(jobs, Case::NameOccupied)?;
        let name = job.final_name(&jobs::day(operator.job(job).await?.created_at));
        self.servers.at(job.place.site).put(FOREIGN, &job.at_partner(&name)).await?;
        self.watch.tell(&format!("{}: somebody else puts a file under its final name, with OpenSSH's sftp", job.key))
    }

    /// How to look around while it runs.
    pub fn look_around(&self, directory: &Directory) -> anyhow::Result<String> {
        let data = directory.data();
        let mut text = format!(
            "\nEverything still runs, worker included, until Ctrl-C; all of it is in {}.\n\n",
            directory.path().display()
        );
        let mut add = |line: String| {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "  {line}");
        };
        add(format!("export WAYBILL_DATA={}", data.display()));
        for tenant in &TENANTS {
            add(format!("waybill --embedded job list --tenant {}    # {}", tenant.id, tenant.name));
        }
        add("waybill --embedded job explain JOB --tenant TENANT".to_owned());
        add("waybill --embedded job create --tenant TENANT --destination ID --scope country=DK --as you    # ids: partners/*/destinations.toml".to_owned());
        let address = postgres::running(&data.join("postgres")).context("the private PostgreSQL is gone")?;
        add(format!(
            "psql -h {} -U {} crm    # or postgres, for the host's own tables",
            address.socket_directory.display(),
            postgres::SUPERUSER
        ));
        for site in Site::ALL {
            let server = self.servers.at(site);
            add(format!(
                "sftp -P {} -i {} {}@127.0.0.1    # {}",
                server.port(),
                server.client_key().display(),
                server.user(),
                site.name()
            ));
        }
        Ok(text)
    }

    /// Stops everything, the last first.
    pub async fn end(self) -> anyhow::Result<()> {
        let second = match self.second {
            Some(second) => second.end().await,
            None => Ok(()),
        };
        self.shutdown.cancel();
        self.hosts.close();
        // What does not end in time loses its servers; the next start of a real host would recover it.
        let _ = tokio::time::timeout(GRACE * 2, self.hosts.wait()).await;
        drop(self.servers);
        self.database.stop().await?;
        second
    }
}

fn crm_url(directory: &Path) -> anyhow::Result<String> {
    Ok(postgres::running(directory).context("the private PostgreSQL is gone")?.url("crm_reader", "crm"))
}

/// Makes the customer database; answers how many contacts PostgreSQL counts in it.
async fn fill(psql: &Psql, crm: &Psql) -> anyhow::Result<u64> {
    psql.run("CREATE DATABASE crm;", &[]).await?;
    crm.run(include_str!("crm.sql"), &[]).await?;
    for tenant in &TENANTS {
        let script = tokio::task::spawn_blocking(|| copy_script(tenant)).await.context("the contacts were not made")?;
        crm.run(&script, &[]).await?;
    }
    let count = crm.run("ANALYZE; SELECT count(*) FROM contacts;", &[]).await?;
    count.parse().with_context(|| format!("psql counted {count:?} contacts"))
}

fn copy_script(tenant: &jobs::Tenant) -> String {
    let id = tenant.id.to_string();
    let mut script = "COPY contacts FROM STDIN;\n".to_owned();
    for contact in contacts(tenant.seed, tenant.contacts) {
        contact.copy_line(&id, &mut script);
    }
    script.push_str("\\.\n");
    // Writing to a string cannot fail.
    let _ = writeln!(
        script,
        "INSERT INTO consents SELECT tenant_id, number, 'e-mail', last_contact FROM contacts
         WHERE tenant_id = '{id}' AND newsletter AND last_contact IS NOT NULL;"
    );
    script
}

/// Asks the witnesses, and has two jobs explained.
async fn tell(witnesses: &Witnesses<'_>, jobs: &[Planned]) -> anyhow::Result<Told> {
    witnesses.fetch(jobs).await?;
    let rows = witnesses.ask(jobs).await?;
    let mut partners = Claims::default();
    let files = witnesses.nothing_else(jobs, &rows, &mut partners)?;
    let mut explained = Vec::new();
    for case in [Case::StoppedWhileBuilding, Case::PartnerDown] {
        explained.push(explain(witnesses.operator, the_one(jobs, case)?).await?);
    }
    Ok(Told::new(rows, files, partners, explained))
}

async fn explain(operator: &Operator, planned: &Planned) -> anyhow::Result<Explained> {
    let job = operator.job(planned).await?;
    let command = format!("waybill job explain {} --tenant {}", job.id, job.tenant);
    Ok(Explained { command, story: explain::read(&operator.reader, &job).await? })
}

/// The jobs that have not ended, in words.
async fn open(operator: &Operator, jobs: &[Planned]) -> anyhow::Result<String> {
    let found = watch::all(&operator.reader).await?;
    let status = |job: &Planned| found.get(&job.id).map(|row| row.status);
    let open = jobs.iter().filter(|job| !status(job).is_some_and(Status::is_terminal));
    Ok(open
        .map(|job| format!("{} ({})", job.key, status(job).map_or("gone", Status::as_str)))
        .collect::<Vec<_>>()
        .join(", "))
}
