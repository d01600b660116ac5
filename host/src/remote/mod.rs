//! The partner's server: the only place from which anything reaches it.
//!
//! In the order of an attempt: an [`Endpoint`] says where and with which secret; [`Sessions`] opens a [`Session`], over
//! [`sftp`], in a [`directory`] or at a bucket of an object store ([`objects`]), or hands out the one kept from the last job (`opened`
//! is what all three have in common, `line` whether a connection still stands); [`Names`] says all that this attempt may touch,
//! and `readable` shows those that are in no encoding; a [`Reader`] looks, for a plugin, and [`look`] looks for the host; a
//! [`Writer`], which exists only after cutoff 2, sends and publishes. The [`gate`] decides every one of a plugin's calls;
//! [`Fence`] and [`Journal`] are how it reaches the job's record.
//! [`prove`] shows beforehand which form of publishing a server really keeps, [`check`] looks at the rest, and [`findings`]
//! holds both against the contract.
//!
//! The rule: nothing that the partner could act on is created before the fence is committed, and no request whose
//! effect matters is sent twice. What is known about a failure's effect is its type, [`RemoteError`].
//!
//! [`simulated`] is a server in this process, for rehearsals and tests; [`recorded`] is a session with a real one, kept to be held again.
//!
//! Not promised: that a server's yes is true. Whoever needs to know looks again.

mod check;
pub mod directory;
mod endpoint;
mod error;
mod findings;
pub mod gate;
mod journal;
mod line;
mod look;
mod names;
pub mod objects;
mod opened;
mod prove;
mod readable;
mod reader;
pub mod recorded;
mod session;
mod sessions;
pub mod sftp;
pub mod simulated;
mod writer;

pub use check::{Check, Seen, check};
pub use endpoint::{DirectoryEndpoint, Endpoint, ObjectsEndpoint, SecretRef, SftpEndpoint};
pub use error::{ConnectError, RemoteError};
pub use findings::{About, Finding, Standing, contradictions, findings};
pub use gate::Licence;
pub use journal::{Fence, FenceRefused, Journal};
pub use look::look;
pub use names::{AuxiliaryName, Names};
pub use objects::StoreAddress;
pub use prove::{Proof, ScratchNames, Shown, choose_form, prove};
pub use reader::Reader;
pub use session::{CreateError, ServerFacts, Session, SessionLimits};
pub use sessions::Sessions;
pub use writer::{Sending, Sent, Writer, WriterParts};
