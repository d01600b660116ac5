//! `waybill partner check`: a destination's server against its contract, and its queries before their databases.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::Context as _;
use serde::Serialize;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::agreement::told;
use super::bundles::{Bundles, Stands};
use super::queries;
use crate::cli::Ended;
use crate::cli::output::Output;
use crate::cli::words::{counted, resume, words};
use crate::config::Config;
use crate::job::names::{NamePattern, Parts};
use crate::plugin::{Destination, Examined, Manifest};
use crate::remote::{
    self, About, Endpoint, Finding, ScratchNames, Seen, ServerFacts, Session, SessionLimits, Standing, contradictions,
    findings,
};
use crate::store::{self, CheckedServer, DestinationState, FinishedCheck, Pool, Showed};

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Check {
    /// The destination's id, or its name where only one has it.
    destination: String,
    /// Who checks; it is recorded with what was seen.
    #[arg(long = "as", env = "WAYBILL_AS", value_name = "WHO", value_parser = words)]
    requested_by: String,
}

/// What a check found, for scripts.
#[derive(Serialize)]
struct Report {
    destination: Uuid,
    partner: String,
    /// `Agrees`, `Contradicts`, `NotPossible` (a bundle that is refused has an answer of its own, `Refused`); `QueryRefused` where only that stands against it, and `QueryNotAsked` where the database
    /// of a query could not be asked and nothing else is wrong.
    outcome: &'static str,
    /// False: no host has joined this destination yet, so there was nothing to record it with.
    recorded: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    server: Option<ServerFacts>,
    #[serde(skip_serializing_if = "Option::is_none")]
    seen: Option<Seen>,
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
    findings: Vec<Finding>,
    /// How its queries stand: each was prepared by its database, and none was run.
    queries: Vec<Finding>,
    /// The command that releases it, where it needs attention or is paused.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

/// How long the database of a query may take to say what it makes of it.
const QUERY_WITHIN: Duration = Duration::from_secs(20);

/// How far a check came.
enum Reached {
    /// No session; `again`: trying again may help.
    Nothing {
        problem: String,
        again: bool,
    },
    /// A session, and nothing proven.
    Server {
        facts: ServerFacts,
        problem: String,
    },
    Proven {
        facts: ServerFacts,
        check: Box<remote::Check>,
    },
}

impl Check {
    pub async fn run(self, pool: &Pool, config: &Config, output: Output) -> anyhow::Result<Ended> {
        let bundles = Bundles::read(pool, config).await?;
        let asked = &self.destination;
        let (bundle, destination) = match named(pool, &bundles, asked).await? {
            Named::One(bundle, destination) => (bundle, destination),
            Named::Refused(bundle, stands) => return refuse(bundle, &stands, output),
            Named::None(ids) => {
                let unread = unread(&bundles.all);
                let document = serde_json::json!({ "destination": asked, "outcome": "NotFound", "of_that_name": &ids, "unread": &unread });
                output.answer(&document, || not_found(config, asked, &ids, unread))?;
                return Ok(Ended::NotFound);
            }
        };
        // Destinations are read only beside a manifest.
        let manifest = bundle.manifest.as_ref().context("the bundle has no manifest")?;
        let (reached, described) =
            tokio::join!(reach(destination, manifest), destination.describe_queries(QUERY_WITHIN));
        let (reached, queries) = (reached?, queries::findings(described));
        let ended = match &reached {
            Reached::Nothing { again: true, .. } => Ended::TryAgain,
            Reached::Nothing { .. } | Reached::Server { .. } => Ended::Refused,
            Reached::Proven { .. } => Ended::Done,
        };
        let recorded = store::keep_check(pool, finished(destination, self.requested_by, &reached)?).await?;
        let state = store::destination_state(pool, destination.id).await?;
        let report = report(destination, manifest, reached, queries, recorded, state.as_ref());
        output.answer(&report, || in_words(&report, destination, manifest, state.as_ref()))?;
        Ok(match report.outcome {
            "Contradicts" | "QueryRefused" => Ended::Refused,
            "QueryNotAsked" => Ended::TryAgain,
            _ => ended,
        })
    }
}

/// What was asked for.
enum Named<'b> {
    One(&'b Examined, &'b Destination),
    /// Hosts refuse its bundle as it lies there.
    Refused(&'b Examined, Box<Stands>),
    /// None, or several of that name: these.
    None(BTreeSet<Uuid>),
}

async fn named<'b>(pool: &Pool, bundles: &'b Bundles, asked: &str) -> anyhow::Result<Named<'b>> {
    let (mut found, mut ids) = (None, BTreeSet::new());
    for bundle in &bundles.all {
        for (stands, destination) in bundles.stand(pool, bundle).await? {
            if stands.destination.to_string() != asked && stands.name != asked {
                continue;
            }
            ids.insert(stands.destination);
            found = match (found, destination) {
                // Of two bundles that have the same destination one is refused.
                (Some(before @ Named::One(..)), _) => Some(before),
                (_, Some(destination)) if !stands.is_refused() => Some(Named::One(bundle, destination)),
                (Some(before), _) => Some(before),
                (None, _) => Some(Named::Refused(bundle, Box::new(stands))),
            };
        }
    }
    Ok(match found {
        Some(found) if ids.len() == 1 => found,
        Some(_) | None => Named::None(ids),
    })
}

fn not_found(config: &Config, asked: &str, ids: &BTreeSet<Uuid>, unread: Vec<String>) -> String {
    let partners = config.directories.partners.display();
    if !ids.is_empty() {
        let ids: Vec<String> = ids.iter().map(Uuid::to_string).collect();
        return format!(
            "NotFound: several destinations in {partners} are named {asked:?}; name one by its id: {}",
            ids.join(", ")
        );
    }
    let told = format!(
        "NotFound: the bundles in {partners} have no destination {asked:?}; `waybill partner list` shows their ids"
    );
    let unread = unread.into_iter().map(|problem| format!("cannot be read, and may have it: {problem}"));
    std::iter::once(told).chain(unread).collect::<Vec<_>>().join("\n")
}

/// A contract that no host takes in is not held against a server: what was found would pass for what is in force.
fn refuse(bundle: &Examined, stands: &Stands, output: Output) -> anyhow::Result<Ended> {
    let (id, why) = (stands.destination, stands.why.as_deref().unwrap_or_default());
    let document = serde_json::json!({
        "destination": id, "outcome": "Refused", "bundle": bundle.bundle, "why": why, "in_database": stands.in_database, "recorded": false,
    });
    output.answer(&document, || {
        format!(
            "Refused: the bundle {} is refused as it lies there, so that there is nothing to check {} by: {why}\nNothing was asked of the server, and nothing is recorded. Mend the bundle (`waybill plugin inspect` tells all that is wrong in it), then: waybill partner check {id} --as YOU",
            bundle.bundle, stands.name
        )
    })?;
    Ok(Ended::Refused)
}

/// Bundles whose `destinations.toml` could not be read, as when a query names no tenant: what is asked for may be there.
fn unread(bundles: &[Examined]) -> Vec<String> {
    let unread = bundles.iter().filter(|bundle| bundle.destinations.is_empty());
    unread
        .flat_map(|bundle| bundle.problems.iter().map(move |problem| format!("{}: {problem}", bundle.bundle)))
        .collect()
}

/// Logs in, looks, and proves.
async fn reach(destination: &Destination, manifest: &Manifest) -> anyhow::Result<Reached> {
    let session = match Session::connect(&destination.endpoint, &SessionLimits::default()).await {
        Ok(session) => session,
        Err(error) => {
            return Ok(Reached::Nothing { problem: error.to_string(), again: !error.needs_attention() });
        }
    };
    let facts = session.server().clone();
    let scratch = scratch(manifest)?;
    let answers = manifest.answers_folders();
    let checked = remote::check(&session, &scratch, &answers, &CancellationToken::new()).await;
    session.close().await;
    Ok(match checked {
        Ok(check) => Reached::Proven { facts, check: Box::new(check) },
        Err(error) => Reached::Server {
            problem: format!(
                "a scratch file could not be tried under a temporary name ({}): {error}{}",
                manifest.names.temporary,
                if error.says_absent() { absent(manifest, &facts.directory) } else { String::new() }
            ),
            facts,
        },
    })
}

/// The folder of temporary names, which is not there.
fn absent(manifest: &Manifest, directory: &str) -> String {
    let names = &manifest.names;
    let whole = names.temporary.to_string().replace("{final}", &names.final_name.to_string());
    whole.rsplit_once('/').map_or_else(
        || format!("; the directory {directory:?} is not there: have it created at the partner, or correct `directory` in destinations.toml"),
        |(folder, _)| format!("; the folder {folder:?} is not there in {directory:?}: have it created at the partner, or correct [names] in partner.toml"),
    )
}

/// Temporary names, in the folder in which those of a delivery would lie.
fn scratch(manifest: &Manifest) -> anyhow::Result<ScratchNames> {
    let pattern = NamePattern::parse(&manifest.names.final_name.to_string().replace('*', "check"))?;
    let final_name = pattern.mint(Parts { key: "check", attempt: "check", final_name: "check" })?;
    Ok(ScratchNames::mint(&manifest.names.temporary, &final_name)?)
}

fn finished(destination: &Destination, requested_by: String, reached: &Reached) -> anyhow::Result<FinishedCheck> {
    let server = |facts: &ServerFacts| -> anyhow::Result<CheckedServer> {
        Ok(CheckedServer { facts: serde_json::to_value(facts)?, fingerprint: facts.fingerprint() })
    };
    let (server, result) = match reached {
        Reached::Nothing { problem, .. } => (None, Err(problem.clone())),
        Reached::Server { facts, problem } => (Some(server(facts)?), Err(problem.clone())),
        Reached::Proven { facts, check } => {
            let (proof, seen) = (serde_json::to_value(&check.proof)?, serde_json::to_value(&check.seen)?);
            (Some(server(facts)?), Ok(Showed { proof, seen }))
        }
    };
    let checked = destination.digests.checked.clone();
    Ok(FinishedCheck { destination: destination.id, checked, requested_by, server, result })
}

fn report(
    destination: &Destination,
    manifest: &Manifest,
    reached: Reached,
    queries: Vec<Finding>,
    recorded: bool,
    state: Option<&DestinationState>,
) -> Report {
    let (server, seen, problem, findings) = match reached {
        Reached::Nothing { problem, .. } => (None, None, Some(problem), Vec::new()),
        Reached::Server { facts, problem } => (Some(facts), None, Some(problem), Vec::new()),
        Reached::Proven { facts, check } => {
            let mut found = findings(&About {
                banner: &facts.banner,
                proof: &check.proof,
                seen: Some(&check.seen),
                contract: &manifest.contract,
                one_folder: manifest.names.one_folder(),
            });
            found.extend(manifest.notes().into_iter().map(|sentence| Finding {
                about: "acknowledgment".to_owned(),
                stands: Standing::Noted,
                sentence,
                next: None,
            }));
            (Some(facts), Some(check.seen), None, found)
        }
    };
    let outcome = match &problem {
        Some(_) => "NotPossible",
        None if contradictions(&findings).next().is_some() => "Contradicts",
        None if contradictions(&queries).next().is_some() => "QueryRefused",
        None if not_asked(&queries).next().is_some() => "QueryNotAsked",
        None => "Agrees",
    };
    let partner = manifest.partner.clone();
    let next = state.filter(|state| waits(state).is_some()).map(|state| resume(state.id, state.tenant));
    Report { destination: destination.id, partner, outcome, recorded, server, seen, problem, findings, queries, next }
}

/// Why its jobs wait, whatever the check finds.
fn waits(state: &DestinationState) -> Option<String> {
    match (state.enabled, &state.attention, &state.pause) {
        (true, Some(_), _) => {
            Some("It still needs attention: its jobs wait until you say that it is mended".to_owned())
        }
        (true, None, Some(pause)) => Some(format!(
            "It is still paused: one job tries it again by itself in {} s; to have all tried now",
            pause.left.as_secs()
        )),
        (true, None, None) | (false, ..) => None,
    }
}

/// Queries of which nothing is known.
fn not_asked(queries: &[Finding]) -> impl Iterator<Item = &Finding> {
    queries.iter().filter(|finding| finding.stands == Standing::NotShown)
}

fn in_words(
    report: &Report,
    destination: &Destination,
    manifest: &Manifest,
    state: Option<&DestinationState>,
) -> String {
    let mut lines = vec![format!("{} · {} · {}", manifest.partner, destination.name, destination.endpoint)];
    if let Some(server) = &report.server {
        lines.push(format!("  {:11}  {}", "server", server.banner));
        lines.push(format!("  {:11}  {}", "directory", server.directory));
        let extensions: Vec<&str> = server.extensions.keys().map(String::as_str).collect();
        match &destination.endpoint {
            Endpoint::Sftp(_) if extensions.is_empty() => lines.push(format!("  {:11}  no extensions", "offers")),
            Endpoint::Sftp(_) => lines.push(format!("  {:11}  {}", "offers", extensions.join(", "))),
            Endpoint::Directory(_) | Endpoint::Objects(_) => {}
        }
        if let Some(hash) =
            extensions.iter().find(|name| name.contains("check-file") || name.contains("md5") || name.contains("sha"))
        {
            lines.push(format!("  {:11}  by {hash}; this host reads files back instead, which proves more", "hashes"));
        }
    }
    if let Some(seen) = &report.seen {
        lines.push(format!("  {:11}  {}", "listing", seen.lists.seen));
        if let Some(free) = seen.free_bytes {
            lines.push(format!("  {:11}  {} MiB", "free space", free >> 20));
        }
    }
    lines.push(String::new());
    let told =
        [&report.findings, &report.queries].map(|findings| told(findings)).into_iter().filter(|told| !told.is_empty());
    lines.extend(told);
    let refused = contradictions(&report.queries).count();
    if refused > 0 {
        lines.push(String::new());
        lines.push(format!("QueryRefused: {refused} of its queries cannot be run; every job that needs one ends before anything is sent. Mend them, then check again."));
    }
    let not_asked: Vec<&str> = not_asked(&report.queries).map(|finding| finding.about.as_str()).collect();
    if !not_asked.is_empty() {
        lines.push(String::new());
        lines.push(format!(
            "QueryNotAsked: the database of {} of {} could not be asked; a job that needs it goes back to the queue, with nothing sent. Do what is said above, then check again: waybill partner check {} --as YOU",
            not_asked.join(" and of "),
            destination.name,
            destination.id
        ));
    }
    lines.push(String::new());
    if let Some(problem) = &report.problem {
        lines.push(format!("NotPossible: {problem}"));
    } else {
        lines.push(match contradictions(&report.findings).count() {
            0 if refused > 0 || !not_asked.is_empty() => "Nothing that was seen of the server contradicts the contract.".to_owned(),
            0 => format!(
                "Agrees: nothing that was seen contradicts the contract. If it is disabled: waybill partner enable {} --tenant {} --reason WHY --as YOU",
                destination.id, destination.tenant
            ),
            count => format!(
                "Contradicts: the contract says more than the server was shown to do, in {}. Mend them at the partner or in partner.toml (raise `revision`), then check again; meanwhile: waybill partner disable {} --tenant {} --reason WHY --as YOU",
                counted(count as u64, "point"),
                destination.id, destination.tenant
            ),
        });
        if contradictions(&report.findings).next().is_none() && refused == 0 {
            let waits = state.and_then(waits).zip(report.next.as_ref());
            lines.extend(waits.map(|(waits, next)| format!("{waits}: {next}")));
        }
    }
    if let Some(state) = state.filter(|state| i64::from(state.revision) != i64::from(manifest.revision)) {
        lines.push(format!(
            "It was held against revision {}, which lies here; the database has revision {}.",
            manifest.revision, state.revision
        ));
    }
    if !report.recorded {
        lines.push("Not recorded: no host has joined this destination yet; check again once one serves it.".to_owned());
    }
    lines.join("\n")
}
