//! What can go wrong with the private PostgreSQL, in sentences that say what to do.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

#[derive(Debug, thiserror::Error)]
pub enum PostgresError {
    #[error(
        "no PostgreSQL server was found in /usr/lib/postgresql or on PATH; install it (Debian, Ubuntu: `apt-get install postgresql`), or name the directory of its programs"
    )]
    NotInstalled,
    #[error(
        "{} holds no PostgreSQL server (`initdb` and `postgres`); install it (Debian, Ubuntu: `apt-get install postgresql`), or name the directory of its programs", .directory.display()
    )]
    NoServerIn { directory: PathBuf },
    #[error(
        "the data in {} was made by PostgreSQL {made_by}, which is not installed; install `postgresql-{made_by}`, or move the data with pg_upgrade", .data.display()
    )]
    OtherVersion { data: PathBuf, made_by: String },
    #[error("PostgreSQL refuses to run as root, and /etc/passwd names neither `postgres` nor `nobody`; create one")]
    NoAccount,
    #[error(
        "the account `{account}`, under which PostgreSQL must run here, cannot enter {}; choose a directory whose parents everybody can enter", .blocked.display()
    )]
    Unreachable { account: String, blocked: PathBuf },
    #[error("another process runs the database in {}; stop it first, or choose another directory", .directory.display())]
    InUse { directory: PathBuf },
    #[error(
        "the socket's directory {} is longer than a socket's path may be, and {} cannot stand in for it: {why}", .wanted.display(), .instead.display()
    )]
    SocketDirectory { wanted: PathBuf, instead: PathBuf, why: &'static str },
    #[error("initdb could not make a database in {}:\n{said}", .data.display())]
    InitFailed { data: PathBuf, said: String },
    #[error("PostgreSQL in {} ended ({how}); the end of its log:\n{log}", .directory.display())]
    Died { directory: PathBuf, how: String, log: String },
    #[error(
        "PostgreSQL in {} was not ready within {} seconds; the end of its log:\n{log}", .directory.display(), .bound.as_secs()
    )]
    NotReady { directory: PathBuf, bound: Duration, log: String },
    #[error("the PostgreSQL that an earlier run left in {} (process {pid}) does not stop; end it by hand", .directory.display())]
    LeftBehind { directory: PathBuf, pid: u32 },
    #[error("cannot {what} {}", .path.display())]
    Io { what: &'static str, path: PathBuf, source: io::Error },
}

impl PostgresError {
    pub(super) fn io(what: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { what, path, source }
    }
}
