//! A bundle against the destinations on record: what is joined of it, and what speaks against it there.

use uuid::Uuid;

use crate::plugin::{Bundle, BundleFault, Destination, Manifest};
use crate::store::{JoinedDestination, Joining};

/// A destination as it is joined into its row.
pub(super) fn joined(bundle: &Bundle, destination: &Destination) -> serde_json::Result<JoinedDestination> {
    Ok(JoinedDestination {
        id: destination.id,
        tenant: destination.tenant,
        name: destination.name.clone(),
        partner: bundle.partner.clone(),
        revision: i32::try_from(bundle.manifest.revision).unwrap_or(i32::MAX),
        manifest: serde_json::to_value(&bundle.manifest)?,
        contract: serde_json::to_value(&bundle.manifest.contract)?,
        rules: serde_json::to_value(&destination.rules)?,
        digests: serde_json::to_value(&destination.digests)?,
        endpoint: destination.endpoint.server(),
    })
}

/// What came of joining a destination, if that speaks against its bundle.
pub(super) fn refusal(bundle: &Bundle, id: Uuid, joining: &Joining) -> Option<BundleFault> {
    let what = in_words(&bundle.manifest, bundle.destination(id)?, joining)?;
    Some(match joining {
        Joining::NameTaken => BundleFault::NameTaken { what },
        _ => BundleFault::OnRecord { what },
    })
}

/// The newest revision that the database has of the bundle's destinations, where that is newer than the bundle's own.
pub(super) fn newer_in_database(bundle: &Bundle, answers: &[(Uuid, Joining)]) -> Option<u32> {
    let own = answers.iter().filter(|(id, _)| bundle.destination(*id).is_some());
    let newer = own.filter_map(|(_, joining)| match joining {
        Joining::Older { in_force } => u32::try_from(*in_force).ok(),
        _ => None,
    });
    newer.max()
}

/// What speaks against a bundle on record, as one sentence.
pub fn in_words(manifest: &Manifest, destination: &Destination, joining: &Joining) -> Option<String> {
    let (id, name) = (destination.id, &destination.name);
    match joining {
        Joining::Joined | Joining::Older { .. } => None,
        Joining::SameRevision { differ } => {
            let changed: Vec<&str> = differ.iter().map(|part| file_of(manifest, part)).collect();
            Some(format!(
                "revision {} of {} is in force with another {}; raise `revision` in partner.toml, so that a revision means one thing (what stands in destinations.toml takes effect without it)",
                manifest.revision,
                manifest.partner,
                changed.join(" and another ")
            ))
        }
        Joining::Foreign => Some(format!(
            "the destination {id} ({name}) belongs to another tenant or partner in the database; an id never changes hands, so give it a new one in destinations.toml"
        )),
        Joining::NameTaken => Some(format!(
            "the tenant {} has another destination named {name:?} in the database; choose another name in destinations.toml",
            destination.tenant
        )),
        Joining::Unfit { why } => Some(format!(
            "the database cannot hold what partner.toml and destinations.toml say of the destination {id} ({why}); look for what is very long there"
        )),
    }
}

/// The file that a digest of this name is about.
fn file_of<'a>(manifest: &'a Manifest, part: &'a str) -> &'a str {
    match part {
        "builder" => &manifest.builder.file,
        "destination" => &manifest.destination.file,
        "manifest" => "partner.toml",
        part => part,
    }
}
