//! The host's side of the contract, one file an interface, over the state of one call.
//!
//! Everything that a guest can reach in a call hangs from [`State`]; what a call may not do is not in its state. Business
//! refusals are answers of the contract; a broken limit is a trap. A guest is told of rows or a file that it cannot have, so
//! that it can end in good order; what it was told is noted, and its call cannot end well any more: no guest can swallow it.

mod convert;
mod entropy;
mod handed;
pub(super) mod link;
mod log;
pub(super) mod output;
mod remote;
pub(super) mod source;
pub(super) mod wasi;

use std::collections::BTreeSet;
use std::sync::Arc;

use time::OffsetDateTime;
use uuid::Uuid;
use wasmtime::component::ResourceTable;

pub(super) use self::convert::{baseline, file_facts, guest_listing, job, observation, receipt, typed_failure};
pub use self::handed::Handed;
use self::log::Log;
pub(super) use self::output::too_large;
use super::bindings;
use super::call::{Fault, HostTrap, LimitKind};
use super::engine::Consumption;
use super::measure::Usage;
use super::open_query::OpenQuery;
use super::reported::{bounded, bounded_name};
use crate::job::names::Parts;
use crate::remote::Names;
use crate::spool::Draft;

/// Host objects that a call may hold at once.
const OBJECTS: usize = 64;
/// Queries that a call may have open at once: each is a connection to the tenant's database.
const QUERIES: usize = 4;
/// The contract's own words: no data, whatever a row may hold, and compared as they are.
const WORDS: [&str; 7] = ["accepted", "refused", "duplicate", "pending", "file", "directory", "other"];

/// What one call has in its hands.
pub(super) struct State {
    pub(super) table: ResourceTable,
    pub(super) consumption: Consumption,
    pub(super) usage: Usage,
    /// Where the clock stands of a runtime that reads one: when the job was created, at every call.
    clock: OffsetDateTime,
    log: Log,
    handed: Arc<Handed>,
    /// Words and names that are not the guest's, and stay although a row may hold the same.
    own: Vec<String>,
    /// Builders only.
    source: Option<Arc<dyn OpenQuery>>,
    /// Builders only.
    output: Option<output::Output>,
    queries: usize,
    /// Queries that the guest let go of before their end.
    unread: BTreeSet<String>,
    /// The first that the guest was told of; the host's own is not hidden behind one of the data.
    fault: Option<Fault>,
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
            handed: Arc::default(),
            own: Vec::new(),
            source: None,
            output: None,
            queries: 0,
            unread: BTreeSet::new(),
            fault: None,
        }
    }

    /// Adds what a builder has: rows and the file.
    pub(super) fn with_building(mut self, source: Arc<dyn OpenQuery>, draft: Draft) -> Self {
        self.source = Some(source);
        self.output = Some(output::Output::new(draft));
        self
    }

    /// Of a destination: what its job's builder was handed, which a partner's answer may quote, and the names that the host
    /// minted for the attempt.
    pub(super) fn after(mut self, handed: &Arc<Handed>, names: &Names) -> Self {
        self.handed = Arc::clone(handed);
        let Names { final_name, temporary, auxiliary, acknowledgments, key, attempt } = names;
        let parts = Parts { key, attempt, final_name };
        let minted = [final_name, key, attempt].into_iter().chain(temporary).cloned();
        let beside = auxiliary.iter().map(|declared| declared.name.clone());
        let answers = acknowledgments.iter().filter_map(|pattern| pattern.mint(parts).ok());
        self.own = WORDS.map(str::to_owned).into_iter().chain(minted).chain(beside).chain(answers).collect();
        self
    }

    /// A guest's words as they may be kept: without the data that it was handed, and bounded. Every text of a guest that outlives
    /// its call comes through here or through [`State::name`].
    pub(super) fn words(&self, text: &str) -> String {
        bounded(&self.cleaned(text))
    }

    /// The same for a name: those of the host's own stay exact, because they are compared.
    pub(super) fn name(&self, name: &str) -> String {
        bounded_name(&self.cleaned(name))
    }

    fn cleaned(&self, text: &str) -> String {
        // Cut first, far behind what is kept, so that a text of megabytes costs nothing.
        let beginning = beginning(text);
        let mut kept = self.handed.without(beginning, &self.own);
        if beginning.len() < text.len() {
            // What was cut in two there was not recognised.
            kept = kept.chars().take(kept.chars().count().saturating_sub(handed::PIECE)).chain(['…']).collect();
        }
        kept
    }

    /// What the guest logged last as an error, as it may be kept: a panic's text, most often.
    pub(super) fn last_error(&mut self) -> Option<String> {
        self.settle_last_error();
        let said = self.log.last_error()?;
        Some(said.split(log::RUNTIMES_OWN).next().unwrap_or(said).to_owned())
    }

    pub(super) fn fault(&self) -> Option<&Fault> {
        self.fault.as_ref()
    }

    fn note_fault(&mut self, fault: Fault) {
        match (&self.fault, &fault) {
            (None, _) | (Some(Fault::Rows { .. }), Fault::Host { .. }) => self.fault = Some(fault),
            (Some(_), _) => {}
        }
    }

    pub(super) fn output(&self) -> Option<&output::Output> {
        self.output.as_ref()
    }

    /// The file, and the data that came on the way to it.
    pub(super) fn into_built(self) -> Option<(Draft, Arc<Handed>)> {
        Some((self.output?.into_draft(), self.handed))
    }

    /// Puts a host object into the table; a full table is a limit, and ends the call.
    fn push<T: Send + 'static>(&mut self, object: T) -> wasmtime::Result<wasmtime::component::Resource<T>> {
        self.table.push(object).map_err(|_| {
            HostTrap::Limit {
                limit: LimitKind::Handles,
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

/// As much of a guest's text as is looked at.
fn beginning(text: &str) -> &str {
    const CHARACTERS: usize = 2000;
    text.char_indices().nth(CHARACTERS).map_or(text, |(end, _)| text.get(..end).unwrap_or(text))
}

#[cfg(test)]
impl State {
    /// Of a call for nobody.
    fn of_a_test() -> Self {
        let about = About { partner: "acme".into(), call: "build", job: Uuid::nil(), attempt: Uuid::nil() };
        Self::new(about, OffsetDateTime::UNIX_EPOCH, 1 << 20, Usage::default())
    }
}

/// These interfaces have no functions, so nothing can be called on them.
impl bindings::types::Host for State {}
impl bindings::evidence::Host for State {}
