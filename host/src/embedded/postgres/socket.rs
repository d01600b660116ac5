//! The socket's directory. The kernel bounds a socket's path to 107 bytes, and data directories lie deep.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::PostgresError;
use super::account::Account;
use crate::embedded::process;

/// The file name ends in the port; it only tells sockets of one directory apart, and ours holds a single one.
pub const PORT: u16 = 5432;

const PATH_LIMIT_BYTES: usize = 107;
const LONGEST_FILE_NAME: &str = "/.s.PGSQL.5432.lock";

/// `<directory>/socket`, or a private directory of the same owner under the temporary directory when that is too long.
pub fn prepare(directory: &Path, account: Option<&Account>, temporary: &Path) -> Result<PathBuf, PostgresError> {
    let wanted = directory.join("socket");
    let chosen = if fits(&wanted) { wanted.clone() } else { temporary.join(short_name(directory)) };
    let refuse = |why| PostgresError::SocketDirectory { wanted: wanted.clone(), instead: chosen.clone(), why };
    if !fits(&chosen) {
        return Err(refuse("it is too long as well"));
    }
    let owner = account.map_or_else(|| rustix::process::geteuid().as_raw(), |account| account.uid);
    match fs::symlink_metadata(&chosen) {
        // The temporary directory is everybody's: what stands there under our name must be ours.
        Ok(found) if !found.is_dir() => return Err(refuse("something else stands there")),
        Ok(found) if found.uid() != owner && found.uid() != rustix::process::geteuid().as_raw() => {
            return Err(refuse("it belongs to another account"));
        }
        Ok(_) => fs::set_permissions(&chosen, fs::Permissions::from_mode(0o700))
            .map_err(PostgresError::io("close to others", &chosen))?,
        Err(_) => process::private_directory(&chosen).map_err(PostgresError::io("make", &chosen))?,
    }
    if let Some(account) = account {
        account.give(&chosen)?;
    }
    Ok(chosen)
}

fn fits(directory: &Path) -> bool {
    directory.as_os_str().len() + LONGEST_FILE_NAME.len() <= PATH_LIMIT_BYTES
}

/// The same for every start on the same directory, so that a restart finds its socket's directory again.
fn short_name(directory: &Path) -> String {
    let digest = Sha256::digest(directory.as_os_str().as_bytes());
    format!("waybill-{}", data_encoding::HEXLOWER.encode(digest.get(..8).unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_directory_gets_a_short_private_one() {
        let temporary = tempfile::tempdir().unwrap();
        let deep = temporary.path().join("d".repeat(120));
        let chosen = prepare(&deep, None, temporary.path()).unwrap();
        assert!(fits(&chosen));
        assert_eq!(fs::metadata(&chosen).unwrap().permissions().mode() & 0o777, 0o700);
        assert_eq!(prepare(&deep, None, temporary.path()).unwrap(), chosen);
    }

    #[test]
    fn a_link_in_its_place_is_refused() {
        let temporary = tempfile::tempdir().unwrap();
        let deep = temporary.path().join("d".repeat(120));
        std::os::unix::fs::symlink("/", temporary.path().join(short_name(&deep))).unwrap();
        let refused = prepare(&deep, None, temporary.path()).unwrap_err();
        assert!(refused.to_string().contains("something else stands there"), "{refused}");
    }
}
