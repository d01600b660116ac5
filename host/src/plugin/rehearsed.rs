//! A destination without the operator's `destinations.toml`, and the addresses in such a file alone: for rehearsals.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use uuid::Uuid;

use super::bundle::Bundle;
use super::destinations::{self, Destination, Shared};
use super::error::{BundleError, BundleFault};
use super::measure::Meter;
use super::open_query::OpenQuery;
use crate::job::facts::Sha256;
use crate::job::model::Digests;
use crate::policy::DestinationRules;
use crate::remote::Endpoint;

impl Destination {
    /// The same destination with a file that stands for what a builder would make, if the bundle has none.
    #[must_use]
    pub fn with_file(mut self, ready: Option<Arc<[u8]>>) -> Self {
        self.ready = ready;
        self
    }
}

impl Bundle {
    /// A destination of this bundle at an endpoint of the rehearsal's own. `settings` override the manifest's options, as the
    /// operator's do. Nothing of it is recorded, so its digests only say where it comes from.
    pub fn rehearsed_at(
        &self,
        endpoint: Endpoint,
        settings: &BTreeMap<String, String>,
        source: Arc<dyn OpenQuery>,
        meter: Meter,
    ) -> Destination {
        let mut merged = self.manifest.options.clone();
        merged.extend(settings.iter().map(|(name, value)| (name.clone(), value.clone())));
        let rehearsed = || "rehearsed".to_owned();
        Destination {
            id: Uuid::from_u128(0x0e8e_a25e),
            name: self.partner.clone(),
            tenant: Uuid::from_u128(0x7e4a_4700),
            endpoint,
            settings: merged.into_iter().collect(),
            rules: DestinationRules::default(),
            queries: Vec::new(),
            digests: Digests {
                builder: rehearsed(),
                destination: rehearsed(),
                manifest: self.manifest.sha256.to_string(),
                settings: rehearsed(),
                contract: rehearsed(),
                checked: rehearsed(),
            },
            source,
            meter: Some(meter),
            ready: None,
        }
    }

    /// Where the destinations of a file lie, with their ids and names. Paths in it start at its own directory. Nothing else of
    /// it is used: no settings, no queries, no rules.
    pub fn addresses_in(&self, file: &Path) -> Result<Vec<Address>, BundleError> {
        let refused = |fault| BundleError { bundle: self.directory.clone(), fault };
        let text = std::fs::read_to_string(file).map_err(|error| {
            refused(BundleFault::Unreadable { file: file.display().to_string(), why: error.to_string() })
        })?;
        let none = Sha256([0; 32]);
        let directory = file.parent().unwrap_or(Path::new("."));
        let shared = Shared { manifest: &self.manifest, builder: none, destination: none, directory };
        let destinations = destinations::parse(&text, &shared);
        let destinations = destinations.map_err(|fault| refused(BundleFault::Document(fault)))?;
        let address = |Destination { id, name, endpoint, .. }| Address { id, name, endpoint };
        Ok(destinations.into_iter().map(address).collect())
    }
}

/// Where a destination lies.
#[derive(Debug, Clone)]
pub struct Address {
    pub id: Uuid,
    pub name: String,
    pub endpoint: Endpoint,
}
