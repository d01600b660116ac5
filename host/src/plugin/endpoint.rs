//! Where a destination of `destinations.toml` lies: on an SFTP server, or in a directory of this machine.

use std::path::{Path, PathBuf};

use serde::Serialize;

use super::destinations::At;
use super::document::DocumentError;
use crate::remote::{DirectoryEndpoint, Endpoint, SecretRef, SftpEndpoint};

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
}

const SSH_PORT: u16 = 22;

/// Reads and checks them. Relative paths of secrets start at the bundle's directory.
pub(super) fn endpoint(written: Written, at: &At<'_>, bundle: &Path) -> Result<Endpoint, DocumentError> {
    match (&written.host, &written.path) {
        (Some(_), None) => sftp(written, at, bundle).map(Endpoint::Sftp),
        (None, Some(_)) => directory(written, at).map(Endpoint::Directory),
        (None, None) => Err(at
            .fault(&[], "`host` is missing: name the SFTP server with it, or a directory of this machine with `path`")),
        (Some(_), Some(_)) => {
            Err(at.fault(&["path"], "there are two places to deliver to: keep `host`, or keep `path`"))
        }
    }
}

fn sftp(written: Written, at: &At<'_>, bundle: &Path) -> Result<SftpEndpoint, DocumentError> {
    if written.marker.is_some() {
        return Err(at.fault(&["marker"], "`marker` is for a directory of this machine; take it out"));
    }
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
    Ok(SftpEndpoint { host, port: written.port.unwrap_or(SSH_PORT), user, directory, host_keys, secret })
}

fn directory(written: Written, at: &At<'_>) -> Result<DirectoryEndpoint, DocumentError> {
    for (key, given) in [
        ("port", written.port.is_some()),
        ("user", written.user.is_some()),
        ("directory", written.directory.is_some()),
        ("host_keys", written.host_keys.is_some()),
        ("key_file", written.key_file.is_some()),
        ("key_env", written.key_env.is_some()),
        ("password_file", written.password_file.is_some()),
        ("password_env", written.password_env.is_some()),
    ] {
        if given {
            let what = format!("`{key}` is for an SFTP server, and `path` names a directory of this machine; keep one");
            return Err(at.fault(&[key], what));
        }
    }
    let path = written.path.unwrap_or_default();
    if !path.is_absolute() {
        return Err(at.fault(
            &["path"],
            "`path` must be absolute: every worker that serves this destination must find the same directory there",
        ));
    }
    if written.marker.as_ref().is_some_and(|marker| crate::job::names::check_name(marker).is_err()) {
        return Err(at.fault(&["marker"], "`marker` must be the name of a file in the directory"));
    }
    Ok(DirectoryEndpoint { path, marker: written.marker })
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

/// What the settings digest covers. Secrets are references and stay out: a rotated key is not another destination.
#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum Digested<'a> {
    Sftp { host: &'a str, port: u16, user: &'a str, directory: &'a str, host_keys: &'a [String] },
    Directory { path: &'a Path, marker: Option<&'a str> },
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
        }
    }
}
