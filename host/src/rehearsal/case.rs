//! One case of a bundle's tests: `tests/NAME.toml` in the bundle, with the files that it names beside it.
//!
//! ```toml
//! key = "K-1001"                          # the delivery key
//! created_at = 2026-03-02T08:15:00Z       # when the job was created; this is also the default
//! final_name = "inbox/contacts-K-1001.csv"
//! golden = "golden/contacts.csv"          # the expected bytes; `waybill plugin test --bless` writes them.
//!                                         # Of a gzip file: those inside
//! file = "files/contacts.csv"             # only where the bundle is a destination alone: the file to deliver
//! repeatable = true                       # false: the file is encrypted, so no two builds are the same
//! reads_all = true                        # false: the builder means to leave rows of a query unread
//! last = "golden/last-week.csv"           # our file of last time, which is still there under the same name
//!
//! [scope]                                 # what the job's creator wrote
//! country = "DE"
//!
//! [settings]                              # the operator's settings of the destination; they override [options]
//! encoding = "utf-8"
//!
//! [rows]                                  # the rows of each query, as JSON lines
//! contacts = "rows/contacts.jsonl"
//!
//! [[acknowledgment]]                      # what the partner puts there, by itself
//! when = "published"                      # or "later": only when the host looks again
//! name = "ack/{key}.txt"                  # placeholders as in the manifest, and {sha256}; in the text too
//! text = "accepted {key}"                 # without a text it is our own file, which the partner gives this name
//!
//! [[beside]]                              # the bytes of a file that the contract declares beside ours
//! name = "{final}.done"
//! golden = "golden/contacts.csv.done"     # `--bless` writes it too
//!
//! [server]                                # in what the partner's server differs from OpenSSH's
//! hard_links = false                      # it has none, so that files are published by a rename
//! collects = true                         # the partner takes our file at once
//! collects_later = true                   # he takes it before the host looks again
//! hides = ["drop"]                        # folders of which it shows nothing
//!
//! [expects]                               # what the host must conclude where nothing goes wrong
//! at_once = "Completed(checksum)"         # in full, or without what is in brackets
//! later = "Unknown(partner_refused)"      # by a later look, from all that is there then
//! ```
//!
//! Paths are relative to `tests/`. A key that is not known is a fault, and every fault comes with its file and line.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Deserialize;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use toml::Spanned;

use super::filled::Filled;
use crate::job::status::FailureReason;
use crate::job::verdict::Conclusion;
use crate::plugin::{Manifest, Part, with_fix};
use crate::source::FileRows;

/// A case, read and checked.
#[derive(Debug, Clone)]
pub(super) struct Case {
    /// The file's name without its ending.
    pub name: String,
    pub key: String,
    pub created_at: OffsetDateTime,
    pub final_name: Option<String>,
    pub golden: Option<PathBuf>,
    /// The file to deliver, where the bundle has no builder.
    pub file: Option<Arc<[u8]>>,
    pub repeatable: bool,
    pub reads_all: bool,
    pub scope: serde_json::Value,
    pub settings: BTreeMap<String, String>,
    pub rows: BTreeMap<String, FileRows>,
    pub acknowledgments: Vec<Acknowledgment>,
    pub beside: Vec<Beside>,
    /// Our file of last time, still under the same name.
    pub last: Option<Vec<u8>>,
    pub server: Server,
    pub expects: Expects,
}

/// In what the partner's server differs from OpenSSH's, whatever goes wrong.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Server {
    pub hard_links: bool,
    pub collects: bool,
    pub collects_later: bool,
    pub hides: Vec<String>,
}

impl Default for Server {
    fn default() -> Self {
        Self { hard_links: true, collects: false, collects_later: false, hides: Vec::new() }
    }
}

/// What the host must conclude where nothing goes wrong; absent: that it was delivered, or an unknown outcome that is.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Expects {
    #[serde(deserialize_with = "expected")]
    pub at_once: Option<String>,
    #[serde(deserialize_with = "expected")]
    pub later: Option<String>,
}

/// One that no delivery can end with would only ever be reported as a difference.
fn expected<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    let text = String::deserialize(from)?;
    let conclusions = Conclusion::all().map(|conclusion| conclusion.to_string());
    let failures = FailureReason::ALL.iter().map(|reason| format!("Failed({reason})"));
    let known: Vec<String> =
        conclusions.chain(failures).chain(["Queued again", "Stopped"].map(str::to_owned)).collect();
    let group = |name: &str| name.split('(').next().unwrap_or_default().to_owned();
    if known.iter().any(|name| *name == text || group(name) == text) {
        return Ok(Some(text));
    }
    let of_the_group: Vec<&str> = known.iter().filter(|name| group(name) == group(&text)).map(String::as_str).collect();
    let there_is = match &of_the_group[..] {
        [] => "Completed, NotDelivered, Unknown, Failed, each with a code or without, Queued again, and Stopped"
            .to_owned(),
        names => names.join(", "),
    };
    Err(serde::de::Error::custom(format!("no delivery ends with {text:?}; there is {there_is}")))
}

/// What the partner puts there.
#[derive(Debug, Clone)]
pub(super) struct Acknowledgment {
    pub when: Moment,
    pub name: Filled,
    /// None: our own file gets this name.
    pub text: Option<Filled>,
}

/// A file beside ours, and what must be in it.
#[derive(Debug, Clone)]
pub(super) struct Beside {
    pub name: Filled,
    pub golden: PathBuf,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Moment {
    Published,
    Later,
}

/// What is wrong with a case, or with a file that it names.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("tests/{file}{}: {what}", at_line(*.line))]
pub struct CaseFault {
    /// Relative to `tests/`.
    pub file: String,
    /// Counted from 1; 0 where no line can be named.
    pub line: usize,
    pub what: String,
}

fn at_line(line: usize) -> String {
    if line == 0 { String::new() } else { format!(" line {line}") }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    key: String,
    created_at: Option<Spanned<WrittenTime>>,
    final_name: Option<String>,
    golden: Option<Spanned<String>>,
    file: Option<Spanned<String>>,
    #[serde(default = "yes")]
    repeatable: bool,
    #[serde(default = "yes")]
    reads_all: bool,
    #[serde(default)]
    scope: BTreeMap<String, Spanned<toml::Value>>,
    #[serde(default)]
    settings: BTreeMap<String, String>,
    #[serde(default)]
    rows: BTreeMap<String, Spanned<String>>,
    #[serde(default)]
    acknowledgment: Vec<WrittenAcknowledgment>,
    #[serde(default)]
    beside: Vec<WrittenBeside>,
    last: Option<Spanned<String>>,
    #[serde(default)]
    server: Server,
    #[serde(default)]
    expects: Expects,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenAcknowledgment {
    when: Moment,
    name: Spanned<String>,
    text: Option<Spanned<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenBeside {
    name: Spanned<String>,
    golden: Spanned<String>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum WrittenTime {
    Time(toml::value::Datetime),
    Text(String),
}

const fn yes() -> bool {
    true
}

/// The instant of a case that names none: the one of the contract's own example.
const CREATED_AT: OffsetDateTime = time::macros::datetime!(2026-03-02 08:15:00 UTC);

/// Every case below `tests/`, in the order of their names.
pub(super) fn all(tests: &Path) -> Result<Vec<Case>, CaseFault> {
    let unreadable =
        |error: std::io::Error| CaseFault { file: String::new(), line: 0, what: format!("cannot be read ({error})") };
    let mut files = Vec::new();
    match std::fs::read_dir(tests) {
        Ok(entries) => {
            for entry in entries {
                let path = entry.map_err(unreadable)?.path();
                if path.extension().is_some_and(|extension| extension == "toml") {
                    files.push(path);
                }
            }
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
        Err(error) => return Err(unreadable(error)),
    }
    files.sort();
    files.iter().map(|file| read(tests, file)).collect()
}

fn read(tests: &Path, path: &Path) -> Result<Case, CaseFault> {
    let file = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let text = std::fs::read_to_string(path).map_err(|error| CaseFault {
        file: file.clone(),
        line: 0,
        what: format!("cannot be read ({error})"),
    })?;
    let fault = |offset: usize, what: String| CaseFault { file: file.clone(), line: line_at(&text, offset), what };
    let written: Written = toml::from_str(&text).map_err(|error| {
        let message = error.message().lines().map(str::trim).collect::<Vec<_>>().join(", ");
        fault(error.span().map_or(0, |span| span.start), with_fix(&message))
    })?;
    let created_at = match &written.created_at {
        None => CREATED_AT,
        Some(time) => {
            let text = match time.get_ref() {
                WrittenTime::Time(time) => time.to_string(),
                WrittenTime::Text(text) => text.clone(),
            };
            OffsetDateTime::parse(&text, &Rfc3339).map_err(|_| {
                fault(time.span().start, format!("created_at {text:?} is no instant; write it as 2026-03-02T08:15:00Z"))
            })?
        }
    };
    let scope = written.scope.iter().map(|(name, value)| match in_json(value.get_ref()) {
        Ok(value) => Ok((name.clone(), value)),
        Err(what) => Err(fault(value.span().start, format!("the scope's {name:?}: {what}"))),
    });
    let scope = scope.collect::<Result<serde_json::Map<_, _>, CaseFault>>()?;
    let mut rows = BTreeMap::new();
    for (query, named) in &written.rows {
        let inside = inside(named).map_err(|what| fault(named.span().start, what))?;
        let read = FileRows::read(&tests.join(inside)).map_err(|wrong| match wrong.line {
            0 => {
                fault(named.span().start, format!("the rows of {query:?} in tests/{}: {}", named.get_ref(), wrong.what))
            }
            line => CaseFault { file: named.get_ref().clone(), line, what: wrong.what },
        })?;
        rows.insert(query.clone(), read);
    }
    let below = |named: &Spanned<String>| {
        inside(named).map(|path| tests.join(path)).map_err(|what| fault(named.span().start, what))
    };
    let golden = written.golden.as_ref().map(below).transpose()?;
    let filled = |written: &Spanned<String>, read: fn(&str) -> Result<Filled, String>| {
        read(written.get_ref()).map_err(|what| fault(written.span().start, what))
    };
    let answer = |one: &WrittenAcknowledgment| -> Result<Acknowledgment, CaseFault> {
        let text = one.text.as_ref().map(|text| filled(text, Filled::text)).transpose()?;
        Ok(Acknowledgment { when: one.when, name: filled(&one.name, Filled::name)?, text })
    };
    let acknowledgments = written.acknowledgment.iter().map(answer).collect::<Result<_, _>>()?;
    let file_beside = |one: &WrittenBeside| -> Result<Beside, CaseFault> {
        Ok(Beside { name: filled(&one.name, Filled::name)?, golden: below(&one.golden)? })
    };
    let beside = written.beside.iter().map(file_beside).collect::<Result<_, _>>()?;
    let content = |named: &Option<Spanned<String>>| {
        let Some(named) = named else { return Ok(None) };
        let at = |what| fault(named.span().start, what);
        let bytes = std::fs::read(tests.join(inside(named).map_err(at)?));
        bytes.map(Some).map_err(|error| at(format!("tests/{} cannot be read ({error})", named.get_ref())))
    };
    let (last, ready) = (content(&written.last)?, content(&written.file)?);
    Ok(Case {
        name: path.file_stem().unwrap_or_default().to_string_lossy().into_owned(),
        key: written.key,
        created_at,
        final_name: written.final_name,
        golden,
        file: ready.map(Arc::from),
        repeatable: written.repeatable,
        reads_all: written.reads_all,
        scope: serde_json::Value::Object(scope),
        settings: written.settings,
        rows,
        acknowledgments,
        beside,
        last,
        server: written.server,
        expects: written.expects,
    })
}

/// An entry of the scope as a job's creator would write it. JSON has no dates and no numbers without an end.
fn in_json(value: &toml::Value) -> Result<serde_json::Value, String> {
    let quoted = |what: &str| Err(format!("{what} has no form in JSON; write it in quotes"));
    match value {
        toml::Value::String(text) => Ok(text.as_str().into()),
        toml::Value::Integer(number) => Ok((*number).into()),
        toml::Value::Boolean(yes) => Ok((*yes).into()),
        toml::Value::Float(number) => match serde_json::Number::from_f64(*number) {
            Some(number) => Ok(number.into()),
            None => quoted(&format!("the number {number}")),
        },
        toml::Value::Datetime(time) => quoted(&format!("the date {time}")),
        toml::Value::Array(values) => values.iter().map(in_json).collect(),
        toml::Value::Table(entries) => {
            let entries = entries.iter().map(|(name, value)| Ok((name.clone(), in_json(value)?)));
            entries.collect::<Result<serde_json::Map<_, _>, String>>().map(serde_json::Value::Object)
        }
    }
}

/// A path that stays below `tests/`.
fn inside(named: &Spanned<String>) -> Result<&Path, String> {
    let path = Path::new(named.get_ref());
    let plain = path.components().all(|part| matches!(part, std::path::Component::Normal(_)));
    if plain && !named.get_ref().is_empty() {
        return Ok(path);
    }
    Err(format!("{:?} leads out of tests/; name a file below it", named.get_ref()))
}

fn line_at(text: &str, offset: usize) -> usize {
    text.bytes().take(offset).filter(|byte| *byte == b'\n').count() + 1
}

impl Case {
    /// A case gives the file where nothing makes one, and only there.
    pub fn suits(&self, manifest: &Manifest) -> Result<(), CaseFault> {
        let what = match (manifest.has(Part::Builder), &self.file) {
            (true, None) | (false, Some(_)) => return Ok(()),
            (true, Some(_)) => "the bundle has a builder, which makes the file: take `file` out",
            (false, None) => {
                "the bundle is a destination alone (`part` in partner.toml): name the file to deliver, as in file = \"files/contacts.csv\""
            }
        };
        Err(CaseFault { file: format!("{}.toml", self.name), line: 0, what: what.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn case(text: &str) -> Result<Case, CaseFault> {
        let tests = tempfile::tempdir().unwrap();
        std::fs::create_dir(tests.path().join("rows")).unwrap();
        std::fs::write(tests.path().join("rows/good.jsonl"), "[{\"name\":\"n\",\"of\":\"integer\"}]\n[1]\n").unwrap();
        std::fs::write(tests.path().join("rows/bad.jsonl"), "[{\"name\":\"n\",\"of\":\"integer\"}]\n[\"x\"]\n")
            .unwrap();
        std::fs::write(tests.path().join("one.toml"), text).unwrap();
        all(tests.path()).map(|mut cases| cases.remove(0))
    }

    #[test]
    fn plg_06_a_case_is_read_with_its_defaults() {
        let read = case("key = 'K'\n[rows]\ncontacts = 'rows/good.jsonl'\n[scope]\ncountry = 'DE'\n").unwrap();
        assert_eq!((read.name.as_str(), read.created_at, read.repeatable), ("one", CREATED_AT, true));
        assert_eq!(read.rows["contacts"].count(), 1);
        assert_eq!(read.scope["country"], "DE");
        let scope =
            case("key = 'K'\n[scope]\nday = '2026-03-02'\nmost = 2\nshare = 0.5\nall = true\nin = ['a', { b = 1 }]");
        let expected =
            serde_json::json!({ "day": "2026-03-02", "most": 2, "share": 0.5, "all": true, "in": ["a", { "b": 1 }] });
        assert_eq!(scope.unwrap().scope, expected);
        assert_eq!(case("key = 'K'\ncreated_at = 2026-05-06T07:08:09Z").unwrap().created_at.year(), 2026);
        assert!(case("key = 'K'\ncreated_at = '2026-05-06T07:08:09Z'").is_ok());
    }

    #[test]
    fn plg_06_each_fault_of_a_case_is_told_with_file_and_line() {
        for (text, told) in [
            (
                "key = 'K'\nfinalname = 'x'",
                "tests/one.toml line 2: the key `finalname` is not known here; did you mean `final_name`?",
            ),
            ("[scope]\na = 1", "tests/one.toml line 1: the key `key` is missing here; add it"),
            ("key = 'K'\ncreated_at = 'today'", "tests/one.toml line 2: created_at \"today\" is no instant"),
            ("key = 'K'\nlast = 'none.csv'", "tests/one.toml line 2: tests/none.csv cannot be read"),
            (
                "key = 'K'\n[server]\nrenames = false",
                "tests/one.toml line 3: the key `renames` is not known here; known are ",
            ),
            (
                "key = 'K'\n[scope]\na = 1\nday = 2026-03-02",
                "tests/one.toml line 4: the scope's \"day\": the date 2026-03-02",
            ),
            (
                "key = 'K'\n[scope]\ndays = ['x', 08:15:00]",
                "tests/one.toml line 3: the scope's \"days\": the date 08:15:00",
            ),
            ("key = 'K'\n[scope]\nmost = inf", "tests/one.toml line 3: the scope's \"most\": the number inf"),
            (
                "key = 'K'\n[[acknowledgment]]\nwhen = 'later'\nname = '{fina}.ok'",
                "tests/one.toml line 4: \"{fina}.ok\" has an unknown placeholder {fina}",
            ),
            (
                "key = 'K'\n[[acknowledgment]]\nwhen = 'later'\nname = 'a'\ntext = 'of {id}'",
                "tests/one.toml line 5: \"of {id}\" has an unknown placeholder {id}",
            ),
            (
                "key = 'K'\n[[beside]]\nname = '*.done'\ngolden = 'x'",
                "tests/one.toml line 3: \"*.done\" has to name one file",
            ),
            (
                "key = 'K'\n[expects]\nat_once = 'Completed(checksums)'",
                "tests/one.toml line 3: no delivery ends with \"Completed(checksums)\"; there is Completed(acknowledged_attempt), ",
            ),
            ("key = 'K'\n[expects]\nlater = 'Complete'", "tests/one.toml line 3: no delivery ends with \"Complete\"; "),
            (
                "key = 'K'\n[[beside]]\nname = 'a.done'",
                "tests/one.toml line 2: the key `golden` is missing here; add it",
            ),
            (
                "key = 'K'\n[[beside]]\nname = 'a.done'\ngolden = '/x'",
                "tests/one.toml line 4: \"/x\" leads out of tests/",
            ),
            ("key = 'K'\ngolden = '../x'", "tests/one.toml line 2: \"../x\" leads out of tests/"),
            ("key = 'K'\n[rows]\ncontacts = 'rows/none.jsonl'", "tests/one.toml line 3: the rows of \"contacts\""),
            (
                "key = 'K'\n[rows]\ncontacts = 'rows/bad.jsonl'",
                "tests/rows/bad.jsonl line 2: column \"n\" is of integer",
            ),
        ] {
            let fault = case(text).unwrap_err().to_string();
            assert!(fault.starts_with(told), "{text:?}: {fault}");
        }
    }
}
