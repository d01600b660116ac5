//! The host keys that a destination's server may present.

use russh::keys::{Algorithm, HashAlg, PublicKey};

/// One pinned key: in full, or by its fingerprint.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Pin {
    Key(Box<PublicKey>),
    Fingerprint(String),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Pins(Vec<Pin>);

impl Pins {
    /// Reads `host_keys`; the error is a sentence about the first line that cannot be read.
    pub(super) fn parse(lines: &[String]) -> Result<Self, String> {
        if lines.is_empty() {
            return Err(
                "`host_keys` is empty, so no server could be trusted; put the partner's host key there".to_owned()
            );
        }
        let pin = |line: &String| parse(line.trim()).map_err(|why| format!("the host key {line:?} {why}"));
        lines.iter().map(pin).collect::<Result<_, _>>().map(Self)
    }

    pub(super) fn hold(&self, presented: &PublicKey) -> bool {
        self.0.iter().any(|pin| match pin {
            Pin::Key(key) => key.key_data() == presented.key_data(),
            Pin::Fingerprint(text) => *text == fingerprint(presented),
        })
    }

    /// The host key algorithms in the order of preference, those of pinned keys first: a server that has several
    /// keys then presents the one that is pinned.
    pub(super) fn order(&self, all: &[Algorithm]) -> Vec<Algorithm> {
        let pinned = |algorithm: &Algorithm| {
            self.0.iter().any(|pin| match pin {
                Pin::Key(key) => family(&key.algorithm()) == family(algorithm),
                Pin::Fingerprint(_) => false,
            })
        };
        let (mut first, rest): (Vec<_>, Vec<_>) = all.iter().cloned().partition(pinned);
        first.extend(rest);
        first
    }
}

/// The form in which people compare host keys.
pub(super) fn fingerprint(key: &PublicKey) -> String {
    key.fingerprint(HashAlg::Sha256).to_string()
}

/// Why a line of `host_keys` names no key. It continues a sentence that begins with the line, and does not repeat it.
pub fn host_key_fault(line: &str) -> Option<&'static str> {
    parse(line.trim()).err()
}

fn parse(line: &str) -> Result<Pin, &'static str> {
    if let Some(digest) = line.strip_prefix("SHA256:") {
        if digest.starts_with("replace this") {
            return Err("is still the placeholder of destinations.example.toml");
        }
        return match data_encoding::BASE64_NOPAD.decode(digest.trim_end_matches('=').as_bytes()) {
            Ok(bytes) if bytes.len() == 32 => Ok(Pin::Fingerprint(format!("SHA256:{}", digest.trim_end_matches('=')))),
            _ => Err("is no SHA256 fingerprint, which is `SHA256:` and 43 characters after it"),
        };
    }
    if line.starts_with("MD5:") {
        return Err("is a fingerprint by MD5, which tells no two keys apart for certain; use the one by SHA256");
    }
    let after_a_name = line.split_once(char::is_whitespace).map(|(_, rest)| rest.trim_start());
    match PublicKey::from_openssh(line) {
        Ok(key) => Ok(Pin::Key(Box::new(key))),
        Err(_) if after_a_name.is_some_and(|rest| PublicKey::from_openssh(rest).is_ok()) => {
            Err("begins with the server's name, as ssh-keyscan prints it; leave that word out")
        }
        Err(_) => Err("is neither an OpenSSH public key nor a SHA256 fingerprint"),
    }
}

/// An RSA key is one key, whatever hash its signatures use.
fn family(algorithm: &Algorithm) -> Algorithm {
    if algorithm.clone().is_rsa() { Algorithm::Rsa { hash: None } } else { algorithm.clone() }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAILM+rvN+ot98qgEN796jTiQfZfG1KaT0PtFDJ/XFSqti";

    #[test]
    fn a_key_is_held_in_full_or_by_fingerprint() {
        let key = PublicKey::from_openssh(KEY).unwrap();
        for line in [format!("{KEY} partner@example"), fingerprint(&key)] {
            assert!(Pins::parse(&[line]).unwrap().hold(&key));
        }
        let other = "SHA256:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA".to_owned();
        assert!(!Pins::parse(&[other]).unwrap().hold(&key));
    }

    #[test]
    fn what_is_no_key_is_named() {
        assert!(Pins::parse(&[]).unwrap_err().contains("host_keys"));
        assert!(Pins::parse(&["SHA256:short".to_owned()]).unwrap_err().contains("SHA256:short"));
        assert!(Pins::parse(&["ssh-ed25519 AAAA".to_owned()]).unwrap_err().contains("ssh-ed25519 AAAA"));
    }

    #[test]
    fn a_line_is_refused_for_what_it_is() {
        for (line, part) in [
            ("SHA256:replace this with the fingerprint that Acme confirmed".to_owned(), "placeholder"),
            ("SHA256:short".to_owned(), "43 characters"),
            ("MD5:aa:bb".to_owned(), "MD5"),
            (format!("sftp.acme.example {KEY}"), "leave that word out"),
            (KEY.replace("AAAA", "AAA"), "neither"),
            (String::new(), "neither"),
        ] {
            assert!(host_key_fault(&line).is_some_and(|why| why.contains(part)), "{line}");
        }
        assert_eq!(host_key_fault(&format!(" {KEY} a comment")), None);
    }

    #[test]
    fn pinned_kinds_of_keys_are_asked_for_first() {
        let all = [Algorithm::Rsa { hash: Some(HashAlg::Sha512) }, Algorithm::Ed25519];
        let pins = Pins::parse(&[KEY.to_owned()]).unwrap();
        assert_eq!(pins.order(&all).first(), Some(&Algorithm::Ed25519));
    }
}
