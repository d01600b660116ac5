//! The adapters: a component that is linked, called in the words of the version of the contract that it was built for.
//!
//! Calls and answers are in the newest version's types; an earlier version's are converted here and nowhere else. A later
//! version adds a variant and its conversions, and nothing outside this file, [`super::bindings`] and
//! [`super::component`] changes.

use wasmtime::component::{Component, Linker, Resource};
use wasmtime::{AsContextMut, Store};

use super::bindings::builder::BuilderPre;
use super::bindings::destination::DestinationPre;
use super::bindings::evidence::{Listing, Observation, Receipt};
use super::bindings::{types, v0_1};
use super::component::ContractVersion;
use super::worlds::State;
use super::worlds::output::OutputFile;
use crate::remote::{Reader, Writer};

/// A call's end: a trap, the plugin's failure, or what it returned.
type Answer<T> = wasmtime::Result<Result<T, types::Failure>>;

/// A builder that is ready to be called.
#[derive(Clone)]
pub(super) enum BuilderWorld {
    V0_1_0(v0_1::builder::BuilderPre<State>),
    V0_2_0(BuilderPre<State>),
}

/// A destination plugin that is ready to be called.
#[derive(Clone)]
pub(super) enum DestinationWorld {
    V0_1_0(v0_1::destination::DestinationPre<State>),
    V0_2_0(DestinationPre<State>),
}

/// What `deliver` and `observe` are told of their delivery.
pub(super) struct Delivery {
    pub job: types::Job,
    pub expected: types::FileFacts,
    /// The names of the files beside it, filled, in the manifest's order.
    pub auxiliary: Vec<String>,
}

impl BuilderWorld {
    /// Compares every import's type with what the linker has.
    pub fn prepare(version: ContractVersion, linker: &Linker<State>, component: &Component) -> wasmtime::Result<Self> {
        let instance = linker.instantiate_pre(component)?;
        Ok(match version {
            ContractVersion::V0_1_0 => Self::V0_1_0(v0_1::builder::BuilderPre::new(instance)?),
            ContractVersion::V0_2_0 => Self::V0_2_0(BuilderPre::new(instance)?),
        })
    }

    /// The rows that the builder counted.
    pub async fn build(&self, store: &mut Store<State>, job: &types::Job, file: Resource<OutputFile>) -> Answer<u64> {
        match self {
            Self::V0_1_0(world) => {
                let instance = world.instantiate_async(store.as_context_mut()).await?;
                let built = instance.call_build(store, &job_0_1(job), file).await?;
                Ok(built.map(|built| built.rows).map_err(failure_0_1))
            }
            Self::V0_2_0(world) => {
                let instance = world.instantiate_async(store.as_context_mut()).await?;
                Ok(instance.call_build(store, job, file).await?.map(|built| built.rows))
            }
        }
    }
}

impl DestinationWorld {
    /// Compares every import's type with what the linker has.
    pub fn prepare(version: ContractVersion, linker: &Linker<State>, component: &Component) -> wasmtime::Result<Self> {
        let instance = linker.instantiate_pre(component)?;
        Ok(match version {
            ContractVersion::V0_1_0 => Self::V0_1_0(v0_1::destination::DestinationPre::new(instance)?),
            ContractVersion::V0_2_0 => Self::V0_2_0(DestinationPre::new(instance)?),
        })
    }

    pub async fn final_name(&self, store: &mut Store<State>, job: &types::Job) -> Answer<String> {
        match self {
            Self::V0_1_0(world) => {
                let instance = world.instantiate_async(store.as_context_mut()).await?;
                Ok(instance.call_final_name(store, &job_0_1(job)).await?.map_err(failure_0_1))
            }
            Self::V0_2_0(world) => {
                let instance = world.instantiate_async(store.as_context_mut()).await?;
                instance.call_final_name(store, job).await
            }
        }
    }

    pub async fn baseline(
        &self,
        store: &mut Store<State>,
        job: &types::Job,
        final_name: &str,
        look: Resource<Reader>,
    ) -> Answer<Listing> {
        match self {
            Self::V0_1_0(world) => {
                let instance = world.instantiate_async(store.as_context_mut()).await?;
                let listing = instance.call_baseline(store, &job_0_1(job), final_name, look).await?;
                Ok(listing.map_err(failure_0_1))
            }
            Self::V0_2_0(world) => {
                let instance = world.instantiate_async(store.as_context_mut()).await?;
                instance.call_baseline(store, job, final_name, look).await
            }
        }
    }

    pub async fn deliver(
        &self,
        store: &mut Store<State>,
        delivery: &Delivery,
        before: &Listing,
        look: Resource<Reader>,
        send: Resource<Writer>,
    ) -> Answer<Receipt> {
        let Delivery { job, expected, auxiliary } = delivery;
        match self {
            Self::V0_1_0(world) => {
                let instance = world.instantiate_async(store.as_context_mut()).await?;
                let expected = facts_0_1(expected);
                let receipt = instance.call_deliver(store, &job_0_1(job), &expected, before, look, send).await?;
                Ok(receipt.map_err(failure_0_1))
            }
            Self::V0_2_0(world) => {
                let instance = world.instantiate_async(store.as_context_mut()).await?;
                instance.call_deliver(store, job, expected, before, auxiliary, look, send).await
            }
        }
    }

    pub async fn observe(
        &self,
        store: &mut Store<State>,
        delivery: &Delivery,
        before: Option<&Listing>,
        look: Resource<Reader>,
    ) -> Answer<Observation> {
        let Delivery { job, expected, auxiliary } = delivery;
        match self {
            Self::V0_1_0(world) => {
                let instance = world.instantiate_async(store.as_context_mut()).await?;
                let expected = facts_0_1(expected);
                let observation = instance.call_observe(store, &job_0_1(job), &expected, before, look).await?;
                Ok(observation.map_err(failure_0_1))
            }
            Self::V0_2_0(world) => {
                let instance = world.instantiate_async(store.as_context_mut()).await?;
                instance.call_observe(store, job, expected, before, auxiliary, look).await
            }
        }
    }
}

fn job_0_1(job: &types::Job) -> v0_1::types::Job {
    let settings = |settings: &[types::Setting]| {
        let convert = |one: &types::Setting| v0_1::types::Setting { name: one.name.clone(), value: one.value.clone() };
        settings.iter().map(convert).collect()
    };
    v0_1::types::Job {
        id: job.id.clone(),
        tenant: job.tenant.clone(),
        attempt: job.attempt.clone(),
        destination: job.destination.clone(),
        delivery_key: job.delivery_key.clone(),
        created_at: job.created_at.clone(),
        version: job.version,
        replacement: job.replacement.as_ref().map(|replacement| v0_1::types::Replacement {
            original_job: replacement.original_job.clone(),
            overwrite_agreed: replacement.overwrite_agreed,
            original_expected: replacement.original_expected.as_ref().map(facts_0_1),
        }),
        scope: settings(&job.scope),
        settings: settings(&job.settings),
        extra: settings(&job.extra),
    }
}

fn facts_0_1(facts: &types::FileFacts) -> v0_1::types::FileFacts {
    v0_1::types::FileFacts { name: facts.name.clone(), bytes: facts.bytes, sha256: facts.sha256.clone() }
}

fn failure_0_1(failure: v0_1::types::Failure) -> types::Failure {
    use v0_1::types::Failure as Earlier;
    match failure {
        Earlier::Stopped => types::Failure::Stopped,
        Earlier::Forbidden(text) => types::Failure::Forbidden(text),
        Earlier::Refused(text) => types::Failure::Refused(text),
        Earlier::Unknown(text) => types::Failure::Unknown(text),
        Earlier::Invalid(text) => types::Failure::Invalid(text),
        Earlier::Other(text) => types::Failure::Other(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plg_01_what_a_job_is_told_as_in_an_earlier_version_says_the_same() {
        let setting = |name: &str| types::Setting { name: name.to_owned(), value: format!("{name}'s") };
        let job = types::Job {
            id: "id".to_owned(),
            tenant: "tenant".to_owned(),
            attempt: "attempt".to_owned(),
            destination: "destination".to_owned(),
            delivery_key: "key".to_owned(),
            created_at: "2026-03-02T08:15:00Z".to_owned(),
            created: types::Moment { year: 2026, month: 3, day: 2, hour: 8, minute: 15, second: 0 },
            version: 7,
            replacement: Some(types::Replacement {
                original_job: "original".to_owned(),
                overwrite_agreed: true,
                original_expected: Some(types::FileFacts { name: "name".to_owned(), bytes: 5, sha256: vec![1; 32] }),
            }),
            scope: vec![setting("scope")],
            settings: vec![setting("setting")],
            extra: vec![setting("extra")],
        };
        let earlier = job_0_1(&job);
        // Both were generated from records that read the same, but for what the later one added.
        let without_created = format!("{job:?}").replace(&format!("created: {:?}, ", job.created), "");
        assert_eq!(format!("{earlier:?}"), without_created);
    }

    #[test]
    fn plg_01_a_failure_of_an_earlier_version_stays_what_it_was() {
        use v0_1::types::Failure as Earlier;
        let why = || "why".to_owned();
        for (earlier, now) in [
            (Earlier::Stopped, types::Failure::Stopped),
            (Earlier::Forbidden(why()), types::Failure::Forbidden(why())),
            (Earlier::Refused(why()), types::Failure::Refused(why())),
            (Earlier::Unknown(why()), types::Failure::Unknown(why())),
            (Earlier::Invalid(why()), types::Failure::Invalid(why())),
            (Earlier::Other(why()), types::Failure::Other(why())),
        ] {
            assert_eq!(format!("{:?}", failure_0_1(earlier)), format!("{now:?}"));
        }
    }
}
