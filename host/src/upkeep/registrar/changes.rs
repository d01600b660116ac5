//! What a run changed.

/// What one run changed, each with the name of the bundle's directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Registered {
    Added {
        bundle: String,
    },
    Replaced {
        bundle: String,
    },
    Removed {
        bundle: String,
    },
    /// One sentence says why. `serving`: an older version goes on.
    Refused {
        bundle: String,
        why: String,
        serving: bool,
    },
}

impl Registered {
    pub(super) fn bundle(&self) -> &str {
        match self {
            Self::Added { bundle }
            | Self::Replaced { bundle }
            | Self::Removed { bundle }
            | Self::Refused { bundle, .. } => bundle,
        }
    }

    pub(super) fn log(&self) {
        match self {
            Self::Added { bundle } => tracing::info!(bundle, "the bundle is served"),
            Self::Replaced { bundle } => {
                tracing::info!(bundle, "the new version of the bundle serves; attempts under way keep the old one");
            }
            Self::Removed { bundle } => {
                tracing::info!(bundle, "the bundle is gone and no longer served; its jobs wait in the queue");
            }
            Self::Refused { bundle, why, serving: false } => tracing::error!(bundle, "{why}"),
            Self::Refused { bundle, why, serving: true } => {
                tracing::error!(bundle, "{why}; the version before goes on serving");
            }
        }
    }
}
