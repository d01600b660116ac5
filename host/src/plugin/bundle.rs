//! A loaded bundle and the calls into it. Immutable: an attempt that holds one keeps what it started with.
//!
//! Each call has its own file-like shape: make the state, which says what the call may reach; run; check what came back.
//! Only `deliver` is handed a writer, and only it is not ended by a stop request.

use std::collections::BTreeSet;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use wasmtime::component::Resource;
use wasmtime::{Engine, Store};

use super::bindings::types;
use super::call::{Bounds, CallError, run};
use super::destinations::Destination;
use super::engine;
use super::manifest::Manifest;
use super::measure::Usage;
use super::reported::{Reported, bounded_name};
use super::versions::{BuilderWorld, Delivery, DestinationWorld};
use super::worlds::{self, About, Handed, State};
use crate::job::facts::{FileFacts, Listing};
use crate::job::model::ClaimedJob;
use crate::job::names::{Parts, check_name};
use crate::remote::{Reader, Writer};
use crate::spool::{Draft, SpoolError, SpoolFile};

/// One partner's bundle, ready to be called.
pub struct Bundle {
    /// The name of its directory.
    pub directory: String,
    pub partner: String,
    pub manifest: Manifest,
    pub destinations: Vec<Arc<Destination>>,
    pub(super) prepared: Prepared,
}

/// Components that are compiled and linked. One is missing where the manifest says that the bundle is the other alone.
pub(super) struct Prepared {
    pub engine: Engine,
    pub builder: Option<BuilderWorld>,
    pub destination: Option<DestinationWorld>,
}

/// A built file.
#[derive(Debug, Clone)]
pub struct Built {
    pub file: SpoolFile,
    /// As the builder counted them.
    pub rows: u64,
    /// Queries of which the builder left rows unread. It may mean to; most often it took a short batch for the end.
    pub unread: BTreeSet<String>,
    /// For `deliver`, whose words are kept free of it.
    pub handed: Arc<Handed>,
}

impl std::fmt::Debug for Bundle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Bundle")
            .field("directory", &self.directory)
            .field("partner", &self.partner)
            .field("revision", &self.manifest.revision)
            .finish_non_exhaustive()
    }
}

impl Bundle {
    /// The destination with this id, if it is this bundle's.
    pub fn destination(&self, id: uuid::Uuid) -> Option<&Arc<Destination>> {
        self.destinations.iter().find(|destination| destination.id == id)
    }

    /// Builds the partner's file into the draft. Nothing of the partner's endpoint is within reach.
    pub async fn build(
        &self,
        destination: &Destination,
        job: &ClaimedJob,
        output: Draft,
        stop: &CancellationToken,
    ) -> Result<Built, CallError> {
        let Some(world) = self.prepared.builder.clone() else {
            return instead_of_a_builder(destination, output).await;
        };
        let guest_job = guest_job(destination, job)?;
        let state = self.state("build", destination, job).with_building(Arc::clone(&destination.source), output);
        let bounds = Bounds { timeout: self.manifest.limits.build(), limit: "build_seconds", stop: Some(stop) };
        let (mut state, rows) = run(self.store(state), bounds, |mut store| async move {
            let outcome = async {
                let file = store.data_mut().lend(worlds::output::OutputFile)?;
                world.build(&mut store, &guest_job, file).await
            };
            let outcome = outcome.await;
            (store, outcome)
        })
        .await?;
        let unread = state.unread().await;
        let Some((draft, handed)) = state.into_built() else {
            return Err(CallError::host("the built file is gone"));
        };
        let file = draft.finish().await.map_err(|error| CallError::host(error.to_string()))?;
        Ok(Built { file, rows, unread, handed })
    }

    /// The final name for a job, checked against the manifest's pattern.
    pub async fn final_name(
        &self,
        destination: &Destination,
        job: &ClaimedJob,
        stop: &CancellationToken,
    ) -> Result<String, CallError> {
        let guest_job = guest_job(destination, job)?;
        let bounds = Bounds { timeout: self.manifest.limits.call(), limit: "call_seconds", stop: Some(stop) };
        let world = self.destination_world()?;
        let (_, name) = run(self.store(self.state("final-name", destination, job)), bounds, |mut store| async move {
            let outcome = world.final_name(&mut store, &guest_job).await;
            (store, outcome)
        })
        .await?;
        self.check_final_name(&name, job)?;
        Ok(name)
    }

    /// What the plugin sees under the final name. It can look, and nothing else; what it finds may quote what the job's builder
    /// was handed.
    pub async fn baseline(
        &self,
        destination: &Destination,
        job: &ClaimedJob,
        final_name: &str,
        reader: Reader,
        handed: &Arc<Handed>,
        stop: &CancellationToken,
    ) -> Result<Listing, CallError> {
        let guest_job = guest_job(destination, job)?;
        let bounds = Bounds { timeout: self.manifest.limits.call(), limit: "call_seconds", stop: Some(stop) };
        let world = self.destination_world()?;
        let asked = final_name.to_owned();
        let state = self.state("baseline", destination, job).after(handed, reader.names());
        let (state, listing) = run(self.store(state), bounds, |mut store| async move {
            let outcome = async {
                let look = store.data_mut().lend(reader)?;
                world.baseline(&mut store, &guest_job, &asked, look).await
            };
            let outcome = outcome.await;
            (store, outcome)
        })
        .await?;
        let listing = worlds::baseline(&state, listing);
        if listing.at == final_name {
            return Ok(listing);
        }
        Err(CallError::Broke { what: format!("asked to list {final_name:?} it listed {:?}", listing.at) })
    }

    /// Sends and publishes: the only call with a writer, after cutoff 2. No stop request ends it. What it says is kept without
    /// what the job's builder was handed: a partner's answer may quote it.
    #[expect(clippy::too_many_arguments, reason = "the one call that brings everything of an attempt together")]
    pub async fn deliver(
        &self,
        destination: &Destination,
        job: &ClaimedJob,
        expected: &FileFacts,
        before: &Listing,
        reader: Reader,
        writer: Writer,
        handed: &Arc<Handed>,
    ) -> Result<Reported, CallError> {
        let delivery = delivery(destination, job, expected, &reader)?;
        let before = worlds::guest_listing(before);
        let bounds = Bounds { timeout: self.manifest.limits.deliver(), limit: "deliver_seconds", stop: None };
        let world = self.destination_world()?;
        let state = self.state("deliver", destination, job).after(handed, reader.names());
        let (state, receipt) = run(self.store(state), bounds, |mut store| async move {
            let outcome = async {
                let look = store.data_mut().lend(reader)?;
                let send: Resource<Writer> = store.data_mut().lend(writer)?;
                world.deliver(&mut store, &delivery, &before, look, send).await
            };
            let outcome = outcome.await;
            (store, outcome)
        })
        .await?;
        Ok(worlds::receipt(&state, receipt))
    }

    /// Looks, for recovery, reconciliation and late acknowledgments. Nobody knows any more what the builder was handed.
    pub async fn observe(
        &self,
        destination: &Destination,
        job: &ClaimedJob,
        expected: &FileFacts,
        before: Option<&Listing>,
        reader: Reader,
    ) -> Result<Reported, CallError> {
        let delivery = delivery(destination, job, expected, &reader)?;
        let before = before.map(worlds::guest_listing);
        let bounds = Bounds { timeout: self.manifest.limits.call(), limit: "call_seconds", stop: None };
        let world = self.destination_world()?;
        let (state, observation) =
            run(self.store(self.state("observe", destination, job)), bounds, |mut store| async move {
                let outcome = async {
                    let look = store.data_mut().lend(reader)?;
                    world.observe(&mut store, &delivery, before.as_ref(), look).await
                };
                let outcome = outcome.await;
                (store, outcome)
            })
            .await?;
        Ok(worlds::observation(&state, observation))
    }

    fn destination_world(&self) -> Result<DestinationWorld, CallError> {
        let none = || CallError::host("the bundle is a builder alone");
        self.prepared.destination.clone().ok_or_else(none)
    }

    fn state(&self, call: &'static str, destination: &Destination, job: &ClaimedJob) -> State {
        let about = About { partner: self.partner.as_str().into(), call, job: job.id, attempt: job.attempt };
        State::new(
            about,
            job.created_at,
            self.manifest.limits.memory_bytes(),
            Usage::new(call, destination.meter.clone()),
        )
    }

    fn store(&self, state: State) -> Store<State> {
        engine::store(&self.prepared.engine, state)
    }

    fn check_final_name(&self, name: &str, job: &ClaimedJob) -> Result<(), CallError> {
        let shown = bounded_name(name);
        check_name(name).map_err(|error| CallError::Broke {
            what: format!("its final name is not usable: {}", bounded_name(&error.to_string())),
        })?;
        let pattern = &self.manifest.names.final_name;
        let attempt = job.attempt.to_string();
        let parts = Parts { key: &job.delivery_key, attempt: &attempt, final_name: name };
        if pattern.matches(name, parts) {
            return Ok(());
        }
        Err(CallError::Broke {
            what: format!(
                "its final name {shown:?} does not match names.final of partner.toml, {:?}, for this delivery key",
                pattern.to_string()
            ),
        })
    }
}

/// The file that a rehearsal gives to a destination alone.
async fn instead_of_a_builder(destination: &Destination, mut output: Draft) -> Result<Built, CallError> {
    let failed = |error: SpoolError| CallError::host(error.to_string());
    let Some(ready) = &destination.ready else {
        return Err(CallError::host("the bundle is a destination alone"));
    };
    output.write(ready).await.map_err(failed)?;
    Ok(Built { file: output.finish().await.map_err(failed)?, rows: 0, unread: BTreeSet::new(), handed: Arc::default() })
}

fn guest_job(destination: &Destination, job: &ClaimedJob) -> Result<types::Job, CallError> {
    worlds::job(job, &destination.settings).map_err(CallError::host)
}

/// What a call after cutoff 2 is told of its delivery.
fn delivery(
    destination: &Destination,
    job: &ClaimedJob,
    expected: &FileFacts,
    reader: &Reader,
) -> Result<Delivery, CallError> {
    let auxiliary = reader.names().auxiliary.iter().map(|declared| declared.name.clone()).collect();
    Ok(Delivery { job: guest_job(destination, job)?, expected: worlds::file_facts(expected), auxiliary })
}
