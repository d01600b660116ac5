//! The one hand that writes at the partner, for one attempt after cutoff 2.
//!
//! A plugin calls it; the gate decides; the host does the work in tasks of its own, which end and are journaled even
//! when the plugin's call is dropped. The publish request goes out at most once, after the fence, in the one form
//! that was fixed before; whatever is not a clear answer is recorded as unanswered. The session may be lost under
//! it: it is never replaced, so nothing is ever sent again over another one.

use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::{info, warn};

use super::error::RemoteError;
use super::gate::{Call, Gate, Grant, Licence, Step};
use super::journal::{Fence, Journal};
use super::names::Names;
use super::session::{CreateError, Session};
use crate::job::evidence::{Answer, AuxiliaryPut, PublishForm};
use crate::job::facts::{Entry, Found};
use crate::spool::SpoolFile;

/// The largest auxiliary file, as the contract says: done-files and checksums are small.
const MOST_AUXILIARY_BYTES: usize = 64 * 1024;

/// What [`Writer::send`] did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sent {
    /// The name that the host minted; none for the forms that send at the publish.
    pub temporary: Option<String>,
    pub bytes: u64,
    /// The size was read back and matches: after sending, or at the publish in the forms that send there. False where the contract
    /// says that the server does not let us see.
    pub read_back: bool,
}

/// What an attempt has written, for the verdict.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sending {
    pub sent: Option<Sent>,
    /// None: the publish request was never sent, and never will be.
    pub publish: Option<(PublishForm, Answer)>,
    pub put: Vec<AuxiliaryPut>,
    /// Whether the host removed the temporary and the server confirmed it; none if it did not try.
    pub temporary_removed: Option<bool>,
}

/// What a [`Writer`] is made of.
pub struct WriterParts {
    pub session: Session,
    pub names: Arc<Names>,
    pub file: SpoolFile,
    pub licence: Licence,
    /// By contract the server does not let us see what we sent.
    pub listing_hidden: bool,
    /// Fires when the attempt has lost its job: what was not published yet is not sent to its end.
    pub lost: CancellationToken,
    pub fence: Arc<dyn Fence>,
    pub journal: Arc<dyn Journal>,
}

/// A plugin's hand. Clones are the same hand.
#[derive(Clone)]
pub struct Writer {
    inner: Arc<Inner>,
}

struct Inner {
    parts: WriterParts,
    gate: Mutex<Gate>,
    sending: Mutex<Sending>,
    tasks: TaskTracker,
}

impl Writer {
    pub fn new(parts: WriterParts) -> Self {
        let gate = Mutex::new(Gate::new(Arc::clone(&parts.names), parts.licence));
        Self { inner: Arc::new(Inner { parts, gate, sending: Mutex::default(), tasks: TaskTracker::new() }) }
    }

    /// Creates a directory of a declared name.
    pub async fn make_directory(&self, name: &str) -> Result<(), RemoteError> {
        let _ = self.inner.gate().ask(Call::MakeDirectory(name))?;
        if let Err(lost) = self.inner.still_ours() {
            self.inner.gate().ended();
            return Err(lost);
        }
        let name = name.to_owned();
        self.run(|inner| async move {
            let made = inner.parts.session.make_directory(&name).await;
            inner.gate().ended();
            made
        })
        .await
    }

    /// Sends the whole built file under the temporary name, closes it, and reads its size back.
    pub async fn send(&self) -> Result<Sent, RemoteError> {
        let _ = self.inner.gate().ask(Call::Send)?;
        self.run(|inner| async move {
            let mut made = false;
            let sent = inner.send(&mut made).await;
            if let Ok(sent) = &sent {
                inner.sending().sent = Some(sent.clone());
            }
            inner.gate().sent(sent.is_ok(), made);
            sent
        })
        .await
    }

    /// Gives the sent file its final name, in a form that replaces nothing.
    pub async fn publish(&self) -> Result<(), RemoteError> {
        self.publish_as(Call::Publish).await
    }

    /// The same in a form that replaces the file of the baseline, by agreement.
    pub async fn publish_over(&self) -> Result<(), RemoteError> {
        self.publish_as(Call::PublishOver).await
    }

    /// Creates a declared auxiliary file that must not exist yet.
    pub async fn put(&self, name: &str, content: Vec<u8>) -> Result<(), RemoteError> {
        if content.len() > MOST_AUXILIARY_BYTES {
            return Err(RemoteError::Invalid {
                why: format!("an auxiliary file has at most {MOST_AUXILIARY_BYTES} bytes, not {}", content.len()),
            });
        }
        let grant = self.inner.gate().ask(Call::Put(name))?;
        let name = name.to_owned();
        self.run(|inner| async move {
            inner.commit_fence(grant).await?;
            let result = inner.put(&name, content).await;
            let there = inner.lies_there(&name, &result).await;
            inner.gate().put(&name, there);
            result
        })
        .await
    }

    /// Host only: ends all writing and tells what was written. Waits for a call still at work, whose journal entry
    /// belongs to the verdict; one that outlasts `patience` counts as unanswered.
    pub async fn outcome(&self, patience: Duration) -> Sending {
        self.inner.gate().close();
        self.inner.tasks.close();
        let ended = tokio::time::timeout(patience, self.inner.tasks.wait()).await.is_ok();
        // The step first: a publish that ends between the two is then in both, and never in neither.
        let publishing = self.inner.gate().step() == Step::Publishing;
        let mut sending = self.inner.sending().clone();
        if publishing && sending.publish.is_none() {
            let why = if ended {
                "the publish ended abnormally".to_owned()
            } else {
                format!("the publish was still at work after {} s", patience.as_secs_f32())
            };
            sending.publish = Some((self.inner.parts.licence.form, Answer::Unanswered { why }));
        }
        sending
    }

    /// Host only: the temporary file that may have been left, if its publish cannot take effect any more.
    pub fn leftover(&self) -> Option<String> {
        self.inner.gate().may_remove_temporary().ok().map(ToOwned::to_owned)
    }

    async fn publish_as(&self, call: Call<'static>) -> Result<(), RemoteError> {
        let grant = self.inner.gate().ask(call)?;
        self.run(|inner| async move {
            inner.commit_fence(grant).await?;
            inner.publish().await
        })
        .await
    }

    /// Runs a call's work to its end, whether or not anyone still waits for it.
    async fn run<T, F>(&self, work: impl FnOnce(Arc<Inner>) -> F) -> Result<T, RemoteError>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, RemoteError>> + Send + 'static,
    {
        let task = self.inner.tasks.spawn(work(Arc::clone(&self.inner)));
        task.await.unwrap_or_else(|error| Err(RemoteError::Unknown { why: format!("the call did not end: {error}") }))
    }
}

impl Inner {
    /// Commits the fence where the gate asks for it; after a refusal nothing is sent.
    async fn commit_fence(&self, grant: Grant) -> Result<(), RemoteError> {
        match grant {
            Grant::Go => Ok(()),
            Grant::CommitFenceFirst => match self.parts.fence.intend(self.parts.licence.form).await {
                Ok(()) => {
                    self.gate().fenced();
                    Ok(())
                }
                Err(refused) => {
                    self.gate().lost();
                    Err(RemoteError::NotSent { why: format!("the attempt lost the job: {refused}") })
                }
            },
        }
    }

    /// `made` becomes true with the first request that may have made the temporary file.
    async fn send(&self, made: &mut bool) -> Result<Sent, RemoteError> {
        self.still_ours()?;
        let bytes = self.parts.file.bytes();
        let Some(temporary) = self.parts.names.temporary.clone().filter(|_| self.has_temporary()) else {
            // Nothing may be created before the fence, so there is nothing to send yet: the file is only checked.
            self.check_spool().await?;
            self.check_size(bytes)?;
            return Ok(Sent { temporary: None, bytes, read_back: false });
        };
        let uploaded = self.parts.session.upload(&temporary, &self.parts.file, &self.parts.lost).await;
        *made = uploaded.as_ref().map_or_else(|failed| failed.may_exist, |()| true);
        uploaded.map_err(|failed| failed.error)?;
        self.still_ours()?;
        let read_back = self.read_back(&temporary, bytes).await?;
        Ok(Sent { temporary: Some(temporary), bytes, read_back })
    }

    /// What is not published yet is not begun or ended by an attempt that knows that it lost the job.
    fn still_ours(&self) -> Result<(), RemoteError> {
        if self.parts.lost.is_cancelled() {
            return Err(RemoteError::NotSent { why: "the attempt lost the job".to_owned() });
        }
        Ok(())
    }

    async fn publish(&self) -> Result<(), RemoteError> {
        let form = self.parts.licence.form;
        let (names, session) = (&self.parts.names, &self.parts.session);
        let temporary = names.temporary.as_deref().unwrap_or_default();
        let requested = match form {
            PublishForm::Link => session.hardlink(temporary, &names.final_name).await,
            PublishForm::Rename | PublishForm::RenameOver => session.rename(temporary, &names.final_name).await,
            PublishForm::PosixRename => session.posix_rename(temporary, &names.final_name).await,
            PublishForm::ExclusiveCreate | PublishForm::CreateWhole => self.create_final().await,
        };
        // A server was found that says yes to a link and makes none: its yes counts once the name is seen.
        let requested = match (form, requested) {
            (PublishForm::Link, Ok(())) => self.see_final().await,
            (_, requested) => requested,
        };
        let answer = answer(&requested);
        if let Some(answer) = &answer {
            self.sending().publish = Some((form, answer.clone()));
            self.parts.journal.published(form, answer).await;
            info!(?form, ?answer, attempt = %names.attempt, "the publish was answered");
        }
        if form == PublishForm::Link
            && requested.is_ok()
            && let Err(error) = self.remove_temporary(temporary).await
        {
            warn!(%error, attempt = %names.attempt, "the temporary name of a published file stays");
        }
        self.gate().published(answer.as_ref());
        requested
    }

    /// The final name comes into being here: created exclusively, it is whole only at the end.
    async fn create_final(&self) -> Result<(), RemoteError> {
        let name = &self.parts.names.final_name;
        // Past the fence nothing ends it early: the name is there.
        match self.parts.session.upload(name, &self.parts.file, &CancellationToken::new()).await {
            Ok(()) => {
                let seen = self.read_back(name, self.parts.file.bytes()).await.map_err(half_done)?;
                if let Some(sent) = &mut self.sending().sent {
                    sent.read_back = seen;
                }
                Ok(())
            }
            Err(CreateError { may_exist: false, error }) => Err(error),
            Err(CreateError { may_exist: true, error }) => Err(half_done(error)),
        }
    }

    /// After a link: the final name must show, with the size that was sent.
    async fn see_final(&self) -> Result<(), RemoteError> {
        let name = &self.parts.names.final_name;
        let why = match self.parts.session.stat(name).await {
            Ok(Found::Present(Entry { bytes: Some(bytes), .. })) if bytes != self.parts.file.bytes() => {
                format!("the server linked the final name and shows it with {bytes} bytes")
            }
            Ok(Found::Present(_)) => return Ok(()),
            Ok(Found::Absent) => "the server said yes to the link and shows no file under the final name".to_owned(),
            Ok(Found::NotVisible { why } | Found::Unknown { why }) => {
                format!("the server said yes to the link, and the final name could not be looked at: {why}")
            }
            Err(error) => format!("the server said yes to the link, and the look at the final name failed: {error}"),
        };
        Err(RemoteError::Unknown { why })
    }

    async fn put(&self, name: &str, content: Vec<u8>) -> Result<(), RemoteError> {
        let bytes = content.len() as u64;
        let result = match self.parts.session.create(name, content).await {
            Ok(()) => self.read_back(name, bytes).await.map(drop).map_err(half_done),
            Err(CreateError { may_exist: false, error }) => Err(error),
            Err(CreateError { may_exist: true, error }) => Err(half_done(error)),
        };
        if let Some(answer) = answer(&result) {
            let trigger = self.parts.names.auxiliary.iter().any(|declared| declared.name == name && declared.trigger);
            self.sending().put.push(AuxiliaryPut { name: name.to_owned(), trigger, answer });
        }
        result
    }

    /// Whether a file lies under an auxiliary name: put now, or found there, for its content is the plugin's to compare.
    async fn lies_there(&self, name: &str, put: &Result<(), RemoteError>) -> bool {
        match put {
            Ok(()) => true,
            Err(refusal) if refusal.is_refusal() => match self.parts.session.stat(name).await {
                Ok(Found::Present(_)) => true,
                // A refusal is all that a server tells which by contract shows nothing.
                Ok(Found::NotVisible { .. } | Found::Unknown { .. }) => self.parts.listing_hidden,
                Ok(Found::Absent) | Err(_) => false,
            },
            Err(_) => false,
        }
    }

    /// True if the size was read back and matches; false if by contract it cannot be seen.
    async fn read_back(&self, name: &str, bytes: u64) -> Result<bool, RemoteError> {
        let unseen = |why: String| {
            if self.parts.listing_hidden { Ok(false) } else { Err(RemoteError::Refused { code: None, text: why }) }
        };
        match self.parts.session.stat(name).await? {
            Found::Present(Entry { bytes: Some(shown), .. }) if shown == bytes => Ok(true),
            Found::Present(Entry { bytes: Some(shown), .. }) => Err(RemoteError::Refused {
                code: None,
                text: format!("after the close the server shows {shown} bytes of {bytes}"),
            }),
            Found::Present(Entry { bytes: None, .. }) => {
                unseen("the server does not tell the size it stored".to_owned())
            }
            Found::Absent => unseen("after the close the server shows no file".to_owned()),
            Found::NotVisible { why } | Found::Unknown { why } => {
                unseen(format!("the size cannot be read back: {why}"))
            }
        }
    }

    async fn check_spool(&self) -> Result<(), RemoteError> {
        let last = self.parts.file.bytes().saturating_sub(1);
        match self.parts.file.read_at(last, 1).await {
            Ok(_) => Ok(()),
            Err(error) => Err(RemoteError::NotSent { why: error.to_string() }),
        }
    }

    fn check_size(&self, bytes: u64) -> Result<(), RemoteError> {
        match self.parts.session.largest_bytes().filter(|largest| bytes > *largest) {
            Some(largest) => Err(RemoteError::too_large(bytes, largest)),
            None => Ok(()),
        }
    }

    async fn remove_temporary(&self, temporary: &str) -> Result<bool, RemoteError> {
        let removed = match self.parts.session.remove(temporary).await {
            Ok(()) => Ok(true),
            Err(refusal) if refusal.says_absent() => Ok(false),
            Err(error) => Err(error),
        };
        self.sending().temporary_removed = Some(matches!(removed, Ok(true)));
        removed
    }

    fn has_temporary(&self) -> bool {
        self.parts.licence.form.has_temporary()
    }

    /// Every change under these locks is whole, so a panic elsewhere leaves the state usable.
    fn gate(&self) -> MutexGuard<'_, Gate> {
        self.gate.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn sending(&self) -> MutexGuard<'_, Sending> {
        self.sending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A failure after the name was created is no refusal: the name is there.
fn half_done(error: RemoteError) -> RemoteError {
    match error {
        RemoteError::Unknown { .. } => error,
        other => RemoteError::Unknown { why: format!("the file was created and not finished: {other}") },
    }
}

/// What is recorded of a request whose effect matters; none if it provably never left.
fn answer(requested: &Result<(), RemoteError>) -> Option<Answer> {
    match requested {
        Ok(()) => Some(Answer::Acknowledged),
        Err(RemoteError::Refused { code, text }) => Some(Answer::Refused { code: *code, text: text.clone() }),
        Err(RemoteError::Unknown { why }) => Some(Answer::Unanswered { why: why.clone() }),
        Err(
            RemoteError::NotSent { .. }
            | RemoteError::Stopped
            | RemoteError::Forbidden { .. }
            | RemoteError::Invalid { .. },
        ) => None,
    }
}
