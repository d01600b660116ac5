//! What can go wrong with the private OpenSSH server, in sentences that say what to do.

use std::io;
use std::path::PathBuf;

#[derive(Debug, thiserror::Error)]
pub enum OpenSshError {
    #[error("{program} was not found; install it (Debian, Ubuntu: `apt-get install {package}`)")]
    NotInstalled { program: &'static str, package: &'static str },
    #[error("the path {} cannot stand in sshd's configuration; choose one without quotes, percent signs or line breaks", .path.display())]
    Unquotable { path: PathBuf },
    #[error("port {port} on 127.0.0.1 is taken by another process; end that process or choose another port")]
    PortTaken { port: u16 },
    #[error("no free port on 127.0.0.1 could be bound in {tries} tries")]
    NoPort { tries: u32 },
    #[error("ssh-keygen could not make {}: {said}", .key.display())]
    KeyFailed { key: PathBuf, said: String },
    #[error("sshd did not start ({how}); the end of its log:\n{log}")]
    NotStarted { how: String, log: String },
    #[error("the sshd of {} (process {pid}) does not end", .directory.display())]
    DoesNotEnd { directory: PathBuf, pid: u32 },
    #[error("OpenSSH's sftp could not do {commands:?}: {said}")]
    ClientRefused { commands: String, said: String },
    #[error("cannot {what} {}", .path.display())]
    Io { what: &'static str, path: PathBuf, source: io::Error },
}

impl OpenSshError {
    pub(super) fn io(what: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { what, path, source }
    }
}
