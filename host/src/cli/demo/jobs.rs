//! The jobs of the demo, what is to become of each, and their creation: as `waybill job create` does it.

use std::fmt;

use anyhow::{Context as _, bail};
use uuid::{Uuid, uuid};

use super::partners::Place;
use crate::store::{self, Creation, NewJob, Pool};

/// The two tenants.
pub(super) const TENANTS: [Tenant; 2] = [
    Tenant { name: "alder", id: uuid!("5f0c1a9e-0a1d-4f7e-8a51-a1de00000001"), contacts: 26_000, seed: 0x00a1_de01 },
    Tenant { name: "birch", id: uuid!("5f0c1a9e-0a1d-4f7e-8a51-b12c00000002"), contacts: 24_000, seed: 0x00b1_2c02 },
];

#[derive(Debug, Clone, Copy)]
pub(super) struct Tenant {
    pub name: &'static str,
    pub id: Uuid,
    pub contacts: u32,
    pub seed: u64,
}

/// Who creates the demo's jobs and cancels some of them.
pub(super) const OPERATOR: &str = "demo@waybill.example";

/// What is to become of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Case {
    /// Nothing gets in its way.
    Plain,
    /// Canceled before any worker has seen it.
    CanceledWhileQueued,
    /// Asked to stop while its builder waits for a table that another session has locked.
    StoppedWhileBuilding,
    /// Asked to stop while its file is on the line.
    TooLate,
    /// Somebody else's file has its final name.
    NameOccupied,
    /// Its scope has a key that the destination's rules do not allow.
    Refused,
    /// Its partner's server is down when its turn comes.
    PartnerDown,
    /// Its rows have letters that the partner's encoding does not have.
    NotEncodable,
}

impl Case {
    /// True if the file is to arrive.
    pub const fn arrives(self) -> bool {
        match self {
            Self::Plain | Self::TooLate | Self::PartnerDown => true,
            Self::CanceledWhileQueued
            | Self::StoppedWhileBuilding
            | Self::NameOccupied
            | Self::Refused
            | Self::NotEncodable => false,
        }
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Plain => "",
            Self::CanceledWhileQueued => "canceled while it was queued",
            Self::StoppedWhileBuilding => "asked to stop while it was building",
            Self::TooLate => "asked to stop while it was being sent",
            Self::NameOccupied => "its final name was taken by somebody else's file",
            Self::Refused => "its scope asks for more than the rules allow",
            Self::PartnerDown => "its partner's server was down at first",
            Self::NotEncodable => "its rows do not fit the partner's encoding",
        })
    }
}

/// Destination, country, case. A job's delivery key is made of its tenant, destination and country.
const PLAN: [(&str, &str, &str, Case); 20] = [
    ("alder", "northwind-consents", "all", Case::StoppedWhileBuilding),
    ("alder", "meridian-west", "GB", Case::PartnerDown),
    ("birch", "meridian-slow", "DE", Case::TooLate),
    ("alder", "northwind", "DE", Case::Plain),
    ("alder", "northwind", "AT", Case::Plain),
    ("alder", "northwind", "FR", Case::Plain),
    ("alder", "northwind", "PL", Case::Plain),
    ("alder", "northwind", "CZ", Case::Plain),
    ("alder", "northwind", "GB", Case::CanceledWhileQueued),
    ("birch", "northwind", "all", Case::Plain),
    ("birch", "northwind", "ES", Case::Plain),
    ("birch", "northwind", "DK", Case::Plain),
    ("birch", "northwind", "IT", Case::Refused),
    ("alder", "meridian", "AT", Case::Plain),
    ("alder", "meridian", "CH", Case::Plain),
    ("alder", "meridian", "FR", Case::Plain),
    ("alder", "meridian", "DE", Case::NameOccupied),
    ("alder", "meridian", "PL", Case::NotEncodable),
    ("birch", "meridian", "IT", Case::Plain),
    ("birch", "meridian", "ES", Case::Plain),
];

/// A job that was created.
#[derive(Debug, Clone)]
pub(super) struct Planned {
    pub id: Uuid,
    pub key: String,
    pub country: &'static str,
    pub case: Case,
    pub place: Place,
    /// Everything that the job's creator asked for.
    pub scope: serde_json::Value,
}

/// Plans the jobs for the destinations that were onboarded.
pub(super) fn plan(places: &[Place]) -> anyhow::Result<Vec<Planned>> {
    PLAN.iter()
        .map(|(tenant, destination, country, case)| {
            let owner = TENANTS.iter().find(|one| one.name == *tenant).with_context(|| format!("no tenant {tenant}"))?;
            let place = places
                .iter()
                .find(|place| place.tenant == owner.id && place.name == *destination)
                .with_context(|| format!("{tenant} has no destination {destination}"))?;
            let mut scope = serde_json::json!({ "country": country });
            if let (Case::Refused, Some(keys)) = (case, scope.as_object_mut()) {
                keys.insert("with_deleted".to_owned(), "yes".into());
            }
            Ok(Planned {
                id: Uuid::now_v7(),
                key: format!("{tenant}-{}-{}", short(destination), country.to_lowercase()),
                country,
                case: *case,
                place: place.clone(),
                scope,
            })
        })
        .collect()
}

/// A destination's name, as short as it stands in file names.
fn short(destination: &str) -> String {
    destination.replace("northwind", "nw").replace("meridian", "md")
}

/// Creates the jobs.
pub(super) async fn create(pool: &Pool, jobs: &[Planned]) -> anyhow::Result<()> {
    for job in jobs {
        let new = NewJob {
            id: job.id,
            tenant: job.place.tenant,
            destination: job.place.id,
            scope: job.scope.clone(),
            not_before: None,
            priority: 0,
            delivery_key: job.key.clone(),
            created_by: OPERATOR.to_owned(),
        };
        match store::create(pool, new).await? {
            Creation::Created => {}
            refused @ (Creation::KeyTaken | Creation::NoSuchDestination) => {
                bail!("the job {} was not created: {refused:?}", job.key)
            }
        }
    }
    Ok(())
}

impl Planned {
    /// The final name by the partner's convention, for a job that was created on this day (`20260302`), relative to the
    /// destination's directory. Written out here, so that the plugin's own answer is not what it is held against.
    pub fn final_name(&self, day: &str) -> String {
        let key = &self.key;
        match (self.place.partner, self.place.name.as_str()) {
            ("northwind", "northwind-consents") => format!("inbox/consents-{day}-{key}.csv"),
            ("northwind", _) => format!("inbox/contacts-{day}-{key}.csv"),
            _ => format!("eingang/KONTAKTE_{day}_{key}.csv"),
        }
    }

    /// The file that the partner expects beside the data file, by its convention.
    pub fn beside(&self, final_name: &str) -> String {
        match self.place.partner {
            "northwind" => format!("{final_name}.done"),
            _ => format!("{}.sha256", final_name.trim_end_matches(".csv")),
        }
    }

    /// From where an SFTP session starts.
    pub fn at_partner(&self, name: &str) -> String {
        format!("{}/{name}", self.place.directory)
    }
}

/// The job that a case is shown with.
pub(super) fn the_one(jobs: &[Planned], case: Case) -> anyhow::Result<&Planned> {
    jobs.iter().find(|job| job.case == case).with_context(|| format!("no job is planned that is {case}"))
}

/// A day as it stands in file names, in UTC.
pub(super) fn day(time: time::OffsetDateTime) -> String {
    let date = time.to_offset(time::UtcOffset::UTC).date();
    format!("{:04}{:02}{:02}", date.year(), u8::from(date.month()), date.day())
}
