//! The builder world as a trait, and the adapter from the generated trait to it.

use std::marker::PhantomData;

use crate::bindings::builder::waybill::partner::output::File;
use crate::panics::report_panics;
use crate::{Built, Failure, Job, Output, bindings};

/// Builds the partner's file from rows.
pub trait Builder {
    /// Writes the whole file to `output`. Called first in an attempt, before anything is authorized, and again in each later one.
    fn build(job: &Job, output: &mut Output<'_>) -> Result<Built, Failure>;
}

/// The generated trait of the builder world, over [`Builder`].
pub struct BuilderExport<B>(PhantomData<B>);

impl<B: Builder> bindings::builder::Guest for BuilderExport<B> {
    fn build(job: Job, output: &File) -> Result<Built, Failure> {
        report_panics();
        let mut writer = Output::new(output);
        match B::build(&job, &mut writer) {
            Ok(built) => writer.finish().map(|()| built),
            // The host's own failure says more than what a crate in between made of it.
            Err(failure) => Err(writer.into_failure().unwrap_or(failure)),
        }
    }
}
