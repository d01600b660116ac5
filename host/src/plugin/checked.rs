//! What a check of a destination's server depends on: where the server is, and where on it names lie.
//!
//! A check is kept with the digest of this, and counts as long as the destination still has the same. The contract is not in
//! it: what was seen is held against the contract of the moment.

use std::collections::BTreeSet;

use serde::Serialize;

use super::destinations::canonical_digest;
use super::endpoint;
use super::manifest::{Manifest, NamePatterns};
use crate::job::contract::Acknowledgment;
use crate::job::names::{NamePattern, Parts};
use crate::remote::{Endpoint, ObjectsEndpoint};

impl NamePatterns {
    /// True if temporary and final names lie in the same folder, as their patterns say.
    pub fn one_folder(&self) -> bool {
        let folder = |pattern: &NamePattern| pattern.to_string().rsplit_once('/').map(|(folder, _)| folder.to_owned());
        // `{final}` at the beginning stands for the whole name, its folder too.
        let temporary = self.temporary.to_string();
        temporary.starts_with("{final}") || folder(&self.temporary) == folder(&self.final_name)
    }
}

impl Manifest {
    /// The folders of the partner's answers, as far as they do not depend on the delivery.
    pub fn answers_folders(&self) -> BTreeSet<String> {
        // In no name of anybody's: what has it depends on the delivery.
        const OPEN: &str = "\u{1}";
        let final_name = self.names.final_name.to_string();
        let folder = final_name.rsplit_once('/').map(|(folder, _)| folder);
        let final_name = match folder {
            Some(folder) if !folder.contains(['{', '*']) => format!("{folder}/{OPEN}"),
            Some(_) => format!("{OPEN}/{OPEN}"),
            None => OPEN.to_owned(),
        };
        let parts = Parts { key: OPEN, attempt: OPEN, final_name: &final_name };
        let names = self.contract.acknowledgment.iter().flat_map(Acknowledgment::names);
        let folders = names.map(|(_, name)| name.folder(parts).to_string());
        let fixed = folders.filter(|folder| !folder.contains(OPEN) && !folder.contains('*'));
        fixed.map(|folder| if folder.is_empty() { ".".to_owned() } else { folder }).collect()
    }
}

#[derive(Serialize)]
struct Digested<'a> {
    endpoint: endpoint::Digested<'a>,
    /// Where the account is not part of the endpoint: what names it.
    account: Option<String>,
    names: [String; 2],
    answers: BTreeSet<String>,
}

/// The digest that a check is kept with.
pub(super) fn digest(manifest: &Manifest, endpoint: &Endpoint) -> Result<String, serde_json::Error> {
    let account = match endpoint {
        Endpoint::Objects(ObjectsEndpoint { access_key, .. }) => Some(access_key.to_string()),
        Endpoint::Sftp(_) | Endpoint::Directory(_) => None,
    };
    let names = [manifest.names.final_name.to_string(), manifest.names.temporary.to_string()];
    let endpoint = endpoint::Digested::of(endpoint);
    canonical_digest(&Digested { endpoint, account, names, answers: manifest.answers_folders() })
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::remote::{DirectoryEndpoint, SecretRef, SftpEndpoint};

    fn manifest(more: &str) -> Manifest {
        Manifest::parse(&format!("partner = 'acme'\nrevision = 1\n{more}")).unwrap()
    }

    fn sftp() -> SftpEndpoint {
        SftpEndpoint {
            host: "sftp.acme.example".to_owned(),
            port: 22,
            user: "us".to_owned(),
            directory: "in".to_owned(),
            host_keys: vec!["ssh-ed25519 AAAA".to_owned()],
            secret: SecretRef::KeyFile(PathBuf::from("/id")),
        }
    }

    #[test]
    fn del_05_the_folders_of_answers_are_those_in_which_they_will_lie() {
        let folders = |final_name: &str, name: &str| {
            let manifest = manifest(&format!(
                "[names]\nfinal = '{final_name}'\n[contract.acknowledgment]\naccept_name = '{name}'\nperiod_seconds = 60\n"
            ));
            Vec::from_iter(manifest.answers_folders()).join(" and ")
        };
        for (final_name, name, lie) in [
            ("{key}.csv", "{final}.ok", "."),
            ("in/{key}.csv", "{final}.ok", "in"),
            ("in/{key}.csv", "{final.stem}.ok", "in"),
            ("in/{key}.csv", "answers/{final}.ok", "answers/in"),
            ("in/{key}.csv", "answers/{final.name}.ok", "answers"),
            ("in/{key}.csv", "answers/{key}/ok", ""),
            ("{key}/a.csv", "answers/{final}.ok", ""),
            ("{key}/a.csv", "answers/{key}.ok", "answers"),
        ] {
            assert_eq!(folders(final_name, name), lie, "{final_name}, {name}");
        }
    }

    const PLAIN: &str = "[names]\nfinal = '{key}.csv'\n";

    #[test]
    fn plg_01_a_check_holds_for_the_server_the_account_and_the_names_that_it_was_made_with() {
        let digest = |more: &str, endpoint: Endpoint| digest(&manifest(more), &endpoint).unwrap();
        let made = digest(PLAIN, Endpoint::Sftp(sftp()));
        let same = [
            digest(PLAIN, Endpoint::Sftp(SftpEndpoint { secret: SecretRef::KeyEnv("KEY".to_owned()), ..sftp() })),
            digest("[names]\nfinal = '{key}.csv'\n[contract]\npublishes_whole = true\n", Endpoint::Sftp(sftp())),
        ];
        assert!(same.iter().all(|same| *same == made), "a rotated key, or another word of the contract");
        let of = |text: &str| text.to_owned();
        let others = [
            digest(PLAIN, Endpoint::Sftp(SftpEndpoint { host: of("b.example"), ..sftp() })),
            digest(PLAIN, Endpoint::Sftp(SftpEndpoint { port: 2222, ..sftp() })),
            digest(PLAIN, Endpoint::Sftp(SftpEndpoint { user: of("them"), ..sftp() })),
            digest(PLAIN, Endpoint::Sftp(SftpEndpoint { directory: of("out"), ..sftp() })),
            digest(PLAIN, Endpoint::Sftp(SftpEndpoint { host_keys: vec![of("ssh-ed25519 BBBB")], ..sftp() })),
            digest(PLAIN, Endpoint::Directory(DirectoryEndpoint { path: PathBuf::from("/in"), marker: None })),
            digest("[names]\nfinal = 'new/{key}.csv'\n", Endpoint::Sftp(sftp())),
            digest("[names]\nfinal = '{key}.csv'\ntemporary = 'tmp/{attempt}'\n", Endpoint::Sftp(sftp())),
            digest(
                "[names]\nfinal = '{key}.csv'\n[contract.acknowledgment]\nname = 'answers/{key}.ack'\naccept = 'ok'\nperiod_seconds = 60\n",
                Endpoint::Sftp(sftp()),
            ),
        ];
        assert!(others.iter().all(|other| *other != made), "{others:?}");
    }
}
