//! Bundles and destinations as these commands show them.

use std::path::Path;

use serde::Serialize;
use uuid::Uuid;

use super::agreement::{self, Recorded};
use crate::cli::explain;
use crate::cli::words::{counted, resume};
use crate::plugin::{Destination, Examined, examine_all};
use crate::store::{self, Pool};

/// Reads the partners directory where blocking is allowed.
pub(super) async fn examined(partners: &Path) -> anyhow::Result<Vec<Examined>> {
    let partners = partners.to_owned();
    Ok(tokio::task::spawn_blocking(move || examine_all(&partners)).await??)
}

/// How a destination stands.
#[derive(Debug, Serialize)]
pub(super) struct Stands {
    pub destination: Uuid,
    pub name: String,
    pub tenant: Uuid,
    pub server: String,
    /// `ready`, `disabled`, `needs attention`, `paused`, `not joined`.
    #[serde(rename = "stands")]
    pub how: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// The command that releases it, where a person has to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
    /// What the latest check showed, in few words.
    pub checked: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub check: Option<Recorded>,
}

impl Stands {
    pub async fn read(pool: &Pool, examined: &Examined, destination: &Destination) -> anyhow::Result<Self> {
        let state = store::destination_state(pool, destination.id).await?;
        let (how, why) = match &state {
            None => ("not joined", Some("no host has served it yet".to_owned())),
            Some(state) => match (state.enabled, &state.attention, &state.pause) {
                (false, ..) => ("disabled", None),
                (true, Some(attention), _) => {
                    ("needs attention", Some(format!("since {}: {}", explain::at(attention.since), attention.why)))
                }
                (true, None, Some(pause)) => {
                    ("paused", Some(format!("not reached {}", counted(pause.failures, "time"))))
                }
                (true, None, None) => ("ready", None),
            },
        };
        let check = match (store::latest_check(pool, destination.id).await?, &examined.manifest) {
            (Some(check), Some(manifest)) => Some(agreement::recorded(&check, &manifest.contract, &manifest.names)),
            _ => None,
        };
        Ok(Self {
            destination: destination.id,
            name: destination.name.clone(),
            tenant: destination.tenant,
            server: destination.endpoint.to_string(),
            how,
            why,
            next: (how == "needs attention").then(|| resume(destination.id, destination.tenant)),
            checked: check.as_ref().map_or_else(|| "never".to_owned(), Recorded::in_few_words),
            check,
        })
    }
}
