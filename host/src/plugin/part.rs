//! The two plugins that a bundle is made of.

use serde::{Deserialize, Serialize};

/// One of a bundle's two plugins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    Builder,
    Destination,
}

impl std::fmt::Display for Part {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Builder => "builder",
            Self::Destination => "destination",
        })
    }
}
