//! The `[limits]` table of a manifest: what one call of a plugin may take, how far a manifest may go, and how far an operator lets
//! it go.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The `[limits]` table: what one call may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// For `build`, database included.
    pub build_seconds: u32,
    /// For each of `final-name`, `baseline` and `observe`, waiting for the partner's server included.
    pub call_seconds: u32,
    /// For `deliver`: it lasts as long as the file takes to be sent.
    pub deliver_seconds: u32,
    /// Linear memory of one call.
    pub memory_mib: u32,
    /// The built file.
    pub output_mib: u32,
    /// The host reads a delivered file back to hash it, up to this size; 0 turns that off.
    pub read_back_mib: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            // A million rows take seconds; a quarter of an hour leaves room for a slow database, and still ends.
            build_seconds: 900,
            // A handful of requests, each with a limit of its own below a minute.
            call_seconds: 120,
            // 1 GiB at 0.3 MB/s.
            deliver_seconds: 3600,
            // JavaScript and Python guests start with about 12 MiB; an honest builder streams.
            memory_mib: 256,
            output_mib: 1024,
            // Reading back costs the partner's line as much as sending did.
            read_back_mib: 256,
        }
    }
}

impl Limits {
    /// The most that a host lets a manifest ask for, where its operator says nothing: one partner's plugin must not take the whole
    /// of a middling machine.
    pub const fn most() -> Self {
        Self {
            build_seconds: 3600,
            call_seconds: 600,
            // 4 GiB at 0.3 MB/s.
            deliver_seconds: 14_400,
            memory_mib: 1024,
            output_mib: 4096,
            read_back_mib: 4096,
        }
    }
}

/// The largest accepted values: a day for times, wasm's 4 GiB for memory, 1 TiB for files.
pub(super) const RANGES: [(&str, u32, u32); 6] = [
    ("build_seconds", 1, 86_400),
    ("call_seconds", 1, 3_600),
    ("deliver_seconds", 1, 86_400),
    ("memory_mib", 1, 4_096),
    ("output_mib", 1, 1_048_576),
    ("read_back_mib", 0, 1_048_576),
];

impl Limits {
    /// The first that is not within its range, with that range.
    pub fn out_of_range(&self) -> Option<(&'static str, u32, u32)> {
        RANGES.into_iter().find(|(name, least, most)| !(*least..=*most).contains(&self.of(name)))
    }

    pub fn build(&self) -> Duration {
        Duration::from_secs(self.build_seconds.into())
    }

    pub fn call(&self) -> Duration {
        Duration::from_secs(self.call_seconds.into())
    }

    pub fn deliver(&self) -> Duration {
        Duration::from_secs(self.deliver_seconds.into())
    }

    pub fn memory_bytes(&self) -> usize {
        usize::try_from(u64::from(self.memory_mib) << 20).unwrap_or(usize::MAX)
    }

    pub fn output_bytes(&self) -> u64 {
        u64::from(self.output_mib) << 20
    }

    pub fn read_back_bytes(&self) -> u64 {
        u64::from(self.read_back_mib) << 20
    }

    pub(super) fn of(&self, name: &str) -> u32 {
        match name {
            "build_seconds" => self.build_seconds,
            "call_seconds" => self.call_seconds,
            "deliver_seconds" => self.deliver_seconds,
            "memory_mib" => self.memory_mib,
            "output_mib" => self.output_mib,
            _ => self.read_back_mib,
        }
    }
}
