//! Bundles and destinations as these commands show them.
//!
//! Three things may differ: what lies in the directory, what the database has, and what a host serves. The first two are read here;
//! what hosts serve follows from them. A sound bundle is served as it lies here, an older one too. Where a bundle is refused, hosts that
//! run go on with the version before, and one that starts serves none of it.

use std::collections::HashSet;

use serde::Serialize;
use uuid::Uuid;

use super::agreement::{self, Recorded};
use crate::cli::explain;
use crate::cli::words::resume;
use crate::config::Config;
use crate::plugin::{Destination, Examined, Manifest, examine_all};
use crate::store::{self, DestinationState, Joining, Pool};
use crate::upkeep;

/// The bundles of a partners directory, beside the destinations in the database.
pub(super) struct Bundles {
    pub all: Vec<Examined>,
    /// In the database, and in no `destinations.toml` here that can be read.
    missing: Vec<DestinationState>,
}

impl Bundles {
    /// Reads the partners directory where blocking is allowed.
    pub async fn read(pool: &Pool, config: &Config) -> anyhow::Result<Self> {
        let (partners, most) = (config.directories.partners.clone(), config.plugins.limits);
        let all = tokio::task::spawn_blocking(move || examine_all(&partners, &most)).await??;
        let here: HashSet<Uuid> =
            all.iter().flat_map(|bundle| &bundle.destinations).map(|destination| destination.id).collect();
        let mut missing = store::all_destinations(pool).await?;
        missing.retain(|state| !here.contains(&state.id));
        Ok(Self { all, missing })
    }

    /// The destinations in the database that a bundle had whose `destinations.toml` cannot be read: those of its partner, or, where
    /// `partner.toml` cannot be read either, of a partner that is called as its directory is.
    pub fn unread_of(&self, bundle: &Examined) -> impl Iterator<Item = &DestinationState> {
        let partner = bundle.manifest.as_ref().map_or(bundle.bundle.as_str(), |manifest| manifest.partner.as_str());
        let is_unread = bundle.destinations.is_empty();
        self.missing.iter().filter(move |state| is_unread && state.partner == partner)
    }

    /// The destinations in the database that no bundle here has.
    pub fn without_bundle(&self) -> impl Iterator<Item = &DestinationState> {
        let unread: HashSet<Uuid> =
            self.all.iter().flat_map(|bundle| self.unread_of(bundle)).map(|state| state.id).collect();
        self.missing.iter().filter(move |state| !unread.contains(&state.id))
    }

    /// How the destinations of a bundle stand; without a [`Destination`] those whose `destinations.toml` cannot be read.
    pub async fn stand<'a>(
        &self,
        pool: &Pool,
        bundle: &'a Examined,
    ) -> anyhow::Result<Vec<(Stands, Option<&'a Destination>)>> {
        let mut all = Vec::new();
        for destination in &bundle.destinations {
            all.push((Stands::read(pool, bundle, destination).await?, Some(destination)));
        }
        all.extend(self.unread_of(bundle).map(|state| (Stands::unread(bundle, state), None)));
        Ok(all)
    }
}

/// How a destination stands.
#[derive(Debug, Serialize)]
pub(super) struct Stands {
    pub destination: Uuid,
    pub name: String,
    pub tenant: Uuid,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub server: String,
    /// `ready`, `disabled`, `needs attention`, `paused`; `not joined`, `refused`, `older version serves`, `older than the database's`
    /// where what lies in the directory is not what the database has, and `no bundle here` where nothing lies there.
    #[serde(rename = "stands")]
    pub how: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// The revision that the database has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub in_database: Option<i32>,
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
            None if state.is_none() && is_name_taken(pool, destination).await? => examined
                .manifest
                .as_ref()
                .and_then(|manifest| refused(manifest, destination, None, &Joining::NameTaken)),
            apart => apart,
        };
        let (how, why) = match (&state, apart) {
            (Some(state), Some((how, why))) => (how, Some(format!("{why}{}", held_up(state)))),
            (None, Some((how, why))) => (how, Some(why)),
            (None, None) => ("not joined", Some("no host has served it yet".to_owned())),
            (Some(state), None) => own(state),
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
            in_database: state.as_ref().map(|state| state.revision),
            next: state.as_ref().and_then(released_by),
            checked: check.as_ref().map_or_else(|| "never as it is now".to_owned(), Recorded::in_few_words),
            check,
        })
    }

    /// True if hosts refuse the bundle for it, or as a whole.
    pub fn is_refused(&self) -> bool {
        self.how == "refused"
    }

    /// What is left to say of [`Self::next`] below a text that may name the command itself.
    pub fn next_after(&self, said: &str) -> Option<&String> {
        self.next.as_ref().filter(|next| !said.contains(next.as_str()))
    }

    /// Of a bundle whose `destinations.toml` cannot be read.
    fn unread(bundle: &Examined, state: &DestinationState) -> Self {
        let why = bundle.problems.first().map(|problem| format!("{problem}{}{}", goes_on(Some(state)), held_up(state)));
        Self { how: "refused", why, next: released_by(state), ..Self::of_database(state) }
    }

    /// Of a destination that no bundle of the directory has.
    pub fn without_bundle(state: &DestinationState) -> Self {
        let why = "unless a host still serves an older version, its jobs wait until it is back";
        Self { how: "no bundle here", why: Some(why.to_owned()), ..Self::of_database(state) }
    }

    /// What the database alone tells.
    fn of_database(state: &DestinationState) -> Self {
        Self {
            destination: state.id,
            name: state.name.clone(),
            tenant: state.tenant,
            server: String::new(),
            how: "",
            why: None,
            in_database: Some(state.revision),
            next: None,
            checked: String::new(),
            check: None,
        }
    }
}

/// How a destination stands whose bundle is served as it lies there.
fn own(state: &DestinationState) -> (&'static str, Option<String>) {
    match (state.enabled, &state.attention, &state.pause) {
        (false, ..) => ("disabled", None),
        (true, Some(attention), _) => {
            let why = &attention.why;
            ("needs attention", Some(format!("since {}: {why}", explain::at(attention.since))))
        }
        (true, None, Some(pause)) => ("paused", Some(explain::paused(pause))),
        (true, None, None) => ("ready", None),
    }
}

/// What else holds up one whose bundle is not served as it lies there, after what is said of that.
fn held_up(state: &DestinationState) -> String {
    match own(state) {
        ("ready", _) => String::new(),
        (how, None) => format!("; besides, it is {how}"),
        ("needs attention", Some(why)) => format!("; besides, it needs attention {why}"),
        (how, Some(why)) => format!("; besides, it is {how}: {why}"),
    }
}

/// The command that releases it, where a person has to.
fn released_by(state: &DestinationState) -> Option<String> {
    (state.enabled && state.attention.is_some()).then(|| resume(state.id, state.tenant))
}

/// How a bundle on disk differs from what the database has of its destination, where it does.
fn apart(
    examined: &Examined,
    destination: &Destination,
    state: Option<&DestinationState>,
) -> anyhow::Result<Option<(&'static str, String)>> {
    if let Some(problem) = examined.problems.first() {
        return Ok(Some(("refused", format!("{problem}{}", goes_on(state)))));
    }
    let (Some(manifest), Some(state)) = (&examined.manifest, state) else { return Ok(None) };
    if state.tenant != destination.tenant || state.partner != manifest.partner {
        return Ok(refused(manifest, destination, None, &Joining::Foreign));
    }
    let (in_database, revision) = (i64::from(state.revision), i64::from(manifest.revision));
    let own = serde_json::to_value(&destination.digests)?;
    let differ = store::differ(&state.digests, &own);
    Ok(if in_database < revision {
        let why = format!(
            "revision {in_database} is in force; no host has taken revision {revision} in yet: one that runs compiles it first, or its log says why it refuses it"
        );
        Some(("older version serves", why))
    } else if in_database > revision {
        let why = format!(
            "revision {revision} lies here, and hosts with this directory deliver under its contract; the database has revision {in_database}: put that back, or raise `revision` above it"
        );
        Some(("older than the database's", why))
    } else if !differ.is_empty() {
        refused(manifest, destination, Some(state), &Joining::SameRevision { differ })
    } else if state.digests != own || state.name != destination.name {
        Some(("not joined", "no host has taken in yet what destinations.toml says now".to_owned()))
    } else {
        None
    })
}

fn refused(
    manifest: &Manifest,
    destination: &Destination,
    state: Option<&DestinationState>,
    joining: &Joining,
) -> Option<(&'static str, String)> {
    let why = upkeep::in_words(manifest, destination, joining)?;
    Some(("refused", format!("{why}{}", goes_on(state))))
}

/// What becomes of a destination whose bundle is refused.
fn goes_on(state: Option<&DestinationState>) -> String {
    match state {
        Some(state) => format!(
            "; hosts that run go on with the version before (the database has revision {}), and one that starts serves none of it",
            state.revision
        ),
        None => "; hosts that run go on with the version before, if there is one".to_owned(),
    }
}

async fn is_name_taken(pool: &Pool, destination: &Destination) -> anyhow::Result<bool> {
    let all = store::destinations_of(pool, destination.tenant).await?;
    Ok(all.iter().any(|other| other.name == destination.name && other.id != destination.id))
}
