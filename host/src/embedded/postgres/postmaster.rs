//! `postmaster.pid`: what PostgreSQL itself writes about the server that runs on a data directory.
//!
//! Its lines are the process id, the data directory, the start time, the port, the socket's directory, the TCP
//! address, the shared memory's key and the state. `pg_ctl` waits for `ready` in that last line, and so do we.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::embedded::process;

/// Where a running server is reached: `host` of a connection is the socket's directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    pub socket_directory: PathBuf,
    pub port: u16,
}

impl Address {
    /// As a PostgreSQL URL. No password is needed: who can enter the socket's directory may log in.
    pub fn url(&self, role: &str, database: &str) -> String {
        let host = percent_encode(self.socket_directory.as_os_str().as_bytes());
        format!("postgres://{role}@{host}:{}/{database}", self.port)
    }
}

fn percent_encode(bytes: &[u8]) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    bytes.iter().map(|byte| if plain(*byte) { char::from(*byte).to_string() } else { format!("%{byte:02X}") }).collect()
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Postmaster {
    pub pid: u32,
    pub address: Option<Address>,
    pub ready: bool,
}

/// The server that runs on this data directory, if one does. A file that a crash left behind is not taken for a
/// server: its process must exist, and must have been started with `-D` and this very directory.
pub fn find(data: &Path) -> Option<Postmaster> {
    let found = parse(&fs::read_to_string(data.join("postmaster.pid")).ok()?)?;
    let command = fs::read(format!("/proc/{}/cmdline", found.pid)).ok()?;
    let mut arguments = command.split(|byte| *byte == 0);
    let named = arguments.any(|argument| argument == b"-D")
        && arguments.next().is_some_and(|argument| argument == data.as_os_str().as_bytes());
    (named && !process::is_zombie(found.pid)).then_some(found)
}

fn parse(text: &str) -> Option<Postmaster> {
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let line = |number: usize| lines.get(number - 1).copied().filter(|line| !line.is_empty());
    let address = line(4)
        .and_then(|port| port.parse().ok())
        .zip(line(5))
        .map(|(port, directory)| Address { socket_directory: PathBuf::from(directory), port });
    Some(Postmaster { pid: line(1)?.parse().ok()?, address, ready: line(8) == Some("ready") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_starting_server_is_not_ready_and_a_ready_one_has_an_address() {
        let starting = parse("812\n/data\n1795996800\n5432\n/sock\n\n").unwrap();
        assert!(!starting.ready);
        let ready = parse("812\n/data\n1795996800\n5432\n/sock\n\n  1048578  5\nready   \n").unwrap();
        assert!(ready.ready);
        assert_eq!(ready.address, Some(Address { socket_directory: "/sock".into(), port: 5432 }));
        assert_eq!(parse("not a number\n"), None);
    }

    #[test]
    fn a_url_carries_the_sockets_directory_as_its_host() {
        let address = Address { socket_directory: "/var/way bill/s".into(), port: 5432 };
        assert_eq!(
            address.url("waybill_api", "waybill"),
            "postgres://waybill_api@%2Fvar%2Fway%20bill%2Fs:5432/waybill"
        );
    }
}
