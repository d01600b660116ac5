//! `waybill partner list`: the bundles in the partners directory, and the destinations on record that none of them has.

use std::path::Path;

use comfy_table::Table;
use comfy_table::presets::UTF8_HORIZONTAL_ONLY;
use serde::Serialize;

use super::bundles::{Bundles, Stands};
use crate::cli::Ended;
use crate::cli::output::Output;
use crate::config::Config;
use crate::store::Pool;

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
        let found = Bundles::read(pool, config).await?;
        let mut bundles = Vec::new();
        for bundle in &found.all {
            let destinations = found.stand(pool, bundle).await?.into_iter().map(|(stands, _)| stands).collect();
            bundles.push(Listed {
                bundle: Some(bundle.bundle.clone()),
                partner: bundle.manifest.as_ref().map(|manifest| manifest.partner.clone()),
                revision: bundle.manifest.as_ref().map(|manifest| manifest.revision.into()),
                destinations,
                problems: bundle.problems.iter().map(ToString::to_string).collect(),
            });
        }
        for state in found.without_bundle() {
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
    let (mut below, mut is_shortened) = (Vec::new(), false);
    for listed in bundles {
        let bundle = listed.bundle.as_deref().unwrap_or("none");
        let revision = listed.revision.map_or_else(String::new, |revision| revision.to_string());
        for one in &listed.destinations {
            let whole = one.why.as_ref().map_or_else(|| one.how.to_owned(), |why| format!("{}: {why}", one.how));
            let stands = shortened(&whole);
            is_shortened |= stands != whole;
            let id = one.destination.to_string();
            table.add_row([bundle, &revision, &id, &one.name, &stands, &one.checked]);
            below.extend(one.next_after(&stands).map(|next| format!("once {} is mended: {next}", one.name)));
        }
        if listed.destinations.is_empty() {
            table.add_row([bundle, &revision, "", "", "refused", ""]);
        }
        // The first one stands in the table, beside each destination.
        for problem in listed.problems.iter().skip(usize::from(!listed.destinations.is_empty())) {
            let told = shortened(problem);
            is_shortened |= told != *problem;
            below.push(format!("{bundle}: {told}"));
        }
    }
    if is_shortened {
        below.push("What ends in … is told whole by `waybill partner show BUNDLE`, and with --json.".to_owned());
    }
    format!("{table}\n{}", below.join("\n"))
}

/// Characters of a reason in the table, which has five more columns.
const MOST_CHARACTERS: usize = 120;

/// As much of a reason as a table has room for, ended between two words.
fn shortened(text: &str) -> String {
    if text.chars().count() <= MOST_CHARACTERS {
        return text.to_owned();
    }
    let kept: String = text.chars().take(MOST_CHARACTERS - 2).collect();
    let words = kept.rsplit_once(' ').map_or(kept.as_str(), |(words, _)| words);
    format!("{words} …")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plg_01_a_long_reason_is_shortened_between_words() {
        let long = "a reason ".repeat(40);
        let told = shortened(&long);
        assert!(told.chars().count() <= MOST_CHARACTERS && told.ends_with("a reason …"), "{told}");
        assert_eq!((shortened("short"), shortened(&"ü".repeat(500)).chars().count()), ("short".to_owned(), 120));
    }
}
