//! `waybill partner enable` and `disable`: the operator's switch, with who and why.

use anyhow::Context as _;
use uuid::Uuid;

use super::agreement::{recorded, told};
use crate::cli::Ended;
use crate::cli::destination::{named, not_found};
use crate::cli::output::Output;
use crate::cli::words::words;
use crate::job::contract::Contract;
use crate::plugin::NamePatterns;
use crate::store::{self, Pool, Switch, Switched};

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Enable {
    #[command(flatten)]
    asked: Asked,
}

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Disable {
    #[command(flatten)]
    asked: Asked,
}

#[derive(Debug, clap::Args)]
struct Asked {
    /// The destination's id, or its name.
    destination: String,
    #[arg(long, env = "WAYBILL_TENANT")]
    tenant: Uuid,
    /// Why; it is recorded.
    #[arg(long, value_name = "WORDS", value_parser = words)]
    reason: String,
    /// Who says so; it is recorded.
    #[arg(long = "as", env = "WAYBILL_AS", value_name = "WHO", value_parser = words)]
    switched_by: String,
}

impl Asked {
    /// What is to be switched; `None` if the tenant has no destination of that name.
    async fn switch(&self, pool: &Pool) -> anyhow::Result<Option<Switch>> {
        let (reason, switched_by) = (self.reason.clone(), self.switched_by.clone());
        let found = named(pool, self.tenant, &self.destination).await?;
        Ok(found.map(|destination| Switch { tenant: self.tenant, destination, switched_by, reason }))
    }

    fn not_found(&self, output: Output) -> anyhow::Result<Ended> {
        let sentence = not_found(self.tenant, &self.destination);
        let document =
            serde_json::json!({ "destination": self.destination, "outcome": "NotFound", "sentence": sentence });
        output.answer(&document, || format!("NotFound: {sentence}"))?;
        Ok(Ended::NotFound)
    }
}

fn answer(switch: &Switch, output: Output, outcome: &str, sentence: &str) -> anyhow::Result<()> {
    let document = serde_json::json!({ "destination": switch.destination, "outcome": outcome, "sentence": sentence });
    output.answer(&document, || format!("{outcome}: {sentence}"))
}

impl Enable {
    pub async fn run(self, pool: &Pool, output: Output) -> anyhow::Result<Ended> {
        let asked = self.asked;
        let Some(switch) = asked.switch(pool).await? else { return asked.not_found(output) };
        let Some(agreement) = store::agreement_in_force(pool, switch.tenant, switch.destination).await? else {
            return asked.not_found(output);
        };
        let unreadable =
            "the contract in the database is of another version of this program; restart a host with the bundle";
        let contract: Contract = serde_json::from_value(agreement.contract.clone()).context(unreadable)?;
        let names = agreement.manifest.get("names").cloned().unwrap_or_default();
        let names: NamePatterns = serde_json::from_value(names).context(unreadable)?;
        let latest = match &agreement.checked {
            Some(checked) => store::latest_check(pool, switch.destination, checked).await?,
            None => None,
        };
        let Some(check) = latest else {
            let sentence = format!(
                "nothing was shown yet of the server that destinations.toml names now; run: waybill partner check {}",
                switch.destination
            );
            answer(&switch, output, "Refused", &sentence)?;
            return Ok(Ended::Refused);
        };
        let found = recorded(&check, &contract, &names);
        if let Some(problem) = &found.problem {
            let sentence = format!(
                "the latest check ({}) proved nothing: {problem}; mend it and run: waybill partner check {}",
                found.finished_at, switch.destination
            );
            answer(&switch, output, "Refused", &sentence)?;
            return Ok(Ended::Refused);
        }
        let against: Vec<_> = found.contradictions().cloned().collect();
        if !against.is_empty() {
            let document = serde_json::json!({
                "destination": switch.destination, "outcome": "Refused", "findings": &against,
                "sentence": "the contract says more than the server was shown to do",
            });
            output.answer(&document, || {
                format!(
                    "Refused: the contract says more than the server was shown to do ({}):\n{}",
                    found.finished_at,
                    told(&against)
                )
            })?;
            return Ok(Ended::Refused);
        }
        match store::enable_destination(pool, &switch, &agreement.contract, check.id).await? {
            Switched::Switched { before } => {
                let sentence = if before {
                    "it was enabled already; the words are recorded"
                } else {
                    "its jobs run again; those that wait are looked at within minutes"
                };
                answer(&switch, output, "Enabled", sentence)?;
                Ok(Ended::Done)
            }
            Switched::Changed => {
                answer(
                    &switch,
                    output,
                    "Changed",
                    "its contract or the latest check changed meanwhile; nothing was changed, try again",
                )?;
                Ok(Ended::TryAgain)
            }
            Switched::Absent => asked.not_found(output),
        }
    }
}

impl Disable {
    pub async fn run(self, pool: &Pool, output: Output) -> anyhow::Result<Ended> {
        let asked = self.asked;
        let Some(switch) = asked.switch(pool).await? else { return asked.not_found(output) };
        match store::disable_destination(pool, &switch).await? {
            Switched::Switched { before } => {
                let sentence = if before {
                    "its jobs wait in the queue; what is under way is finished"
                } else {
                    "it was disabled already; the words are recorded"
                };
                answer(&switch, output, "Disabled", sentence)?;
                Ok(Ended::Done)
            }
            Switched::Changed | Switched::Absent => asked.not_found(output),
        }
    }
}
