//! `docs/servers.md` against what was measured: the rows that say what a server or a store did are compared, those that name
//! versions are only written. With `WAYBILL_BLESS` set, the measured rows are written into the document.

use std::fs::File;
use std::path::{Path, PathBuf};

use super::measured::Measured;

pub const OPENSSH: &str = "OpenSSH";
pub const PROFTPD: &str = "ProFTPD mod_sftp";
pub const ASYNCSSH: &str = "AsyncSSH";
pub const PARAMIKO: &str = "Paramiko's stub";
pub const RCLONE: &str = "rclone serve sftp";
pub const IN_PROCESS: &str = "in this process";
pub const RAW: &str = "raw, yes to everything";

/// Every server that the document speaks of, in its order.
const SERVERS: [&str; 7] = [OPENSSH, PROFTPD, ASYNCSSH, PARAMIKO, RCLONE, IN_PROCESS, RAW];

pub const MOTO: &str = "moto";
pub const OUR_STORE: &str = "the tests' own";
pub const REPLACING_STORE: &str = "the same, ignoring the condition";

/// Every object store, likewise.
const STORES: [&str; 3] = [MOTO, OUR_STORE, REPLACING_STORE];

fn document() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).with_file_name("docs").join("servers.md")
}

/// Fails with the row to paste where the document says otherwise.
pub fn hold(measured: &Measured) -> anyhow::Result<()> {
    // Each server is measured by a process of its own, and they may all write.
    let lock = File::open(document())?;
    lock.lock()?;
    let text = std::fs::read_to_string(document())?;
    #[expect(clippy::disallowed_methods, reason = "a switch for whoever runs the tests; the host never reads it")]
    let bless = std::env::var_os("WAYBILL_BLESS").is_some_and(|value| !value.is_empty());
    if bless {
        let text = with_row(&with_row(&text, &measured.behaviour)?, &measured.announced)?;
        std::fs::write(document(), text)?;
        return Ok(());
    }
    let row = in_markdown(&measured.behaviour);
    anyhow::ensure!(
        text.lines().any(|line| line == row),
        "docs/servers.md says otherwise; run again with WAYBILL_BLESS=1, or put this row there:\n{row}"
    );
    Ok(())
}

fn in_markdown(cells: &[String]) -> String {
    format!("| {} |", cells.join(" | "))
}

fn cells(line: &str) -> Option<Vec<&str>> {
    Some(line.strip_prefix("| ")?.strip_suffix(" |")?.split(" | ").collect())
}

/// The text with this row in place of the one of the same server and the same table.
fn with_row(text: &str, row: &[String]) -> anyhow::Result<String> {
    let is_it = |line: &str| {
        let same =
            |cells: &Vec<&str>| cells.len() == row.len() && cells.first().copied() == row.first().map(String::as_str);
        cells(line).is_some_and(|cells| same(&cells))
    };
    anyhow::ensure!(text.lines().filter(|line| is_it(line)).count() == 1, "no single row for {:?}", row.first());
    let lines: Vec<String> =
        text.lines().map(|line| if is_it(line) { in_markdown(row) } else { line.to_owned() }).collect();
    Ok(lines.join("\n") + "\n")
}

/// The first cells of the rows of each table whose first column is headed so, in the document's order.
fn tables_of<'a>(text: &'a str, kind: &str) -> Vec<Vec<&'a str>> {
    let mut tables: Vec<Vec<&str>> = Vec::new();
    let mut within = false;
    for line in text.lines() {
        let Some(first) = cells(line).and_then(|cells| cells.first().copied()) else {
            within = false;
            continue;
        };
        if first == kind {
            within = true;
            tables.push(Vec::new());
        } else if within && !first.starts_with("---") {
            tables.last_mut().expect("within a table").push(first);
        }
    }
    tables
}

#[test]
fn del_06_the_document_has_a_row_for_each_measured_server_and_store_and_no_other() -> anyhow::Result<()> {
    let text = std::fs::read_to_string(document())?;
    // What they did, then what they announced.
    assert_eq!(tables_of(&text, "server"), [SERVERS, SERVERS]);
    assert_eq!(tables_of(&text, "store"), [STORES, STORES]);
    Ok(())
}

#[test]
fn del_06_a_row_is_found_by_its_server_and_its_table() {
    let row = |cells: &[&str]| cells.iter().map(|cell| (*cell).to_owned()).collect::<Vec<_>>();
    let text = "| a | x | y |\n| a | 1 |\nwords\n";
    assert_eq!(with_row(text, &row(&["a", "2"])).unwrap(), "| a | x | y |\n| a | 2 |\nwords\n");
    assert!(with_row(text, &row(&["b", "2"])).is_err());
}
