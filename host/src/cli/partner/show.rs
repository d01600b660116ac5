//! `waybill partner show`: one bundle whole.

use super::agreement::told;
use super::bundles::Bundles;
use crate::cli::Ended;
use crate::cli::output::Output;
use crate::cli::plugin::described::{Described, describe};
use crate::config::Config;
use crate::plugin::Destination;
use crate::remote::{Endpoint, SftpEndpoint};
use crate::store::Pool;

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Show {
    /// The bundle's directory, or its partner's name.
    partner: String,
}

impl Show {
    pub async fn run(self, pool: &Pool, config: &Config, output: Output) -> anyhow::Result<Ended> {
        let asked = self.partner;
        let bundles = Bundles::read(pool, config).await?;
        let found = bundles.all.iter().find(|bundle| {
            bundle.bundle == asked || bundle.manifest.as_ref().is_some_and(|manifest| manifest.partner == asked)
        });
        let Some(bundle) = found else {
            output.answer(&serde_json::json!({ "partner": asked, "outcome": "NotFound" }), || {
                format!(
                    "NotFound: {} holds no bundle {asked:?}; `waybill partner list` shows those it holds",
                    config.directories.partners.display()
                )
            })?;
            return Ok(Ended::NotFound);
        };
        let destinations = bundles.stand(pool, bundle).await?;
        let described: Described = describe(bundle);
        let is_refused = !bundle.problems.is_empty() || destinations.iter().any(|(stands, _)| stands.is_refused());
        let document = serde_json::json!({
            "bundle": &described,
            "refused": is_refused,
            "destinations": destinations.iter().map(|(stands, destination)| serde_json::json!({
                "stands": stands,
                "secret": destination.and_then(login).map(|login| login.secret.to_string()),
                "host_keys": destination.and_then(login).map(|login| &login.host_keys),
                "queries": destination.map(|destination| &destination.queries),
                "digests": destination.map(|destination| &destination.digests),
            })).collect::<Vec<_>>(),
        });
        output.answer(&document, || {
            let mut text = described.in_words();
            if is_refused {
                text = format!("REFUSED: this lies in the directory, and no host takes it in.\n{text}");
            }
            for (stands, destination) in &destinations {
                text += &format!("\n\ndestination {}  {}\n", stands.destination, stands.name);
                let why = stands.why.as_ref().map_or_else(String::new, |why| format!(": {why}"));
                let mut lines = vec![("tenant", stands.tenant.to_string()), ("server", stands.server.clone())];
                if let Some(login) = destination.and_then(login) {
                    lines.extend([("logs in by", login.secret.to_string()), ("host keys", login.host_keys.join(", "))]);
                }
                lines.extend(destination.map(|destination| ("queries", destination.queries.join(", "))));
                lines.extend([("stands", format!("{}{why}", stands.how)), ("checked", stands.checked.clone())]);
                lines.extend(stands.in_database.map(|revision| ("in database", format!("revision {revision}"))));
                lines.extend(stands.next_after(&why).map(|next| ("once mended", next.clone())));
                for (label, value) in lines.into_iter().filter(|(_, value)| !value.is_empty()) {
                    text += &format!("  {label:11}  {value}\n");
                }
                if let Some(check) = &stands.check {
                    text += &check
                        .problem
                        .as_ref()
                        .map_or_else(|| told(&check.findings), |problem| format!("  {:11}  {problem}", "problem"));
                }
            }
            text
        })?;
        Ok(if is_refused { Ended::Refused } else { Ended::Done })
    }
}

/// How a host logs in; a directory of this machine has no login, and an object store two keys.
fn login(destination: &Destination) -> Option<&SftpEndpoint> {
    match &destination.endpoint {
        Endpoint::Sftp(endpoint) => Some(endpoint),
        Endpoint::Directory(_) | Endpoint::Objects(_) => None,
    }
}
