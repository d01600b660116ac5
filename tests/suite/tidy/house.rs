//! House rules that no compiler holds: whose clock, no NOTIFY in a cutoff, files that stay short, paths that exist.

use std::process::Command;

use anyhow::Context;
use regex::Regex;
use syn::visit::{self, Visit};

use super::sources::{self, loose_paths, only_for_tests};
use super::statements;

/// A file past this length holds a second thing.
const LONGEST_FILE_LINES: usize = 500;

#[test]
fn lse_09_no_code_reads_the_hosts_clock() -> anyhow::Result<()> {
    let mut wrong = Vec::new();
    for source in sources::product()? {
        // Log lines carry the host's time; nothing decides by it.
        if !source.path.starts_with("host/src/telemetry") && reads_clock(&source.syntax()?) {
            wrong.push(source.path.display().to_string());
        }
    }
    assert!(wrong.is_empty(), "the host's clock is read in {wrong:?}");
    Ok(())
}

#[test]
fn lse_09_a_reading_of_the_clock_is_found() {
    for text in [
        "fn f() { let now = std::time::SystemTime::now(); }",
        "fn f() { bind(time::OffsetDateTime::now_utc()) }",
        "fn f() { query!(\"…\", Utc::now()) }",
        "use std::time::SystemTime; fn f() -> SystemTime { SystemTime::now() }",
        "fn f() { maybe.unwrap_or_else(OffsetDateTime::now_utc) }",
    ] {
        assert!(reads_clock(&syn::parse_file(text).unwrap()), "{text}");
    }
    for text in ["fn f() { tokio::time::Instant::now() }", "#[cfg(test)] mod tests { fn f() { SystemTime::now() } }"] {
        assert!(!reads_clock(&syn::parse_file(text).unwrap()), "{text}");
    }
}

#[test]
fn lse_09_every_statement_asks_the_clock_and_not_the_transactions_start() -> anyhow::Result<()> {
    let start = Regex::new(r"\bnow\(\)|\bcurrent_timestamp\b|\blocaltimestamp\b|\btransaction_timestamp\(\)")?;
    let wrong: Vec<String> = statements::all()?
        .into_iter()
        .filter(|statement| start.is_match(&statement.text))
        .map(|statement| format!("{}: {}", statement.place, statement.text))
        .collect();
    assert!(wrong.is_empty(), "the start of the transaction stands for the time in:\n{}", wrong.join("\n"));
    Ok(())
}

/// NOTIFY takes a lock that serialises commits. The broker's wake-ups are written in transactions of their own.
#[test]
fn tidy_no_transition_notifies() -> anyhow::Result<()> {
    let notifies = Regex::new(r"\bnotify\b|\bpg_notify\b")?;
    let mut wrong: Vec<String> = statements::all()?
        .into_iter()
        .filter(|statement| notifies.is_match(&statement.text) && !statement.place.contains("wake"))
        .map(|statement| statement.place)
        .collect();
    let on_jobs = Regex::new(r"create (?:constraint )?trigger \w+[^;]* on (?:export_jobs|outbox)\b[^;]*notify")?;
    for migration in sources::files("migrations", "sql")? {
        let text = statements::normal(&migration.text);
        if on_jobs.is_match(&text) {
            wrong.push(migration.path.display().to_string());
        }
    }
    assert!(wrong.is_empty(), "NOTIFY in {wrong:?}");
    Ok(())
}

#[test]
fn tidy_files_stay_short() -> anyhow::Result<()> {
    let mut long = Vec::new();
    for below in ["host", "tests", "plugins"] {
        for source in sources::files(below, "rs")? {
            let lines = source.text.lines().count();
            if lines > LONGEST_FILE_LINES {
                long.push(format!("{} has {lines} lines", source.path.display()));
            }
        }
    }
    assert!(long.is_empty(), "look for the second thing in:\n{}", long.join("\n"));
    Ok(())
}

/// Paths in backticks; relative to the repository or to `host/src`.
#[test]
fn tidy_the_architectures_paths_exist() -> anyhow::Result<()> {
    let root = sources::repository();
    let page = root.join("ARCHITECTURE.md");
    if !page.exists() {
        return Ok(());
    }
    let text = std::fs::read_to_string(page)?;
    let looks_like_a_path = Regex::new(r"^[\w.-]+(?:/[\w.-]+)*/?$")?;
    let missing: Vec<&str> = text
        .split('`')
        .skip(1)
        .step_by(2)
        .filter(|word| looks_like_a_path.is_match(word))
        .filter(|word| {
            let last = word.rsplit('/').next().unwrap_or_default();
            word.contains('/') || [".rs", ".sql", ".sh"].iter().any(|end| last.ends_with(end))
        })
        .filter(|word| !root.join(word).exists() && !root.join("host/src").join(word).exists())
        .collect();
    assert!(missing.is_empty(), "ARCHITECTURE.md names what does not exist: {missing:?}");
    Ok(())
}

fn reads_clock(file: &syn::File) -> bool {
    let mut clock = Clock { read: false };
    clock.visit_file(file);
    clock.read
}

struct Clock {
    read: bool,
}

impl Clock {
    fn look(&mut self, path: &[String]) {
        if let [.., of, call] = path {
            let system = ["SystemTime", "OffsetDateTime", "UtcDateTime", "Utc", "Local"].contains(&of.as_str());
            self.read |= system && ["now", "now_utc", "now_local"].contains(&call.as_str());
        }
    }
}

impl<'ast> Visit<'ast> for Clock {
    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        if !only_for_tests(&item.attrs) {
            visit::visit_item_mod(self, item);
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let path: Vec<String> = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        self.look(&path);
    }

    fn visit_macro(&mut self, invocation: &'ast syn::Macro) {
        for path in loose_paths(invocation.tokens.clone()) {
            self.look(&path);
        }
    }
}

#[test]
fn nothing_that_was_built_or_packed_is_tracked() -> anyhow::Result<()> {
    if !sources::repository().join(".git").exists() {
        // Unpacked from an archive: what it holds is what was tracked.
        return Ok(());
    }
    let listed = Command::new("git").args(["ls-files", "-z"]).current_dir(sources::repository()).output();
    let listed = listed.context("asking git what it tracks")?;
    anyhow::ensure!(listed.status.success(), "git ls-files: {}", String::from_utf8_lossy(&listed.stderr));
    let names = String::from_utf8(listed.stdout)?;
    let mut wrong = Vec::new();
    for name in names.split('\0').filter(|name| !name.is_empty()) {
        // One that is deleted and not committed yet is not there.
        let Ok(bytes) = std::fs::read(sources::repository().join(name)) else { continue };
        if is_no_text(&bytes) {
            wrong.push(name);
        }
    }
    assert!(names.len() > 1000 && wrong.is_empty(), "nobody can review {wrong:?}: keep what they are made from");
    Ok(())
}

/// Texts in any encoding that is used here have no zero byte; compilers and packers do not get far without one.
fn is_no_text(bytes: &[u8]) -> bool {
    bytes.contains(&0)
}

#[test]
fn what_was_packed_or_built_is_found() {
    assert!(is_no_text(b"\x1f\x8b\x08\0\0\0\0\0") && is_no_text(b"\0asm\x01\0\0\0"));
    assert!(!is_no_text("Straße;Zoë\r\n".as_bytes()) && !is_no_text(b"Stra\xdfe"));
}
