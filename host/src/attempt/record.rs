//! What an attempt must have recorded, and the answers that decide how it goes on.

use futures::future::BoxFuture;
use uuid::Uuid;

use crate::job::evidence::{Answer, Evidence};
use crate::job::facts::FileFacts;
use crate::job::on_record::AttemptOnRecord;
use crate::job::remedy::Remedy;
use crate::job::status::{FailureReason, Status};
use crate::job::verdict::Conclusion;
use crate::remote::{Check, ConnectError, Fence, Journal, Proof, Seen, ServerFacts};

/// The record of one attempt. Every write asks for the attempt; a write that another owner's commit overtook says so.
///
/// The publish fence and the durable journal are parts of it that `remote` calls by itself, so that no plugin passes them by.
pub trait Record: Fence + Journal {
    /// Cutoff 2.
    fn authorize<'a>(&'a self, expected: &'a FileFacts, place: &'a Place) -> BoxFuture<'a, Authorization>;
    /// One renewal now; true if no takeover has been committed.
    fn renew_now(&self) -> BoxFuture<'_, bool>;
    /// Appends evidence of this attempt, whoever owns the job now.
    fn append<'a>(&'a self, evidence: &'a Evidence) -> BoxFuture<'a, Result<(), NotRecorded>>;
    /// What is recorded about the other attempts of this delivery key, or of the reused name in this place.
    fn history<'a>(&'a self, place: &'a Place) -> BoxFuture<'a, Result<KeyHistory, NotRecorded>>;
    /// What is recorded of a replacement's original, if it was ever authorized; `None` on an original.
    fn original(&self) -> BoxFuture<'_, Result<Option<AttemptOnRecord>, NotRecorded>>;
    /// The earlier attempts of a replacement's key that may still bring their file; none where its creator said in words
    /// why they cannot.
    fn open_earlier_attempts(&self) -> BoxFuture<'_, Result<Vec<Earlier>, NotRecorded>>;
    /// Takes the look of an earlier attempt and commits "removal intended" in one; the answer is the look's lease. Without
    /// it the attempt's temporary file must not be asked away: somebody else looks at it, it is closed, or this attempt no
    /// longer owns its own job.
    fn intend_removal<'a>(
        &'a self,
        earlier: &'a AttemptOnRecord,
        temporary: &'a str,
    ) -> BoxFuture<'a, Result<Option<Uuid>, NotRecorded>>;
    /// Records the answer to that, and gives the look back.
    fn removal_answered<'a>(
        &'a self,
        earlier: &'a AttemptOnRecord,
        look: Uuid,
        temporary: &'a str,
        answer: &'a Answer,
    ) -> BoxFuture<'a, Result<(), NotRecorded>>;
    /// What this server was shown to do, if it was, with this banner and these extensions, for the destination as it is.
    fn known<'a>(&'a self, server: &'a ServerFacts) -> BoxFuture<'a, Result<Option<Known>, NotRecorded>>;
    /// Marks the destination: a person must mend it before the next job goes there.
    fn attention<'a>(&'a self, why: &'a str) -> BoxFuture<'a, ()>;
    /// Keeps a new check, or why nothing could be proven, for the next attempts and for people.
    fn keep_check<'a>(
        &'a self,
        server: &'a ServerFacts,
        checked: Result<&'a Check, &'a String>,
    ) -> BoxFuture<'a, Result<(), NotRecorded>>;
    /// The terminal write, or the release.
    fn finish<'a>(&'a self, end: &'a End) -> BoxFuture<'a, Terminal>;
}

/// Nothing could be written or read; the attempt must not rely on it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the record could not be kept: {why}")]
pub struct NotRecorded {
    pub why: String,
}

/// What a server was shown to do before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Known {
    pub proof: Proof,
    /// `None` in a rehearsal, which tries how its server publishes and nothing else.
    pub seen: Option<Seen>,
}

/// Where the names of this attempt lie. No two delivery keys get the same final name there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// What tells the partner's server from others, such as host and port.
    pub endpoint: String,
    /// The final name's directory, as the server resolves it.
    pub directory: String,
    /// The last part of the final name.
    pub last_part: String,
    /// The contract lets a settled holder hand the name on.
    pub reused: bool,
}

/// The answer to cutoff 2.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Authorization {
    /// This attempt may deliver.
    Authorized,
    /// A stop request was recorded first.
    StopRecorded,
    /// Still the owner, but the lease ran out; one renewal may help.
    LeaseLapsed,
    /// Another attempt or a terminal state holds the row.
    NotOwner,
    /// The original of this replacement is Completed.
    OriginalCompleted,
    /// Another delivery key holds this final name.
    NameTaken {
        /// Which one, if it is the same tenant's.
        holder: Option<String>,
    },
    /// A replacement must keep its original's destination and final name.
    Moved,
    /// The answer was lost and the row could not be read again; recovery takes it from there.
    Unknown { why: String },
}

/// What is recorded about the other attempts that could have written the same final name.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct KeyHistory {
    /// What every other authorized attempt of the key, or of the reused name, was to deliver; `None` where it is not known.
    pub others: Vec<Option<FileFacts>>,
    /// Attempts of the key that passed the publish fence, this one included.
    pub past_fence: u32,
    /// Under a reused name: the file that we delivered there last.
    pub last: Option<FileFacts>,
}

/// An attempt that came before a replacement and may still bring its file.
#[derive(Debug, Clone, PartialEq)]
pub struct Earlier {
    pub job: Uuid,
    /// `None` where it is under way: then nothing closes it but its own end.
    pub on_record: Option<AttemptOnRecord>,
}

impl KeyHistory {
    /// What must be assumed where the record cannot be read: another attempt with the same content, past the fence.
    pub fn unreadable() -> Self {
        Self { others: vec![None], past_fence: 2, last: None }
    }
}

/// How an attempt ends.
#[derive(Debug)]
pub enum End {
    /// Running → Stopped; the statement demands the recorded request.
    Stopped { during: &'static str },
    /// Running → Failed. The cause is for operators and holds no personal data.
    Failed { reason: FailureReason, cause: String },
    /// Running → Queued.
    Released(Release),
    /// `Delivering` → `Completed`, `Failed` or `OutcomeUnknown`.
    Delivered(Delivered),
    /// The row is another's, or cannot be reached: nothing is written, recovery takes it from there.
    Nothing { why: String },
}

/// Why work is handed back before cutoff 2.
#[derive(Debug)]
pub enum Release {
    /// The partner could not be reached, or refused us; the destination is paused or needs attention.
    Partner(ConnectError),
    /// The partner's server went silent while we looked.
    LookFailed {
        why: String,
    },
    /// Nothing is wrong with the job: the tenant's data, or a place for the file, could not be had.
    Host {
        why: String,
        remedy: Remedy,
    },
    /// The destination is not what was agreed: a person must mend it.
    Attention {
        why: String,
    },
    ShuttingDown,
}

/// The end of an authorized attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Delivered {
    /// By the verdict over what was journaled and seen.
    Concluded(Conclusion),
    /// The recorded baseline showed the name occupied: nothing was sent.
    Occupied { cause: String },
    /// A replacement found its original's file: nothing was sent.
    OriginalThere { cause: String },
}

/// What became of the last write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Terminal {
    /// The row stands in this state, written by this attempt.
    Written(Status),
    /// It matched nothing: a takeover or another writer came first.
    NotOwner,
    /// Nothing was tried, or the answer was lost and the row could not be read again.
    Unwritten { why: String },
}
