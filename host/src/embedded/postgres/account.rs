//! Under which account the server runs: ourselves, or an unprivileged one when we are root.

use std::fs;
use std::os::unix::fs::{MetadataExt, chown};
use std::path::Path;

use super::PostgresError;

/// The unprivileged account of a server that root starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    pub name: String,
    pub uid: u32,
    pub gid: u32,
}

/// `None` means that the server runs as this process does.
pub fn for_this_process() -> Result<Option<Account>, PostgresError> {
    if !rustix::process::geteuid().is_root() {
        return Ok(None);
    }
    let passwd = fs::read_to_string("/etc/passwd").map_err(PostgresError::io("read", "/etc/passwd"))?;
    ["postgres", "nobody"].iter().find_map(|name| find(&passwd, name)).map(Some).ok_or(PostgresError::NoAccount)
}

impl Account {
    /// Whether this account can enter every parent of the directory; the check that saves a puzzling error later.
    pub fn check_reaches(&self, directory: &Path) -> Result<(), PostgresError> {
        for parent in directory.ancestors().skip(1) {
            let found = fs::metadata(parent).map_err(PostgresError::io("look at", parent))?;
            let enters = if found.uid() == self.uid {
                found.mode() & 0o100
            } else if found.gid() == self.gid {
                found.mode() & 0o010
            } else {
                found.mode() & 0o001
            };
            if enters == 0 {
                return Err(PostgresError::Unreachable { account: self.name.clone(), blocked: parent.to_owned() });
            }
        }
        Ok(())
    }

    pub fn give(&self, path: &Path) -> Result<(), PostgresError> {
        chown(path, Some(self.uid), Some(self.gid)).map_err(PostgresError::io("hand over", path))
    }
}

fn find(passwd: &str, wanted: &str) -> Option<Account> {
    passwd.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next().filter(|name| *name == wanted)?;
        let (uid, gid) = (fields.nth(1)?.parse().ok()?, fields.next()?.parse().ok()?);
        Some(Account { name: name.to_owned(), uid, gid })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_account_is_found_by_its_whole_name() {
        let passwd = "root:x:0:0:root:/root:/bin/sh\npostgresql:x:7:8::/:/bin/sh\npostgres:x:101:104:,,,:/:/bin/sh\n";
        assert_eq!(find(passwd, "postgres"), Some(Account { name: "postgres".into(), uid: 101, gid: 104 }));
        assert_eq!(find(passwd, "nobody"), None);
    }
}
