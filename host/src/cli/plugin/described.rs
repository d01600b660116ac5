//! A bundle in people's words: what was agreed, what it is made of, and what is wrong with it.

use std::fmt::Write as _;

use serde::Serialize;

use crate::job::contract::Contract;
use crate::job::names::NamePattern;
use crate::plugin::{Examined, Limits, Manifest};

/// A bundle, for people and for scripts.
#[derive(Debug, Serialize)]
pub(in crate::cli) struct Described {
    pub bundle: String,
    pub manifest: Option<Manifest>,
    /// The contract, a sentence a promise.
    pub contract: Vec<String>,
    pub components: Vec<Component>,
    /// What is allowed and most often a mistake.
    pub notes: Vec<String>,
    pub problems: Vec<String>,
}

#[derive(Debug, Serialize)]
pub(in crate::cli) struct Component {
    pub world: &'static str,
    pub file: String,
    pub bytes: usize,
    pub sha256: String,
    /// The version of `waybill:partner` that it was built for.
    pub version: Option<&'static str>,
    pub imports: Vec<String>,
}

pub(in crate::cli) fn describe(examined: &Examined) -> Described {
    Described {
        bundle: examined.bundle.clone(),
        manifest: examined.manifest.clone(),
        contract: examined.manifest.as_ref().map(|manifest| in_words(&manifest.contract)).unwrap_or_default(),
        components: examined
            .components
            .iter()
            .map(|component| Component {
                world: component.world,
                file: component.file.clone(),
                bytes: component.bytes,
                sha256: component.sha256.to_string(),
                version: component.version.map(crate::plugin::ContractVersion::name),
                imports: component.imports.clone(),
            })
            .collect(),
        notes: examined.manifest.as_ref().map(Manifest::notes).unwrap_or_default(),
        problems: examined.problems.iter().map(ToString::to_string).collect(),
    }
}

impl Described {
    pub fn in_words(&self) -> String {
        let mut text = String::new();
        // Writing to a string cannot fail.
        let mut line = |label: &str, value: &str| {
            let _ = writeln!(text, "  {label:11}  {value}");
        };
        if let Some(manifest) = &self.manifest {
            line("partner", &format!("{}, revision {}", manifest.partner, manifest.revision));
            line("names", &format!("final {}, temporary {}", manifest.names.final_name, manifest.names.temporary));
            line("limits", &limits(&manifest.limits));
            for (index, promise) in self.contract.iter().enumerate() {
                line(if index == 0 { "contract" } else { "" }, promise);
            }
        }
        for component in &self.components {
            line(
                component.world,
                &format!("{}, {} bytes, SHA-256 {}", component.file, component.bytes, component.sha256),
            );
            if let Some(version) = component.version {
                line("", &format!("built for waybill:partner {version}"));
            }
            line("", &format!("imports {}", imported(&component.imports)));
        }
        for (index, note) in self.notes.iter().enumerate() {
            line(if index == 0 { "notes" } else { "" }, note);
        }
        for (index, problem) in self.problems.iter().enumerate() {
            line(if index == 0 { "problems" } else { "" }, problem);
        }
        format!("bundle {}\n{text}", self.bundle)
    }
}

/// The contract's interfaces by name. A language's runtime imports all of WASI, which says nothing about the plugin.
fn imported(imports: &[String]) -> String {
    let (wasi, mut named): (Vec<&str>, Vec<&str>) =
        imports.iter().map(String::as_str).partition(|name| name.starts_with("wasi:"));
    let runtime = format!("{} interfaces of WASI for its runtime, which are empty here", wasi.len());
    named.extend((!wasi.is_empty()).then_some(runtime.as_str()));
    if named.is_empty() { "nothing".to_owned() } else { named.join(", ") }
}

fn limits(limits: &Limits) -> String {
    let Limits { build_seconds, call_seconds, deliver_seconds, memory_mib, output_mib, read_back_mib } = limits;
    format!(
        "build {build_seconds} s, other calls {call_seconds} s, delivery {deliver_seconds} s; memory {memory_mib} MiB, file {output_mib} MiB, read back up to {read_back_mib} MiB"
    )
}

/// What the contract promises, and what its silence means where deliveries feel it.
fn in_words(contract: &Contract) -> Vec<String> {
    let mut said = Vec::new();
    let mut say = |promised: bool, sentence: &str| {
        if promised {
            said.push(sentence.to_owned());
        }
    };
    say(contract.publishes_whole, "final names appear only whole");
    say(contract.rename_one_step, "the server renames in one step");
    say(contract.one_name_space, "temporary and final names lie in one name space");
    say(contract.may_remove_temporaries, "we may remove our own temporary files");
    say(contract.collects, "the partner may take a file as soon as it is published");
    say(contract.name_and_size_identify, "name and size are enough to identify a delivery");
    say(contract.time_proves_overwrite, "a newer time proves an overwrite");
    say(contract.listing_hidden, "the server does not let us look; a name that is not visible may be published to");
    say(contract.names_reused, "the same file name is used again for another delivery");
    say(
        contract.exclusive_create,
        "where no form refuses an existing name, the final name may be created exclusively, with a trigger file after it",
    );
    if let Some(reference) = &contract.overwrites_last {
        said.push(format!("the file that we delivered last may be replaced ({reference})"));
    }
    if let Some(keeps) = contract.keeps {
        said.push(format!("final names stay visible for {} s at least", keeps.as_secs()));
    }
    if let Some(settle) = contract.settle {
        said.push(format!("the server may show its state from before for {} s", settle.as_secs()));
    }
    for auxiliary in &contract.auxiliary {
        let trigger = if auxiliary.trigger { ", on which the partner acts" } else { "" };
        let when = if auxiliary.before_publish { "before or after" } else { "after" };
        said.push(format!("a file {} beside the data file, {when} it{trigger}", auxiliary.name));
    }
    if let Some(acknowledgment) = &contract.acknowledgment {
        let word = |(key, name): (&str, &NamePattern)| match key {
            "accept_name" => format!("{name}, which accepts"),
            "refuse_name" => format!("{name}, which refuses"),
            _ => name.to_string(),
        };
        let names = acknowledgment.names().map(word).collect::<Vec<_>>().join(", or ");
        said.push(format!("the partner answers with a file {names}, within {} s", acknowledgment.period.as_secs()));
    }
    if said.is_empty() {
        said.push("nothing is promised".to_owned());
    }
    if !contract.agreement.is_empty() {
        said.push(format!("agreed in: {}", contract.agreement));
    }
    said
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_runtimes_wasi_is_told_in_few_words() {
        let names = ["waybill:partner/log@0.2.0", "wasi:cli/stdin@0.2.9", "wasi:io/poll@0.2.9"].map(str::to_owned);
        let told = "waybill:partner/log@0.2.0, 2 interfaces of WASI for its runtime, which are empty here";
        assert_eq!(imported(&names), told);
        assert_eq!((imported(&names[..1]).as_str(), imported(&[]).as_str()), ("waybill:partner/log@0.2.0", "nothing"));
    }
}
