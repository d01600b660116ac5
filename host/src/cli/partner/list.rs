//! `waybill partner list`: the bundles in the partners directory, and the destinations on record that none of them has.

use std::collections::HashSet;
use std::path::Path;

use comfy_table::Table;
use comfy_table::presets::UTF8_HORIZONTAL_ONLY;
use serde::Serialize;
use uuid::Uuid;

use super::bundles::{Stands, examined};
use crate::cli::Ended;
use crate::cli::output::Output;
use crate::config::Config;
use crate::store::{self, Pool};

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct List {}

#[derive(Serialize)]
struct Listed {
    /// `None`: a destination on record that no bundle here has.
    bundle: Option<String>,
    partner: Option<String>,
    revision: Option<i64>,
    destinations: Vec<Stands>,
    /// What is wrong with it, each one sentence.
    problems: Vec<String>,
}

impl List {
    pub async fn run(self, pool: &Pool, config: &Config, output: Output) -> anyhow::Result<Ended> {
        let Self {} = self;
        let partners = &config.directories.partners;
        let mut bundles = Vec::new();
        for bundle in examined(config).await? {
            let mut destinations = Vec::new();
            for destination in &bundle.destinations {
                destinations.push(Stands::read(pool, &bundle, destination).await?);
            }
            bundles.push(Listed {
                bundle: Some(bundle.bundle),
                partner: bundle.manifest.as_ref().map(|manifest| manifest.partner.clone()),
                revision: bundle.manifest.as_ref().map(|manifest| manifest.revision.into()),
                destinations,
                problems: bundle.problems.iter().map(ToString::to_string).collect(),
            });
        }
        let here: HashSet<Uuid> =
            bundles.iter().flat_map(|listed| &listed.destinations).map(|stands| stands.destination).collect();
        for state in store::all_destinations(pool).await?.iter().filter(|state| !here.contains(&state.id)) {
            bundles.push(Listed {
                bundle: None,
                partner: Some(state.partner.clone()),
                revision: Some(state.revision.into()),
                destinations: vec![Stands::without_bundle(state)],
                problems: Vec::new(),
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
        let bundle = listed.bundle.as_deref().unwrap_or("none");
        let revision = listed.revision.map_or_else(String::new, |revision| revision.to_string());
        for one in &listed.destinations {
            let stands = one.why.as_ref().map_or_else(|| one.how.to_owned(), |why| format!("{}: {why}", one.how));
            let id = one.destination.to_string();
            table.add_row([bundle, &revision, &id, &one.name, &stands, &one.checked]);
            below.extend(one.next.as_ref().map(|next| format!("once {} is mended: {next}", one.name)));
        }
        if listed.destinations.is_empty() {
            table.add_row([bundle, &revision, "", "", "refused", ""]);
        }
        below.extend(listed.problems.iter().map(|problem| format!("{bundle}: {problem}")));
    }
    format!("{table}\n{}", below.join("\n"))
}
