//! All names at the partner that one attempt may touch or look at.
//!
//! They are fixed before the plugin sees a session: the final name that the plugin derived from the job, the
//! temporary name that the host minted, and what the contract declares beside them. Names are compared byte by byte.

use std::collections::BTreeSet;

use crate::job::contract::{Acknowledgment, Auxiliary, Contract};
use crate::job::names::{NameError, NamePattern, Parts, check_name, fold_name};

/// What an attempt may touch. Relative to the destination's directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Names {
    pub final_name: String,
    /// None for the forms that have no temporary file.
    pub temporary: Option<String>,
    pub auxiliary: Vec<AuxiliaryName>,
    /// Files by which the partner answers. They are looked at and never written.
    pub acknowledgments: Vec<NamePattern>,
    /// What the patterns' placeholders stand for.
    pub key: String,
    pub attempt: String,
}

/// A declared file beside the data file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuxiliaryName {
    pub name: String,
    /// The partner acts on it.
    pub trigger: bool,
    /// It may be put before the data file is published.
    pub before_publish: bool,
}

impl Names {
    /// Mints the names of an attempt and refuses those that would stand in each other's way.
    pub fn mint(
        contract: &Contract,
        temporary: Option<&NamePattern>,
        final_name: &str,
        key: &str,
        attempt: &str,
    ) -> Result<Self, NameError> {
        check_name(final_name)?;
        let parts = Parts { key, attempt, final_name };
        let temporary = temporary.map(|pattern| pattern.mint(parts)).transpose()?;
        let auxiliary = contract.auxiliary.iter().map(|declared| auxiliary(declared, parts));
        let names = Self {
            final_name: final_name.to_owned(),
            temporary,
            auxiliary: auxiliary.collect::<Result<_, _>>()?,
            acknowledgments: answers(contract).collect(),
            key: key.to_owned(),
            attempt: attempt.to_owned(),
        };
        names.check()?;
        Ok(names)
    }

    /// The names of an attempt on record, to look at: with the temporary name that it recorded, not one that a manifest of
    /// now would mint, and with the answers of each of the `agreed` contracts. Nothing is written under them, so they may
    /// stand in each other's way.
    pub fn on_record(
        recorded: &Contract,
        agreed: [&Contract; 2],
        temporary: Option<String>,
        final_name: &str,
        key: &str,
        attempt: &str,
    ) -> Self {
        let parts = Parts { key, attempt, final_name };
        let mut acknowledgments = Vec::new();
        for contract in agreed {
            for answer in answers(contract) {
                if !acknowledgments.contains(&answer) {
                    acknowledgments.push(answer);
                }
            }
        }
        Self {
            final_name: final_name.to_owned(),
            temporary,
            auxiliary: recorded.auxiliary.iter().filter_map(|declared| auxiliary(declared, parts).ok()).collect(),
            acknowledgments,
            key: key.to_owned(),
            attempt: attempt.to_owned(),
        }
    }

    /// True for a name that a reader may look at.
    pub fn may_look_at(&self, name: &str) -> bool {
        self.is_ours(name) || self.is_acknowledgment(name)
    }

    /// True for a directory that holds a name that a reader may look at.
    pub fn may_list(&self, directory: &str) -> bool {
        let directory = root_is_empty(directory);
        self.written().any(|name| parent(name) == directory)
            || self
                .acknowledgments
                .iter()
                .any(|pattern| pattern.folder(self.parts()).matches(directory, Parts::default()))
    }

    /// True for a directory above a name that is written.
    pub fn may_make(&self, directory: &str) -> bool {
        !directory.is_empty()
            && self
                .written()
                .any(|name| name.strip_prefix(directory).is_some_and(|rest| rest.starts_with('/') && rest.len() > 1))
    }

    /// True for a file that would count as the partner's answer.
    pub fn is_acknowledgment(&self, name: &str) -> bool {
        self.acknowledgments.iter().any(|pattern| pattern.matches(name, self.parts()))
    }

    /// The folders that the partner's answers lie in, each once; none where the contract has no answers.
    pub fn acknowledgment_folders(&self) -> Result<BTreeSet<String>, NameError> {
        let folders = self.acknowledgments.iter().map(|pattern| pattern.folder(self.parts()));
        folders
            .map(|folder| if folder.is_empty() { Ok(String::new()) } else { folder.mint(Parts::default()) })
            .collect()
    }

    /// True for a name that this attempt may write.
    pub fn is_ours(&self, name: &str) -> bool {
        self.written().any(|written| written == name)
    }

    fn written(&self) -> impl Iterator<Item = &str> {
        let auxiliary = self.auxiliary.iter().map(|auxiliary| auxiliary.name.as_str());
        std::iter::once(self.final_name.as_str()).chain(self.temporary.as_deref()).chain(auxiliary)
    }

    fn parts(&self) -> Parts<'_> {
        Parts { key: &self.key, attempt: &self.attempt, final_name: &self.final_name }
    }

    fn check(&self) -> Result<(), NameError> {
        let mut seen = BTreeSet::new();
        for name in self.written() {
            let unusable = |why| Err(NameError::Unusable { name: name.to_owned(), why });
            if !seen.insert(fold_name(name)) {
                return unusable("the final, temporary and auxiliary names must differ, case aside");
            }
            if self.is_acknowledgment(name) {
                return unusable(
                    "it matches the acknowledgment pattern, so our own file could pass for the partner's answer",
                );
            }
        }
        Ok(())
    }
}

fn auxiliary(declared: &Auxiliary, parts: Parts<'_>) -> Result<AuxiliaryName, NameError> {
    let &Auxiliary { ref name, trigger, before_publish } = declared;
    Ok(AuxiliaryName { name: name.mint(parts)?, trigger, before_publish })
}

fn answers(contract: &Contract) -> impl Iterator<Item = NamePattern> {
    contract.acknowledgment.iter().flat_map(Acknowledgment::names).map(|(_, name)| name.clone())
}

fn root_is_empty(directory: &str) -> &str {
    if directory == "." { "" } else { directory }
}

fn parent(name: &str) -> &str {
    name.rsplit_once('/').map_or("", |(above, _)| above)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contract(text: &str) -> Contract {
        toml::from_str(text).unwrap()
    }

    fn mint(contract: &Contract) -> Result<Names, NameError> {
        let temporary = NamePattern::parse("in/.{attempt}.part").unwrap();
        Names::mint(contract, Some(&temporary), "in/k-1.csv", "k-1", "a-9")
    }

    #[test]
    fn plg_04_what_is_declared_or_minted_is_all_there_is() {
        let names = mint(&contract(
            "auxiliary = [{ name = '{final}.done', trigger = true }]\n\
             [acknowledgment]\nname = 'out/{key}/*.ack'\naccept = 'ok'\nperiod_seconds = 60",
        ))
        .unwrap();
        for name in ["in/k-1.csv", "in/.a-9.part", "in/k-1.csv.done", "out/k-1/1.ack"] {
            assert!(names.may_look_at(name), "{name}");
        }
        for name in [
            "in/k-2.csv",
            "in/.a-8.part",
            "out/k-2/1.ack",
            "",
            ".",
            "in",
            "../in/k-1.csv",
            "/in/k-1.csv",
            "in//k-1.csv",
        ] {
            assert!(!names.may_look_at(name), "{name}");
        }
        assert!(names.may_list("in") && names.may_list("out/k-1"));
        assert!(
            !names.may_list("") && !names.may_list("out") && !names.may_list("out/k-2") && !names.may_list("in/..")
        );
        assert!(names.may_make("in"));
        assert!(
            !names.may_make("out/k-1") && !names.may_make("i") && !names.may_make("") && !names.may_make("in/k-1.csv")
        );
    }

    #[test]
    fn del_10_answers_are_looked_for_where_they_lie() {
        let lie = |pattern: &str| {
            let agreed = format!("[acknowledgment]\nname = '{pattern}'\naccept = 'ok'\nperiod_seconds = 60");
            let names = mint(&contract(&agreed)).unwrap();
            let folders: Vec<String> = names.acknowledgment_folders().ok()?.into_iter().collect();
            assert!(folders.iter().all(|folder| names.may_list(folder)), "{pattern}");
            Some(folders.join(" and "))
        };
        assert_eq!(lie("{final}.ok").as_deref(), Some("in"), "beside the file, in its folder");
        assert_eq!(lie("answers/{final.name}.txt").as_deref(), Some("answers"));
        assert_eq!(lie("{key}.ack").as_deref(), Some(""));
        assert_eq!(lie("answers/*/{key}.txt"), None, "no one folder");
        let two = "{final}.ok'\nrefuse_name = 'refused/{final.name}";
        assert_eq!(lie(two).as_deref(), Some("in and refused"), "a refusal elsewhere");
        assert_eq!(lie(&two.replace("refused/", "in/no-")).as_deref(), Some("in"), "one folder is listed once");
    }

    #[test]
    fn del_10_names_that_would_stand_in_each_others_way_are_refused() {
        assert!(mint(&contract("auxiliary = [{ name = 'IN/{key}.CSV' }]")).is_err());
        let forged = "auxiliary = [{ name = '{final}.ack' }]\n[acknowledgment]\nname = 'in/{key}*.ack'\naccept = 'ok'\nperiod_seconds = 60";
        assert!(mint(&contract(forged)).unwrap_err().to_string().contains("acknowledgment"));
        let elsewhere = "auxiliary = [{ name = 'out/{final.name}' }]\n[acknowledgment]\nname = 'out/*.csv'\naccept = '(?P<key>k)'\nperiod_seconds = 60";
        assert!(mint(&contract(elsewhere)).unwrap_err().to_string().contains("acknowledgment"));
    }
}
