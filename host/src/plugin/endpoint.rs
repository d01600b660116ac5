//! Where a destination of `destinations.toml` lies: on an SFTP server, in a directory of this machine, or in an object store.

use std::path::{Path, PathBuf};

use serde::Serialize;

use super::destinations::At;
use super::document::DocumentError;
use crate::job::names::check_name;
use crate::remote::sftp::host_key_fault;
use crate::remote::{DirectoryEndpoint, Endpoint, ObjectsEndpoint, SecretRef, SftpEndpoint, StoreAddress};

/// The keys that say it, as they were written.
pub(super) struct Written {
    pub host: Option<String>,
    pub port: Option<u16>,
    pub user: Option<String>,
    pub directory: Option<String>,
    pub host_keys: Option<Vec<String>>,
    pub key_file: Option<PathBuf>,
    pub key_env: Option<String>,
    pub password_file: Option<PathBuf>,
    pub password_env: Option<String>,
    pub path: Option<PathBuf>,
    pub marker: Option<String>,
    pub bucket: Option<String>,
    pub region: Option<String>,
    pub store: Option<String>,
    pub prefix: Option<String>,
    pub access_key_file: Option<PathBuf>,
    pub access_key_env: Option<String>,
    pub secret_key_file: Option<PathBuf>,
    pub secret_key_env: Option<String>,
    pub ca_file: Option<PathBuf>,
}

/// The kinds of places, by the key that chooses one.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Host,
    Path,
    Bucket,
}

impl Kind {
    const fn key(self) -> &'static str {
        match self {
            Self::Host => "host",
            Self::Path => "path",
            Self::Bucket => "bucket",
        }
    }

    const fn in_words(self) -> &'static str {
        match self {
            Self::Host => "an SFTP server",
            Self::Path => "a directory of this machine",
            Self::Bucket => "an object store",
        }
    }
}

const SSH_PORT: u16 = 22;
/// What a store that is not Amazon's calls the only region it has, unless it says otherwise.
const ONLY_REGION: &str = "us-east-1";

/// Reads and checks them. Relative paths of secrets start at the bundle's directory.
pub(super) fn endpoint(written: Written, at: &At<'_>, bundle: &Path) -> Result<Endpoint, DocumentError> {
    let chosen = [
        (Kind::Host, written.host.is_some()),
        (Kind::Path, written.path.is_some()),
        (Kind::Bucket, written.bucket.is_some()),
    ];
    let mut chosen = chosen.into_iter().filter(|(_, given)| *given).map(|(kind, _)| kind);
    let kind = match (chosen.next(), chosen.next()) {
        (Some(kind), None) => kind,
        (None, _) => {
            return Err(at.fault(
                &[],
                "`host` is missing: name the SFTP server with it, or a directory of this machine with `path`, or a bucket of an object store with `bucket`",
            ));
        }
        (Some(first), Some(second)) => {
            let (first, second) = (first.key(), second.key());
            let what = format!("there are two places to deliver to: keep `{first}`, or keep `{second}`");
            return Err(at.fault(&[second], what));
        }
    };
    refuse_foreign_keys(&written, kind, at)?;
    match kind {
        Kind::Host => sftp(written, at, bundle).map(Endpoint::Sftp),
        Kind::Path => directory(written, at).map(Endpoint::Directory),
        Kind::Bucket => objects(written, at, bundle).map(Endpoint::Objects),
    }
}

/// A key of another kind was meant for something: it is not passed over.
fn refuse_foreign_keys(written: &Written, kind: Kind, at: &At<'_>) -> Result<(), DocumentError> {
    for (key, of, given) in [
        ("port", Kind::Host, written.port.is_some()),
        ("user", Kind::Host, written.user.is_some()),
        ("directory", Kind::Host, written.directory.is_some()),
        ("host_keys", Kind::Host, written.host_keys.is_some()),
        ("key_file", Kind::Host, written.key_file.is_some()),
        ("key_env", Kind::Host, written.key_env.is_some()),
        ("password_file", Kind::Host, written.password_file.is_some()),
        ("password_env", Kind::Host, written.password_env.is_some()),
        ("marker", Kind::Path, written.marker.is_some()),
        ("region", Kind::Bucket, written.region.is_some()),
        ("store", Kind::Bucket, written.store.is_some()),
        ("prefix", Kind::Bucket, written.prefix.is_some()),
        ("access_key_file", Kind::Bucket, written.access_key_file.is_some()),
        ("access_key_env", Kind::Bucket, written.access_key_env.is_some()),
        ("secret_key_file", Kind::Bucket, written.secret_key_file.is_some()),
        ("secret_key_env", Kind::Bucket, written.secret_key_env.is_some()),
        ("ca_file", Kind::Bucket, written.ca_file.is_some()),
    ] {
        if given && of != kind {
            let what = format!(
                "`{key}` is for {}, and `{}` names {}; take it out",
                of.in_words(),
                kind.key(),
                kind.in_words()
            );
            return Err(at.fault(&[key], what));
        }
    }
    Ok(())
}

fn sftp(written: Written, at: &At<'_>, bundle: &Path) -> Result<SftpEndpoint, DocumentError> {
    let text = |key: &str, value: &Option<String>| match value {
        None => Err(at.fault(&[], format!("`{key}` is missing; say it (the login's own directory is `.`)"))),
        Some(value) if value.trim().is_empty() => {
            Err(at.fault(&[key], format!("`{key}` is empty; say it (the login's own directory is `.`)")))
        }
        Some(value) => Ok(value.clone()),
    };
    let host = text("host", &written.host)?;
    let user = text("user", &written.user)?;
    let directory = text("directory", &written.directory)?;
    if written.port == Some(0) {
        return Err(at.fault(&["port"], "port 0 is no port; SSH's is 22"));
    }
    let secret = secret(&written, at, bundle)?;
    let host_keys = written.host_keys.unwrap_or_default();
    if host_keys.iter().all(|key| key.trim().is_empty()) {
        return Err(at.fault(
            &["host_keys"],
            "without a host key the host cannot know that it talks to the partner; ask the partner for it, or take it with ssh-keyscan and have it confirmed",
        ));
    }
    for (index, key) in host_keys.iter().enumerate() {
        if let Some(why) = host_key_fault(key) {
            let what = format!(
                "host key {} {why}; take it with `ssh-keyscan -p PORT HOST | ssh-keygen -lf -` and have the partner confirm it",
                index + 1
            );
            return Err(at.fault(&["host_keys", &index.to_string()], what));
        }
    }
    Ok(SftpEndpoint { host, port: written.port.unwrap_or(SSH_PORT), user, directory, host_keys, secret })
}

fn directory(written: Written, at: &At<'_>) -> Result<DirectoryEndpoint, DocumentError> {
    let path = written.path.unwrap_or_default();
    if !path.is_absolute() {
        return Err(at.fault(
            &["path"],
            "`path` must be absolute: every worker that serves this destination must find the same directory there",
        ));
    }
    if written.marker.as_ref().is_some_and(|marker| check_name(marker).is_err()) {
        return Err(at.fault(&["marker"], "`marker` must be the name of a file in the directory"));
    }
    Ok(DirectoryEndpoint { path, marker: written.marker })
}

fn objects(written: Written, at: &At<'_>, bundle: &Path) -> Result<ObjectsEndpoint, DocumentError> {
    let plain = |text: &str| {
        !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_'))
    };
    let bucket = written.bucket.unwrap_or_default();
    if !plain(&bucket) || bucket.len() > 63 {
        return Err(at.fault(&["bucket"], "`bucket` must be a bucket's name alone: letters, digits, `.`, `-` and `_`"));
    }
    let region = match (written.region, &written.store) {
        (Some(region), _) if plain(&region) => region,
        (Some(_), _) => return Err(at.fault(&["region"], "`region` must be a region's name, such as eu-central-1")),
        (None, Some(_)) => ONLY_REGION.to_owned(),
        (None, None) => {
            return Err(at.fault(
                &["bucket"],
                "`region` is missing: say in which of Amazon's the bucket is, or name another store with `store`",
            ));
        }
    };
    let address = match &written.store {
        None => StoreAddress::of_region(&region),
        Some(store) => StoreAddress::parse(store).map_err(|what| at.fault(&["store"], format!("`store` {what}")))?,
    };
    let prefix = written.prefix.unwrap_or_default();
    let prefix = prefix.strip_suffix('/').unwrap_or(&prefix).to_owned();
    if !prefix.is_empty() && check_name(&prefix).is_err() {
        return Err(at.fault(&["prefix"], "`prefix` must be a folder within the bucket, without a `/` before it"));
    }
    let key = |name: &str, file: Option<PathBuf>, variable: Option<String>| match (file, variable) {
        (Some(path), None) => Ok(SecretRef::StoreKeyFile(bundle.join(path))),
        (None, Some(variable)) => Ok(SecretRef::StoreKeyEnv(variable)),
        (None, None) => Err(
            at.fault(&["bucket"], format!("the {name} key is missing: name it with {name}_key_file or {name}_key_env"))
        ),
        (Some(_), Some(_)) => {
            Err(at
                .fault(&["bucket"], format!("there are two {name} keys: keep one of {name}_key_file, {name}_key_env")))
        }
    };
    let access_key = key("access", written.access_key_file, written.access_key_env)?;
    let secret_key = key("secret", written.secret_key_file, written.secret_key_env)?;
    if written.ca_file.is_some() && !address.secure {
        return Err(at.fault(&["ca_file"], "`ca_file` is for a store that is reached by `https://`; take it out"));
    }
    let ca_file = written.ca_file.map(|path| bundle.join(path));
    Ok(ObjectsEndpoint { address, region, bucket, prefix, access_key, secret_key, ca_file })
}

fn secret(written: &Written, at: &At<'_>, bundle: &Path) -> Result<SecretRef, DocumentError> {
    let given = [
        written.key_file.as_ref().map(|path| SecretRef::KeyFile(bundle.join(path))),
        written.key_env.clone().map(SecretRef::KeyEnv),
        written.password_file.as_ref().map(|path| SecretRef::PasswordFile(bundle.join(path))),
        written.password_env.clone().map(SecretRef::PasswordEnv),
    ];
    let mut given = given.into_iter().flatten();
    match (given.next(), given.next()) {
        (Some(secret), None) => Ok(secret),
        (None, _) => Err(at.fault(
            &["user"],
            "nothing says how to log in: name the secret with one of key_file, key_env, password_file, password_env",
        )),
        (Some(_), Some(_)) => Err(at.fault(
            &["user"],
            "there are several ways to log in: keep one of key_file, key_env, password_file, password_env",
        )),
    }
}

/// What the settings digest covers. Secrets are references and stay out: a rotated key is not another destination, nor is a
/// store whose certificate another authority signs.
#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum Digested<'a> {
    Sftp { host: &'a str, port: u16, user: &'a str, directory: &'a str, host_keys: &'a [String] },
    Directory { path: &'a Path, marker: Option<&'a str> },
    Objects { store: String, region: &'a str, bucket: &'a str, prefix: &'a str },
}

impl<'a> Digested<'a> {
    pub(super) fn of(endpoint: &'a Endpoint) -> Self {
        match endpoint {
            Endpoint::Sftp(SftpEndpoint { host, port, user, directory, host_keys, secret: _ }) => {
                Self::Sftp { host, port: *port, user, directory, host_keys }
            }
            Endpoint::Directory(DirectoryEndpoint { path, marker }) => {
                Self::Directory { path, marker: marker.as_deref() }
            }
            Endpoint::Objects(ObjectsEndpoint {
                address,
                region,
                bucket,
                prefix,
                access_key: _,
                secret_key: _,
                ca_file: _,
            }) => Self::Objects { store: address.to_string(), region, bucket, prefix },
        }
    }
}
