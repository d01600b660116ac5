//! `destinations.toml`: what the operator says of a partner's destinations. Secrets are references, never values.
//!
//! No message about this document repeats a value: someone may have put a secret where none belongs.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use sha2::Digest as _;
use uuid::Uuid;

use super::checked;
use super::document::{Document, DocumentError};
use super::endpoint;
use super::manifest::Manifest;
use super::measure::Meter;
use super::open_query::OpenQuery;
use crate::job::facts::Sha256;
use crate::job::model::Digests;
use crate::policy::DestinationRules;
use crate::remote::Endpoint;
use crate::source::{Database, Queries, Query, check_query};

pub(super) const FILE: &str = "destinations.toml";

/// One destination, joined from manifest and `destinations.toml`.
#[derive(Clone)]
pub struct Destination {
    pub id: Uuid,
    /// For people.
    pub name: String,
    pub tenant: Uuid,
    pub endpoint: Endpoint,
    /// What both plugins see: the manifest's options, overridden by the operator's settings.
    pub settings: Vec<(String, String)>,
    /// What policy asks of its jobs: windows, rate, allowed scope.
    pub rules: DestinationRules,
    /// Names of its queries, in order.
    pub queries: Vec<String>,
    /// What an attempt works with; its claim records them.
    pub digests: Digests,
    pub(super) source: Arc<dyn OpenQuery>,
    /// On a rehearsed destination.
    pub(super) meter: Option<Meter>,
    /// On a rehearsed one of a bundle without a builder: the file to deliver.
    pub(super) ready: Option<Arc<[u8]>>,
}

impl Destination {
    /// The same destination with rows from elsewhere: for rehearsals and tests.
    #[must_use]
    pub fn with_source(mut self, source: Arc<dyn OpenQuery>) -> Self {
        self.source = source;
        self
    }
}

impl std::fmt::Debug for Destination {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Destination").field("id", &self.id).field("name", &self.name).finish_non_exhaustive()
    }
}

/// The digests that all destinations of a bundle share.
pub(super) struct Shared<'a> {
    pub manifest: &'a Manifest,
    pub builder: Sha256,
    pub destination: Sha256,
    /// Relative paths of secrets and addresses start here.
    pub directory: &'a Path,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    #[serde(rename = "destination")]
    destinations: Vec<WrittenDestination>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenDestination {
    id: Uuid,
    name: String,
    tenant: Uuid,
    // Where it lies; not a table of its own, so that unknown keys are still found out.
    host: Option<String>,
    port: Option<u16>,
    user: Option<String>,
    directory: Option<String>,
    host_keys: Option<Vec<String>>,
    key_file: Option<PathBuf>,
    key_env: Option<String>,
    password_file: Option<PathBuf>,
    password_env: Option<String>,
    path: Option<PathBuf>,
    marker: Option<String>,
    bucket: Option<String>,
    region: Option<String>,
    store: Option<String>,
    prefix: Option<String>,
    access_key_file: Option<PathBuf>,
    access_key_env: Option<String>,
    secret_key_file: Option<PathBuf>,
    secret_key_env: Option<String>,
    ca_file: Option<PathBuf>,
    #[serde(default)]
    settings: BTreeMap<String, String>,
    #[serde(default)]
    queries: BTreeMap<String, WrittenQuery>,
    #[serde(default)]
    rules: DestinationRules,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenQuery {
    sql: String,
    url: Option<String>,
    url_file: Option<PathBuf>,
    url_env: Option<String>,
}

/// Reads and checks the destinations of a bundle.
pub(super) fn parse(text: &str, shared: &Shared<'_>) -> Result<Vec<Destination>, DocumentError> {
    let document = Document::parse(FILE, text, false)?;
    refuse_inline_secrets(&document)?;
    refuse_lists(&document)?;
    let written: Written = document.read()?;
    let mut seen: HashMap<Uuid, usize> = HashMap::new();
    let mut destinations = Vec::new();
    for (index, one) in written.destinations.into_iter().enumerate() {
        let at = At { document: &document, index: index.to_string() };
        if let Some(first) = seen.insert(one.id, index + 1) {
            let what =
                format!("the id {} is already destination number {first} of this file; give each its own", one.id);
            return Err(at.fault(&["id"], what));
        }
        destinations.push(destination(one, &at, shared)?);
    }
    if destinations.is_empty() {
        return Err(document.fault(&["destination"], "there is no destination; add a [[destination]]"));
    }
    Ok(destinations)
}

/// Where in the document a destination stands.
pub(super) struct At<'a> {
    document: &'a Document<'a>,
    index: String,
}

impl At<'_> {
    pub(super) fn fault(&self, path: &[&str], what: impl Into<String>) -> DocumentError {
        let whole: Vec<&str> = ["destination", self.index.as_str()].into_iter().chain(path.iter().copied()).collect();
        self.document.fault(&whole, what)
    }
}

/// Keys under which people put a secret itself.
const INLINE_SECRETS: [&str; 11] = [
    "password",
    "passphrase",
    "passwd",
    "private_key",
    "key",
    "secret",
    "token",
    "access_key",
    "access_key_id",
    "secret_key",
    "secret_access_key",
];

fn refuse_inline_secrets(document: &Document<'_>) -> Result<(), DocumentError> {
    let Some(list) = document.table().iter().find(|(key, _)| key.get_ref().as_ref() == "destination") else {
        return Ok(());
    };
    for (index, entry) in list.1.get_ref().as_array().into_iter().flatten().enumerate() {
        let at = At { document, index: index.to_string() };
        for (key, _) in entry.get_ref().as_table().into_iter().flatten() {
            let key: &str = key.get_ref().as_ref();
            if INLINE_SECRETS.contains(&key) {
                let what = format!(
                    "`{key}` would put a secret into this file: put the secret into a file of its own that only the service can read and name it with key_file or password_file (for an object store access_key_file and secret_key_file), or name an environment variable with key_env or password_env (access_key_env and secret_key_env)"
                );
                return Err(at.fault(&[key], what));
            }
        }
    }
    Ok(())
}

fn refuse_lists(document: &Document<'_>) -> Result<(), DocumentError> {
    let destinations = document.table().iter().find(|(key, _)| key.get_ref().as_ref() == "destination");
    let count = destinations.and_then(|(_, list)| list.get_ref().as_array()).map_or(0, |list| list.len());
    for index in 0..count {
        let index = index.to_string();
        for table in ["settings", "queries", "rules"] {
            document.is_one_table(&["destination", &index, table], "")?;
        }
    }
    Ok(())
}

fn destination(one: WrittenDestination, at: &At<'_>, shared: &Shared<'_>) -> Result<Destination, DocumentError> {
    if one.name.trim().is_empty() || one.name.chars().any(char::is_control) {
        return Err(at.fault(&["name"], "`name` is for lists: it is one line without tabs, and not empty"));
    }
    let written = endpoint::Written {
        host: one.host,
        port: one.port,
        user: one.user,
        directory: one.directory,
        host_keys: one.host_keys,
        key_file: one.key_file,
        key_env: one.key_env,
        password_file: one.password_file,
        password_env: one.password_env,
        path: one.path,
        marker: one.marker,
        bucket: one.bucket,
        region: one.region,
        store: one.store,
        prefix: one.prefix,
        access_key_file: one.access_key_file,
        access_key_env: one.access_key_env,
        secret_key_file: one.secret_key_file,
        secret_key_env: one.secret_key_env,
        ca_file: one.ca_file,
    };
    let endpoint = endpoint::endpoint(written, at, shared.directory)?;
    let mut queries = BTreeMap::new();
    for (name, query) in one.queries {
        let path = ["queries", name.as_str()];
        if let Err(error) = check_query(&query.sql) {
            return Err(at.fault(&["queries", &name, "sql"], format!("query {name:?}: {error}")));
        }
        let database =
            database(&query, shared.directory).map_err(|what| at.fault(&path, format!("query {name:?} {what}")))?;
        queries.insert(name, Query { sql: query.sql, database });
    }
    let mut settings = shared.manifest.options.clone();
    settings.extend(one.settings);
    let digests = digests(shared, &one.name, one.tenant, &endpoint, &settings, &queries)
        .map_err(|error| at.fault(&[], format!("it cannot be digested: {error}")))?;
    Ok(Destination {
        id: one.id,
        name: one.name,
        tenant: one.tenant,
        endpoint,
        settings: settings.into_iter().collect(),
        rules: one.rules,
        queries: queries.keys().cloned().collect(),
        digests,
        source: Arc::new(Queries::new(one.tenant, queries).within(shared.manifest.limits.build())),
        meter: None,
        ready: None,
    })
}

fn database(query: &WrittenQuery, directory: &Path) -> Result<Database, String> {
    let given = [
        query.url.clone().map(Database::Url),
        query.url_file.as_ref().map(|path| Database::UrlFile(directory.join(path))),
        query.url_env.clone().map(Database::UrlEnv),
    ];
    let mut given = given.into_iter().flatten();
    match (given.next(), given.next()) {
        (Some(Database::Url(url)), None) if carries_password(&url) => Err(
            "has a password in its url: move the url into a file that only the service can read and name it with url_file, or name an environment variable with url_env".to_owned(),
        ),
        (Some(database), None) => Ok(database),
        (None, _) => Err("has no database: name it with one of url_env, url_file, url".to_owned()),
        (Some(_), Some(_)) => Err("has several databases: keep one of url_env, url_file, url".to_owned()),
    }
}

fn carries_password(url: &str) -> bool {
    let after_scheme = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = after_scheme.split(['/', '?']).next().unwrap_or("");
    let in_user = authority.rsplit_once('@').is_some_and(|(user, _)| user.contains(':'));
    in_user || url.contains("password=")
}

/// What the settings digest covers. Secrets are references and stay out: a rotated key is not another destination.
#[derive(Serialize)]
struct Digested<'a> {
    name: &'a str,
    tenant: Uuid,
    #[serde(flatten)]
    endpoint: endpoint::Digested<'a>,
    names: [String; 2],
    settings: &'a BTreeMap<String, String>,
    queries: BTreeMap<&'a str, &'a str>,
}

fn digests(
    shared: &Shared<'_>,
    name: &str,
    tenant: Uuid,
    endpoint: &Endpoint,
    settings: &BTreeMap<String, String>,
    queries: &BTreeMap<String, Query>,
) -> Result<Digests, serde_json::Error> {
    let manifest = shared.manifest;
    let digested = Digested {
        name,
        tenant,
        endpoint: endpoint::Digested::of(endpoint),
        names: [manifest.names.final_name.to_string(), manifest.names.temporary.to_string()],
        settings,
        queries: queries.iter().map(|(name, query)| (name.as_str(), query.sql.as_str())).collect(),
    };
    Ok(Digests {
        builder: shared.builder.to_string(),
        destination: shared.destination.to_string(),
        manifest: manifest.sha256.to_string(),
        settings: canonical_digest(&digested)?,
        contract: canonical_digest(&manifest.contract)?,
        checked: checked::digest(manifest, endpoint)?,
    })
}

/// SHA-256 of a value as JSON with its keys in order.
pub(super) fn canonical_digest(value: &impl Serialize) -> Result<String, serde_json::Error> {
    // `Value` keeps objects in a sorted map.
    let json = serde_json::to_string(&serde_json::to_value(value)?)?;
    Ok(Sha256(sha2::Sha256::digest(json.as_bytes()).into()).to_string())
}

#[cfg(test)]
mod tests;
