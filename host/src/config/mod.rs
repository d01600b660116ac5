//! Configuration: a TOML file, overridden by the environment. Beside the options of commands, this is the only place that reads
//! the environment for settings.
//!
//! Every value has a safe default but the database's address. Passwords never stand in the file: they
//! come from the environment (`WAYBILL_PASSWORD_WORKER` and so on) or from PostgreSQL's own password file.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;

use crate::job::status::Role;
use crate::plugin::Limits;

/// Everything that `waybill serve` needs to know.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    pub database: Database,
    pub directories: Directories,
    pub plugins: Plugins,
    pub worker: Worker,
    pub dispatcher: Dispatcher,
    pub sweeper: Sweeper,
    pub recovery: Recovery,
    pub reconciler: Reconciler,
}

/// `[database]`
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Database {
    /// A PostgreSQL URL; its user is replaced by the role's login. `WAYBILL_DATABASE_URL` overrides it.
    pub url: Option<String>,
}

/// `[directories]`
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Directories {
    /// One sub-directory a partner. `WAYBILL_PARTNERS` overrides it.
    pub partners: PathBuf,
    /// Spool, compiled plugins, and the embedded database. `WAYBILL_DATA` overrides it.
    pub data: PathBuf,
}

/// `[plugins]`
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Plugins {
    /// How often the partners directory is looked at. A change takes effect once two looks found it the same.
    pub every_seconds: u64,
    /// `[plugins.limits]`: the most that a manifest may ask for in its `[limits]`.
    #[serde(with = "MostLimits")]
    pub limits: Limits,
}

impl Default for Plugins {
    fn default() -> Self {
        Self { every_seconds: 2, limits: Limits::most() }
    }
}

/// How `[plugins.limits]` is read: by the keys of a manifest's table, and with other defaults.
#[derive(Deserialize)]
#[serde(remote = "Limits", deny_unknown_fields, default = "Limits::most")]
struct MostLimits {
    build_seconds: u32,
    call_seconds: u32,
    deliver_seconds: u32,
    memory_mib: u32,
    output_mib: u32,
    read_back_mib: u32,
}

/// `[worker]`
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Worker {
    /// Attempts at once on this host.
    pub concurrency: usize,
    /// How long a lease lasts after a renewal. Expiry only makes a takeover possible.
    pub lease_seconds: u64,
    /// How often it is renewed: it must fit twice into a lease, and three times leaves room for a slow answer.
    pub renew_seconds: u64,
    /// How often stop requests are looked for. Cutoff 2 refuses without it.
    pub stop_poll_milliseconds: u64,
    /// Attempts of a job before it is given up.
    pub max_attempts: i32,
    /// Wait before a job that was handed back is woken, doubled with each attempt up to the longest.
    pub first_backoff_seconds: u64,
    pub longest_backoff_seconds: u64,
    /// How long a shutdown waits for deliveries and upkeep under way.
    pub shutdown_seconds: u64,
    /// How long a session with a partner is kept open without a job.
    pub session_idle_seconds: u64,
}

/// `[dispatcher]`
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Dispatcher {
    /// Outbox rows that are claimed at once.
    pub page: u32,
    /// Where no signal comes, how often the outbox is looked at.
    pub poll_milliseconds: u64,
    /// How long a page is claimed.
    pub lease_seconds: u64,
}

/// `[recovery]`
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Recovery {
    /// How often it looks for attempts whose lease has expired. After the database was away it waits one lease
    /// (`[worker] lease_seconds`) before it takes anything over.
    pub every_seconds: u64,
}

impl Default for Recovery {
    fn default() -> Self {
        Self { every_seconds: 10 }
    }
}

/// `[reconciler]`
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Reconciler {
    /// How often it asks which looks are due.
    pub every_seconds: u64,
    /// When an unknown outcome is first looked at, and the wait after that look; doubled with each further one.
    pub first_wait_seconds: u64,
    /// The longest wait between two looks.
    pub longest_wait_seconds: u64,
    /// How long a look is kept from other reconcilers. Longer than reading a whole file back takes.
    pub lease_seconds: u64,
}

impl Default for Reconciler {
    fn default() -> Self {
        Self { every_seconds: 5, first_wait_seconds: 60, longest_wait_seconds: 3600, lease_seconds: 600 }
    }
}

/// `[sweeper]`
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Sweeper {
    /// A queued job is woken again when its last wake-up is older. Above the longest wait that a job may have in the
    /// queue; shorter ones cost evaluations and no more.
    pub threshold_seconds: u64,
    /// How often it looks.
    pub every_seconds: u64,
}

impl Default for Sweeper {
    fn default() -> Self {
        Self { threshold_seconds: 1800, every_seconds: 60 }
    }
}

impl Default for Directories {
    fn default() -> Self {
        Self { partners: PathBuf::from("partners"), data: PathBuf::from("data") }
    }
}

impl Default for Worker {
    fn default() -> Self {
        Self {
            concurrency: 8,
            lease_seconds: 60,
            renew_seconds: 20,
            stop_poll_milliseconds: 1000,
            max_attempts: 5,
            first_backoff_seconds: 30,
            longest_backoff_seconds: 1800,
            shutdown_seconds: 60,
            session_idle_seconds: 60,
        }
    }
}

impl Default for Dispatcher {
    fn default() -> Self {
        Self { page: 10, poll_milliseconds: 500, lease_seconds: 60 }
    }
}

/// Why the configuration cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    #[error("the configuration file {path} cannot be read; create it, or name another with --config")]
    Unreadable { path: PathBuf, source: std::io::Error },
    #[error("the configuration file {path} is not right: {what}")]
    Wrong { path: PathBuf, what: String },
    #[error(
        "no database is named; set [database] url in the configuration or WAYBILL_DATABASE_URL, or use --embedded for a private one"
    )]
    NoDatabase,
    #[error("[plugins] every_seconds must be at least 1")]
    Plugins,
    #[error("[plugins.limits] {name} must be from {least} to {most}")]
    PluginLimit { name: &'static str, least: u32, most: u32 },
    #[error("[sweeper] every_seconds must be at least 1")]
    Sweeper,
    #[error("[recovery] every_seconds must be at least 1")]
    Recovery,
    #[error("[reconciler] every_seconds, first_wait_seconds and lease_seconds must be at least 1")]
    Reconciler,
    #[error("[worker] {what}")]
    Worker { what: String },
}

impl Config {
    /// Reads the file, if one is named, and the environment.
    pub fn load(path: Option<&Path>) -> Result<Self, ConfigError> {
        let mut config = match path {
            None => Self::default(),
            Some(path) => {
                let text = std::fs::read_to_string(path)
                    .map_err(|source| ConfigError::Unreadable { path: path.to_owned(), source })?;
                Self::parse(path, &text)?
            }
        };
        if let Some(url) = variable("WAYBILL_DATABASE_URL") {
            config.database.url = Some(url);
        }
        if let Some(partners) = variable("WAYBILL_PARTNERS") {
            config.directories.partners = partners.into();
        }
        if let Some(data) = variable("WAYBILL_DATA") {
            config.directories.data = data.into();
        }
        config.check()?;
        Ok(config)
    }

    fn parse(path: &Path, text: &str) -> Result<Self, ConfigError> {
        toml::from_str(text).map_err(|error: toml::de::Error| {
            let at = error.span().map_or(0, |span| span.start);
            let line = text.get(..at).unwrap_or_default().matches('\n').count() + 1;
            // The message lists the known keys; it may have several lines, and a sentence has one.
            let message = error.message().split_whitespace().collect::<Vec<_>>().join(" ");
            ConfigError::Wrong { path: path.to_owned(), what: format!("line {line}: {message}") }
        })
    }

    fn check(&self) -> Result<(), ConfigError> {
        let worker = &self.worker;
        let wrong = |what: &str| Err(ConfigError::Worker { what: what.to_owned() });
        if worker.concurrency == 0 {
            return wrong("concurrency is 0: nothing would ever be delivered");
        }
        if worker.max_attempts < 1 {
            return wrong("max_attempts must be at least 1");
        }
        if self.plugins.every_seconds == 0 {
            return Err(ConfigError::Plugins);
        }
        if let Some((name, least, most)) = self.plugins.limits.out_of_range() {
            return Err(ConfigError::PluginLimit { name, least, most });
        }
        if self.sweeper.every_seconds == 0 {
            return Err(ConfigError::Sweeper);
        }
        if self.recovery.every_seconds == 0 {
            return Err(ConfigError::Recovery);
        }
        let Reconciler { every_seconds, first_wait_seconds, longest_wait_seconds: _, lease_seconds } = self.reconciler;
        if every_seconds == 0 || first_wait_seconds == 0 || lease_seconds == 0 {
            return Err(ConfigError::Reconciler);
        }
        if worker.renew_seconds == 0 || worker.renew_seconds * 2 > worker.lease_seconds {
            return wrong(
                "renew_seconds must fit at least twice into lease_seconds, or one lost renewal loses the job",
            );
        }
        Ok(())
    }

    /// The database's address.
    pub fn database_url(&self) -> Result<&str, ConfigError> {
        self.database.url.as_deref().ok_or(ConfigError::NoDatabase)
    }
}

impl Worker {
    pub const fn lease(&self) -> Duration {
        Duration::from_secs(self.lease_seconds)
    }
    pub const fn renew(&self) -> Duration {
        Duration::from_secs(self.renew_seconds)
    }
    pub const fn shutdown(&self) -> Duration {
        Duration::from_secs(self.shutdown_seconds)
    }
}

/// The password of a role's login, where the environment gives one.
pub fn password(role: Role) -> Option<String> {
    let name = role.login().trim_start_matches("waybill_").to_uppercase();
    variable(&format!("WAYBILL_PASSWORD_{name}"))
}

#[expect(clippy::disallowed_methods, reason = "this is the place that reads the environment")]
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_file_is_a_safe_configuration() {
        let config = Config::parse(Path::new("waybill.toml"), "").unwrap();
        assert_eq!(config, Config::default());
        config.check().unwrap();
    }

    #[test]
    fn plg_03_a_most_that_is_not_set_stays_what_it_was() {
        let config = Config::parse(Path::new("waybill.toml"), "[plugins.limits]\nmemory_mib = 2048\n").unwrap();
        assert_eq!(config.plugins.limits, Limits { memory_mib: 2048, ..Limits::most() });
        let error = Config::parse(Path::new("waybill.toml"), "[plugins.limits]\nmemory = 1\n").unwrap_err().to_string();
        assert!(error.contains("line 2") && error.contains("memory_mib"), "{error}");
        let nothing = Config::parse(Path::new("waybill.toml"), "[plugins.limits]\nmemory_mib = 0\n").unwrap();
        let error = nothing.check().unwrap_err().to_string();
        assert_eq!(error, "[plugins.limits] memory_mib must be from 1 to 4096");
    }

    #[test]
    fn a_wrong_key_is_named_with_its_line() {
        let error = Config::parse(Path::new("waybill.toml"), "[worker]\nconcurency = 3\n").unwrap_err().to_string();
        assert!(error.contains("waybill.toml") && error.contains("line 2") && error.contains("concurency"), "{error}");
        assert!(error.contains("concurrency"), "the known keys are listed: {error}");
    }

    #[test]
    fn a_lease_that_one_lost_renewal_would_lose_is_refused() {
        let mut config = Config::default();
        config.worker.renew_seconds = 40;
        assert!(config.check().unwrap_err().to_string().contains("twice"));
    }
}
