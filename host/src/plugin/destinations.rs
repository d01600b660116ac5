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
        source: Arc::new(Queries::new(one.tenant, queries)),
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
mod tests {
    use super::*;
    use crate::remote::{DirectoryEndpoint, SecretRef};

    const ONE: &str = "[[destination]]\n\
        id = '018f0000-0000-7000-8000-000000000001'\n\
        name = 'Acme production'\n\
        tenant = '018f0000-0000-7000-8000-0000000000aa'\n\
        host = 'sftp.acme.example'\n\
        user = 'us'\n\
        directory = 'in'\n\
        host_keys = ['ssh-ed25519 AAAA']\n\
        key_file = 'id'\n";
    const QUERY: &str =
        "[destination.queries.contacts]\nsql = 'select 1 where t = :tenant::uuid'\nurl_env = 'CONTACTS_URL'\n";

    fn read(text: &str) -> Result<Vec<Destination>, DocumentError> {
        let manifest = Manifest::parse("partner = 'acme'\nrevision = 1\n[names]\nfinal = '{key}.csv'\n[options]\nseparator = ';'\nheader = 'yes'\n").unwrap();
        let shared = Shared {
            manifest: &manifest,
            builder: Sha256([1; 32]),
            destination: Sha256([2; 32]),
            directory: Path::new("/partners/acme"),
        };
        parse(text, &shared)
    }

    #[test]
    fn a_destination_is_read_with_defaults_and_merged_settings() {
        let text = format!("{ONE}[destination.settings]\nheader = 'no'\n{QUERY}");
        let one = &read(&text).unwrap()[0];
        let Endpoint::Sftp(endpoint) = &one.endpoint else { panic!("{}", one.endpoint) };
        assert_eq!((endpoint.port, one.endpoint.to_string().as_str()), (22, "us@sftp.acme.example:22, in"));
        assert!(matches!(&endpoint.secret, SecretRef::KeyFile(path) if path == Path::new("/partners/acme/id")));
        assert_eq!(one.settings, [("header".to_owned(), "no".to_owned()), ("separator".to_owned(), ";".to_owned())]);
        assert_eq!(one.queries, ["contacts"]);
    }

    const OUTBOX: &str = "[[destination]]\n\
        id = '018f0000-0000-7000-8000-000000000001'\n\
        name = 'Acme share'\n\
        tenant = '018f0000-0000-7000-8000-0000000000aa'\n\
        path = '/srv/outbox'\n";

    #[test]
    fn a_directory_of_this_machine_is_a_destination_too() {
        let one = |text: &str| read(text).unwrap()[0].clone();
        let plain = one(OUTBOX);
        let path = PathBuf::from("/srv/outbox");
        assert_eq!(plain.endpoint, Endpoint::Directory(DirectoryEndpoint { path: path.clone(), marker: None }));
        let marked = one(&format!("{OUTBOX}marker = '.mounted'\n"));
        let marker = Some(".mounted".to_owned());
        assert_eq!(marked.endpoint, Endpoint::Directory(DirectoryEndpoint { path, marker }));
        let elsewhere = one(&OUTBOX.replace("outbox", "other"));
        assert_ne!(plain.digests.settings, marked.digests.settings);
        assert_ne!(plain.digests.settings, elsewhere.digests.settings);
        // Final names are told apart by the directory, not by its server.
        assert_eq!(plain.endpoint.server(), elsewhere.endpoint.server());
    }

    const BUCKET: &str = "[[destination]]\n\
        id = '018f0000-0000-7000-8000-000000000001'\n\
        name = 'Acme bucket'\n\
        tenant = '018f0000-0000-7000-8000-0000000000aa'\n\
        bucket = 'deliveries'\n\
        region = 'eu-central-1'\n\
        access_key_env = 'ACME_ACCESS_KEY'\n\
        secret_key_file = 'secret_key'\n\
        prefix = 'in/'\n";

    #[test]
    fn a_bucket_of_an_object_store_is_a_destination_too() {
        let one = |text: &str| read(text).unwrap()[0].clone();
        let amazons = one(BUCKET);
        let Endpoint::Objects(endpoint) = &amazons.endpoint else { panic!("{}", amazons.endpoint) };
        assert_eq!(endpoint.secret_key, SecretRef::StoreKeyFile(PathBuf::from("/partners/acme/secret_key")));
        assert_eq!(amazons.endpoint.to_string(), "https://s3.eu-central-1.amazonaws.com/deliveries/in");
        assert_eq!(amazons.endpoint.server(), "https://s3.eu-central-1.amazonaws.com/deliveries");
        let stored = BUCKET.replace("region = 'eu-central-1'", "store = 'https://Store.example:443/'");
        assert_eq!(one(&stored).endpoint.server(), "https://store.example/deliveries");
        // Neither key is in the digest, nor who vouches for the store; everything else is.
        let rotated = BUCKET.replace("'secret_key'", "'other'").replace("ACME_ACCESS_KEY", "OTHER");
        let vouched = one(&format!("{rotated}ca_file = 'house.pem'\n"));
        assert_eq!(vouched.digests.settings, amazons.digests.settings);
        let Endpoint::Objects(endpoint) = &vouched.endpoint else { panic!("{}", vouched.endpoint) };
        assert_eq!(endpoint.ca_file.as_deref(), Some(Path::new("/partners/acme/house.pem")));
        for changed in [
            stored,
            BUCKET.replace("'deliveries'", "'other'"),
            BUCKET.replace("eu-central-1", "eu-west-1"),
            BUCKET.replace("'in/'", "'out/'"),
        ] {
            assert_ne!(one(&changed).digests.settings, amazons.digests.settings, "{changed}");
        }
    }

    #[test]
    fn the_settings_digest_covers_what_matters_and_no_secret() {
        let digest = |text: &str| read(text).unwrap()[0].digests.settings.clone();
        let base = digest(ONE);
        assert_eq!(base, digest(&ONE.replace("key_file = 'id'", "password_env = 'ACME'")));
        for changed in [
            ONE.replace("'in'", "'out'"),
            ONE.replace("AAAA", "BBBB"),
            format!("{ONE}[destination.settings]\nheader = 'no'\n"),
            format!("{ONE}{QUERY}"),
        ] {
            assert_ne!(base, digest(&changed), "{changed}");
        }
    }

    #[test]
    fn each_fault_is_told_with_its_line_and_fix_and_without_the_value() {
        let second = ONE.replace("Acme production", "Acme test");
        let cases: &[(String, usize, &str)] = &[
            (String::new(), 1, "`destination` is missing"),
            (format!("{ONE}password = 'hunter2'\n"), 10, "password_file"),
            (format!("{ONE}key = 'hunter2'\n"), 10, "key_file"),
            (ONE.replace("key_file = 'id'\n", ""), 6, "one of key_file"),
            (format!("{ONE}password_env = 'hunter2'\n"), 6, "keep one"),
            (ONE.replace("host_keys = ['ssh-ed25519 AAAA']", "host_keys = []"), 8, "ssh-keyscan"),
            (ONE.replace("'Acme production'", "\"hunter2\\nready\""), 3, "one line"),
            (ONE.replace("'Acme production'", "\"hunter2\\u0000\""), 3, "U+0000"),
            (format!("{ONE}port = 'hunter2'\n"), 10, "u16"),
            (format!("{ONE}usr = 'x'\n"), 10, "did you mean `user`"),
            (format!("{ONE}{second}"), 11, "give each its own"),
            (format!("{ONE}{}", QUERY.replace(" where t = :tenant::uuid", "")), 11, ":tenant"),
            (
                format!("{ONE}{}", QUERY.replace("url_env = 'CONTACTS_URL'", "url = 'postgres://u:hunter2@db/x'")),
                10,
                "url_file",
            ),
            (format!("{ONE}{}", QUERY.replace("url_env = 'CONTACTS_URL'\n", "")), 10, "has no database"),
            (ONE.replace("-0000000000aa", ""), 4, "UUID"),
            (ONE.replace("host = 'sftp.acme.example'\n", ""), 1, "`host` is missing"),
            (ONE.replace("user = 'us'\n", ""), 1, "`user` is missing"),
            (format!("{ONE}path = '/hunter2'\n"), 10, "keep `host`"),
            (format!("{ONE}marker = 'hunter2'\n"), 10, "take it out"),
            (OUTBOX.replace("/srv/outbox", "hunter2"), 5, "absolute"),
            (format!("{OUTBOX}user = 'hunter2'\n"), 6, "`user` is for an SFTP server"),
            (format!("{OUTBOX}marker = '../hunter2'\n"), 6, "name of a file"),
            (format!("{OUTBOX}region = 'hunter2'\n"), 6, "`region` is for an object store"),
            (format!("{BUCKET}secret_key = 'hunter2'\n"), 10, "secret_key_file"),
            (format!("{BUCKET}host = 'hunter2'\n"), 5, "keep `bucket`"),
            (format!("{BUCKET}port = 22\n"), 10, "`port` is for an SFTP server"),
            (format!("{BUCKET}access_key_file = 'hunter2'\n"), 5, "keep one of access_key_file"),
            (BUCKET.replace("secret_key_file = 'secret_key'\n", ""), 5, "secret_key_file or secret_key_env"),
            (BUCKET.replace("region = 'eu-central-1'\n", ""), 5, "`region` is missing"),
            (BUCKET.replace("'eu-central-1'", "'hunter2/'"), 6, "region's name"),
            (BUCKET.replace("'deliveries'", "'hunter2/in'"), 5, "bucket's name alone"),
            (format!("{BUCKET}store = 'http://hunter2'\n"), 10, "this machine only"),
            (format!("{BUCKET}store = 'https://u:hunter2@store.example'\n"), 10, "nothing after it"),
            (BUCKET.replace("'in/'", "'/hunter2'"), 9, "folder within the bucket"),
            (format!("{BUCKET}store = 'http://[::1]'\nca_file = 'hunter2'\n"), 11, "reached by `https://`"),
        ];
        for (text, line, part) in cases {
            let error = read(text).unwrap_err();
            assert!(error.line == *line && error.what.contains(part), "{error}\nfor\n{text}");
            assert!(!error.to_string().contains("hunter2"), "{error}");
        }
    }
}
