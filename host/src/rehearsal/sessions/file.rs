//! The file of a recorded session: what it was in the first line, then one request with its answer a line.

use std::path::Path;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::rehearsal::case::CaseFault;
use crate::remote::Endpoint;
use crate::remote::recorded::{Server, Step, unfounded};

/// Where sessions lie, below `tests/`.
pub(super) const FOLDER: &str = "sessions";
/// How their files end.
const ENDING: &str = "jsonl";
/// The form of the file that this program writes and reads.
const FORM: u32 = 1;

/// A recorded session.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::rehearsal) struct Session {
    pub name: String,
    pub header: Header,
    pub steps: Vec<Step>,
}

/// The first line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::rehearsal) struct Header {
    /// The file's form.
    pub session: u32,
    pub case: String,
    pub attempt: Uuid,
    pub server: Server,
    /// What the host concluded at once, and by a later look if it made one.
    pub concluded: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub later: Option<String>,
}

/// The ids that differ from one session to the next.
#[derive(Debug, Clone)]
pub(super) struct Ids {
    pub attempt: Uuid,
    pub scratch: [Uuid; 5],
}

/// What stands in a file for the account and the host, wherever a server names them.
const USER: &str = "{user}";
const HOST: &str = "{host}";
const BUCKET: &str = "{bucket}";

impl Ids {
    /// Those of a session that is held for the first time.
    pub fn fresh() -> Self {
        Self { attempt: Uuid::new_v4(), scratch: std::array::from_fn(|_| Uuid::new_v4()) }
    }

    /// Those of one that is held again. Its scratch names are written down by number, so any ids do.
    pub fn again(attempt: Uuid) -> Self {
        Self { attempt, scratch: std::array::from_fn(|at| Uuid::from_u128(0x5c4a_7c40 + at as u128)) }
    }

    fn stand_ins(&self) -> impl Iterator<Item = (String, String)> {
        let scratch = self.scratch.into_iter().enumerate();
        let scratch = scratch.map(|(at, id)| (id.to_string(), format!("{{scratch-{}}}", at + 1)));
        std::iter::once((self.attempt.to_string(), "{attempt}".to_owned())).chain(scratch)
    }

    /// The text with each id replaced by what stands for it.
    pub fn hide(&self, text: &str) -> String {
        self.stand_ins().fold(text.to_owned(), |text, (id, stand_in)| text.replace(&id, &stand_in))
    }

    fn show(&self, text: &str) -> String {
        self.stand_ins().fold(text.to_owned(), |text, (id, stand_in)| text.replace(&stand_in, &id))
    }
}

impl Session {
    /// The file's text. What the server said loses the names of account and host.
    pub(super) fn to_text(&self, ids: &Ids, endpoint: &Endpoint) -> Result<String, serde_json::Error> {
        let mut header = self.header.clone();
        for words in [&mut header.server.banner, &mut header.server.directory] {
            *words = without_account(words, endpoint);
        }
        let mut text = format!("{}\n", serde_json::to_string(&header)?);
        for step in &self.steps {
            let mut step = step.clone();
            if let Some(words) = step.answer.words_mut() {
                *words = without_account(words, endpoint);
            }
            text.push_str(&ids.hide(&serde_json::to_string(&step)?));
            text.push('\n');
        }
        Ok(text)
    }

    /// Reads a file's text.
    pub fn read(name: &str, text: &str) -> Result<Self, CaseFault> {
        let fault = |line: usize, what: String| CaseFault { file: file_name(name), line, what };
        let broken = |line: usize, error: &serde_json::Error| {
            let error = error.to_string();
            let what = error.split(" at line ").next().unwrap_or(&error);
            fault(line, format!("{what}; restore the line, or record the session again"))
        };
        let mut lines = text.lines();
        let first = lines.next().unwrap_or_default();
        let header: Header = serde_json::from_str(first).map_err(|error| broken(1, &error))?;
        if header.session != FORM {
            let what = format!(
                "the file has form {}, and this program reads form {FORM}; record the session again",
                header.session
            );
            return Err(fault(1, what));
        }
        let ids = Ids::again(header.attempt);
        let mut steps = Vec::new();
        for (at, line) in lines.enumerate() {
            steps.push(serde_json::from_str(&ids.show(line)).map_err(|error| broken(at + 2, &error))?);
        }
        match unfounded(&steps) {
            Some((at, why)) => Err(fault(at + 2, format!("{why}; restore the line, or record the session again"))),
            None => Ok(Self { name: name.to_owned(), header, steps }),
        }
    }
}

impl Header {
    pub fn new(case: &str, attempt: Uuid, server: Server, concluded: String, later: Option<String>) -> Self {
        Self { session: FORM, case: case.to_owned(), attempt, server, concluded, later }
    }
}

/// Every session below `tests/sessions/`, in the order of their names; each must be of one of these cases.
pub(in crate::rehearsal) fn all(tests: &Path, cases: &[String]) -> Result<Vec<Session>, CaseFault> {
    let folder = tests.join(FOLDER);
    let unreadable = |error: std::io::Error| CaseFault {
        file: FOLDER.to_owned(),
        line: 0,
        what: format!("cannot be read ({error})"),
    };
    let mut sessions = Vec::new();
    let entries = match std::fs::read_dir(&folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(sessions),
        Err(error) => return Err(unreadable(error)),
    };
    for entry in entries {
        let path = entry.map_err(unreadable)?.path();
        if path.extension().is_none_or(|ending| ending != ENDING) {
            continue;
        }
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let fault = |line, what| CaseFault { file: file_name(&name), line, what };
        let text = std::fs::read_to_string(&path).map_err(|error| fault(0, format!("cannot be read ({error})")))?;
        let session = Session::read(&name, &text)?;
        if !cases.contains(&session.header.case) {
            let case = &session.header.case;
            let what = format!(
                "it was recorded for the case {case:?}, which is no longer there; name the case's file so again, record the session for another case, or remove this file"
            );
            return Err(fault(1, what));
        }
        sessions.push(session);
    }
    sessions.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(sessions)
}

/// The file of a session, relative to `tests/`.
pub(super) fn file_name(name: &str) -> String {
    format!("{FOLDER}/{name}.{ENDING}")
}

fn without_account(words: &str, endpoint: &Endpoint) -> String {
    match endpoint {
        Endpoint::Sftp(sftp) => replace_word(&replace_word(words, &sftp.host, HOST), &sftp.user, USER),
        Endpoint::Directory(_) => words.to_owned(),
        Endpoint::Objects(objects) => {
            replace_word(&replace_word(words, &objects.address.host, HOST), &objects.bucket, BUCKET)
        }
    }
}

/// Replaces a word wherever it stands for itself.
fn replace_word(text: &str, word: &str, stand_in: &str) -> String {
    if word.is_empty() {
        return text.to_owned();
    }
    let mut replaced = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(word) {
        let (before, from) = rest.split_at(at);
        let after = from.get(word.len()..).unwrap_or_default();
        replaced.push_str(before);
        let joined =
            before.chars().next_back().or_else(|| replaced.chars().next_back()).is_some_and(char::is_alphanumeric)
                || after.starts_with(char::is_alphanumeric);
        replaced.push_str(if joined { word } else { stand_in });
        rest = after;
    }
    replaced + rest
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::remote::recorded::{Answer, Lack, Request};
    use crate::remote::{SecretRef, SftpEndpoint};

    fn endpoint() -> Endpoint {
        Endpoint::Sftp(SftpEndpoint {
            host: "mft.acme.example".to_owned(),
            port: 22,
            user: "us".to_owned(),
            directory: "in".to_owned(),
            host_keys: Vec::new(),
            secret: SecretRef::KeyEnv("KEY".to_owned()),
        })
    }

    fn session(ids: &Ids) -> Session {
        let server = Server {
            banner: "SSH-2.0-mft.acme.example".to_owned(),
            extensions: [("fsync@openssh.com".to_owned(), "1".to_owned())].into(),
            directory: "/home/us/in".to_owned(),
            lacks: [Lack::HardLinks].into(),
            creates_whole: false,
            largest_bytes: None,
        };
        let name = format!("{}-{}", ids.attempt, ids.scratch[1]);
        let answer = Answer::Refused { code: Some(4), text: "us may not use /home/us/in".to_owned(), may_exist: false };
        let steps = vec![Step { request: Request::Remove { name }, answer }];
        let header = Header::new("contacts", ids.attempt, server, "Completed(checksum)".to_owned(), None);
        Session { name: "first".to_owned(), header, steps }
    }

    #[test]
    fn plg_06_a_session_is_read_as_it_was_written_without_account_and_host() {
        let ids = Ids::fresh();
        let text = session(&ids).to_text(&ids, &endpoint()).unwrap();
        for secret in ["mft.acme.example", "/us/", "us may", &ids.scratch[1].to_string()] {
            assert!(!text.contains(secret), "{secret} is in {text}");
        }
        assert!(text.contains("{user} may not use /home/{user}/in"), "server{{user}}: {text}");
        let read = Session::read("first", &text).unwrap();
        let again = Ids::again(ids.attempt);
        let Request::Remove { name } = &read.steps[0].request else { panic!("{read:?}") };
        assert_eq!(*name, format!("{}-{}", ids.attempt, again.scratch[1]));
        assert_eq!(read.to_text(&again, &endpoint()).unwrap(), text);
    }

    #[test]
    fn plg_06_a_broken_session_is_told_by_its_line() {
        let ids = Ids::fresh();
        let text = session(&ids).to_text(&ids, &endpoint()).unwrap();
        for (text, told) in [
            (String::new(), "tests/sessions/first.jsonl line 1: "),
            (text.replace("\"session\":1", "\"session\":9"), "tests/sessions/first.jsonl line 1: the file has form 9"),
            (format!("{text}{{\n"), "tests/sessions/first.jsonl line 3: EOF while parsing"),
            (text.replace("\"remove\"", "\"shred\""), "tests/sessions/first.jsonl line 2: unknown variant `shred`"),
            (
                format!("{text}{{\"request\":\"free_bytes\",\"answer\":\"done\"}}\n"),
                "tests/sessions/first.jsonl line 3: a request of this kind has no such answer",
            ),
        ] {
            let fault = Session::read("first", &text).unwrap_err().to_string();
            assert!(fault.starts_with(told), "{fault}");
        }
    }

    #[test]
    fn only_a_whole_word_is_replaced() {
        assert_eq!(replace_word("us, bus, us/use us", "us", USER), "{user}, bus, {user}/use {user}");
        assert_eq!(replace_word("usus", "us", USER), "usus");
    }
}
