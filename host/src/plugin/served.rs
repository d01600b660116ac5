//! What this host serves now. It changes while the host runs; whoever works with a destination keeps what it found.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use uuid::Uuid;

use super::bundle::Bundle;
use super::destinations::Destination;

/// A destination, with the bundle that knows how to deliver there.
#[derive(Debug, Clone)]
pub struct Served {
    pub bundle: Arc<Bundle>,
    pub destination: Arc<Destination>,
}

/// The bundles that are served, replaced as a whole. Clones show the same.
#[derive(Debug, Clone, Default)]
pub struct Registry {
    current: Arc<RwLock<Arc<Current>>>,
}

#[derive(Debug, Default)]
struct Current {
    bundles: Vec<Arc<Bundle>>,
    destinations: HashMap<Uuid, Served>,
}

impl Registry {
    pub fn new(bundles: Vec<Arc<Bundle>>) -> Self {
        let registry = Self::default();
        registry.replace(bundles);
        registry
    }

    /// Serves these bundles from now on. Ids must be one bundle's only.
    pub fn replace(&self, bundles: Vec<Arc<Bundle>>) {
        let destinations = bundles.iter().flat_map(|bundle| {
            bundle.destinations.iter().map(|destination| {
                let served = Served { bundle: Arc::clone(bundle), destination: Arc::clone(destination) };
                (destination.id, served)
            })
        });
        let next = Arc::new(Current { destinations: destinations.collect(), bundles });
        // What is swapped is one pointer, so a panic elsewhere leaves it whole.
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = next;
    }

    /// The bundles, in the order of their directories.
    pub fn bundles(&self) -> Vec<Arc<Bundle>> {
        self.current().bundles.clone()
    }

    /// The destination with this id, as it is served at this moment.
    pub fn find(&self, destination: Uuid) -> Option<Served> {
        self.current().destinations.get(&destination).cloned()
    }

    /// The ids of all destinations that are served at this moment.
    pub fn destinations(&self) -> Vec<Uuid> {
        self.current().destinations.keys().copied().collect()
    }

    fn current(&self) -> Arc<Current> {
        Arc::clone(&self.current.read().unwrap_or_else(PoisonError::into_inner))
    }
}
