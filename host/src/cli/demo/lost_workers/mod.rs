//! The second act: hosts in processes of their own are killed and paused, each at a point that is certain, and another one
//! settles what they have left.
//!
//! Each of the lost hosts serves one destination of the partner Kestrel, and has no recovery and no reconciler to speak of.
//! The one that comes after them serves them all, with a short lease. `scenes` is what happens, `checks` what is asked of the
//! partner's server and of the record at the end, `process` a host as a process.

mod cast;
mod checks;
mod process;
mod scenes;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, bail};
use toml::{Table, Value};
use uuid::Uuid;

use super::jobs::{OPERATOR, TENANTS, Tenant};
use super::line::Line;
use super::partners;
use super::psql::Psql;
use super::scenes::Operator;
use super::watch::Watch;
use crate::embedded::openssh::OpenSsh;
use crate::job::model::Job;
use crate::store::{self, AttemptEvent, Creation, NewJob};
use cast::Scene;
pub(super) use checks::Proven;
pub(super) use process::HostProcess;

/// How long a fact is waited for.
const PATIENCE: Duration = Duration::from_secs(60);
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Our directory at the partner's server.
const AT_PARTNER: &str = "alder";
const MANIFEST: &str = include_str!("partner.toml");
const DESTINATION: &str = include_str!("destination.toml");

/// What the scenes share.
pub(super) struct Act<'a> {
    pub watch: &'a Watch,
    pub operator: &'a Operator,
    pub server: &'a OpenSsh,
    pub crm: &'a Psql,
    /// The customer database, for the destinations' queries.
    pub crm_url: &'a str,
    pub database_url: String,
    pub plugins: &'a Path,
    /// Compiled plugins and the spool, which hosts may share.
    pub data: PathBuf,
    /// One directory a host.
    pub hosts: PathBuf,
}

/// Where each destination is reached, and which job each scene is about.
pub(super) struct Cast {
    ports: BTreeMap<Scene, u16>,
    jobs: BTreeMap<Scene, Uuid>,
}

/// What a host does beside its deliveries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Upkeep {
    /// Nothing before anybody would wait for it.
    None,
    /// Recovery and reconciler every second.
    Quick,
}

impl Act<'_> {
    /// From the creation of the jobs to the last check. Answers the host that is left, too.
    pub async fn perform(&self, fetched: &Path) -> anyhow::Result<(Proven, HostProcess)> {
        let port = self.server.port();
        let (mut uploading, mut published, mut paused) =
            tokio::try_join!(Line::start(port), Line::start(port), Line::start(port))?;
        let mut cast = Cast { ports: BTreeMap::new(), jobs: BTreeMap::new() };
        for scene in Scene::CREATED {
            let through = match scene {
                Scene::Uploading | Scene::Replacement => uploading.port(),
                Scene::Published => published.port(),
                Scene::Paused => paused.port(),
                Scene::Building | Scene::Called => port,
            };
            cast.ports.insert(scene, through);
        }
        let inbox = self.server.files().join(AT_PARTNER).join("inbox");
        fs::create_dir_all(&inbox).with_context(|| format!("the partner's {} cannot be made", inbox.display()))?;

        let lock = self.crm.hold("LOCK TABLE consents IN ACCESS EXCLUSIVE MODE;").await?;
        self.watch
            .tell("four more hosts start, each in a process of its own and for one destination of a third partner")?;
        let (building, upload, publish, (pause, standing)) = tokio::try_join!(
            scenes::killed_while_building(self, &cast, lock),
            scenes::killed_while_uploading(self, &cast, &mut uploading),
            scenes::killed_after_publishing(self, &cast, &mut published),
            scenes::paused_while_uploading(self, &cast, &mut paused),
        )?;
        cast.jobs.extend([
            (Scene::Building, building),
            (Scene::Uploading, upload),
            (Scene::Published, publish),
            (Scene::Paused, pause),
        ]);

        let second = self.host("second", &Scene::CREATED, Upkeep::Quick, &cast)?;
        self.watch.tell(&format!(
            "another host starts (process {}); it waits one lease before it takes anything over",
            second.pid()
        ))?;
        let (called, (), replacement, (), ()) = tokio::try_join!(
            scenes::corrected(self, &second),
            scenes::delivered_by_another(self, &second, building),
            scenes::replaced(self, &second, upload),
            scenes::found_at_the_partner(self, &second, publish, &published),
            scenes::resumed_too_late(self, &second, pause, standing, &paused),
        )?;
        cast.jobs.extend([(Scene::Called, called), (Scene::Replacement, replacement)]);
        let proven = checks::prove(self, &cast.jobs, fetched).await?;
        Ok((proven, second))
    }

    /// Starts a host for these scenes' destinations.
    fn host(&self, name: &str, scenes: &[Scene], upkeep: Upkeep, cast: &Cast) -> anyhow::Result<HostProcess> {
        let directory = self.hosts.join(name);
        let bundle = directory.join("partners").join("kestrel");
        fs::create_dir_all(&bundle).with_context(|| format!("{} cannot be made", bundle.display()))?;
        partners::put_plugins(self.plugins, &bundle)?;
        let mut destinations = Vec::new();
        for scene in scenes {
            let port = cast.ports.get(scene).copied().context("a destination without a port")?;
            destinations.push(Value::Table(self.destination(*scene, port)?));
        }
        let document = Table::from_iter([("destination".to_owned(), Value::Array(destinations))]);
        let files = [
            (bundle.join("partner.toml"), MANIFEST.to_owned()),
            (bundle.join("destinations.toml"), document.to_string()),
            (process::configuration(&directory), self.configuration(&directory, upkeep)),
        ];
        for (path, text) in files {
            fs::write(&path, text).with_context(|| format!("{} cannot be written", path.display()))?;
        }
        HostProcess::start(&directory)
    }

    fn destination(&self, scene: Scene, port: u16) -> anyhow::Result<Table> {
        let mut entry: Table = DESTINATION.parse().context("the demo's own destination is broken")?;
        entry.insert("id".to_owned(), scene.destination_id().to_string().into());
        entry.insert("name".to_owned(), scene.destination().into());
        entry.insert("directory".to_owned(), AT_PARTNER.into());
        if scene == Scene::Building {
            let settings = entry.get_mut("settings").and_then(Value::as_table_mut).context("there are no settings")?;
            settings.insert("query".to_owned(), "consents".into());
        }
        partners::reach(&mut entry, self.server, port, self.crm_url)?;
        Ok(entry)
    }

    fn configuration(&self, directory: &Path, upkeep: Upkeep) -> String {
        let quoted = |text: &str| Value::from(text).to_string();
        // A host without upkeep looks once as it starts, when by its own rule it takes nothing over yet.
        let every = match upkeep {
            Upkeep::None => 3600,
            Upkeep::Quick => 1,
        };
        format!(
            "[database]\nurl = {database}\n\
             [directories]\npartners = {partners}\ndata = {data}\n\
             [worker]\nconcurrency = 4\nlease_seconds = 6\nrenew_seconds = 1\nstop_poll_milliseconds = 200\n\
             first_backoff_seconds = 1\nlongest_backoff_seconds = 2\nshutdown_seconds = 5\n\
             [dispatcher]\npoll_milliseconds = {dispatch}\n\
             [recovery]\nevery_seconds = {every}\n\
             [reconciler]\nevery_seconds = {every}\nfirst_wait_seconds = 1\nlongest_wait_seconds = 2\n",
            database = quoted(&self.database_url),
            partners = quoted(&directory.join("partners").to_string_lossy()),
            data = quoted(&self.data.to_string_lossy()),
            // What a killed dispatcher has claimed would wait for its lease; the first act's host dispatches.
            dispatch = every * 1000,
        )
    }

    /// Creates a scene's job, once a host has made its destination known.
    async fn create(&self, scene: Scene, host: &HostProcess) -> anyhow::Result<Uuid> {
        let id = Uuid::now_v7();
        let what = format!("the destination {} is known", scene.destination());
        self.until(&what, host, async || {
            let new = NewJob {
                id,
                tenant: alder().id,
                destination: scene.destination_id(),
                scope: serde_json::json!({ "country": scene.country() }),
                not_before: None,
                priority: 0,
                delivery_key: scene.key(),
                created_by: OPERATOR.to_owned(),
            };
            match store::create(&self.operator.api, new).await? {
                Creation::Created => Ok(Some(id)),
                Creation::NoSuchDestination => Ok(None),
                Creation::KeyTaken => bail!("the delivery key {} is taken", scene.key()),
            }
        })
        .await
    }

    async fn job(&self, id: Uuid) -> anyhow::Result<Job> {
        let found = store::find_tenant_job(&self.operator.reader, alder().id, id).await?;
        found.with_context(|| format!("the job {id} is gone"))
    }

    async fn events(&self, id: Uuid) -> anyhow::Result<Vec<AttemptEvent>> {
        Ok(store::events_of(&self.operator.reader, id).await?)
    }

    /// Where something of ours would lie at the partner.
    fn at_partner(&self, name: &str) -> PathBuf {
        self.server.files().join(AT_PARTNER).join(name)
    }

    /// Looks until it is so. An error if the host ends before, or if it takes too long.
    async fn until<T>(
        &self,
        what: &str,
        host: &HostProcess,
        look: impl AsyncFn() -> anyhow::Result<Option<T>>,
    ) -> anyhow::Result<T> {
        self.within(what, host, async {
            loop {
                if let Some(found) = look().await? {
                    return Ok(found);
                }
                tokio::time::sleep(LOOK_EVERY).await;
            }
        })
        .await
    }

    /// The same, for what says by itself that it is done.
    async fn within<T>(
        &self,
        what: &str,
        host: &HostProcess,
        done: impl Future<Output = anyhow::Result<T>>,
    ) -> anyhow::Result<T> {
        let ended = async {
            loop {
                if let Err(ended) = host.still_runs() {
                    return ended;
                }
                tokio::time::sleep(LOOK_EVERY).await;
            }
        };
        tokio::select! {
            done = done => done.with_context(|| format!("it was waited until {what}")),
            ended = ended => Err(ended.context(format!("it was waited until {what}"))),
            () = tokio::time::sleep(PATIENCE) => bail!(
                "it was waited for {} s until {what}, in vain; the end of the log of the host process {}:\n{}",
                PATIENCE.as_secs(), host.pid(), host.log()
            ),
        }
    }
}

/// Ends hosts that a killed demo left behind.
pub(super) fn end_left_behind(hosts: &Path) -> anyhow::Result<()> {
    let Ok(entries) = fs::read_dir(hosts) else { return Ok(()) };
    for entry in entries {
        let path = entry.with_context(|| format!("{} cannot be read", hosts.display()))?.path();
        process::end_left_behind(&path)?;
    }
    Ok(())
}

/// The tenant of all these jobs.
const fn alder() -> &'static Tenant {
    let [alder, _] = &TENANTS;
    alder
}
