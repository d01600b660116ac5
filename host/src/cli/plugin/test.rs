//! `waybill plugin test`: a bundle tested alone.

use std::path::PathBuf;

use anyhow::Context as _;

use crate::cli::Ended;
use crate::cli::output::Output;
use crate::plugin::{PluginSettings, Plugins};

pub(super) const HELP: &str = "Example:\n  waybill plugin test partners/northwind\n\n\
Exit code 0: the bundle passed; 1: it could not be tested; 3: there is no such bundle; 4: it failed.";

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Test {
    /// The bundle: a directory with partner.toml, builder.wasm and destination.wasm.
    #[arg(value_name = "DIR")]
    directory: PathBuf,
}

impl Test {
    pub async fn run(self, output: &Output) -> anyhow::Result<Ended> {
        let directory = self.directory;
        if !directory.is_dir() {
            output.answer(&serde_json::json!({ "bundle": directory, "outcome": "NotFound" }), || {
                format!("NotFound: {} is no directory; name the one that holds partner.toml", directory.display())
            })?;
            return Ok(Ended::NotFound);
        }
        let cache = tempfile::tempdir().context("a private directory for compiled components cannot be made")?;
        let plugins = Plugins::open(&PluginSettings { cache_dir: cache.path().to_owned() })?;
        match plugins.load_alone(&directory).await {
            Ok(bundle) => {
                let revision = bundle.manifest.revision;
                let document = serde_json::json!({ "bundle": bundle.directory, "partner": bundle.partner, "revision": revision, "outcome": "Loaded" });
                output.answer(&document, || {
                    format!("{}, revision {revision}: manifest and components are in order", bundle.partner)
                })?;
                Ok(Ended::Done)
            }
            Err(refused) => {
                let why = refused.to_string();
                output.answer(
                    &serde_json::json!({ "bundle": refused.bundle, "outcome": "Refused", "why": why }),
                    || format!("Refused: {why}"),
                )?;
                Ok(Ended::Refused)
            }
        }
    }
}
