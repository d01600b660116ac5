//! `output`: the file under construction.

use wasmtime::component::Resource;

use super::State;
use crate::job::remedy::Remedy;
use crate::plugin::bindings::output::{Host, HostFile};
use crate::plugin::bindings::types::Failure;
use crate::plugin::call::{Fault, HostTrap, LimitKind};
use crate::spool::{Draft, SpoolError};

/// Bytes a call; the contract says so to authors.
const MOST_BYTES: usize = 1 << 20;

/// The guest's handle to the one file of the call.
pub struct OutputFile;

/// The file, and whether the guest tried to make it too large.
pub(crate) struct Output {
    draft: Draft,
    /// The limit, once it was hit: such a file is not what the guest meant, whatever it says afterwards.
    exceeded_bytes: Option<u64>,
}

impl Output {
    pub(super) fn new(draft: Draft) -> Self {
        Self { draft, exceeded_bytes: None }
    }

    pub(super) fn into_draft(self) -> Draft {
        self.draft
    }

    pub(crate) fn exceeded_bytes(&self) -> Option<u64> {
        self.exceeded_bytes
    }
}

impl Host for State {}

impl HostFile for State {
    async fn write(&mut self, file: Resource<OutputFile>, bytes: Vec<u8>) -> wasmtime::Result<Result<(), Failure>> {
        self.table.get(&file)?;
        self.usage.host_call("output.write");
        if bytes.len() > MOST_BYTES {
            return Ok(Err(Failure::Invalid(format!(
                "{} bytes in one call are more than {MOST_BYTES}; write in chunks",
                bytes.len()
            ))));
        }
        let Some(output) = &mut self.output else {
            return Err(HostTrap::Host("a call without a file was handed one".to_owned()).into());
        };
        if let Some(limit_bytes) = output.exceeded_bytes {
            // Told once as an answer; a guest that goes on is stopped.
            return Err(HostTrap::Limit { limit: LimitKind::Output, detail: too_large(limit_bytes) }.into());
        }
        match output.draft.write(&bytes).await {
            Ok(()) => Ok(Ok(())),
            Err(SpoolError::TooLarge { limit_bytes }) => {
                output.exceeded_bytes = Some(limit_bytes);
                Ok(Err(Failure::Forbidden(too_large(limit_bytes))))
            }
            Err(error @ (SpoolError::Full { .. } | SpoolError::Io { .. })) => {
                self.note_fault(Fault::Host { what: error.to_string(), remedy: Remedy::AnotherAttempt });
                Ok(Err(Failure::Other("the host cannot store the file".to_owned())))
            }
        }
    }

    async fn drop(&mut self, file: Resource<OutputFile>) -> wasmtime::Result<()> {
        self.table.delete(file)?;
        Ok(())
    }
}

pub(crate) fn too_large(limit_bytes: u64) -> String {
    format!(
        "the file would be larger than its limit of {limit_bytes} bytes; raise limits.output_mib in partner.toml if that is right"
    )
}
