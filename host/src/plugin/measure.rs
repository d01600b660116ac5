//! What calls into a plugin took and asked for: time, memory, host calls. For rehearsals; in operation nobody measures.
//!
//! A call writes into its [`Usage`] as it goes, so that one which is dropped at its time limit is measured too.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::call::CallError;
use super::reported::bounded_name;
use crate::remote::RemoteError;

/// Requests of one call that are kept; a plugin that makes more is counted on, not listed.
const REQUESTS: usize = 200;

/// Collects the calls of one rehearsal. Clones collect into the same.
#[derive(Debug, Clone, Default)]
pub struct Meter {
    calls: Arc<Mutex<Vec<Measured>>>,
}

/// One call, when it ended.
#[derive(Debug, Clone, Default)]
pub struct Measured {
    /// `build`, `final-name`, `baseline`, `deliver`, `observe`.
    pub call: &'static str,
    pub took: Duration,
    /// Linear memory at its peak; it never shrinks within a call.
    pub memory_bytes: u64,
    /// How often each function of the host was called.
    pub host_calls: BTreeMap<&'static str, u64>,
    /// What it asked of the partner's server, in order.
    pub requests: Vec<Asked>,
    /// Why it brought no result.
    pub failed: Option<CallError>,
}

/// One request of a plugin, and what it was told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    pub call: &'static str,
    /// The name that it was about; a guest's word, bounded.
    pub on: String,
    /// `None`: it was done.
    pub refused: Option<RemoteError>,
}

impl Meter {
    /// Everything that was measured so far, in the order of ending.
    pub fn calls(&self) -> Vec<Measured> {
        locked(&self.calls).clone()
    }
}

/// What one call uses.
#[derive(Debug, Clone, Default)]
pub(super) struct Usage {
    so_far: Arc<Mutex<Measured>>,
    meter: Option<Meter>,
}

impl Usage {
    pub(super) fn new(call: &'static str, meter: Option<Meter>) -> Self {
        Self { so_far: Arc::new(Mutex::new(Measured { call, ..Measured::default() })), meter }
    }

    pub(super) fn memory(&self, bytes: usize) {
        if self.meter.is_some() {
            locked(&self.so_far).memory_bytes = bytes as u64;
        }
    }

    pub(super) fn host_call(&self, function: &'static str) {
        if self.meter.is_some() {
            *locked(&self.so_far).host_calls.entry(function).or_default() += 1;
        }
    }

    pub(super) fn asked<T>(&self, call: &'static str, on: &str, answer: &Result<T, RemoteError>) {
        if self.meter.is_none() {
            return;
        }
        self.host_call(call);
        let mut so_far = locked(&self.so_far);
        if so_far.requests.len() < REQUESTS {
            let refused = answer.as_ref().err().cloned();
            so_far.requests.push(Asked { call, on: bounded_name(on), refused });
        }
    }

    pub(super) fn ended(&self, took: Duration, failed: Option<&CallError>) {
        let Some(meter) = &self.meter else { return };
        let measured = Measured { took, failed: failed.cloned(), ..locked(&self.so_far).clone() };
        locked(&meter.calls).push(measured);
    }
}

/// Every change under these locks is whole, so a panic elsewhere leaves them usable.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
