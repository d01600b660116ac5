//! Bundles on disk, rows in memory, and jobs, for tests of one call at a time.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context;
use futures::future::BoxFuture;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;
use waybill::job::model::ClaimedJob;
use waybill::plugin::{Built, Bundle, CallError, Destination, OpenQuery, PluginSettings, Plugins};
use waybill::source::{Column, Rows, SourceError, Value};
use waybill::spool::Spool;

/// The bytes of a built guest.
pub fn guest(name: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/plugins").join(format!("{name}.wasm"));
    std::fs::read(&path).unwrap_or_else(|error| panic!("{} cannot be read ({error}): run make plugins", path.display()))
}

/// A partners directory, and the plugins that read it.
pub struct Partners {
    directory: tempfile::TempDir,
    pub plugins: Plugins,
    pub spool: Spool,
}

impl Partners {
    pub fn new() -> anyhow::Result<Self> {
        let directory = tempfile::tempdir()?;
        let cache = directory.path().join("cache");
        Self::over(directory, cache)
    }

    /// Over compiled components that all tests share, for guests that take seconds to compile.
    pub fn sharing_the_cache() -> anyhow::Result<Self> {
        Self::over(tempfile::tempdir()?, waybill_tests::house::compiled())
    }

    fn over(directory: tempfile::TempDir, cache_dir: PathBuf) -> anyhow::Result<Self> {
        std::fs::create_dir(directory.path().join("partners"))?;
        let plugins = Plugins::open(&PluginSettings::new(cache_dir))?;
        let spool = Spool::open(&directory.path().join("spool"))?;
        Ok(Self { directory, plugins, spool })
    }

    pub fn path(&self) -> PathBuf {
        self.directory.path().join("partners")
    }

    pub fn cache(&self) -> PathBuf {
        self.directory.path().join("cache")
    }

    pub fn write(&self, bundle: &str, file: &str, bytes: impl AsRef<[u8]>) -> anyhow::Result<()> {
        let directory = self.path().join(bundle);
        std::fs::create_dir_all(&directory)?;
        std::fs::write(directory.join(file), bytes)?;
        Ok(())
    }

    /// A whole bundle of the given guests; `more` is appended to its manifest.
    pub fn bundle(&self, name: &str, builder: &str, destination: &str, more: &str) -> anyhow::Result<()> {
        self.write(name, "partner.toml", manifest(name, more))?;
        self.write(name, "destinations.toml", destination_of(name, 22, HOST_KEY))?;
        self.write(name, "builder.wasm", guest(builder))?;
        self.write(name, "destination.wasm", guest(destination))
    }

    /// Loads every bundle as a host does, and expects each to be whole.
    pub async fn load(&self) -> anyhow::Result<Vec<Arc<Bundle>>> {
        let mut bundles = Vec::new();
        for entry in std::fs::read_dir(self.path())? {
            bundles.push(Arc::new(self.plugins.load_one(&entry?.path()).await?));
        }
        Ok(bundles)
    }

    /// Loads, and expects this one bundle.
    pub async fn load_only(&self) -> anyhow::Result<Arc<Bundle>> {
        self.load().await?.into_iter().next().context("there is no bundle")
    }

    /// The misbehaving pair, with short limits.
    pub async fn misbehaving(&self) -> anyhow::Result<Arc<Bundle>> {
        self.bundle("bad", "misbehaving-builder", "misbehaving-destination", SHORT_LIMITS)?;
        self.load_only().await
    }

    pub async fn build(&self, bundle: &Bundle, destination: &Destination) -> Result<Built, CallError> {
        self.build_until(bundle, destination, &CancellationToken::new()).await
    }

    pub async fn build_until(
        &self,
        bundle: &Bundle,
        destination: &Destination,
        stop: &CancellationToken,
    ) -> Result<Built, CallError> {
        let draft = self.spool.create(bundle.manifest.limits.output_bytes()).unwrap();
        bundle.build(destination, &job(destination), draft, stop).await
    }
}

/// Small enough that a test that runs into them is quick.
pub const SHORT_LIMITS: &str =
    "[limits]\nbuild_seconds = 1\ncall_seconds = 1\ndeliver_seconds = 1\nmemory_mib = 32\noutput_mib = 1\n";

/// A well-formed fingerprint, of no server's key.
pub const HOST_KEY: &str = "SHA256:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";

pub fn manifest(partner: &str, more: &str) -> String {
    format!("partner = '{partner}'\nrevision = 1\n[names]\nfinal = 'contacts-{{key}}.csv'\n{more}")
}

/// One destination whose id follows from its bundle's name.
pub fn destination_of(bundle: &str, port: u16, host_key: &str) -> String {
    let id = Uuid::from_u128(bundle.bytes().fold(1_u128, |sum, byte| (sum << 8) | u128::from(byte)));
    format!(
        "[[destination]]\nid = '{id}'\nname = '{bundle}'\ntenant = '{}'\nhost = '127.0.0.1'\nport = {port}\nuser = 'waybill'\n\
         directory = '.'\nhost_keys = ['{host_key}']\npassword_file = 'password'\n",
        Uuid::from_u128(7)
    )
}

/// The bundle's first destination with settings of the test's, and rows of its own.
pub fn destination(bundle: &Bundle, settings: &[(&str, &str)], source: impl OpenQuery + 'static) -> Destination {
    let mut destination = Destination::clone(&bundle.destinations[0]).with_source(Arc::new(source));
    destination.settings.extend(settings.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
    destination
}

pub fn job(destination: &Destination) -> ClaimedJob {
    ClaimedJob {
        id: Uuid::from_u128(1),
        tenant: destination.tenant,
        attempt: Uuid::from_u128(2),
        attempt_count: 1,
        destination: destination.id,
        delivery_key: "k-1".to_owned(),
        created_at: time::macros::datetime!(2026-03-02 08:15:00 UTC),
        version: 1,
        scope: serde_json::json!({}),
        replacement: None,
    }
}

/// So many rows of one text column, under every query name.
pub struct Table(pub u64);

/// A query that never answers.
pub struct Silent;

/// A database that is away.
pub struct Away;

impl OpenQuery for Table {
    fn open<'a>(&'a self, _: &'a str, _: &'a [(String, String)]) -> BoxFuture<'a, Result<Box<dyn Rows>, SourceError>> {
        let columns = vec![Column { name: "name".to_owned(), of: "text".to_owned() }];
        let rows = Numbered { columns, next: 0, end: self.0 };
        Box::pin(async move { Ok(Box::new(rows) as Box<dyn Rows>) })
    }
}

impl OpenQuery for Silent {
    fn open<'a>(&'a self, _: &'a str, _: &'a [(String, String)]) -> BoxFuture<'a, Result<Box<dyn Rows>, SourceError>> {
        Box::pin(std::future::pending())
    }
}

impl OpenQuery for Away {
    fn open<'a>(
        &'a self,
        query: &'a str,
        _: &'a [(String, String)],
    ) -> BoxFuture<'a, Result<Box<dyn Rows>, SourceError>> {
        let why = "nobody listens".to_owned();
        let error = SourceError::Unreachable { query: query.to_owned(), at: "nowhere".to_owned(), why };
        Box::pin(async move { Err(error) })
    }
}

/// Some rows, and then this instead of the next ones.
pub struct Broken(pub u64, pub fn() -> SourceError);

impl OpenQuery for Broken {
    fn open<'a>(&'a self, _: &'a str, _: &'a [(String, String)]) -> BoxFuture<'a, Result<Box<dyn Rows>, SourceError>> {
        let columns = vec![Column { name: "name".to_owned(), of: "text".to_owned() }];
        let rows = BrokenRows { rows: Numbered { columns, next: 0, end: self.0 }, error: self.1 };
        Box::pin(async move { Ok(Box::new(rows) as Box<dyn Rows>) })
    }
}

struct BrokenRows {
    rows: Numbered,
    error: fn() -> SourceError,
}

impl Rows for BrokenRows {
    fn columns(&self) -> &[Column] {
        self.rows.columns()
    }

    fn next(&mut self, most: u32) -> BoxFuture<'_, Result<Vec<Vec<Value>>, SourceError>> {
        if self.rows.next == self.rows.end {
            return Box::pin(async move { Err((self.error)()) });
        }
        self.rows.next(most)
    }
}

struct Numbered {
    columns: Vec<Column>,
    next: u64,
    end: u64,
}

impl Rows for Numbered {
    fn columns(&self) -> &[Column] {
        &self.columns
    }

    fn next(&mut self, most: u32) -> BoxFuture<'_, Result<Vec<Vec<Value>>, SourceError>> {
        let until = (self.next + u64::from(most)).min(self.end);
        let rows = (self.next..until).map(|number| vec![Value::Text(row(number))]).collect();
        self.next = until;
        Box::pin(async move { Ok(rows) })
    }
}

fn row(number: u64) -> String {
    format!("contact {number}")
}

/// What the well-behaved builder writes for [`Table`].
pub fn expected(rows: u64) -> Vec<u8> {
    (0..rows).flat_map(|number| [row(number), "\n".to_owned()]).collect::<String>().into_bytes()
}
