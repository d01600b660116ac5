//! `waybill partner list`: the bundles in the partners directory.

use std::path::Path;

use comfy_table::Table;
use comfy_table::presets::UTF8_HORIZONTAL_ONLY;
use serde::Serialize;

use super::bundles::{Stands, examined};
use crate::cli::Ended;
use crate::cli::output::Output;
use crate::store::Pool;

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct List {}

#[derive(Serialize)]
struct Listed {
    bundle: String,
    partner: Option<String>,
    revision: Option<u32>,
    destinations: Vec<Stands>,
    /// What is wrong with it, each one sentence.
    problems: Vec<String>,
}

impl List {
    pub async fn run(self, pool: &Pool, partners: &Path, output: Output) -> anyhow::Result<Ended> {
        let Self {} = self;
        let mut bundles = Vec::new();
        for bundle in examined(partners).await? {
            let mut destinations = Vec::new();
            for destination in &bundle.destinations {
                destinations.push(Stands::read(pool, &bundle, destination).await?);
            }
            bundles.push(Listed {
                bundle: bundle.bundle,
                partner: bundle.manifest.as_ref().map(|manifest| manifest.partner.clone()),
                revision: bundle.manifest.as_ref().map(|manifest| manifest.revision),
                destinations,
                problems: bundle.problems.iter().map(ToString::to_string).collect(),
            });
        }
        output.answer(&bundles, || told(&bundles, partners))?;
        Ok(Ended::Done)
    }
}

fn told(bundles: &[Listed], partners: &Path) -> String {
    if bundles.is_empty() {
        return format!(
            "no bundles in {}; put one there: a directory with partner.toml, builder.wasm, destination.wasm and destinations.toml",
            partners.display()
        );
    }
    let mut table = Table::new();
    table.load_style(UTF8_HORIZONTAL_ONLY).set_header([
        "bundle",
        "revision",
        "destination",
        "name",
        "stands",
        "server checked",
    ]);
    let mut below = Vec::new();
    for listed in bundles {
        let revision = listed.revision.map_or_else(String::new, |revision| revision.to_string());
        for one in &listed.destinations {
            let stands = one.why.as_ref().map_or_else(|| one.how.to_owned(), |why| format!("{}: {why}", one.how));
            let id = one.destination.to_string();
            table.add_row([&listed.bundle, &revision, &id, &one.name, &stands, &one.checked]);
            below.extend(one.next.as_ref().map(|next| format!("once {} is mended: {next}", one.name)));
        }
        if listed.destinations.is_empty() {
            table.add_row([&listed.bundle, &revision, "", "", "refused", ""]);
        }
        below.extend(listed.problems.iter().map(|problem| format!("{}: {problem}", listed.bundle)));
    }
    format!("{table}\n{}", below.join("\n"))
}
