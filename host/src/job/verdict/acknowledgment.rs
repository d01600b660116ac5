//! Reading a partner's acknowledgment files against the contract's expressions.
//!
//! A file counts only if the host read it itself, its name is one that the contract's pattern stands for, it was not
//! there at the baseline, we did not write it, and an expression matches its bytes, or its name alone was agreed to say
//! it. What it names is what the expression captured (`key`, `attempt`, `sha256`) and what its own name can only mean.
//! Where the contract changed since the claim, both descriptions are read: each must say accepted, and one that says
//! refused is enough. A file for which no baseline looked can only speak against a delivery, too.

use std::cmp::Reverse;

use regex::bytes::{Captures, Regex, RegexBuilder};

use crate::job::contract::{Acknowledgment, Contract};
use crate::job::evidence::Acknowledged;
use crate::job::names::{NamePattern, Parts};

/// The most bytes of an acknowledgment that are read. Longer ones count for nothing, and a person reads them.
pub const MAX_BYTES: usize = 64 * 1024;

/// The most memory that a compiled expression may take, so that a manifest cannot exhaust the host.
const MAX_COMPILED_BYTES: usize = 1024 * 1024;

#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("the contract's `{which}` expression {expression:?} cannot be used; correct it in partner.toml")]
pub struct ExpressionError {
    pub which: &'static str,
    pub expression: String,
    #[source]
    pub source: regex::Error,
}

/// A file that may carry an acknowledgment, as the host read it.
#[derive(Debug, Clone, Copy)]
pub struct File<'a> {
    pub name: &'a str,
    /// All of it, or more than [`MAX_BYTES`] of it.
    pub bytes: &'a [u8],
    pub before: Before,
    /// One of the names that this or another attempt of ours wrote.
    pub written_by_us: bool,
}

/// What the host's look before sending showed under the file's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Before {
    Absent,
    There,
    /// That look was for other names, or for none.
    NotLooked,
}

/// Why a file is no acknowledgment of this delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Disregarded {
    NoneAgreed,
    OtherName,
    ThereBefore,
    NotShownNew,
    WrittenByUs,
    TooLong,
    SaysNothing,
    AboutAnother,
}

/// The contract's acknowledgments, compiled.
#[derive(Debug, Clone)]
pub struct Reader {
    described: Vec<Described>,
    /// One of the two contracts knows no acknowledgment, so that none can count as accepted.
    missing: bool,
}

#[derive(Debug, Clone)]
struct Described {
    names_reused: bool,
    /// The file that is read, and what its bytes may say, in the order in which it counts.
    read: Option<(NamePattern, Vec<(&'static str, Regex)>)>,
    /// Files that say it by being there, in the order in which it counts.
    named: Vec<(&'static str, NamePattern)>,
}

impl Reader {
    /// For the contract of the claim and the one of now; a contract that did not change is read once.
    pub fn new(then: &Contract, now: &Contract) -> Result<Self, ExpressionError> {
        let mut described = Vec::new();
        let same = then.acknowledgment == now.acknowledgment && then.names_reused == now.names_reused;
        for contract in std::iter::once(then).chain((!same).then_some(now)) {
            if let Some(acknowledgment) = &contract.acknowledgment {
                described.push(Described::new(acknowledgment, contract.names_reused)?);
            }
        }
        let missing = then.acknowledgment.is_none() || now.acknowledgment.is_none();
        Ok(Self { described, missing })
    }

    /// True if what the file says is in its bytes; one that says it by its name may be of any size, and unreadable.
    pub fn reads(&self, name: &str, parts: Parts<'_>) -> bool {
        self.described.iter().any(|described| {
            described
                .read
                .as_ref()
                .is_some_and(|(pattern, expressions)| !expressions.is_empty() && pattern.matches(name, parts))
        })
    }

    /// What the file says of the delivery that `parts` name, or why it says nothing of it.
    pub fn read(&self, file: File<'_>, parts: Parts<'_>) -> Result<Acknowledged, Disregarded> {
        let mut strictest = self.missing.then_some(Err(Disregarded::NoneAgreed));
        for described in &self.described {
            let reading = described.read(file, parts);
            strictest = Some(match strictest {
                Some(earlier) if strictness(&earlier) >= strictness(&reading) => earlier,
                Some(_) | None => reading,
            });
        }
        match strictest.unwrap_or(Err(Disregarded::NoneAgreed)) {
            Ok(said) if said.says == "accepted" && file.before != Before::Absent => Err(Disregarded::NotShownNew),
            reading => reading,
        }
    }
}

impl Reader {
    /// The file as an acceptance by one of the contracts alone, shown to be new or not: the partner may have taken the delivery.
    pub fn perhaps_accepted(&self, file: File<'_>, parts: Parts<'_>) -> Option<Acknowledged> {
        let mut readings = self.described.iter().filter_map(|described| described.read(file, parts).ok());
        readings.find(|said| said.says == "accepted")
    }
}

/// What is said against a delivery weighs most, then silence, then what pins down less.
fn strictness(reading: &Result<Acknowledged, Disregarded>) -> (u8, Option<Reverse<Precision>>) {
    match reading {
        Ok(acknowledged) if acknowledged.says == "refused" => (3, None),
        Ok(acknowledged) if acknowledged.says == "duplicate" => (2, None),
        Err(_) => (1, None),
        Ok(acknowledged) => (0, Some(Reverse(precision(acknowledged)))),
    }
}

impl Described {
    fn new(acknowledgment: &Acknowledgment, names_reused: bool) -> Result<Self, ExpressionError> {
        let Acknowledgment { name, accept, refuse, duplicate, accept_name, refuse_name, period: _ } = acknowledgment;
        let mut expressions = Vec::new();
        for (which, says, expression) in
            [("refuse", "refused", refuse), ("duplicate", "duplicate", duplicate), ("accept", "accepted", accept)]
        {
            if let Some(expression) = expression {
                expressions.push((says, compile(which, expression)?));
            }
        }
        let named = [("refused", refuse_name), ("accepted", accept_name)];
        Ok(Self {
            names_reused,
            read: name.clone().map(|name| (name, expressions)),
            named: named.into_iter().filter_map(|(says, name)| Some((says, name.clone()?))).collect(),
        })
    }

    /// What speaks against the delivery comes first, as in [`strictness`].
    fn read(&self, file: File<'_>, parts: Parts<'_>) -> Result<Acknowledged, Disregarded> {
        let named = self.named.iter().find(|(_, pattern)| pattern.matches(file.name, parts));
        let read = self.read.as_ref().filter(|(pattern, _)| pattern.matches(file.name, parts));
        if named.is_none() && read.is_none() {
            return Err(Disregarded::OtherName);
        }
        if file.written_by_us {
            return Err(Disregarded::WrittenByUs);
        }
        if file.before == Before::There {
            return Err(Disregarded::ThereBefore);
        }
        // No two patterns of one contract stand for one name, so a file is either.
        match (named, read) {
            (Some((says, pattern)), _) => {
                self.about(pattern, says, file.name, |_| None, parts).ok_or(Disregarded::AboutAnother)
            }
            (None, Some((pattern, expressions))) => self.read_bytes(pattern, expressions, file, parts),
            (None, None) => Err(Disregarded::OtherName),
        }
    }

    fn read_bytes(
        &self,
        pattern: &NamePattern,
        expressions: &[(&'static str, Regex)],
        file: File<'_>,
        parts: Parts<'_>,
    ) -> Result<Acknowledged, Disregarded> {
        if file.bytes.len() > MAX_BYTES {
            return Err(Disregarded::TooLong);
        }
        let mut about_another = false;
        for (says, expression) in expressions {
            let mut best: Option<Acknowledged> = None;
            for found in expression.captures_iter(file.bytes) {
                match self.about(pattern, says, file.name, |group| captured(&found, group), parts) {
                    None => about_another = true,
                    Some(named) => {
                        if best.as_ref().is_none_or(|best| precision(best) < precision(&named)) {
                            best = Some(named);
                        }
                    }
                }
            }
            if let Some(best) = best {
                return Ok(best);
            }
        }
        Err(if about_another { Disregarded::AboutAnother } else { Disregarded::SaysNothing })
    }

    /// What one answer names; `None` if that is another delivery, or none at all.
    fn about(
        &self,
        pattern: &NamePattern,
        says: &str,
        name: &str,
        captured: impl Fn(&str) -> Option<String>,
        parts: Parts<'_>,
    ) -> Option<Acknowledged> {
        let key = captured("key").or_else(|| self.key_in_name(pattern, name, parts).then(|| parts.key.to_owned()));
        let attempt = captured("attempt").or_else(|| pattern.names_the_attempt().then(|| parts.attempt.to_owned()));
        let sha256 = captured("sha256").map(|digest| digest.to_ascii_lowercase());
        let for_us = key.as_deref().is_none_or(|key| key == parts.key)
            && attempt.as_deref().is_none_or(|attempt| attempt.eq_ignore_ascii_case(parts.attempt));
        let names_something = key.is_some() || attempt.is_some() || sha256.is_some();
        (for_us && names_something).then(|| Acknowledged {
            name: name.to_owned(),
            says: says.to_owned(),
            key,
            attempt,
            sha256,
        })
    }

    /// True if the file's name can be about this key only. Under a reused name, the final name alone is not enough.
    fn key_in_name(&self, pattern: &NamePattern, name: &str, parts: Parts<'_>) -> bool {
        if !pattern.ties_the_key(parts) {
            return false;
        }
        // A control character is in no key and in no name, so only a pattern with the key in it stops matching.
        !self.names_reused || !pattern.matches(name, Parts { key: "\u{1}", ..parts })
    }
}

/// A control character is in no key, no attempt and no digest: what has one names nothing.
fn captured(found: &Captures<'_>, group: &str) -> Option<String> {
    let text = String::from_utf8_lossy(found.name(group)?.as_bytes()).into_owned();
    (!text.chars().any(char::is_control)).then_some(text)
}

/// How much an acknowledgment pins down: an attempt, content, a key.
type Precision = (bool, bool, bool);

fn precision(acknowledged: &Acknowledged) -> Precision {
    (acknowledged.attempt.is_some(), acknowledged.sha256.is_some(), acknowledged.key.is_some())
}

fn compile(which: &'static str, expression: &str) -> Result<Regex, ExpressionError> {
    RegexBuilder::new(expression)
        .size_limit(MAX_COMPILED_BYTES)
        .dfa_size_limit(MAX_COMPILED_BYTES)
        .build()
        .map_err(|source| ExpressionError { which, expression: expression.to_owned(), source })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const PARTS: Parts<'static> = Parts { key: "k-1", attempt: "a-9", final_name: "contacts-k-1.csv" };

    fn contract(name: &str, accept: &str) -> Contract {
        Contract {
            acknowledgment: Some(Acknowledgment {
                name: Some(NamePattern::parse(name).unwrap()),
                accept: Some(accept.to_owned()),
                refuse: Some(r"(?m)^NO (?<key>\S+)".to_owned()),
                duplicate: Some(r"(?m)^AGAIN (?<key>\S+)".to_owned()),
                accept_name: None,
                refuse_name: None,
                period: Duration::from_mins(1),
            }),
            ..Contract::default()
        }
    }

    fn read(contract: &Contract, bytes: &str) -> Result<Acknowledged, Disregarded> {
        let file = File { name: "ack/k-1.txt", bytes: bytes.as_bytes(), before: Before::Absent, written_by_us: false };
        Reader::new(contract, contract).unwrap().read(file, PARTS)
    }

    #[test]
    fn del_10_a_name_that_could_be_another_keys_ties_nothing() {
        // `ack/k-1.txt` is a name for the key k-1, and `ack/k-1.1.txt` would be one for it too.
        assert_eq!(read(&contract("ack/{key}.*", "OK"), "OK"), Err(Disregarded::AboutAnother));
        assert_eq!(read(&contract("ack/{key}.txt", "OK"), "OK").unwrap().key.as_deref(), Some("k-1"));
    }

    #[test]
    fn bad_input_a_control_character_is_in_nothing_that_an_answer_names() {
        let contract = contract("ack/*.txt", r"(?m)^OK (?<key>\S+) (?<sha256>\S+)$");
        let padded = format!("OK k-1 {}\0\0", "ab".repeat(32));
        let named = read(&contract, &padded).unwrap();
        assert_eq!((named.key.as_deref(), named.sha256), (Some("k-1"), None));
        let of_a_key = self::contract("ack/*.txt", r"(?m)^OK (?<key>\S+)$");
        assert_eq!(read(&of_a_key, "OK k-1\0"), Err(Disregarded::AboutAnother));
    }

    #[test]
    fn what_it_names_is_what_was_captured() {
        let contract = contract("ack/*.txt", r"(?m)^OK (?<key>\S+)(?: (?<sha256>[0-9a-fA-F]{64}))?$");
        assert_eq!(read(&contract, "OK k-1\n").unwrap().key.as_deref(), Some("k-1"));
        let sha = "AB".repeat(32);
        let many = format!("OK k-0\nOK k-1\nOK k-1 {sha}\n");
        assert_eq!(read(&contract, &many).unwrap().sha256, Some(sha.to_lowercase()), "the most precise match counts");
        assert_eq!(read(&contract, "OK k-2\n"), Err(Disregarded::AboutAnother));
        assert_eq!(read(&contract, "NO k-2\nOK k-1\n").unwrap().says, "accepted");
        assert_eq!(read(&contract, "OK k-1\nNO k-1\n").unwrap().says, "refused", "what contradicts weighs more");
        assert_eq!(read(&contract, "AGAIN k-1\nOK k-1\n").unwrap().says, "duplicate");
        assert_eq!(read(&contract, "hello"), Err(Disregarded::SaysNothing));
    }

    #[test]
    fn an_acceptance_that_names_nothing_counts_only_by_its_own_name() {
        assert_eq!(read(&contract("ack/{key}.txt", "^OK"), "OK").unwrap().key.as_deref(), Some("k-1"));
        assert_eq!(read(&contract("ack/*.txt", "^OK"), "OK"), Err(Disregarded::AboutAnother));
        assert_eq!(read(&contract("ack/{attempt}.txt", "^OK"), "OK"), Err(Disregarded::OtherName));
    }

    #[test]
    fn under_a_reused_name_the_final_name_does_not_name_the_key() {
        let read = |names_reused| {
            let contract = Contract { names_reused, ..contract("{final}.ack", "^OK") };
            let file =
                File { name: "contacts-k-1.csv.ack", bytes: b"OK", before: Before::Absent, written_by_us: false };
            Reader::new(&contract, &contract).unwrap().read(file, PARTS)
        };
        assert_eq!(read(false).unwrap().key.as_deref(), Some("k-1"));
        assert_eq!(read(true), Err(Disregarded::AboutAnother));
    }

    #[test]
    fn files_that_prove_nothing_are_named() {
        let contract = contract("ack/{key}.txt", "^OK");
        let reader = Reader::new(&contract, &contract).unwrap();
        let file = File { name: "ack/k-1.txt", bytes: b"OK", before: Before::Absent, written_by_us: false };
        let long = vec![b'x'; MAX_BYTES + 1];
        assert!(reader.read(file, PARTS).is_ok());
        for (file, why) in [
            (File { name: "ack/k-2.txt", ..file }, Disregarded::OtherName),
            (File { before: Before::There, ..file }, Disregarded::ThereBefore),
            (File { written_by_us: true, ..file }, Disregarded::WrittenByUs),
            (File { bytes: &long, ..file }, Disregarded::TooLong),
        ] {
            assert_eq!(reader.read(file, PARTS), Err(why));
        }
        let none = Reader::new(&Contract::default(), &Contract::default()).unwrap();
        assert_eq!(none.read(file, PARTS), Err(Disregarded::NoneAgreed));
    }

    #[test]
    fn a_contract_that_changed_is_read_both_ways_and_the_stricter_counts() {
        let (then, now) = (contract("ack/{key}.txt", "^OK"), contract("ack/{key}.txt", "^(OK|FINE)"));
        let reader = Reader::new(&then, &now).unwrap();
        let read = |bytes: &'static str| {
            let file =
                File { name: "ack/k-1.txt", bytes: bytes.as_bytes(), before: Before::Absent, written_by_us: false };
            reader.read(file, PARTS).map(|acknowledged| acknowledged.says)
        };
        assert_eq!(read("OK").as_deref(), Ok("accepted"));
        assert_eq!(read("FINE"), Err(Disregarded::SaysNothing));
        assert_eq!(read("NO k-1").as_deref(), Ok("refused"));
    }

    #[test]
    fn an_acknowledgment_that_only_one_contract_knows_can_speak_only_against() {
        let (silent, knows) = (Contract::default(), contract("ack/{key}.txt", "^OK"));
        for (then, now) in [(&silent, &knows), (&knows, &silent)] {
            let reader = Reader::new(then, now).unwrap();
            let read = |bytes: &'static str| {
                let file =
                    File { name: "ack/k-1.txt", bytes: bytes.as_bytes(), before: Before::Absent, written_by_us: false };
                reader.read(file, PARTS).map(|acknowledged| acknowledged.says)
            };
            assert_eq!(read("OK"), Err(Disregarded::NoneAgreed));
            assert_eq!(read("NO k-1").as_deref(), Ok("refused"));
        }
    }

    /// Both names, and a file of words beside them.
    fn by_name() -> Contract {
        let mut contract = contract("ack/{key}.txt", "^OK");
        if let Some(agreed) = &mut contract.acknowledgment {
            agreed.accept_name = NamePattern::parse("ack/{final}.ok").ok();
            agreed.refuse_name = NamePattern::parse("ack/{final}.err").ok();
        }
        contract
    }

    #[test]
    fn del_10_a_file_may_say_it_by_its_name_whatever_is_in_it() {
        let contract = by_name();
        let reader = Reader::new(&contract, &contract).unwrap();
        let long = vec![b'x'; MAX_BYTES + 1];
        for (name, says) in [("ack/contacts-k-1.csv.ok", "accepted"), ("ack/contacts-k-1.csv.err", "refused")] {
            for bytes in [b"".as_slice(), b"NO k-1", &long] {
                let file = File { name, bytes, before: Before::Absent, written_by_us: false };
                let said = reader.read(file, PARTS).unwrap();
                assert_eq!((said.says.as_str(), said.key.as_deref(), said.sha256), (says, Some("k-1"), None));
            }
            let file = File { name, bytes: b"", before: Before::There, written_by_us: false };
            assert_eq!(reader.read(file, PARTS), Err(Disregarded::ThereBefore));
            let file = File { name, bytes: b"", before: Before::Absent, written_by_us: true };
            assert_eq!(reader.read(file, PARTS), Err(Disregarded::WrittenByUs));
            assert!(!reader.reads(name, PARTS), "{name}");
        }
        assert!(reader.reads("ack/k-1.txt", PARTS));
        let file = File { name: "ack/k-1.txt", bytes: b"OK", before: Before::Absent, written_by_us: false };
        assert_eq!(reader.read(file, PARTS).unwrap().says, "accepted", "and words beside the names still count");
        let other = File { name: "ack/contacts-k-2.csv.err", ..file };
        assert_eq!(reader.read(other, PARTS), Err(Disregarded::OtherName));
        // Under a reused name the final name is every delivery's.
        let reused = Contract { names_reused: true, ..contract };
        let file = File { name: "ack/contacts-k-1.csv.err", ..file };
        let reader = Reader::new(&reused, &reused).unwrap();
        assert_eq!(reader.read(file, PARTS), Err(Disregarded::AboutAnother));
    }

    #[test]
    fn del_10_a_name_that_was_agreed_meanwhile_can_speak_only_against() {
        let (then, now) = (contract("ack/{key}.txt", "^OK"), by_name());
        for (then, now) in [(&then, &now), (&now, &then)] {
            let reader = Reader::new(then, now).unwrap();
            let read = |name| {
                let file = File { name, bytes: b"", before: Before::Absent, written_by_us: false };
                reader.read(file, PARTS).map(|acknowledged| acknowledged.says)
            };
            assert_eq!(read("ack/contacts-k-1.csv.ok"), Err(Disregarded::OtherName));
            assert_eq!(read("ack/contacts-k-1.csv.err").as_deref(), Ok("refused"));
        }
    }

    #[test]
    fn an_expression_that_cannot_be_used_is_refused() {
        for expression in ["(", r"\w{1000}{1000}"] {
            let contract = contract("ack/{key}.txt", expression);
            assert_eq!(Reader::new(&contract, &contract).unwrap_err().which, "accept");
        }
    }
}
