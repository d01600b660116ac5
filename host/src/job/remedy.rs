//! What a fault that is not the job's own asks for before another attempt can do better.

/// A fault of the host, or of what it stands on. What the job, its query, its data or its plugin did wrong is none: that fails
/// the same way every time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Remedy {
    /// Another attempt, and nothing of the destination's: a full spool, a query that the database broke off.
    AnotherAttempt,
    /// The tenant's database must be reached again. Until then every job of the destination would fail so.
    Reachable,
    /// A person must mend something first.
    Person,
}
