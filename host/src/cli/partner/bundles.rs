//! Bundles and destinations as these commands show them.

use serde::Serialize;
use uuid::Uuid;

use super::agreement::{self, Recorded};
use crate::cli::explain;
use crate::cli::words::{counted, resume};
use crate::config::Config;
use crate::plugin::{Destination, Examined, Manifest, examine_all};
use crate::store::{self, DestinationState, Joining, Pool};
use crate::upkeep;

/// Reads the partners directory where blocking is allowed.
pub(super) async fn examined(config: &Config) -> anyhow::Result<Vec<Examined>> {
    let (partners, most) = (config.directories.partners.clone(), config.plugins.limits);
    Ok(tokio::task::spawn_blocking(move || examine_all(&partners, &most)).await??)
}

/// How a destination stands.
#[derive(Debug, Serialize)]
pub(super) struct Stands {
    pub destination: Uuid,
    pub name: String,
    pub tenant: Uuid,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub server: String,
    /// `ready`, `disabled`, `needs attention`, `paused`; `not joined`, `refused`, `older version serves`, `newer version in force`
    /// where what lies in the directory is not what is in force, and `no bundle here` where nothing lies there.
    #[serde(rename = "stands")]
    pub how: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// The command that releases it, where a person has to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
    /// What the latest check of the destination as it is now showed, in few words.
    pub checked: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub check: Option<Recorded>,
}

impl Stands {
    pub async fn read(pool: &Pool, examined: &Examined, destination: &Destination) -> anyhow::Result<Self> {
        let state = store::destination_state(pool, destination.id).await?;
        let apart = match apart(examined, destination, state.as_ref())? {
            None if state.is_none() && is_name_taken(pool, destination).await? => {
                examined.manifest.as_ref().and_then(|manifest| refused(manifest, destination, &Joining::NameTaken))
            }
            apart => apart,
        };
        let (how, why) = match (&state, apart) {
            (_, Some((how, why))) => (how, Some(why)),
            (None, None) => ("not joined", Some("no host has served it yet".to_owned())),
            (Some(state), None) => match (state.enabled, &state.attention, &state.pause) {
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
        let latest = store::latest_check(pool, destination.id, &destination.digests.checked).await?;
        let check = match (latest, &examined.manifest) {
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
            checked: check.as_ref().map_or_else(|| "never as it is now".to_owned(), Recorded::in_few_words),
            check,
        })
    }

    /// Of a destination on record that no bundle of the directory has.
    pub fn without_bundle(state: &DestinationState) -> Self {
        let why = "no bundle in this partners directory that can be read has it; unless a host still serves an older version, its jobs wait until it is back";
        Self {
            destination: state.id,
            name: state.name.clone(),
            tenant: state.tenant,
            server: String::new(),
            how: "no bundle here",
            why: Some(why.to_owned()),
            next: None,
            checked: String::new(),
            check: None,
        }
    }
}

/// How a bundle on disk differs from what is in force for its destination, where it does.
fn apart(
    examined: &Examined,
    destination: &Destination,
    state: Option<&DestinationState>,
) -> anyhow::Result<Option<(&'static str, String)>> {
    if let Some(problem) = examined.problems.first() {
        let before = state.map_or_else(String::new, |state| format!("; revision {} is in force", state.revision));
        return Ok(Some(("refused", format!("{problem}{before}"))));
    }
    let (Some(manifest), Some(state)) = (&examined.manifest, state) else { return Ok(None) };
    if state.tenant != destination.tenant || state.partner != manifest.partner {
        return Ok(refused(manifest, destination, &Joining::Foreign));
    }
    let (in_force, revision) = (i64::from(state.revision), i64::from(manifest.revision));
    let own = serde_json::to_value(&destination.digests)?;
    let differ = store::differ(&state.digests, &own);
    Ok(if in_force < revision {
        let why =
            format!("revision {in_force} is in force; no host has taken revision {revision} in, and its log says why");
        Some(("older version serves", why))
    } else if in_force > revision {
        let why = format!("a host has served revision {in_force}; update this bundle, which is revision {revision}");
        Some(("newer version in force", why))
    } else if !differ.is_empty() {
        refused(manifest, destination, &Joining::SameRevision { differ })
    } else if state.digests != own || state.name != destination.name {
        Some(("not joined", "no host has taken in yet what destinations.toml says now".to_owned()))
    } else {
        None
    })
}

fn refused(manifest: &Manifest, destination: &Destination, joining: &Joining) -> Option<(&'static str, String)> {
    upkeep::in_words(manifest, destination, joining).map(|why| ("refused", why))
}

async fn is_name_taken(pool: &Pool, destination: &Destination) -> anyhow::Result<bool> {
    let all = store::destinations_of(pool, destination.tenant).await?;
    Ok(all.iter().any(|other| other.name == destination.name && other.id != destination.id))
}
