//! `partner.toml`: what the integration engineer says of a partner, checked as a whole before anything is compiled.
//!
//! A key that is not known is a fault, not a no-op: a promise that is misspelt would otherwise count as not made, and a
//! limit as not set.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use sha2::Digest as _;

use super::document::{Document, DocumentError};
use super::limits::{Limits, RANGES};
use super::part::Part;
use super::patterns::{Final, overlap};
use crate::job::contract::{Acknowledgment, Contract};
use crate::job::facts::Sha256;
use crate::job::names::{NamePattern, Parts};

pub(super) const FILE: &str = "partner.toml";

/// A checked manifest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Manifest {
    /// The partner's name, for people and logs.
    pub partner: String,
    /// Raised with every change; a higher one replaces a lower one.
    pub revision: u32,
    /// One plugin alone: it is built and tested, and never served.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub part: Option<Part>,
    pub builder: ComponentFile,
    pub destination: ComponentFile,
    pub contract: Contract,
    pub names: NamePatterns,
    pub limits: Limits,
    /// Settings for both plugins; the operator's settings of a destination override them.
    pub options: BTreeMap<String, String>,
    /// SHA-256 of the file's bytes.
    pub sha256: Sha256,
}

/// Where a component lies in the bundle.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ComponentFile {
    pub file: String,
    /// Pins the file's bytes.
    pub sha256: Option<Sha256>,
}

/// The `[names]` table.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct NamePatterns {
    /// What every final name matches.
    #[serde(rename = "final")]
    pub final_name: NamePattern,
    /// The name under which a file is sent before it is published.
    #[serde(default = "default_temporary")]
    pub temporary: NamePattern,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    partner: String,
    revision: u32,
    part: Option<Part>,
    #[serde(default)]
    builder: WrittenComponent,
    #[serde(default)]
    destination: WrittenComponent,
    #[serde(default)]
    contract: Contract,
    names: NamePatterns,
    #[serde(default)]
    limits: Limits,
    #[serde(default)]
    options: BTreeMap<String, String>,
}

/// A table that may say no more than the file, or than its digest.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenComponent {
    file: Option<String>,
    sha256: Option<Sha256>,
}

impl WrittenComponent {
    /// `file`: where it lies unless the table says otherwise.
    fn or_in(self, file: &str) -> ComponentFile {
        ComponentFile { file: self.file.unwrap_or_else(|| file.to_owned()), sha256: self.sha256 }
    }
}

/// Tables that there is one of, and what more to say where there are several.
const ONE_TABLE: [(&[&str], &str); 7] = [
    (&["builder"], ""),
    (&["destination"], "; servers and accounts are in destinations.toml"),
    (&["names"], ""),
    (&["limits"], ""),
    (&["options"], ""),
    (&["contract"], ""),
    (
        &["contract", "acknowledgment"],
        "; a partner who answers under two names, one for accepted and one for refused, has `accept_name` and `refuse_name` in it",
    ),
];

#[expect(clippy::expect_used, reason = "a constant; a test reads it")]
fn default_temporary() -> NamePattern {
    NamePattern::parse(".{attempt}.part").expect("the default pattern is one")
}

impl Manifest {
    /// Reads and checks a manifest.
    pub fn parse(text: &str) -> Result<Self, DocumentError> {
        let document = Document::parse(FILE, text, true)?;
        for (path, what) in ONE_TABLE {
            document.is_one_table(path, what)?;
        }
        let written: Written = document.read()?;
        let manifest = Self {
            partner: written.partner,
            revision: written.revision,
            part: written.part,
            builder: written.builder.or_in("builder.wasm"),
            destination: written.destination.or_in("destination.wasm"),
            contract: written.contract,
            names: written.names,
            limits: written.limits,
            options: written.options,
            sha256: Sha256(sha2::Sha256::digest(text.as_bytes()).into()),
        };
        manifest.check_identity(&document)?;
        manifest.check_limits(&document)?;
        manifest.check_names(&document)?;
        manifest.check_auxiliary(&document)?;
        manifest.check_acknowledgment(&document)?;
        Ok(manifest)
    }

    /// True if the bundle has this plugin.
    pub fn has(&self, part: Part) -> bool {
        self.part.is_none_or(|alone| alone == part)
    }

    /// What is allowed and yet most often a mistake, each one sentence: answers in a folder that nobody may have meant. `{final}`
    /// stands for the whole final name, its folder too.
    pub fn notes(&self) -> Vec<String> {
        let final_name = self.names.final_name.to_string();
        let answers = self.contract.acknowledgment.iter().flat_map(Acknowledgment::names);
        let Some((folder, _)) = final_name.rsplit_once('/') else { return Vec::new() };
        let elsewhere = answers.filter_map(|(key, name)| {
            let name = name.to_string();
            let (before, _) = name.split_once("{final}").filter(|(before, _)| !before.is_empty())?;
            let meant = name.replacen("{final}", "{final.name}", 1);
            Some(format!(
                "the answers {name:?} (`{key}`) lie in {before}{folder}, because final names lie in {folder}; for files in {} write {meant:?}",
                before.rsplit_once('/').map_or("the directory where all names begin", |(answers, _)| answers)
            ))
        });
        elsewhere.collect()
    }

    fn check_identity(&self, document: &Document<'_>) -> Result<(), DocumentError> {
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        if self.partner.is_empty() || self.partner.len() > 64 || !self.partner.chars().all(plain) {
            return Err(document.fault(
                &["partner"],
                "the partner's name goes into logs and metrics: 1 to 64 characters of a-z, 0-9 and `-`",
            ));
        }
        if self.revision == 0 || i32::try_from(self.revision).is_err() {
            return Err(document.fault(&["revision"], "a revision starts at 1 and is raised with every change"));
        }
        for (table, component) in [("builder", &self.builder), ("destination", &self.destination)] {
            let file = &component.file;
            if file.contains(['/', '\\']) || file.starts_with('.') {
                let what = format!("{file:?} must lie in the bundle's own directory: give a plain file name");
                return Err(document.fault(&[table, "file"], what));
            }
            if std::path::Path::new(file).extension().is_none_or(|extension| extension != "wasm") {
                let what = format!(
                    "{file:?} is no .wasm file; the host compiles components itself, because compiled code cannot be checked"
                );
                return Err(document.fault(&[table, "file"], what));
            }
        }
        Ok(())
    }

    fn check_limits(&self, document: &Document<'_>) -> Result<(), DocumentError> {
        let Some((name, least, most)) = self.limits.out_of_range() else { return Ok(()) };
        let what = format!("{name} is {}; it must be from {least} to {most}", self.limits.of(name));
        Err(document.fault(&["limits", name], what))
    }

    /// Refuses a manifest, whose text this is, that asks for more than the operator of a host allows.
    pub(super) fn within(&self, most: &Limits, text: &str) -> Result<(), DocumentError> {
        let over = RANGES.into_iter().map(|(name, ..)| (name, self.limits.of(name), most.of(name)));
        let Some((name, asked, most)) = over.into_iter().find(|(_, asked, most)| asked > most) else { return Ok(()) };
        let document = Document::parse(FILE, text, true)?;
        let path = ["limits", name];
        let default = if document.span(&path).is_some() { "" } else { ", the default," };
        let what = format!(
            "[limits] {name} is {asked}{default} and this host allows {most}: ask for less, or have its operator raise {name} in [plugins.limits] of the host's configuration"
        );
        Err(document.fault(&path, what))
    }

    fn check_names(&self, document: &Document<'_>) -> Result<(), DocumentError> {
        let NamePatterns { final_name, temporary } = &self.names;
        let text = final_name.to_string();
        if final_name.names_the_attempt() || text.contains("{final") {
            let what = format!(
                "the final name {text:?} is a function of the job: {{key}} and `*` may stand in it, no other placeholder"
            );
            return Err(document.fault(&["names", "final"], what));
        }
        if !final_name.names_the_key() && !self.contract.names_reused {
            let what = format!(
                "the final name {text:?} is the same for every delivery: put {{key}} into it, or set contract.names_reused if the partner agreed that names are used again"
            );
            return Err(document.fault(&["names", "final"], what));
        }
        if !temporary.names_the_attempt() {
            let what = format!(
                "the temporary name {temporary:?} must have {{attempt}}, or two attempts write one file",
                temporary = temporary.to_string()
            );
            return Err(document.fault(&["names", "temporary"], what));
        }
        let sample = Parts { key: "key", attempt: "attempt", final_name: "final.csv" };
        if let Err(error) = temporary.mint(sample) {
            return Err(document.fault(&["names", "temporary"], error.to_string()));
        }
        if overlap(temporary, final_name, final_name, Final::Any) {
            let what = format!(
                "the temporary name {temporary} could be a final name ({final_name}); a half-sent file would pass for a delivery"
            );
            return Err(document.fault(&["names", "temporary"], what));
        }
        if self.contract.overwrites_last.is_some() && !self.contract.names_reused {
            return Err(document.fault(
                &["contract", "overwrites_last"],
                "overwrites_last is an agreement about reused names: set names_reused too, or remove it",
            ));
        }
        Ok(())
    }

    fn check_auxiliary(&self, document: &Document<'_>) -> Result<(), DocumentError> {
        let NamePatterns { final_name, temporary } = &self.names;
        let auxiliary = &self.contract.auxiliary;
        for (index, file) in auxiliary.iter().enumerate() {
            let at = index.to_string();
            let fault = |what: String| Err(document.fault(&["contract", "auxiliary", &at, "name"], what));
            let name = &file.name;
            if overlap(name, final_name, final_name, Final::Any) {
                return fault(format!(
                    "the auxiliary name {name} could be a final name ({final_name}); make them differ"
                ));
            }
            if overlap(name, temporary, final_name, Final::ThisOne) {
                return fault(format!(
                    "the auxiliary name {name} could be the temporary name ({temporary}); make them differ"
                ));
            }
            if let Some(other) =
                auxiliary.iter().take(index).find(|other| overlap(name, &other.name, final_name, Final::ThisOne))
            {
                return fault(format!(
                    "the auxiliary names {name} and {} could be one file; make them differ",
                    other.name
                ));
            }
            let mut answers = self.contract.acknowledgment.iter().flat_map(Acknowledgment::names);
            if let Some((_, answer)) = answers.find(|(_, answer)| overlap(name, answer, final_name, Final::Any)) {
                return fault(format!(
                    "the auxiliary name {name} matches the acknowledgment's name ({answer}); the host would read its own file as the partner's answer"
                ));
            }
            if file.trigger && file.before_publish {
                return Err(document.fault(
                    &["contract", "auxiliary", &at, "before_publish"],
                    format!("the partner acts on the trigger {name}, so it cannot come before the data file: remove before_publish"),
                ));
            }
        }
        if self.contract.exclusive_create && !auxiliary.iter().any(|file| file.trigger) {
            return Err(document.fault(
                &["contract", "exclusive_create"],
                "with exclusive_create the final name is seen while it grows: add a [[contract.auxiliary]] with trigger = true, which tells the partner that it is whole",
            ));
        }
        Ok(())
    }

    fn check_acknowledgment(&self, document: &Document<'_>) -> Result<(), DocumentError> {
        let Some(acknowledgment) = &self.contract.acknowledgment else { return Ok(()) };
        let fault = |key, what: String| Err(document.fault(&["contract", "acknowledgment", key], what));
        let names: Vec<_> = acknowledgment.names().collect();
        let (final_name, temporary) = (&self.names.final_name, &self.names.temporary);
        for (index, (key, name)) in names.iter().enumerate() {
            if overlap(name, final_name, final_name, Final::Any) || overlap(name, temporary, final_name, Final::Any) {
                return fault(
                    key,
                    format!("the acknowledgment's name {name} could be a file that the host sends; make them differ"),
                );
            }
            let others = names.iter().take(index);
            let same = |(_, other): &&(&str, &NamePattern)| overlap(name, other, final_name, Final::ThisOne);
            if let Some((other, pattern)) = others.clone().find(same) {
                return fault(
                    key,
                    format!(
                        "a file could have this name and that of `{other}` ({pattern}), and would say two things; make them differ"
                    ),
                );
            }
            if *key != "name" && !name.names_the_attempt() && !self.ties(name) {
                return fault(
                    key,
                    "nothing ties such a file to a delivery: put {key} or {final} into its name, with no `*` beside it, where the end of a longer key could stand".to_owned(),
                );
            }
        }
        let expressions = [
            ("accept", acknowledgment.accept.as_ref()),
            ("refuse", acknowledgment.refuse.as_ref()),
            ("duplicate", acknowledgment.duplicate.as_ref()),
        ];
        let agreed = expressions.iter().any(|(_, expression)| expression.is_some());
        match (&acknowledgment.name, agreed) {
            (Some(_), false) => {
                return fault(
                    "name",
                    "nothing says what such a file means: add `accept`, an expression for its bytes; where its being there is the answer, call it `accept_name` or `refuse_name`".to_owned(),
                );
            }
            (None, true) => {
                return fault("", "an expression reads the file that `name` stands for; add it".to_owned());
            }
            (None, false) if names.is_empty() => {
                return fault(
                    "",
                    "nothing says how the partner answers: `name` and `accept` for a file that is read, `accept_name` and `refuse_name` for files that say it by being there".to_owned(),
                );
            }
            (Some(_), true) | (None, false) => {}
        }
        let tied = acknowledgment.name.as_ref().is_some_and(|name| self.ties(name));
        for (key, expression) in expressions {
            let Some(expression) = expression else { continue };
            // Matched against bytes, so compiled for bytes.
            let compiled = match regex::bytes::Regex::new(expression) {
                Ok(compiled) => compiled,
                Err(error) => {
                    let why = error.to_string().lines().map(str::trim).collect::<Vec<_>>().join(" ");
                    return fault(key, format!("this is no regular expression: {why}"));
                }
            };
            if compiled.is_match(b"") {
                return fault(
                    key,
                    "this expression matches an empty file, so it tells nothing; make it say what the partner writes, or, where the file's being there is the answer, use `accept_name` or `refuse_name`".to_owned(),
                );
            }
            if let Some(unknown) =
                compiled.capture_names().flatten().find(|name| !["key", "attempt", "sha256"].contains(name))
            {
                return fault(
                    key,
                    format!("the group {unknown:?} is not known; an expression captures `key`, `attempt` and `sha256`"),
                );
            }
            if !tied && !compiled.capture_names().flatten().any(|name| name == "key") {
                return fault(
                    key,
                    "nothing ties such an acknowledgment to a delivery: put {key} or {final} into its name, with no `*` beside it, where the end of a longer key could stand, or capture `(?<key>…)` here".to_owned(),
                );
            }
        }
        Ok(())
    }

    /// True if a file of such a name can be about one delivery key only.
    fn ties(&self, name: &NamePattern) -> bool {
        let sample = Parts { key: "the-key", ..Parts::default() };
        let final_name = self.names.final_name.example(sample);
        name.ties_the_key(Parts { final_name: &final_name, ..sample })
    }
}

#[cfg(test)]
mod tests;
