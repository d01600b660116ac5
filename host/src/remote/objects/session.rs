//! One session at a bucket: single requests.
//!
//! There is no line to keep: a session is what was found out when it was opened. Like the other kinds it ends with the first
//! answer that is none, so that nothing is asked after a request that may still take effect.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::{Stream, StreamExt as _};
use object_store::aws::{AmazonS3, AmazonS3Builder, AwsCredential};
use object_store::list::{PaginatedListOptions, PaginatedListStore as _};
use object_store::path::Path;
use object_store::{
    Extensions, GetOptions, GetRange, GetResult, ObjectMeta, ObjectStore as _, ObjectStoreExt as _, PutMode,
    PutOptions, PutPayload, RetryConfig,
};
use sha2::{Digest as _, Sha256 as Hasher};
use tokio::time::Instant;

use super::answers::{Answered, Failure, failure, sorted};
use super::wire::{Content, Wire};
use crate::job::facts::{Entry, Found, Sha256};
use crate::remote::endpoint::{ObjectsEndpoint, Secret, SecretRef};
use crate::remote::error::{ConnectError, OP_UNSUPPORTED, PERMISSION_DENIED, RemoteError};
use crate::remote::line::Line;
use crate::remote::opened::{self, Opened};
use crate::remote::session::{CreateError, NO_LINKS, ServerFacts, SessionLimits};

/// What one PUT carries at most, by S3's rules.
pub(in crate::remote) const LARGEST_BYTES: u64 = 5 * 1024 * 1024 * 1024;
/// Entries of one page of a listing; no store gives more.
const PAGE: usize = 1000;

/// A session at a destination's bucket.
pub type Session = Opened<Objects>;

type Inner = opened::Inner<Objects>;

pub struct Objects {
    store: AmazonS3,
    /// Empty, or with a `/` at its end.
    prefix: String,
}

impl Session {
    /// Asks the store for a listing. Nothing is written there.
    pub async fn connect(endpoint: &ObjectsEndpoint, limits: &SessionLimits) -> Result<Self, ConnectError> {
        let server = endpoint.server();
        let mend = |why: String| ConnectError::Protocol { server: server.clone(), why };
        let credential =
            AwsCredential { key_id: word(&endpoint.access_key)?, secret_key: word(&endpoint.secret_key)?, token: None };
        let wire = Wire::new(endpoint, credential, *limits).map_err(mend)?;
        let store = AmazonS3Builder::new()
            .with_endpoint(endpoint.address.to_string())
            .with_bucket_name(&endpoint.bucket)
            .with_region(&endpoint.region)
            // Signed in `wire`, where the digest of what is sent is known.
            .with_skip_signature(true)
            .with_http_connector(wire.clone())
            // A repeated create whose first try took effect is answered "exists already": one request is one request.
            .with_retry(RetryConfig { max_retries: 0, retry_timeout: Duration::ZERO, ..RetryConfig::default() })
            // Several names at once are a request that not every store knows.
            .with_disable_bulk_delete(true)
            .build()
            .map_err(|error| mend(error.to_string()))?;
        let prefix = if endpoint.prefix.is_empty() { String::new() } else { format!("{}/", endpoint.prefix) };
        let asked = tokio::time::timeout(limits.request, probe(&store, &prefix)).await;
        match asked {
            Ok(Ok(())) => {}
            Ok(Err(error)) => opened(&error, endpoint, &server)?,
            Err(_) => {
                let why = format!("no answer to a listing within {} s", limits.request.as_secs_f32());
                return Err(ConnectError::Unreachable { server, why });
            }
        }
        let banner = wire.software().map_or_else(|| "an S3 store".to_owned(), |name| format!("an S3 store ({name})"));
        let facts = ServerFacts { banner, extensions: BTreeMap::new(), directory: format!("/{prefix}") };
        Ok(Self::new(Objects { store, prefix }, Arc::new(Line::default()), facts, *limits))
    }

    pub(in crate::remote) async fn ping(&self) -> Result<(), RemoteError> {
        let answer = self
            .request("a listing", |inner| async move {
                probe(&inner.own.store, &inner.own.prefix).await.map_err(|error| sorted(&error))
            })
            .await;
        match answer {
            // A no is an answer: not everybody may list.
            Err(refusal) if refusal.is_refusal() => Ok(()),
            answer => answer,
        }
    }

    pub async fn stat(&self, name: &str) -> Result<Found, RemoteError> {
        let path = self.path(name)?;
        let looked = self.request("a look", |inner| async move { inner.seen(&path).await }).await;
        match looked {
            Ok(seen) => Ok(Found::Present(entry(name.to_owned(), &seen))),
            Err(refusal) if refusal.says_absent() => Ok(Found::Absent),
            Err(RemoteError::Refused { code: Some(PERMISSION_DENIED), text }) => Ok(Found::NotVisible { why: text }),
            Err(error) => Err(error),
        }
    }

    pub async fn list(
        &self,
        directory: &str,
        prefix: &str,
        most: usize,
        wanted: impl Fn(&str) -> bool + Send + 'static,
    ) -> Result<Vec<Entry>, RemoteError> {
        let folder = match directory.trim_end_matches('/') {
            "" | "." => String::new(),
            folder => format!("{folder}/"),
        };
        let begins = format!("{}{folder}{prefix}", self.inner.own.prefix);
        self.run("a listing", self.inner.limits.look, move |inner| async move {
            inner.entries(&begins, &folder, most, wanted).await
        })
        .await
    }

    /// A yes that does nothing: a name's folders come with it.
    pub fn make_directory(&self, name: &str) -> Result<(), RemoteError> {
        self.path(name).map(drop)
    }

    pub async fn remove(&self, name: &str) -> Result<(), RemoteError> {
        let path = self.path(name)?;
        self.request("a removal", |inner| async move {
            // The store says yes to a removal of what is not there.
            inner.seen(&path).await?;
            inner.own.store.delete(&path).await.map_err(|error| sorted(&error))
        })
        .await
    }

    /// What none of the renames and links of other kinds has here.
    pub(in crate::remote) fn not_offered() -> RemoteError {
        RemoteError::Refused { code: Some(OP_UNSUPPORTED), text: NO_LINKS.to_owned() }
    }

    /// What one request can carry.
    pub(in crate::remote) fn largest_bytes(&self) -> u64 {
        self.inner.limits.largest_object
    }

    /// Creates a file that must not exist yet, in one request: whole, or not at all.
    pub(in crate::remote) async fn create_from(
        &self,
        name: &str,
        bytes: u64,
        sha256: Sha256,
        blocks: impl Stream<Item = Result<Bytes, RemoteError>> + Send + 'static,
    ) -> Result<(), CreateError> {
        let nothing = |error| CreateError { may_exist: false, error };
        let path = self.path(name).map_err(nothing)?;
        let largest = self.largest_bytes();
        if bytes > largest {
            return Err(nothing(RemoteError::too_large(bytes, largest)));
        }
        let content = Content::new(bytes, sha256, blocks.boxed());
        // It may take as long as its bytes move; each step has its own bound inside.
        let created = self
            .run("an upload", Duration::MAX, |inner| async move {
                let mut extensions = Extensions::new();
                extensions.insert(content);
                let options = PutOptions { mode: PutMode::Create, extensions, ..PutOptions::default() };
                let put = inner.own.store.put_opts(&path, PutPayload::default(), options).await;
                put.map(drop).map_err(|error| sorted(&error))
            })
            .await;
        created.map_err(|error| CreateError { may_exist: matches!(error, RemoteError::Unknown { .. }), error })
    }

    pub async fn read(&self, name: &str, offset: u64, most: u32) -> Result<Vec<u8>, RemoteError> {
        let path = self.path(name)?;
        let end = offset.saturating_add(u64::from(most));
        if end == offset {
            return Ok(Vec::new());
        }
        self.request("reading", move |inner| async move {
            let options = GetOptions { range: Some(GetRange::Bounded(offset..end)), ..GetOptions::default() };
            let part = match inner.own.store.get_opts(&path, options).await {
                Ok(part) => part,
                // Nothing is there from this offset on.
                Err(error) if answered(&error).is_some_and(|answered| answered.status == 416) => return Ok(Vec::new()),
                Err(error) => return Err(sorted(&error)),
            };
            // A store may send more than it was asked for.
            let (mut content, mut blocks) = (Vec::new(), part.into_stream());
            while content.len() < most as usize
                && let Some(block) = blocks.next().await
            {
                content.extend_from_slice(&block.map_err(|error| sorted(&error))?);
            }
            content.truncate(most as usize);
            Ok(content)
        })
        .await
    }

    pub async fn read_digest(&self, name: &str, most: u64) -> Result<(Sha256, u64), RemoteError> {
        let path = self.path(name)?;
        self.run("reading back", self.inner.limits.reading_back(), move |inner| async move {
            let whole = inner.own.store.get(&path).await.map_err(|error| sorted(&error))?;
            digest(whole, most, &inner.limits).await
        })
        .await
    }

    fn path(&self, name: &str) -> Result<Path, RemoteError> {
        crate::job::names::check_name(name).map_err(|error| RemoteError::Invalid { why: error.to_string() })?;
        Path::parse(format!("{}{name}", self.inner.own.prefix))
            .map_err(|error| RemoteError::Invalid { why: format!("an object cannot have this name: {error}") })
    }
}

impl Inner {
    /// A HEAD has no words: it does not tell a missing object from a missing bucket. A GET does.
    async fn seen(&self, path: &Path) -> Result<ObjectMeta, RemoteError> {
        match self.own.store.head(path).await {
            Ok(seen) => Ok(seen),
            Err(error) if answered(&error).is_some_and(|answered| answered.status == 404) => {
                // One that came into being in between is there; its bytes are not read.
                self.own.store.get(path).await.map(|come| come.meta).map_err(|error| sorted(&error))
            }
            Err(error) => Err(sorted(&error)),
        }
    }

    async fn entries(
        &self,
        begins: &str,
        folder: &str,
        most: usize,
        wanted: impl Fn(&str) -> bool,
    ) -> Result<Vec<Entry>, RemoteError> {
        let within = format!("{}{folder}", self.own.prefix);
        // Names are relative to the destination; an object that marks the folder itself is none.
        let named = |key: &Path| key.as_ref().strip_prefix(&within).map(|own| format!("{folder}{own}"));
        let (mut entries, mut page_token) = (Vec::new(), None);
        while entries.len() < most {
            let options = PaginatedListOptions {
                delimiter: Some("/".into()),
                max_keys: Some(PAGE),
                page_token,
                ..PaginatedListOptions::default()
            };
            let page = self.own.store.list_paginated(Some(begins), options).await.map_err(|error| sorted(&error))?;
            for object in page.result.objects {
                let Some(name) = named(&object.location).filter(|name| wanted(name)) else { continue };
                entries.push(entry(name, &object));
            }
            for above in page.result.common_prefixes {
                let Some(name) = named(&above).filter(|name| wanted(name)) else { continue };
                entries.push(Entry { name, kind: "directory".to_owned(), bytes: None, modified: None });
            }
            page_token = page.page_token;
            if page_token.is_none() {
                break;
            }
        }
        entries.truncate(most);
        Ok(entries)
    }
}

/// A listing of what nobody has: it asks for nothing but an answer.
async fn probe(store: &AmazonS3, prefix: &str) -> object_store::Result<()> {
    let options = PaginatedListOptions { max_keys: Some(1), ..PaginatedListOptions::default() };
    store.list_paginated(Some(&format!("{prefix}.waybill-asks-for-an-answer")), options).await.map(drop)
}

fn answered(error: &object_store::Error) -> Option<&Answered> {
    match failure(error) {
        Some(Failure::Answered(answered)) => Some(answered),
        Some(Failure::NotSent(_) | Failure::Unfit(_) | Failure::Cut(_)) | None => None,
    }
}

/// What the first answer means. A credential that may not list may still deliver.
fn opened(error: &object_store::Error, endpoint: &ObjectsEndpoint, server: &str) -> Result<(), ConnectError> {
    let server = server.to_owned();
    let ObjectsEndpoint { bucket, region, access_key, secret_key, .. } = endpoint;
    let answered = match failure(error) {
        Some(Failure::Answered(answered)) => answered,
        Some(Failure::NotSent(why) | Failure::Cut(why)) => {
            return Err(ConnectError::Unreachable { server, why: why.clone() });
        }
        Some(Failure::Unfit(why)) => return Err(ConnectError::Protocol { server, why: why.clone() }),
        None => {
            let why = format!("its answer is not S3's ({error}); correct `store` in destinations.toml");
            return Err(ConnectError::Protocol { server, why });
        }
    };
    let why = match (answered.status, answered.code.as_str()) {
        (403, "AccessDenied" | "") => return Ok(()),
        (403, "RequestTimeTooSkewed") => format!("{answered}; set this machine's clock"),
        (401 | 403, _) => format!(
            "it does not accept the access key ({access_key}) with the secret key ({secret_key}): {answered}; have the partner check them, or correct them"
        ),
        (404, _) => format!(
            "it has no bucket {bucket:?} ({answered}); create it, or correct `bucket` or `store` in destinations.toml"
        ),
        (301 | 307 | 308 | 400, _) => {
            format!("{answered}; if the bucket is not in the region {region:?}, correct `region` in destinations.toml")
        }
        (400..500, _) => answered.to_string(),
        _ => return Err(ConnectError::Unreachable { server, why: format!("it answered {answered}") }),
    };
    Err(ConnectError::Protocol { server, why })
}

/// A key is one word; a line break at its end is the editor's.
fn word(secret: &SecretRef) -> Result<String, ConnectError> {
    let (Secret::Password(text) | Secret::Key(text)) = secret.fetch()?;
    let text = text.trim().to_owned();
    if text.chars().all(|c| c.is_ascii_graphic()) {
        return Ok(text);
    }
    Err(ConnectError::SecretMissing {
        secret: secret.clone(),
        why: "a key is one word, and this is not; put the key there, and nothing else".to_owned(),
    })
}

fn entry(name: String, seen: &ObjectMeta) -> Entry {
    Entry {
        name,
        kind: "file".to_owned(),
        bytes: Some(seen.size),
        modified: u64::try_from(seen.last_modified.timestamp()).ok().filter(|seconds| *seconds > 0),
    }
}

async fn digest(whole: GetResult, most: u64, limits: &SessionLimits) -> Result<(Sha256, u64), RemoteError> {
    let began = Instant::now();
    let shown = whole.meta.size;
    let too_long = || RemoteError::Invalid { why: format!("the file is longer than {most} bytes") };
    if shown > most {
        return Err(too_long());
    }
    let (mut hash, mut bytes, mut blocks) = (Hasher::new(), 0_u64, whole.into_stream());
    while let Some(block) = blocks.next().await {
        let block = block.map_err(|error| sorted(&error))?;
        bytes += block.len() as u64;
        if bytes > most {
            return Err(too_long());
        }
        hash.update(&block);
        limits.check_reading_back(began)?;
    }
    Ok((Sha256(hash.finalize().into()), bytes))
}
