//! What a client did at an SFTP server, in the server's own words: one vocabulary for OpenSSH's log and for the
//! simulated server's.

pub use waybill::remote::simulated::operations::{Answer, Done, Mode, Operation};

/// Reads the log of OpenSSH's `sftp-server -l VERBOSE`. It logs stat calls only at a more talkative level.
///
/// A request's line comes before its "sent status" line, which is written for refusals only.
pub fn parse_openssh(log: &str) -> Vec<Done> {
    let mut done: Vec<Done> = Vec::new();
    for line in log.lines() {
        if let Some(status) = line.strip_prefix("sent status ") {
            if let Some(last) = done.last_mut() {
                last.answer = Some(Answer::Refused(status.to_owned()));
            }
        } else if let Some(operation) = parse_line(line) {
            done.push(Done { operation, answer: Some(Answer::Ok) });
        }
    }
    done
}

fn parse_line(line: &str) -> Option<Operation> {
    let names = quoted(line);
    let first = || names.first().cloned();
    let both = || Some((names.first()?.clone(), names.get(1)?.clone()));
    let word = |number: usize| line.split_whitespace().nth(number);
    match word(0)? {
        "open" => {
            let (_, flags) = line.rsplit_once(" flags ")?;
            let flags: Vec<&str> = flags.split_whitespace().next()?.split(',').collect();
            let has = |flag| flags.contains(&flag);
            let mode = Mode {
                read: has("READ"),
                write: has("WRITE"),
                create: has("CREATE"),
                truncate: has("TRUNCATE"),
                exclusive: has("EXCL"),
            };
            Some(Operation::Open { path: first()?, mode })
        }
        "close" => {
            let (_, counts) = line.rsplit_once(" bytes read ")?;
            let (read, written) = counts.split_once(" written ")?;
            Some(Operation::Close { path: first()?, read: read.parse().ok()?, written: written.trim().parse().ok()? })
        }
        "rename" => both().map(|(from, to)| Operation::Rename { from, to }),
        "posix-rename" => both().map(|(from, to)| Operation::PosixRename { from, to }),
        "hardlink" => both().map(|(from, to)| Operation::Link { from, to }),
        "remove" => Some(Operation::Remove { path: first()? }),
        "mkdir" => Some(Operation::MakeDirectory { path: first()? }),
        "opendir" => Some(Operation::List { path: first()? }),
        "set" => Some(Operation::SetStat { path: first()? }),
        "fsync" => Some(Operation::Fsync { path: first().unwrap_or_default() }),
        _ => None,
    }
}

/// The texts in double quotes. OpenSSH escapes what could break a line, and no name of ours has a quote.
fn quoted(line: &str) -> Vec<String> {
    line.split('"').skip(1).step_by(2).map(str::to_owned).collect()
}
