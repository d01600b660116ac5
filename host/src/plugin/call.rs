//! One call into a plugin: bounded in time, stopped on request, and classified when it does not return.
//!
//! Three bounds work together: epochs make a computing guest yield, the timeout here drops the call, and `remote` bounds
//! each of its operations. Dropping a call drops only the waiting; a remote operation ends in its own task. The store is
//! thrown away whatever happened.

use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use wasmtime::{Store, Trap};

use super::bindings::types::Failure;
use super::component::one_line;
use super::reported::bounded;
use super::worlds::{State, too_large, typed_failure};
use crate::job::remedy::Remedy;

/// How a call ended that brought no result. Texts in it that are the guest's are bounded, and quoted as the guest's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// A stop request ended the call, before cutoff 2.
    #[error("the call was stopped on request")]
    Stopped,
    /// The guest returned a failure of the contract.
    #[error("the plugin failed ({kind}): {text:?}")]
    Failed {
        kind: FailureKind,
        /// The guest's own words.
        text: String,
    },
    /// The guest crashed.
    #[error("the plugin trapped: {message}")]
    Trapped {
        /// What the guest logged last as an error (a panic's text, most often), and the trap.
        message: String,
    },
    #[error("the plugin did not return within {seconds} s, which is {limit} in the [limits] of partner.toml")]
    TimedOut { seconds: u64, limit: &'static str },
    #[error("the plugin exceeded its limit of {limit}: {detail}")]
    Limit { limit: LimitKind, detail: String },
    /// The guest returned something that the contract or the manifest does not allow.
    #[error("the plugin broke its contract: {what}")]
    Broke { what: String },
    /// The host could not do its part. Nothing is said of the plugin, whatever it made of that.
    #[error("the host could not serve the plugin: {what}")]
    Host { what: String, remedy: Remedy },
}

impl CallError {
    /// A fault of the host that another attempt may not meet.
    pub(super) fn host(what: impl Into<String>) -> Self {
        Self::Host { what: what.into(), remedy: Remedy::AnotherAttempt }
    }
}

/// What the guest was told of that must not be swallowed: a file that came of it is not whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Fault {
    /// Of the host, or of what it stands on.
    Host { what: String, remedy: Remedy },
    /// Of the query or its data: rows are missing, and will be missing again.
    Rows { what: String },
}

/// The kinds of failures in the contract.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FailureKind {
    Stopped,
    Forbidden,
    Refused,
    Unknown,
    Invalid,
    Other,
}

impl std::fmt::Display for FailureKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Self::Stopped => "stopped",
            Self::Forbidden => "forbidden",
            Self::Refused => "refused",
            Self::Unknown => "unknown",
            Self::Invalid => "invalid",
            Self::Other => "other",
        })
    }
}

/// What a call may take only so much of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LimitKind {
    Memory,
    /// Depth of calls.
    Stack,
    /// Size of the built file.
    Output,
    /// Host objects held at once.
    Handles,
    /// Bytes that one host call carries.
    HostCall,
}

impl std::fmt::Display for LimitKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Self::Memory => "memory",
            Self::Stack => "stack depth",
            Self::Output => "output",
            Self::Handles => "host objects",
            Self::HostCall => "bytes in one host call",
        })
    }
}

/// Why the host itself ended a call from inside.
#[derive(Debug, thiserror::Error)]
pub(super) enum HostTrap {
    #[error("limit of {limit}: {detail}")]
    Limit { limit: LimitKind, detail: String },
    #[error("{0}")]
    Host(String),
}

/// How long a call may take, and what else may end it.
pub(super) struct Bounds<'a> {
    pub timeout: Duration,
    /// What the manifest calls it.
    pub limit: &'static str,
    /// None after cutoff 2: nothing but its limits ends such a call.
    pub stop: Option<&'a CancellationToken>,
}

/// Makes a call in its store and classifies its end. The state is handed back only with a result.
pub(super) async fn run<T, Call, Running>(
    store: Store<State>,
    bounds: Bounds<'_>,
    call: Call,
) -> Result<(State, T), CallError>
where
    Call: FnOnce(Store<State>) -> Running,
    Running: Future<Output = (Store<State>, wasmtime::Result<Result<T, Failure>>)>,
{
    let usage = store.data().usage.clone();
    let began = Instant::now();
    let called = run_bounded(store, bounds, call).await;
    usage.ended(began.elapsed(), called.as_ref().err());
    called
}

async fn run_bounded<T, Call, Running>(
    store: Store<State>,
    bounds: Bounds<'_>,
    call: Call,
) -> Result<(State, T), CallError>
where
    Call: FnOnce(Store<State>) -> Running,
    Running: Future<Output = (Store<State>, wasmtime::Result<Result<T, Failure>>)>,
{
    let stopped = async {
        match bounds.stop {
            Some(stop) => stop.cancelled().await,
            None => std::future::pending().await,
        }
    };
    let done = tokio::select! {
        biased;
        () = stopped => return Err(CallError::Stopped),
        done = tokio::time::timeout(bounds.timeout, call(store)) => done,
    };
    let Ok((store, outcome)) = done else {
        return Err(CallError::TimedOut { seconds: bounds.timeout.as_secs(), limit: bounds.limit });
    };
    let mut state = store.into_data();
    // A file that was cut is no result, even if the guest calls it one.
    if let Some(limit_bytes) = state.output().and_then(super::worlds::output::Output::exceeded_bytes) {
        return Err(CallError::Limit { limit: LimitKind::Output, detail: too_large(limit_bytes) });
    }
    match outcome {
        Ok(Ok(result)) => match state.fault() {
            None => Ok((state, result)),
            Some(fault) => Err(swallowed(fault)),
        },
        Ok(Err(failure)) => Err(failed(&state, bounds.stop, failure)),
        Err(error) => Err(trapped(&mut state, &error)),
    }
}

/// A guest called that a result which it made without what it had been told it could not have.
fn swallowed(fault: &Fault) -> CallError {
    match fault.clone() {
        Fault::Host { what, remedy } => CallError::Host { what, remedy },
        Fault::Rows { what } => {
            CallError::Broke { what: format!("it returned well, although rows are missing: {what}") }
        }
    }
}

/// The host's fault that the guest was told of: it explains a call that did not return well better than the guest.
fn told(state: &State) -> Option<CallError> {
    match state.fault()? {
        Fault::Host { what, remedy } => Some(CallError::Host { what: what.clone(), remedy: *remedy }),
        Fault::Rows { .. } => None,
    }
}

fn failed(state: &State, stop: Option<&CancellationToken>, failure: Failure) -> CallError {
    if matches!(failure, Failure::Stopped) && stop.is_some_and(CancellationToken::is_cancelled) {
        return CallError::Stopped;
    }
    // Its failure only passes that on.
    if let Some(told) = told(state) {
        return told;
    }
    let (kind, text) = typed_failure(failure);
    CallError::Failed { kind, text: state.words(&text) }
}

fn trapped(state: &mut State, error: &wasmtime::Error) -> CallError {
    match error.downcast_ref::<HostTrap>() {
        Some(HostTrap::Limit { limit, detail }) => return CallError::Limit { limit: *limit, detail: detail.clone() },
        Some(HostTrap::Host(what)) => return CallError::host(what.as_str()),
        None => {}
    }
    // A guest that takes every answer for a good one ends at the first that is none.
    if let Some(told) = told(state) {
        return told;
    }
    let trap = match error.downcast_ref::<Trap>() {
        Some(Trap::StackOverflow) => {
            return CallError::Limit { limit: LimitKind::Stack, detail: "its calls were nested too deeply".to_owned() };
        }
        // A guest's own stack lies at the bottom of its memory, so one that overflows ends here.
        Some(trap @ Trap::MemoryOutOfBounds) => format!("{trap} (calls that are nested too deeply end so, too)"),
        Some(trap) => trap.to_string(),
        None => one_line(&error.root_cause().to_string()),
    };
    // wasmtime has no public type for this one; a test holds the words.
    if trap.contains("fuel allocated for hostcalls has been exhausted") {
        return CallError::Limit {
            limit: LimitKind::HostCall,
            detail: "one host call carried too many bytes; write in chunks".to_owned(),
        };
    }
    let message = match state.last_error() {
        // An exception of a language's runtime is a traceback in the log, and the trap says only that it ended.
        Some(logged) => format!("{:?} was its last error in the log; then {trap}", bounded(&logged)),
        None => trap,
    };
    CallError::Trapped { message }
}
