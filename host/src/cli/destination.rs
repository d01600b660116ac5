//! `waybill destination`: how a tenant's destinations stand, and saying that one is mended.

use comfy_table::Table;
use comfy_table::presets::UTF8_HORIZONTAL_ONLY;
use serde::Serialize;
use uuid::Uuid;

use super::output::Output;
use super::words::{resume, words};
use super::{Ended, explain};
use crate::app;
use crate::config::Config;
use crate::job::status::Role;
use crate::store::{self, DestinationState};

/// Most letters of a reason in the table, so that its lines stay whole on a wide terminal.
const WHY: usize = 90;
/// Most letters of a reason below the table; with `--json` there is all of it.
const BELOW: usize = 2_000;

#[derive(Debug, clap::Subcommand)]
pub(super) enum DestinationCommand {
    /// List a tenant's destinations and what waits for somebody there.
    #[command(after_help = "Example:\n  waybill destination list --tenant 6f1…")]
    List(List),
    /// Say that a destination is mended (a key, a password, a host key): its jobs are tried again.
    #[command(after_help = "Example:\n  waybill destination resume 0b2… --tenant 6f1… --as ada@example.com")]
    Resume(Resume),
}

#[derive(Debug, clap::Args)]
pub(super) struct List {
    /// Whose destinations.
    #[arg(long, env = "WAYBILL_TENANT")]
    tenant: Uuid,
}

#[derive(Debug, clap::Args)]
pub(super) struct Resume {
    /// The destination's id, or its name.
    destination: String,
    /// Its tenant.
    #[arg(long, env = "WAYBILL_TENANT")]
    tenant: Uuid,
    /// Who says so; it is recorded with what was found.
    #[arg(long = "as", env = "WAYBILL_AS", value_name = "WHO", value_parser = words)]
    resumed_by: String,
}

impl DestinationCommand {
    pub async fn run(self, config: &Config, embedded: bool, output: &Output) -> anyhow::Result<Ended> {
        let role = match &self {
            Self::List(_) => Role::Reader,
            Self::Resume(_) => Role::Api,
        };
        let pool = app::connect(config, embedded, role).await?;
        let ended = match self {
            Self::List(command) => command.run(&pool, output).await,
            Self::Resume(command) => command.run(&pool, output).await,
        };
        pool.close().await;
        ended
    }
}

impl List {
    async fn run(self, pool: &store::Pool, output: &Output) -> anyhow::Result<Ended> {
        let found = store::destinations_of(pool, self.tenant).await?;
        let rows: Vec<Shown> = found.iter().map(Shown::of).collect();
        output.answer(&rows, || {
            if rows.is_empty() {
                return "no destinations; a host with the partner's bundle must have started once".to_owned();
            }
            let mut table = Table::new();
            table.load_style(UTF8_HORIZONTAL_ONLY).set_header(["destination", "partner", "name", "stands", "why"]);
            for row in &rows {
                let why = explain::bounded(row.why.as_deref().unwrap_or_default(), WHY);
                table.add_row([
                    row.destination.to_string(),
                    row.partner.clone(),
                    row.name.clone(),
                    row.stands.to_owned(),
                    why,
                ]);
            }
            let below: Vec<String> =
                rows.iter().flat_map(|row| row.whole_reason().into_iter().chain(row.mended())).collect();
            format!("{table}\n{}", below.join("\n"))
        })?;
        Ok(Ended::Done)
    }
}

impl Resume {
    async fn run(self, pool: &store::Pool, output: &Output) -> anyhow::Result<Ended> {
        let destination = named(pool, self.tenant, &self.destination).await?;
        let found = match destination {
            Some(destination) => store::resume_destination(pool, self.tenant, destination, &self.resumed_by).await?,
            None => None,
        };
        let Some(found) = found else {
            let sentence = not_found(self.tenant, &self.destination);
            let document =
                serde_json::json!({ "destination": self.destination, "outcome": "NotFound", "sentence": sentence });
            output.answer(&document, || format!("NotFound: {sentence}"))?;
            return Ok(Ended::NotFound);
        };
        let waited = found.attention_why.is_some() || found.was_paused;
        let document = serde_json::json!({
            "destination": destination, "outcome": if waited { "Resumed" } else { "WasReady" },
            "attention_why": found.attention_why, "was_paused": found.was_paused, "woken": found.woken,
        });
        let woken = match found.woken {
            0 => "No job waits for it.".to_owned(),
            1 => "The job that waits for it is tried now.".to_owned(),
            several => format!("{several} jobs that wait for it are tried now."),
        };
        output.answer(&document, || match (found.attention_why, found.was_paused) {
            (Some(why), _) => format!("Resumed; it had needed attention: {why}\n{woken}"),
            (None, true) => format!("Resumed; it had been paused. {woken}"),
            (None, false) => format!("Nothing had held it up. {woken}"),
        })?;
        Ok(Ended::Done)
    }
}

/// The destination that was typed: its id, which is not looked up, or its name, which is unique in the tenant.
pub(super) async fn named(pool: &store::Pool, tenant: Uuid, typed: &str) -> anyhow::Result<Option<Uuid>> {
    if let Ok(id) = typed.parse() {
        return Ok(Some(id));
    }
    let all = store::destinations_of(pool, tenant).await?;
    Ok(all.iter().find(|one| one.name == typed).map(|one| one.id))
}

pub(super) fn not_found(tenant: Uuid, typed: &str) -> String {
    format!(
        "the tenant {tenant} has no destination {typed}; `waybill destination list --tenant {tenant}` shows those it has"
    )
}

/// A destination as a person or a script reads it.
#[derive(Serialize)]
struct Shown {
    destination: Uuid,
    partner: String,
    name: String,
    /// `ready`, `disabled`, `needs attention`, `paused`.
    stands: &'static str,
    why: Option<String>,
    /// The command that releases it, where a person has to.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

impl Shown {
    /// The line below the table that has what did not fit into it.
    fn whole_reason(&self) -> Option<String> {
        let why = self.why.as_deref().filter(|why| why.chars().nth(WHY).is_some())?;
        Some(format!("{} {}, {}", self.name, self.stands, explain::bounded(why, BELOW)))
    }

    /// The line below the table that says how a person releases it.
    fn mended(&self) -> Option<String> {
        self.next.as_deref().map(|command| format!("once {} is mended: {command}", self.name))
    }

    fn of(state: &DestinationState) -> Self {
        let (stands, why) = match (state.enabled, &state.attention, &state.pause) {
            (false, ..) => ("disabled", None),
            (true, Some(attention), _) => {
                ("needs attention", Some(format!("since {}: {}", explain::at(attention.since), attention.why)))
            }
            (true, None, Some(pause)) => ("paused", Some(explain::paused(pause))),
            (true, None, None) => ("ready", None),
        };
        let next = (state.enabled && state.attention.is_some()).then(|| resume(state.id, state.tenant));
        Self { destination: state.id, partner: state.partner.clone(), name: state.name.clone(), stands, why, next }
    }
}
