//! The host's side of the contract, one file an interface, over the state of one call.
//!
//! Everything that a guest can reach in a call hangs from [`State`]; what a call may not do is not in its state. Business
//! refusals are answers of the contract; a broken limit, or a fault of the host, is a trap, so that a guest cannot
//! swallow it.

mod convert;
mod entropy;
mod handed;
pub(super) mod link;
mod log;
pub(super) mod output;
mod remote;
pub(super) mod source;
pub(super) mod wasi;

use std::sync::Arc;

use time::OffsetDateTime;
use uuid::Uuid;
use wasmtime::component::ResourceTable;

pub(super) use self::convert::{baseline, file_facts, guest_listing, job, observation, receipt, typed_failure};
use self::handed::Handed;
use self::log::Log;
pub(super) use self::output::too_large;
use super::bindings;
use super::call::HostTrap;
use super::engine::Consumption;
use super::measure::Usage;
use super::open_query::OpenQuery;
use super::reported::bounded;
use crate::spool::Draft;

/// Host objects that a call may hold at once: open queries, mostly.
const OBJECTS: usize = 64;

/// What one call has in its hands.
pub(super) struct State {
    pub(super) table: ResourceTable,
    pub(super) consumption: Consumption,
    pub(super) usage: Usage,
    /// Where the clock stands of a runtime that reads one: when the job was created, at every call.
    clock: OffsetDateTime,
    log: Log,
    handed: Handed,
    /// Builders only.
    source: Option<Arc<dyn OpenQuery>>,
    /// Builders only.
    output: Option<output::Output>,
    /// The first fault of the host's own that the guest was told of. It explains a failed call better than the guest.
    fault: Option<String>,
}

/// Whom a call is for; every log line of its guest carries it.
#[derive(Debug, Clone)]
pub(super) struct About {
    pub partner: Arc<str>,
    pub call: &'static str,
    pub job: Uuid,
    pub attempt: Uuid,
}

impl State {
    /// The state of a call that is handed no data and no file.
    pub(super) fn new(about: About, clock: OffsetDateTime, memory_bytes: usize, usage: Usage) -> Self {
        let mut table = ResourceTable::new();
        table.set_max_capacity(OBJECTS);
        Self {
            table,
            consumption: Consumption::new(memory_bytes, usage.clone()),
            usage,
            clock,
            log: Log::new(about),
            handed: Handed::default(),
            source: None,
            output: None,
            fault: None,
        }
    }

    /// Adds what a builder has: rows and the file.
    pub(super) fn with_building(mut self, source: Arc<dyn OpenQuery>, draft: Draft) -> Self {
        self.source = Some(source);
        self.output = Some(output::Output::new(draft));
        self
    }

    /// A guest's words as they may be kept: without the data that it was handed, and bounded.
    pub(super) fn words(&self, text: &str) -> String {
        // Cut first, far behind what is kept, so that a text of megabytes costs nothing.
        let text: String = text.chars().take(2000).collect();
        bounded(&self.handed.without(&text))
    }

    /// What the guest logged last as an error: a panic's text, most often.
    pub(super) fn last_error(&self) -> Option<&str> {
        self.log.last_error()
    }

    pub(super) fn fault(&self) -> Option<&str> {
        self.fault.as_deref()
    }

    fn note_fault(&mut self, what: String) {
        self.fault.get_or_insert(what);
    }

    pub(super) fn output(&self) -> Option<&output::Output> {
        self.output.as_ref()
    }

    pub(super) fn into_draft(self) -> Option<Draft> {
        self.output.map(output::Output::into_draft)
    }

    /// Puts a host object into the table; a full table is a limit, and ends the call.
    fn push<T: Send + 'static>(&mut self, object: T) -> wasmtime::Result<wasmtime::component::Resource<T>> {
        self.table.push(object).map_err(|_| {
            HostTrap::Limit {
                limit: super::call::LimitKind::Handles,
                detail: format!("more than {OBJECTS} host objects were held at once"),
            }
            .into()
        })
    }

    pub(super) fn lend<T: Send + 'static>(&mut self, object: T) -> wasmtime::Result<wasmtime::component::Resource<T>> {
        let owned = self.push(object)?;
        Ok(wasmtime::component::Resource::new_borrow(owned.rep()))
    }
}

/// These interfaces have no functions, so nothing can be called on them.
impl bindings::types::Host for State {}
impl bindings::evidence::Host for State {}
