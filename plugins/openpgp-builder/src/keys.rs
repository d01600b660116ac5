//! The recipients' keys, judged before a byte is encrypted to them.
//!
//! A key is usable if nothing on it revokes it, its newest signature by itself holds, neither it nor the part that encrypts has
//! expired, and there is such a part. What it holds of other people's signatures is not looked at: that the key is the partner's
//! is agreed with the partner, by its fingerprint.
//!
//! A guest has no clock. The time that counts is that of the job's creation, so a key that expires between creation and build is
//! still used, and one that was made after the job is no mistake.

use pgp::composed::{Deserializable as _, SignedPublicKey, SignedPublicSubKey};
use pgp::packet::{KeyFlags, PublicKey, PublicSubkey, Signature, SignatureType};
use pgp::types::{Duration, KeyDetails, Tag, Timestamp};
use waybill_guest::Failure;

const BEGIN: &str = "-----BEGIN PGP ";
const FORM: &str = "the armored text of each recipient's public key, from its BEGIN line to its END line";

/// One who may read the file.
#[derive(Debug, Clone)]
pub struct Recipient {
    /// Of the primary key: what people compare.
    fingerprint: String,
    pub key: Key,
}

/// The part of a key that encrypts.
#[derive(Debug, Clone)]
pub enum Key {
    Sub(PublicSubkey),
    Primary(PublicKey),
}

impl Recipient {
    /// The failure that says what is wrong with this key.
    pub fn refused(&self, why: &str) -> Failure {
        refused(&self.fingerprint, why, "ask the partner for another key")
    }
}

/// Reads the setting `recipients`. The time is RFC 3339 in UTC, as in a job.
pub fn recipients(text: &str, at: &str) -> Result<Vec<Recipient>, Failure> {
    let wrong = |why: String| Failure::Invalid(format!("the setting \"recipients\" {why}"));
    if text.contains("PRIVATE KEY") {
        return Err(wrong(
            "holds a private key, which is its owner's alone: put the public key there, and tell the owner what was in your hands"
                .to_owned(),
        ));
    }
    let mut recipients = Vec::new();
    for (start, _) in text.match_indices(BEGIN) {
        let (before, block) = text.split_at(start);
        let number = before.matches(BEGIN).count() + 1;
        let end = block.get(1..).and_then(|rest| rest.find(BEGIN)).map_or(block.len(), |next| next + 1);
        let block = block.get(..end).unwrap_or(block);
        let unreadable = |error: pgp::errors::Error| {
            wrong(format!("has a block (number {number}) that cannot be read as public keys ({error}): write {FORM}"))
        };
        let (keys, _) = SignedPublicKey::from_armor_many(block.as_bytes()).map_err(unreadable)?;
        for key in keys {
            recipients.push(judge(&key.map_err(unreadable)?, at)?);
        }
    }
    if recipients.is_empty() {
        return Err(wrong(format!("has no key: write {FORM}")));
    }
    Ok(recipients)
}

/// The recipient behind a key, or why there is none.
fn judge(whole: &SignedPublicKey, at: &str) -> Result<Recipient, Failure> {
    let primary = &whole.primary_key;
    let fingerprint = format!("{:X}", primary.fingerprint());
    let wrong = |why: &str, then: &str| Err(refused(&fingerprint, why, then));
    if !whole.details.revocation_signatures.is_empty() {
        return wrong("was revoked", "ask the partner for the key that replaces it");
    }
    let Some(own) = newest(own_signatures(whole)) else {
        return wrong(
            "has no signature by itself that holds, or only one of a kind that is no longer trusted",
            "ask the partner to export the key again, or for a newer one",
        );
    };
    if let Some(expired) = expired(primary.created_at(), own.key_expiration_time(), at) {
        return wrong(
            &format!("expired at {expired}"),
            "ask the partner for the key with a later date, or for its successor",
        );
    }
    let mut parts: Vec<(&SignedPublicSubKey, &Signature)> = whole
        .public_subkeys
        .iter()
        .filter_map(|part| Some((part, newest(bindings(part, primary))?)))
        .filter(|(part, binding)| part.algorithm().can_encrypt() && encrypts(&binding.key_flags()))
        .collect();
    parts.sort_by_key(|(part, _)| std::cmp::Reverse(part.created_at()));
    let mut unusable = None;
    for (part, binding) in parts {
        let why = if part.signatures.iter().any(|signature| signature.typ() == Some(SignatureType::SubkeyRevocation)) {
            "was revoked".to_owned()
        } else if let Some(expired) = expired(part.created_at(), binding.key_expiration_time(), at) {
            format!("expired at {expired}")
        } else {
            return Ok(Recipient { fingerprint, key: Key::Sub(part.key.clone()) });
        };
        unusable.get_or_insert(why);
    }
    if let Some(why) = unusable {
        let why = format!("has no usable part for encryption: its subkey {why}");
        return wrong(&why, "ask the partner for the key with a new subkey");
    }
    if primary.algorithm().can_encrypt() && encrypts(&own.key_flags()) {
        return Ok(Recipient { fingerprint, key: Key::Primary(primary.clone()) });
    }
    wrong("can sign and has no part for encryption", "ask the partner for a key that can encrypt")
}

fn refused(fingerprint: &str, why: &str, then: &str) -> Failure {
    Failure::Invalid(format!("the setting \"recipients\": the key {fingerprint} {why}: {then}"))
}

/// Signatures of the key over itself and over its users, those that hold and whose user was not revoked.
fn own_signatures(whole: &SignedPublicKey) -> impl Iterator<Item = &Signature> {
    let primary = &whole.primary_key;
    let direct = whole.details.direct_signatures.iter().filter(|signature| signature.verify_key(primary).is_ok());
    let users = whole.details.users.iter().filter_map(|user| {
        let holds = |signature: &&Signature| signature.verify_certification(primary, Tag::UserId, &user.id).is_ok();
        newest(user.signatures.iter().filter(holds))
    });
    direct.chain(users).filter(|signature| signature.typ() != Some(SignatureType::CertRevocation))
}

/// Signatures of the primary key that hold and make the subkey a part of it.
fn bindings<'a>(part: &'a SignedPublicSubKey, primary: &'a PublicKey) -> impl Iterator<Item = &'a Signature> {
    part.signatures
        .iter()
        .filter(|signature| signature.typ() == Some(SignatureType::SubkeyBinding))
        .filter(move |signature| signature.verify_subkey_binding(primary, &part.key).is_ok())
}

fn newest<'a>(signatures: impl Iterator<Item = &'a Signature>) -> Option<&'a Signature> {
    signatures.max_by_key(|signature| signature.created())
}

fn encrypts(flags: &KeyFlags) -> bool {
    flags.encrypt_comms() || flags.encrypt_storage()
}

/// When it expired, if it had at that time.
fn expired(created: Timestamp, lasts: Option<Duration>, at: &str) -> Option<String> {
    let lasts = lasts.map(std::time::Duration::from).filter(|lasts| !lasts.is_zero())?;
    let end = rfc_3339(u64::from(created.as_secs()) + lasts.as_secs());
    // Both begin with digits of one length, of which the larger is the later.
    let seconds = |time: &str| time.get(..19).unwrap_or(time).to_owned();
    (seconds(&end) <= seconds(at)).then_some(end)
}

/// A time in seconds since 1970 as text, in UTC. The days of the civil calendar by way of eras of 400 years.
fn rfc_3339(seconds: u64) -> String {
    let (days, time) = (seconds / 86_400, seconds % 86_400);
    // Counted from the 1st of March of the year 0, so that a leap day is the last of its year.
    let days = days + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (month, next) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    let year = era * 400 + year + next;
    format!("{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}Z", time / 3_600, time / 60 % 60, time % 60)
}
