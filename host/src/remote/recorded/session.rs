//! The session: requests go to a server and are written down, or are answered from what was written down.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::future::BoxFuture;
use serde::{Deserialize, Serialize};
use sha2::Digest as _;
use tokio_util::sync::CancellationToken;

use super::state::{Difference, State};
use super::step::{Answer, Content, Kept, Request, Step};
use crate::job::facts::{Entry, Found, Sha256};
use crate::remote;
use crate::remote::error::RemoteError;
use crate::remote::session::{CreateError, ServerFacts};
use crate::spool::SpoolFile;

/// The most of a file that was read that is kept: an acknowledgment is small.
const MOST_KEPT: usize = 64 * 1024;

/// What is kept of the server itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Server {
    pub banner: String,
    pub extensions: BTreeMap<String, String>,
    pub directory: String,
    /// What is not even asked for.
    pub lacks: BTreeSet<Lack>,
    /// A created file appears whole or not at all.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub creates_whole: bool,
    /// The largest file that can be created, where there is a bound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub largest_bytes: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Lack {
    HardLinks,
    Renames,
    PosixRenames,
}

/// A recorded session. Clones are the same session; whoever records one closes the server's.
#[derive(Clone)]
pub struct Session {
    inner: Arc<Inner>,
}

struct Inner {
    facts: ServerFacts,
    described: Server,
    /// `None`: the record answers.
    server: Option<remote::Session>,
    state: Mutex<State>,
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session").field("server", &self.inner.facts).finish_non_exhaustive()
    }
}

impl Session {
    /// Writes down what goes to a server and what comes back.
    pub fn recording(server: remote::Session) -> Self {
        let facts = server.server().clone();
        let lacks = [
            (Lack::HardLinks, server.lacks_hardlink()),
            (Lack::Renames, server.lacks_rename()),
            (Lack::PosixRenames, server.lacks_posix_rename()),
        ];
        let ServerFacts { banner, extensions, directory } = facts.clone();
        let described = Server {
            banner,
            extensions,
            directory,
            lacks: lacks.into_iter().filter_map(|(lack, why)| why.map(|_| lack)).collect(),
            creates_whole: server.creates_whole(),
            largest_bytes: server.largest_bytes(),
        };
        Self { inner: Arc::new(Inner { facts, described, server: Some(server), state: Mutex::default() }) }
    }

    /// Answers from a record.
    pub fn replaying(server: Server, steps: Vec<Step>) -> Self {
        let Server { banner, extensions, directory, .. } = server.clone();
        let facts = ServerFacts { banner, extensions, directory };
        let state = Mutex::new(State { steps, ..State::default() });
        Self { inner: Arc::new(Inner { facts, described: server, server: None, state }) }
    }

    /// What is to be kept of the server.
    pub fn described(&self) -> Server {
        self.inner.described.clone()
    }

    /// Requests so far.
    pub fn asked(&self) -> usize {
        self.state().asked
    }

    /// What was written down, or why it is no record.
    pub fn recorded(&self) -> Result<Vec<Step>, String> {
        let state = self.state();
        match &state.spoiled {
            Some(why) => Err(why.clone()),
            None if state.asking => Err("a request was not waited for".to_owned()),
            None => Ok(state.steps.clone()),
        }
    }

    /// Where the session and the record part; after the session's end also a request that was never made.
    pub fn difference(&self) -> Option<Difference> {
        let state = self.state();
        let left = || {
            let recorded = state.steps.get(state.asked)?.request.clone();
            Some(Difference { number: state.asked + 1, recorded: Some(recorded), asked: None })
        };
        state.difference.clone().or_else(left)
    }

    pub(in crate::remote) fn server(&self) -> &ServerFacts {
        &self.inner.facts
    }

    pub(in crate::remote) fn is_usable(&self) -> bool {
        self.state().difference.is_none() && self.inner.server.as_ref().is_none_or(remote::Session::is_usable)
    }

    pub(in crate::remote) fn ping(&self) -> BoxFuture<'_, Result<(), RemoteError>> {
        Box::pin(async move {
            match &self.inner.server {
                Some(server) => server.ping().await,
                None => Ok(()),
            }
        })
    }

    pub(in crate::remote) fn lacks_hardlink(&self) -> Option<&'static str> {
        self.lacks(Lack::HardLinks, "the recorded server offers no hard link")
    }

    pub(in crate::remote) fn lacks_rename(&self) -> Option<&'static str> {
        self.lacks(Lack::Renames, "the recorded server offers no rename")
    }

    pub(in crate::remote) fn lacks_posix_rename(&self) -> Option<&'static str> {
        self.lacks(Lack::PosixRenames, "the recorded server offers no POSIX rename")
    }

    fn lacks(&self, what: Lack, why: &'static str) -> Option<&'static str> {
        self.inner.described.lacks.contains(&what).then_some(why)
    }

    pub(in crate::remote) fn creates_whole(&self) -> bool {
        self.inner.described.creates_whole
    }

    pub(in crate::remote) fn largest_bytes(&self) -> Option<u64> {
        self.inner.described.largest_bytes
    }

    pub(in crate::remote) fn stat<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Found, RemoteError>> {
        Box::pin(async move {
            let Some(server) = self.asks(Request::Stat { name: name.to_owned() })? else {
                return match self.answer()? {
                    Answer::Absent => Ok(Found::Absent),
                    Answer::Present(seen) => Ok(Found::Present(seen.into_entry(self.built_bytes()))),
                    Answer::NotVisible { why } => Ok(Found::NotVisible { why }),
                    Answer::Unknown { why } => Ok(Found::Unknown { why }),
                    other => Err(other.into_error()),
                };
            };
            let found = server.stat(name).await;
            self.keep(&found, |found, state| match found.clone() {
                Found::Present(entry) => Ok(Answer::Present(state.seen(entry))),
                Found::Absent => Ok(Answer::Absent),
                Found::NotVisible { why } => Ok(Answer::NotVisible { why }),
                Found::Unknown { why } => Ok(Answer::Unknown { why }),
            });
            found
        })
    }

    pub(in crate::remote) fn list<'a>(
        &'a self,
        directory: &'a str,
        prefix: &'a str,
        most: usize,
        wanted: Box<dyn Fn(&str) -> bool + Send>,
    ) -> BoxFuture<'a, Result<Vec<Entry>, RemoteError>> {
        Box::pin(async move {
            let request = Request::List { directory: directory.to_owned(), prefix: prefix.to_owned(), most };
            let Some(server) = self.asks(request)? else {
                return match self.answer()? {
                    Answer::Entries(entries) => {
                        let built = self.built_bytes();
                        Ok(entries.into_iter().map(|seen| seen.into_entry(built)).collect())
                    }
                    other => Err(other.into_error()),
                };
            };
            // Names that are not declared are never seen here, so no record holds what others keep there.
            let entries = server.list(directory, prefix, most, wanted).await;
            self.keep(&entries, |entries, state| {
                Ok(Answer::Entries(entries.iter().map(|entry| state.seen(entry.clone())).collect()))
            });
            entries
        })
    }

    pub(in crate::remote) fn make_directory<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<(), RemoteError>> {
        let request = Request::MakeDirectory { name: name.to_owned() };
        self.change(request, move |server| Box::pin(async move { server.make_directory(name).await }))
    }

    pub(in crate::remote) fn remove<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<(), RemoteError>> {
        let request = Request::Remove { name: name.to_owned() };
        self.change(request, move |server| Box::pin(async move { server.remove(name).await }))
    }

    pub(in crate::remote) fn rename<'a>(
        &'a self,
        from: &'a str,
        to: &'a str,
    ) -> BoxFuture<'a, Result<(), RemoteError>> {
        let request = Request::Rename { from: from.to_owned(), to: to.to_owned() };
        self.change(request, move |server| Box::pin(async move { server.rename(from, to).await }))
    }

    pub(in crate::remote) fn hardlink<'a>(
        &'a self,
        from: &'a str,
        to: &'a str,
    ) -> BoxFuture<'a, Result<(), RemoteError>> {
        let request = Request::Hardlink { from: from.to_owned(), to: to.to_owned() };
        self.change(request, move |server| Box::pin(async move { server.hardlink(from, to).await }))
    }

    pub(in crate::remote) fn posix_rename<'a>(
        &'a self,
        from: &'a str,
        to: &'a str,
    ) -> BoxFuture<'a, Result<(), RemoteError>> {
        let request = Request::PosixRename { from: from.to_owned(), to: to.to_owned() };
        self.change(request, move |server| Box::pin(async move { server.posix_rename(from, to).await }))
    }

    pub(in crate::remote) fn free_bytes(&self) -> BoxFuture<'_, Result<Option<u64>, RemoteError>> {
        Box::pin(async move {
            let Some(server) = self.asks(Request::FreeBytes)? else {
                return match self.answer()? {
                    Answer::FreeBytes(bytes) => Ok(bytes),
                    other => Err(other.into_error()),
                };
            };
            let told = server.free_bytes().await;
            self.keep(&told, |bytes, _| Ok(Answer::FreeBytes(*bytes)));
            told
        })
    }

    /// Creates a small file.
    pub(in crate::remote) fn create<'a>(
        &'a self,
        name: &'a str,
        content: Vec<u8>,
    ) -> BoxFuture<'a, Result<(), CreateError>> {
        let sha256 = Sha256(sha2::Sha256::digest(&content).into());
        let other = Content::Other { bytes: content.len() as u64, sha256 };
        self.state().small.insert(name.to_owned());
        self.creates(name, other, move |server| Box::pin(async move { server.create(name, content).await }))
    }

    /// Creates a file from the one that the attempt built.
    pub(in crate::remote) fn upload<'a>(
        &'a self,
        name: &'a str,
        file: &'a SpoolFile,
        lost: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<(), CreateError>> {
        {
            let mut state = self.state();
            state.built = Some(file.clone());
            state.small.remove(name);
        }
        self.creates(name, Content::Built, move |server| Box::pin(async move { server.upload(name, file, lost).await }))
    }

    pub(in crate::remote) fn read<'a>(
        &'a self,
        name: &'a str,
        offset: u64,
        most: u32,
    ) -> BoxFuture<'a, Result<Vec<u8>, RemoteError>> {
        Box::pin(async move {
            let Some(server) = self.asks(Request::Read { name: name.to_owned(), offset, most })? else {
                return match self.answer()? {
                    Answer::Read(Kept::Text(text)) => Ok(text.into_bytes()),
                    Answer::Read(Kept::Base64(text)) => data_encoding::BASE64
                        .decode(text.as_bytes())
                        .map_err(|error| RemoteError::Unknown { why: format!("the record is broken: {error}") }),
                    Answer::Read(Kept::Built) => self.of_the_built_file(offset, most).await,
                    other => Err(other.into_error()),
                };
            };
            let read = server.read(name, offset, most).await;
            let built = match &read {
                Ok(bytes) => !self.is_small(name) && self.is_the_built_files(bytes, offset, most).await,
                Err(_) => false,
            };
            self.keep(&read, |bytes, _| match bytes {
                _ if built => Ok(Answer::Read(Kept::Built)),
                bytes if bytes.len() <= MOST_KEPT => Ok(Answer::Read(Kept::of(bytes))),
                bytes => Err(format!(
                    "{} bytes were read of {name:?}, and a record keeps at most {MOST_KEPT} of a file that is not ours",
                    bytes.len()
                )),
            });
            read
        })
    }

    pub(in crate::remote) fn read_digest<'a>(
        &'a self,
        name: &'a str,
        most: u64,
    ) -> BoxFuture<'a, Result<(Sha256, u64), RemoteError>> {
        Box::pin(async move {
            let size = self.state().size(name, most);
            let Some(server) = self.asks(Request::Digest { name: name.to_owned(), most: size })? else {
                return match self.answer()? {
                    Answer::Digest(Content::Other { bytes, sha256 }) => Ok((sha256, bytes)),
                    answer @ Answer::Digest(Content::Built) => match &self.state().built {
                        Some(file) => Ok((file.sha256(), file.bytes())),
                        None => Err(answer.into_error()),
                    },
                    other => Err(other.into_error()),
                };
            };
            let digest = server.read_digest(name, most).await;
            self.keep(&digest, |(sha256, bytes), state| {
                let built = state.built.as_ref().filter(|file| (file.sha256(), file.bytes()) == (*sha256, *bytes));
                Ok(Answer::Digest(match built {
                    Some(_) => Content::Built,
                    None => Content::Other { bytes: *bytes, sha256: *sha256 },
                }))
            });
            digest
        })
    }

    /// A request that is answered by yes or no.
    fn change<'a>(
        &'a self,
        request: Request,
        ask: impl FnOnce(&'a remote::Session) -> BoxFuture<'a, Result<(), RemoteError>> + Send + 'a,
    ) -> BoxFuture<'a, Result<(), RemoteError>> {
        Box::pin(async move {
            let Some(server) = self.asks(request)? else {
                return match self.answer()? {
                    Answer::Done => Ok(()),
                    other => Err(other.into_error()),
                };
            };
            let answered = ask(server).await;
            self.keep(&answered, |(), _| Ok(Answer::Done));
            answered
        })
    }

    fn creates<'a>(
        &'a self,
        name: &str,
        content: Content,
        ask: impl FnOnce(&'a remote::Session) -> BoxFuture<'a, Result<(), CreateError>> + Send + 'a,
    ) -> BoxFuture<'a, Result<(), CreateError>> {
        let request = Request::Create { name: name.to_owned(), content };
        Box::pin(async move {
            let nothing = |error| CreateError { may_exist: false, error };
            let Some(server) = self.asks(request).map_err(nothing)? else {
                return match self.answer().map_err(nothing)? {
                    Answer::Done => Ok(()),
                    Answer::Refused { code, text, may_exist } => {
                        Err(CreateError { may_exist, error: RemoteError::Refused { code, text } })
                    }
                    other => Err(nothing(other.into_error())),
                };
            };
            let created = ask(server).await;
            let answer = match &created {
                Ok(()) => Ok(Answer::Done),
                Err(failed) => Answer::failed(&failed.error, failed.may_exist),
            };
            self.write_down(answer);
            created
        })
    }

    /// Makes a request: of the server that is handed out, or of the record, whose [`Self::answer`] it then is.
    fn asks(&self, request: Request) -> Result<Option<&remote::Session>, RemoteError> {
        let mut state = self.state();
        let elsewhere = || RemoteError::NotSent { why: "the recorded session has no such request here".to_owned() };
        if state.difference.is_some() {
            return Err(elsewhere());
        }
        state.moved(&request);
        let number = state.asked + 1;
        if let Some(server) = &self.inner.server {
            if state.asking && state.spoiled.is_none() {
                state.spoiled = Some(format!("request {number} was made while another one was not answered yet"));
            }
            // Kept with its answer; one whose answer nobody waited for makes no record.
            state.asking = true;
            state.asked = number;
            state.steps.push(Step { request, answer: Answer::Done });
            return Ok(Some(server));
        }
        let recorded = state.steps.get(state.asked).map(|step| step.request.clone());
        if recorded.as_ref() == Some(&request) {
            state.asked = number;
            return Ok(None);
        }
        state.difference = Some(Difference { number, recorded, asked: Some(request) });
        Err(elsewhere())
    }

    /// What the record answers to the request that was just made.
    fn answer(&self) -> Result<Answer, RemoteError> {
        let state = self.state();
        let step = state.asked.checked_sub(1).and_then(|at| state.steps.get(at));
        step.map(|step| step.answer.clone())
            .ok_or_else(|| RemoteError::Unknown { why: "the record ends here".to_owned() })
    }

    /// Writes the server's answer down.
    fn keep<T>(&self, answered: &Result<T, RemoteError>, answer: impl FnOnce(&T, &State) -> Result<Answer, String>) {
        let answer = match answered {
            Ok(answered) => answer(answered, &self.state()),
            Err(error) => Answer::failed(error, false),
        };
        self.write_down(answer);
    }

    fn write_down(&self, answer: Result<Answer, String>) {
        let mut state = self.state();
        state.asking = false;
        match (answer, state.steps.last_mut()) {
            (Ok(answer), Some(step)) => step.answer = answer,
            (Ok(_), None) => {}
            (Err(why), _) => {
                state.spoiled.get_or_insert(why);
            }
        }
    }

    fn built_bytes(&self) -> Option<u64> {
        self.state().built.as_ref().map(SpoolFile::bytes)
    }

    fn is_small(&self, name: &str) -> bool {
        self.state().small.contains(name)
    }

    /// What a read of the built file would have shown.
    async fn of_the_built_file(&self, offset: u64, most: u32) -> Result<Vec<u8>, RemoteError> {
        let Some(file) = self.state().built.clone() else {
            return Err(Answer::Read(Kept::Built).into_error());
        };
        let left = file.bytes().saturating_sub(offset).min(u64::from(most));
        let mut bytes = Vec::new();
        while (bytes.len() as u64) < left {
            let at = offset + bytes.len() as u64;
            let length = usize::try_from(left - bytes.len() as u64).unwrap_or(usize::MAX);
            let block = file.read_at(at, length).await;
            let block = block.map_err(|error| RemoteError::NotSent { why: error.to_string() })?;
            if block.is_empty() {
                break;
            }
            bytes.extend_from_slice(&block);
        }
        Ok(bytes)
    }

    async fn is_the_built_files(&self, read: &[u8], offset: u64, most: u32) -> bool {
        // A server may answer with less than was asked for; a few bytes could be anybody's.
        const ENOUGH: usize = 16;
        let same = |bytes: Vec<u8>| bytes.starts_with(read) && (bytes.len() == read.len() || read.len() >= ENOUGH);
        !read.is_empty() && self.of_the_built_file(offset, most).await.is_ok_and(same)
    }

    /// Every change under this lock is whole, so a panic elsewhere leaves it usable.
    fn state(&self) -> MutexGuard<'_, State> {
        self.inner.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
