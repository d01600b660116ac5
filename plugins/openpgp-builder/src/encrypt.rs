//! Encryption: a session key for each recipient, then the file under it, with what shows that nobody changed it.
//!
//! The message is what every OpenPGP program since RFC 4880 reads: AES-256 in a packet with a modification detection code (SEIPD
//! version 1), in parts of 64 KiB, without a name or a time of the file inside.

use std::io::{Read, Write};

use pgp::composed::{ArmorOptions, MessageBuilder};
use pgp::crypto::sym::SymmetricKeyAlgorithm;
use rand_core::{CryptoRng, RngCore};
use waybill_guest::Failure;

use crate::keys::{Key, Recipient};

/// Bytes of the file that are in memory at a time.
const PART: u32 = 64 * 1024;

/// Writes the whole of the plain file, encrypted to the recipients.
pub fn encrypted(
    plain: impl Read,
    recipients: &[Recipient],
    armor: bool,
    mut random: impl RngCore + CryptoRng,
    output: &mut impl Write,
) -> Result<(), Failure> {
    let failed = |error: pgp::errors::Error| format!("the file cannot be encrypted: {error}");
    let mut message = MessageBuilder::from_reader("", plain).seipd_v1(&mut random, SymmetricKeyAlgorithm::AES256);
    message.partial_chunk_size(PART).map_err(failed)?;
    for recipient in recipients {
        let added = match &recipient.key {
            Key::Sub(key) => message.encrypt_to_key(&mut random, key),
            Key::Primary(key) => message.encrypt_to_key(&mut random, key),
        };
        added.map_err(|error| recipient.refused(&format!("cannot be encrypted to ({error})")))?;
    }
    let written = if armor {
        message.to_armored_writer(&mut random, ArmorOptions::default(), output)
    } else {
        message.to_writer(&mut random, output)
    };
    Ok(written.map_err(failed)?)
}
