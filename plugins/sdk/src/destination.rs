//! The destination world as a trait, and the adapter from the generated trait to it.

use std::marker::PhantomData;

use crate::panics::report_panics;
use crate::{Failure, FileFacts, Job, Listing, Observation, Reader, Receipt, Writer, bindings};

/// Speaks the partner's conventions over a session that the host holds.
pub trait Destination {
    /// The final name of the job's file: always the same for the same delivery key, creation time and settings.
    fn final_name(job: &Job) -> Result<String, Failure>;

    /// Lists the final name, before and after the delivery was authorized. Looks, unless it is overridden.
    fn baseline(_job: &Job, final_name: &str, look: &Reader) -> Result<Listing, Failure> {
        look.list(final_name)
    }

    /// Sends, publishes, adds what the partner expects beside the file, looks. Called once an attempt. `before` is the recorded
    /// baseline; `auxiliary` are the names of the files beside this one, in the manifest's order.
    fn deliver(
        job: &Job,
        expected: &FileFacts,
        before: &Listing,
        auxiliary: &[String],
        look: &Reader,
        send: &Writer,
    ) -> Result<Receipt, Failure>;

    /// Looks again, for recovery, reconciliation and late acknowledgments. Lists the final name, unless it is overridden.
    fn observe(
        _job: &Job,
        expected: &FileFacts,
        _before: Option<&Listing>,
        _auxiliary: &[String],
        look: &Reader,
    ) -> Result<Observation, Failure> {
        Ok(Observation::of(look.list(&expected.name)?))
    }
}

impl Reader {
    /// A look at one name.
    pub fn list(&self, name: &str) -> Result<Listing, Failure> {
        Ok(Listing { name: name.to_owned(), found: self.stat(name)?, sha256: None, extra: vec![] })
    }
}

impl Receipt {
    /// A receipt with a look at the final name, and nothing else yet.
    pub fn of(listing: Listing) -> Self {
        Self { listing: Some(listing), acknowledgment: None, auxiliary: vec![], extra: vec![] }
    }
}

impl Observation {
    /// An observation with a look at the final name, and nothing else yet.
    pub fn of(listing: Listing) -> Self {
        Self { listing: Some(listing), acknowledgment: None, again_after_seconds: None, extra: vec![] }
    }
}

/// The generated trait of the destination world, over [`Destination`].
pub struct DestinationExport<D>(PhantomData<D>);

impl<D: Destination> bindings::destination::Guest for DestinationExport<D> {
    fn final_name(job: Job) -> Result<String, Failure> {
        report_panics();
        D::final_name(&job)
    }

    fn baseline(job: Job, final_name: String, look: &Reader) -> Result<Listing, Failure> {
        report_panics();
        D::baseline(&job, &final_name, look)
    }

    fn deliver(
        job: Job,
        expected: FileFacts,
        before: Listing,
        auxiliary: Vec<String>,
        look: &Reader,
        send: &Writer,
    ) -> Result<Receipt, Failure> {
        report_panics();
        D::deliver(&job, &expected, &before, &auxiliary, look, send)
    }

    fn observe(
        job: Job,
        expected: FileFacts,
        before: Option<Listing>,
        auxiliary: Vec<String>,
        look: &Reader,
    ) -> Result<Observation, Failure> {
        report_panics();
        D::observe(&job, &expected, before.as_ref(), &auxiliary, look)
    }
}
