//! What was agreed with a partner, in words that people sign. What is absent is not promised.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::names::NamePattern;

/// The `[contract]` table of a manifest.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a sentence that people sign, on its own")]
pub struct Contract {
    /// Where the agreement can be found, in people's words.
    pub agreement: String,
    /// Final names appear only whole: the partner's server publishes by rename or link.
    pub publishes_whole: bool,
    /// The server renames in one step: never both names, never neither.
    pub rename_one_step: bool,
    /// Temporary and final name lie in one name space: a publish never copies.
    pub one_name_space: bool,
    /// We may remove our own temporary files.
    pub may_remove_temporaries: bool,
    /// How long a final name stays visible at least.
    #[serde(with = "seconds", rename = "keeps_seconds")]
    pub keeps: Option<Duration>,
    /// The partner may take a file as soon as it is published.
    pub collects: bool,
    /// How long after an operation the server may still show its state from before.
    #[serde(with = "seconds", rename = "settle_seconds")]
    pub settle: Option<Duration>,
    /// Name and size are enough to identify a delivery.
    pub name_and_size_identify: bool,
    /// A strictly newer modification time proves an overwrite.
    pub time_proves_overwrite: bool,
    /// The server does not let us list; a final name that is not visible may be published to.
    pub listing_hidden: bool,
    /// The same file name is used again, for another delivery key, once its holder is settled.
    pub names_reused: bool,
    /// Reference of the standing agreement to replace the file that we delivered last under a reused name.
    pub overwrites_last: Option<String>,
    /// Where the server offers no form that refuses an existing name: exclusive create of the final name plus a trigger file.
    pub exclusive_create: bool,
    /// The partner's acknowledgment files.
    pub acknowledgment: Option<Acknowledgment>,
    /// Files that the partner expects beside the data file, in order.
    pub auxiliary: Vec<Auxiliary>,
}

/// How a partner says what it did with a delivery: by what is in a file, by a file's name, or by both.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Acknowledgment {
    /// Name pattern of the file whose bytes the expressions below read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<NamePattern>,
    /// Regular expression over its bytes that means accepted. Named groups `key`, `attempt`, `sha256` capture what it names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accept: Option<String>,
    /// The same for refused.
    pub refuse: Option<String>,
    /// The same for "we had this before".
    pub duplicate: Option<String>,
    /// Name pattern of a file that means accepted by being there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accept_name: Option<NamePattern>,
    /// The same for refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refuse_name: Option<NamePattern>,
    /// How long after a delivery an acknowledgment may come.
    #[serde(with = "required_seconds", rename = "period_seconds")]
    pub period: Duration,
}

impl Acknowledgment {
    /// The patterns of all files that answer, each with its key in the manifest.
    pub fn names(&self) -> impl Iterator<Item = (&'static str, &NamePattern)> {
        [("name", &self.name), ("accept_name", &self.accept_name), ("refuse_name", &self.refuse_name)]
            .into_iter()
            .filter_map(|(key, name)| Some((key, name.as_ref()?)))
    }
}

/// One file beside the data file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Auxiliary {
    pub name: NamePattern,
    /// A trigger: the partner acts on it, so an unconfirmed one leaves the outcome unknown.
    #[serde(default)]
    pub trigger: bool,
    /// Lies there before the data file is published, or the host does not publish. Never together with `trigger`.
    #[serde(default)]
    pub before_publish: bool,
}

mod seconds {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[expect(clippy::ref_option, reason = "serde's `with` hands over a reference to the field")]
    pub fn serialize<S: Serializer>(value: &Option<Duration>, serializer: S) -> Result<S::Ok, S::Error> {
        value.map(|duration| duration.as_secs()).serialize(serializer)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
        Ok(Option::<u64>::deserialize(deserializer)?.map(Duration::from_secs))
    }
}

mod required_seconds {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub fn serialize<S: Serializer>(value: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
        value.as_secs().serialize(serializer)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
        u64::deserialize(deserializer).map(Duration::from_secs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_absent_is_not_promised() {
        let contract: Contract = toml::from_str("agreement = 'mail of 2026-03-02'").unwrap();
        assert!(!contract.publishes_whole && !contract.may_remove_temporaries && contract.keeps.is_none());
    }

    #[test]
    fn a_misspelt_promise_is_refused() {
        let error = toml::from_str::<Contract>("publishes_hole = true").unwrap_err();
        assert!(error.to_string().contains("publishes_hole"), "{error}");
    }

    #[test]
    fn durations_are_seconds_with_the_unit_in_the_name() {
        let contract: Contract = toml::from_str("keeps_seconds = 86400").unwrap();
        assert_eq!(contract.keeps, Some(Duration::from_hours(24)));
        let json = serde_json::to_value(&contract).unwrap();
        assert_eq!(json["keeps_seconds"], 86_400);
    }
}
