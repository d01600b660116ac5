//! What a run changed.

/// What one run changed, each with the name of the bundle's directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Registered {
    Added {
        bundle: String,
        revision: u32,
    },
    Replaced {
        bundle: String,
        revision: u32,
    },
    /// Added or replaced, and the database has a newer revision of it, which stays there.
    Older {
        bundle: String,
        revision: u32,
        in_database: u32,
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
            Self::Added { bundle, .. }
            | Self::Replaced { bundle, .. }
            | Self::Older { bundle, .. }
            | Self::Removed { bundle }
            | Self::Refused { bundle, .. } => bundle,
        }
    }

    pub(super) fn log(&self) {
        match self {
            Self::Added { bundle, revision } => tracing::info!(bundle, revision, "the bundle is served"),
            Self::Replaced { bundle, revision } => {
                tracing::info!(
                    bundle,
                    revision,
                    "the bundle is served as it lies there now; attempts under way keep what they started with"
                );
            }
            Self::Older { bundle, revision, in_database } => tracing::warn!(
                bundle,
                revision,
                in_database,
                "the bundle is served, and the database has a newer revision of it, which stays there: what this host delivers, it \
                 delivers under this older contract and with its options; put the newer bundle back, or raise `revision` of this one above it"
            ),
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
