//! The jobs of the second act, and what is to become of each.

use std::fmt;

use uuid::{Uuid, uuid};

/// What happens to a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::cli::demo) enum Scene {
    /// Its worker is killed while it builds: before cutoff 2.
    Building,
    /// Its worker is killed during the upload: after cutoff 2, before the publish fence.
    Uploading,
    /// A person has the one before delivered once more.
    Replacement,
    /// Its worker is killed after the publish, before it has recorded anything of it.
    Published,
    /// Its worker stands still past its lease, and goes on after the job was taken over.
    Paused,
    /// It is delivered, and then the partner calls.
    Called,
}

impl Scene {
    /// All, in the order in which they are told.
    pub const ALL: [Self; 6] =
        [Self::Building, Self::Uploading, Self::Replacement, Self::Published, Self::Paused, Self::Called];

    /// Those that have a job and a destination from the beginning.
    pub const CREATED: [Self; 5] = [Self::Building, Self::Uploading, Self::Published, Self::Paused, Self::Called];

    /// The destination's name.
    pub const fn destination(self) -> &'static str {
        match self {
            Self::Building => "kestrel-building",
            Self::Uploading | Self::Replacement => "kestrel-uploading",
            Self::Published => "kestrel-published",
            Self::Paused => "kestrel-paused",
            Self::Called => "kestrel-called",
        }
    }

    pub const fn destination_id(self) -> Uuid {
        match self {
            Self::Building => uuid!("0b6e6a52-6d3f-4a8e-9d0c-3f6d1c9a0021"),
            Self::Uploading | Self::Replacement => uuid!("0b6e6a52-6d3f-4a8e-9d0c-3f6d1c9a0022"),
            Self::Published => uuid!("0b6e6a52-6d3f-4a8e-9d0c-3f6d1c9a0023"),
            Self::Paused => uuid!("0b6e6a52-6d3f-4a8e-9d0c-3f6d1c9a0024"),
            Self::Called => uuid!("0b6e6a52-6d3f-4a8e-9d0c-3f6d1c9a0025"),
        }
    }

    /// The delivery key; a replacement has its original's.
    pub fn key(self) -> String {
        format!("alder-{}", self.destination().replace("kestrel", "ks"))
    }

    /// The final name by the partner's convention, from the destination's directory.
    pub fn final_name(self) -> String {
        format!("inbox/{}.csv", self.key())
    }

    pub const fn country(self) -> &'static str {
        match self {
            Self::Building => "all",
            Self::Uploading | Self::Replacement | Self::Published | Self::Paused => "DE",
            Self::Called => "AT",
        }
    }

    /// True if the file lies at the partner in the end.
    pub const fn arrives(self) -> bool {
        match self {
            Self::Building | Self::Replacement | Self::Published => true,
            Self::Uploading | Self::Paused | Self::Called => false,
        }
    }
}

impl fmt::Display for Scene {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Building => "its worker was killed while it was building",
            Self::Uploading => "its worker was killed during the upload",
            Self::Replacement => "the same key, once more: a replacement",
            Self::Published => "its worker was killed after the publish, with nothing recorded",
            Self::Paused => "its worker stood still past its lease, and went on",
            Self::Called => "delivered, lost by the partner, corrected",
        })
    }
}

/// The name that the host gives an attempt's file before it is published.
pub(super) fn temporary(attempt: Uuid) -> String {
    format!("inbox/.{attempt}.part")
}

#[cfg(test)]
mod tests {
    use super::super::{DESTINATION, MANIFEST};
    use super::*;
    use crate::plugin::Manifest;

    #[test]
    fn the_partner_is_what_the_host_accepts() {
        assert_eq!(Manifest::parse(MANIFEST).unwrap().partner, "kestrel");
        let entry: toml::Table = DESTINATION.parse().unwrap();
        assert_eq!(entry["tenant"].as_str(), Some(super::super::alder().id.to_string().as_str()));
    }

    #[test]
    fn every_scene_but_the_replacement_has_a_destination_of_its_own() {
        let of = |scenes: &[Scene]| {
            scenes.iter().map(|scene| scene.destination_id()).collect::<std::collections::BTreeSet<_>>()
        };
        assert_eq!(of(&Scene::CREATED).len(), Scene::CREATED.len());
        assert_eq!(of(&Scene::ALL), of(&Scene::CREATED));
    }
}
