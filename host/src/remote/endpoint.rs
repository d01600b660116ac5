//! Where a destination's server is, how it is known, and where its credential comes from.
//!
//! The endpoint holds references to secrets, never secrets: it can be logged, compared and stored.

use std::fmt;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::error::ConnectError;
use super::objects::StoreAddress;

/// One destination's place, as the operator's `destinations.toml` names it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Endpoint {
    Sftp(SftpEndpoint),
    Directory(DirectoryEndpoint),
    Objects(ObjectsEndpoint),
}

/// A directory on an SFTP server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SftpEndpoint {
    pub host: String,
    pub port: u16,
    pub user: String,
    /// The directory that all names are relative to, as the server understands it; `.` is the login's own.
    pub directory: String,
    /// OpenSSH public keys or SHA256 fingerprints; the server must present one of them.
    pub host_keys: Vec<String>,
    pub secret: SecretRef,
}

/// A directory of the machine that a worker runs on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DirectoryEndpoint {
    /// Absolute. Every worker that serves the destination must see the same directory there.
    pub path: PathBuf,
    /// A file that the directory must hold: where it is missing, what belongs there is not mounted.
    pub marker: Option<String>,
}

/// A bucket of an object store, or the part of it below a prefix.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObjectsEndpoint {
    pub address: StoreAddress,
    pub region: String,
    pub bucket: String,
    /// The part of the bucket that all names are relative to, without a `/` at its end; empty for the whole bucket.
    pub prefix: String,
    pub access_key: SecretRef,
    pub secret_key: SecretRef,
    /// The certificates of the authorities that may vouch for the store, in place of those that this machine trusts.
    pub ca_file: Option<PathBuf>,
}

impl Endpoint {
    /// What tells the server from others: a final name is given once in it. All directories are in one, and are told apart
    /// by their paths; a store's buckets are one each, and the parts of a bucket are told apart by their prefixes.
    pub fn server(&self) -> String {
        match self {
            Self::Sftp(endpoint) => endpoint.server(),
            Self::Directory(_) => "file://".to_owned(),
            Self::Objects(endpoint) => endpoint.server(),
        }
    }
}

impl SftpEndpoint {
    pub(super) fn server(&self) -> String {
        format!("{}:{}", self.host, self.port)
    }
}

impl ObjectsEndpoint {
    pub(super) fn server(&self) -> String {
        format!("{}/{}", self.address, self.bucket)
    }
}

/// For people.
impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sftp(SftpEndpoint { host, port, user, directory, .. }) => {
                write!(f, "{user}@{host}:{port}, {directory}")
            }
            Self::Directory(DirectoryEndpoint { path, .. }) => write!(f, "{}", path.display()),
            Self::Objects(endpoint) => write!(f, "{}/{}", endpoint.server(), endpoint.prefix),
        }
    }
}

/// Where the credential is to be found when a connection is made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SecretRef {
    KeyFile(PathBuf),
    KeyEnv(String),
    PasswordFile(PathBuf),
    PasswordEnv(String),
    /// One of an object store's two keys.
    StoreKeyFile(PathBuf),
    StoreKeyEnv(String),
}

impl fmt::Display for SecretRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::KeyFile(path) | Self::StoreKeyFile(path) => write!(f, "key in the file {}", path.display()),
            Self::KeyEnv(variable) | Self::StoreKeyEnv(variable) => {
                write!(f, "key in the environment variable {variable}")
            }
            Self::PasswordFile(path) => write!(f, "password in the file {}", path.display()),
            Self::PasswordEnv(variable) => write!(f, "password in the environment variable {variable}"),
        }
    }
}

/// A credential in hand. It has no `Debug`, so that it cannot be logged by accident.
pub(super) enum Secret {
    /// A private key's text.
    Key(String),
    Password(String),
}

/// No private key and no password is longer.
const LONGEST_SECRET_BYTES: u64 = 64 * 1024;

impl SecretRef {
    /// Fetches the credential; an error names the file or variable and never its content.
    pub(super) fn fetch(&self) -> Result<Secret, ConnectError> {
        let missing = |why: String| ConnectError::SecretMissing { secret: self.clone(), why };
        let text = match self {
            Self::KeyFile(path) | Self::PasswordFile(path) | Self::StoreKeyFile(path) => {
                read_private(path).map_err(missing)?
            }
            Self::KeyEnv(variable) | Self::PasswordEnv(variable) | Self::StoreKeyEnv(variable) => {
                read_variable(variable).map_err(missing)?
            }
        };
        if text.trim().is_empty() {
            return Err(missing("it is empty; put the secret there".to_owned()));
        }
        Ok(match self {
            Self::KeyFile(_) | Self::KeyEnv(_) => Secret::Key(text),
            Self::PasswordFile(_) | Self::PasswordEnv(_) | Self::StoreKeyFile(_) | Self::StoreKeyEnv(_) => {
                Secret::Password(
                    text.strip_suffix('\n').map_or(text.as_str(), |line| line.trim_end_matches('\r')).to_owned(),
                )
            }
        })
    }
}

/// Reads a file that nobody but its owner, and its group by reading, has access to.
fn read_private(path: &Path) -> Result<String, String> {
    let file = std::fs::File::open(path).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => "the file does not exist; create it, or correct the path".to_owned(),
        std::io::ErrorKind::PermissionDenied => "this process may not read the file; give its user access".to_owned(),
        _ => format!("the file cannot be opened ({error})"),
    })?;
    let metadata = file.metadata().map_err(|error| format!("the file cannot be examined ({error})"))?;
    if !metadata.is_file() {
        return Err("it is not a regular file".to_owned());
    }
    let mode = metadata.permissions().mode() & 0o777;
    // Group read stays allowed: orchestrators mount secrets as 0440 with a group of their own.
    if mode & 0o037 != 0 {
        return Err(format!("others have access to the file (mode {mode:04o}); run `chmod 600` on it"));
    }
    let mut text = String::new();
    file.take(LONGEST_SECRET_BYTES)
        .read_to_string(&mut text)
        .map_err(|error| format!("the file cannot be read as text ({})", error.kind()))?;
    Ok(text)
}

#[expect(
    clippy::disallowed_methods,
    reason = "a secret is fetched when it is needed, so that it lies in no configuration value"
)]
fn read_variable(variable: &str) -> Result<String, String> {
    std::env::var(variable).map_err(|error| match error {
        std::env::VarError::NotPresent => "the variable is not set for this process; set it".to_owned(),
        std::env::VarError::NotUnicode(_) => "the variable's value is not text".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn why(secret: &SecretRef) -> String {
        match secret.fetch() {
            Err(error) => error.to_string(),
            Ok(_) => panic!("the secret was accepted"),
        }
    }

    #[test]
    fn a_secret_that_cannot_be_used_is_named_and_never_shown() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("partner.key");
        assert!(why(&SecretRef::KeyFile(path.clone())).contains("does not exist"));
        std::fs::write(&path, "canary-7f3a").unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
        let sentence = why(&SecretRef::PasswordFile(path.clone()));
        assert!(sentence.contains("chmod 600") && sentence.contains("partner.key"), "{sentence}");
        assert!(!sentence.contains("canary-7f3a"), "{sentence}");
        std::fs::write(&path, " \n").unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        assert!(why(&SecretRef::KeyFile(path)).contains("empty"));
        let sentence = why(&SecretRef::PasswordEnv("WAYBILL_TEST_NOT_SET".to_owned()));
        assert!(sentence.contains("WAYBILL_TEST_NOT_SET") && sentence.contains("not set"), "{sentence}");
    }

    #[test]
    fn a_password_files_last_line_break_is_no_part_of_the_password() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("password");
        std::fs::write(&path, " s p \r\n").unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        assert!(matches!(SecretRef::PasswordFile(path).fetch(), Ok(Secret::Password(text)) if text == " s p "));
    }
}
