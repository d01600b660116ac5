//! The world's randomness as the generator that the OpenPGP crate takes.

use rand_core::{CryptoRng, Error, RngCore, impls};
use waybill_guest::random;

/// Bytes that the host gives in one call.
const MOST: usize = 65_536;

/// The host's cryptographic randomness, and no other: it is neither seeded nor kept.
#[derive(Debug, Clone, Copy)]
pub struct World;

impl RngCore for World {
    fn next_u32(&mut self) -> u32 {
        impls::next_u32_via_fill(self)
    }

    fn next_u64(&mut self) -> u64 {
        impls::next_u64_via_fill(self)
    }

    fn fill_bytes(&mut self, bytes: &mut [u8]) {
        for part in bytes.chunks_mut(MOST) {
            // At most 65,536. Fewer bytes than were asked for end the build here: no key is made of zeros.
            let length = u32::try_from(part.len()).unwrap_or_default();
            part.copy_from_slice(&random(length));
        }
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Error> {
        self.fill_bytes(bytes);
        Ok(())
    }
}

impl CryptoRng for World {}

// Where a crate asks the system instead of the generator that it was given, it gets the same.
#[cfg(target_family = "wasm")]
getrandom::register_custom_getrandom!(from_world);

#[cfg(target_family = "wasm")]
#[expect(clippy::unnecessary_wraps, reason = "the signature is that of the crate that calls it")]
fn from_world(bytes: &mut [u8]) -> Result<(), getrandom::Error> {
    World.fill_bytes(bytes);
    Ok(())
}
