//! A destination without the operator's `destinations.toml`: for rehearsals.

use std::collections::BTreeMap;
use std::sync::Arc;

use uuid::Uuid;

use super::bundle::Bundle;
use super::destinations::{Destination, OpenQuery};
use super::measure::Meter;
use crate::job::model::Digests;
use crate::policy::DestinationRules;
use crate::remote::Endpoint;

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
            },
            source,
            meter: Some(meter),
        }
    }
}
