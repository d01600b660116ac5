//! What `remote` asks of whoever owns the attempt's durable record.
//!
//! The delivering worker implements both with the store, the rehearsal in memory. They are traits because the record
//! lies on the other side of the import table, not to be generic.

use futures::future::BoxFuture;

use crate::job::evidence::{Answer, PublishForm};

/// The publish fence.
pub trait Fence: Send + Sync {
    /// Commits that this attempt, which must still own the job, intends to publish in this form. After anything but
    /// `Ok` nothing that the partner could act on is sent.
    fn intend(&self, form: PublishForm) -> BoxFuture<'_, Result<(), FenceRefused>>;
}

/// The fence was not committed, or it is not known whether it was.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{why}")]
pub struct FenceRefused {
    pub why: String,
}

/// The durable record of a publish's answer.
pub trait Journal: Send + Sync {
    /// Called once, after the answer, and tries once. The attempt itself concludes from the answer that it has; what is not recorded is
    /// unanswered for every later look.
    fn published(&self, form: PublishForm, answer: &Answer) -> BoxFuture<'_, ()>;
}
