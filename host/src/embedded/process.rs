//! What both servers need of the operating system: signals, bounded waits, process trees, the end of a log.

use std::fs;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, test_kill_process};

/// How often a wait looks again.
pub const LOOK_AGAIN: Duration = Duration::from_millis(10);

const LOG_TAIL_BYTES: u64 = 8 * 1024;
const LOG_TAIL_LINES: usize = 8;

/// Sends a signal; a process that is already gone is no error.
pub fn signal(pid: u32, signal: Signal) -> io::Result<()> {
    match to_pid(pid).map(|pid| kill_process(pid, signal)) {
        None | Some(Ok(()) | Err(rustix::io::Errno::SRCH)) => Ok(()),
        Some(Err(error)) => Err(error.into()),
    }
}

/// Whether a process with this id exists. A child that nobody waited for yet counts as existing.
pub fn exists(pid: u32) -> bool {
    to_pid(pid).is_some_and(|pid| !matches!(test_kill_process(pid), Err(rustix::io::Errno::SRCH)))
}

/// Blocks until the process is gone or the bound is over; tells which.
pub fn wait_gone(pid: u32, bound: Duration) -> bool {
    let start = Instant::now();
    while exists(pid) && !is_zombie(pid) {
        if start.elapsed() > bound {
            return false;
        }
        std::thread::sleep(LOOK_AGAIN);
    }
    true
}

/// Kills a process with all its descendants. Each is stopped before its children are listed, so that none of them
/// can start another one unseen.
pub fn kill_tree(root: u32) -> io::Result<()> {
    let mut tree = vec![root];
    let mut next = 0;
    while let Some(&pid) = tree.get(next) {
        signal(pid, Signal::STOP)?;
        tree.extend(children(pid)?);
        next += 1;
    }
    for pid in tree {
        signal(pid, Signal::KILL)?;
    }
    Ok(())
}

/// The last lines of a log, for an error's text. An unreadable log says so in its place.
pub fn last_lines(log: &Path) -> String {
    let read = || -> io::Result<String> {
        let mut file = fs::File::open(log)?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(LOG_TAIL_BYTES)))?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    };
    match read() {
        Ok(text) => {
            let lines: Vec<&str> = text.lines().collect();
            lines.get(lines.len().saturating_sub(LOG_TAIL_LINES)..).unwrap_or_default().join("\n")
        }
        Err(error) => format!("(its log {} could not be read: {error})", log.display()),
    }
}

/// Makes a directory, with its parents, that only its owner can enter.
pub fn private_directory(path: &Path) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(path)?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o700))
}

fn to_pid(pid: u32) -> Option<Pid> {
    i32::try_from(pid).ok().and_then(Pid::from_raw)
}

/// A dead child of this process stays listed until it is waited for.
pub fn is_zombie(pid: u32) -> bool {
    stat_fields(pid).is_some_and(|(state, _)| state == "Z")
}

fn children(parent: u32) -> io::Result<Vec<u32>> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc")? {
        let name = entry?.file_name();
        let Some(pid) = name.to_str().and_then(|name| name.parse::<u32>().ok()) else { continue };
        if stat_fields(pid).is_some_and(|(_, its_parent)| its_parent == parent) {
            found.push(pid);
        }
    }
    Ok(found)
}

/// State and parent of a process. The name before them is in parentheses and may contain anything.
fn stat_fields(pid: u32) -> Option<(String, u32)> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, after_name) = stat.rsplit_once(')')?;
    let mut fields = after_name.split_whitespace();
    Some((fields.next()?.to_owned(), fields.next()?.parse().ok()?))
}
