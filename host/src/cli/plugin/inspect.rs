//! `waybill plugin inspect`: what a bundle is, and everything that a host would refuse it for.

use std::path::PathBuf;

use anyhow::Context as _;

use super::cached::Compiled;
use super::described::describe;
use super::options::misspelt;
use super::sources::outdated;
use crate::cli::Ended;
use crate::cli::output::Output;
use crate::plugin::{PluginSettings, Plugins, examine};

pub(super) const HELP: &str = "Example:\n  waybill plugin inspect partners/northwind\n\n\
destinations.toml is read if it is there. The settings under [options] are the plugins' own, and so is which queries and columns they read: nothing is \
known of them here, and `waybill plugin test` finds out. Exit code 0: it is sound; 3: there is no such directory; 4: it would be refused.";

/// What no reading of a bundle tells.
const UNKNOWN: &str = "\nNot looked at: the settings under [options], and the queries and columns that the plugins read; `waybill plugin test` finds those.";

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Inspect {
    /// The bundle: a directory with partner.toml, builder.wasm and destination.wasm.
    #[arg(value_name = "DIR")]
    directory: PathBuf,
    #[command(flatten)]
    compiled: Compiled,
}

impl Inspect {
    pub async fn run(self, output: &Output) -> anyhow::Result<Ended> {
        let directory = self.directory;
        if !directory.is_dir() {
            output.answer(&serde_json::json!({ "bundle": directory, "outcome": "NotFound" }), || {
                format!("NotFound: {} is no directory; name the one that holds partner.toml", directory.display())
            })?;
            return Ok(Ended::NotFound);
        }
        // `.` and `..` have no name of their own.
        let directory = directory.canonicalize().with_context(|| format!("{} cannot be read", directory.display()))?;
        let operated = directory.join("destinations.toml").exists();
        let path = directory.clone();
        let examined = tokio::task::spawn_blocking(move || examine(&path, operated)).await??;
        let mut described = describe(&examined);
        if described.problems.is_empty() {
            // What only the linker sees.
            let own = tempfile::tempdir().context("a private directory for compiled components cannot be made")?;
            let cache_dir = self.compiled.directory().unwrap_or_else(|| own.path().join("compiled"));
            let plugins = Plugins::open(&PluginSettings::new(cache_dir))?;
            let loaded =
                if operated { plugins.load_one(&directory).await } else { plugins.load_alone(&directory).await };
            described.problems.extend(loaded.err().map(|refused| refused.fault.to_string()));
        }
        let serves = described.problems.is_empty();
        let document = serde_json::json!({ "outcome": if serves { "Sound" } else { "Refused" }, "bundle": &described });
        output.answer(&document, || {
            let end = match (serves, operated) {
                (true, true) => "Sound: a host would serve it.",
                (true, false) => {
                    "Sound: a host would serve it once the operator's destinations.toml lies in it (destinations.example.toml shows how)."
                }
                (false, _) => "Refused: a host would not serve it.",
            };
            format!("{}\n{end}{}", described.in_words(), if serves { UNKNOWN } else { "" })
        })?;
        let options = examined.manifest.as_ref().map(|manifest| misspelt(&manifest.options)).unwrap_or_default();
        for warning in outdated(&directory).into_iter().chain(options) {
            output.notice(&warning);
        }
        Ok(if serves { Ended::Done } else { Ended::Refused })
    }
}
