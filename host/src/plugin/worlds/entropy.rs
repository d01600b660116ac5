//! `entropy`: randomness for builders.

use rand::TryRng as _;

use super::State;
use crate::plugin::bindings::entropy::Host;
use crate::plugin::call::{HostTrap, LimitKind};

/// Bytes a call; the contract says so to authors.
const MOST_BYTES: u32 = 65_536;

impl Host for State {
    async fn random(&mut self, bytes: u32) -> wasmtime::Result<Vec<u8>> {
        self.usage.host_call("entropy.random");
        if bytes > MOST_BYTES {
            let detail = format!("{bytes} random bytes were asked for at once and {MOST_BYTES} are allowed");
            return Err(HostTrap::Limit { limit: LimitKind::HostCall, detail }.into());
        }
        let mut random = vec![0; usize::try_from(bytes)?];
        rand::rngs::SysRng
            .try_fill_bytes(&mut random)
            .map_err(|error| HostTrap::Host(format!("the system's source of randomness failed: {error}")))?;
        Ok(random)
    }
}
