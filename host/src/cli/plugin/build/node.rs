//! Whether a Node.js is one that the packages of a lock file ask for.
//!
//! npm only warns if it is not, and silently leaves out the optional packages, which hold the compiled code of others. What then
//! fails, fails late, with a stack trace that does not speak of Node.js. So npm's own rule for `engine-strict` is kept here,
//! before anything is installed. A range in a form that is not read here is left to npm.

use std::collections::BTreeMap;

use semver::{Prerelease, Version, VersionReq};

/// The ranges that a version of Node.js is not in, each with the first package that asks for it.
pub(super) fn unmet(lock: &str, node: &Version) -> Result<BTreeMap<String, String>, serde_json::Error> {
    let lock: serde_json::Value = serde_json::from_str(lock)?;
    let mut unmet = BTreeMap::new();
    for (place, package) in lock.get("packages").and_then(|packages| packages.as_object()).into_iter().flatten() {
        let optional = ["optional", "devOptional"].iter().any(|kind| package.get(kind).is_some());
        let Some(range) = package.pointer("/engines/node").and_then(|range| range.as_str()) else { continue };
        if !optional && !holds(range, node) {
            let name = place.rsplit_once("node_modules/").map_or("the part itself", |(_, name)| name);
            unmet.entry(range.to_owned()).or_insert_with(|| name.to_owned());
        }
    }
    Ok(unmet)
}

/// True if the version is in one of the alternatives of the range, or if one of them is in a form that is not read here.
fn holds(range: &str, node: &Version) -> bool {
    // A build before its release has what the release has.
    let node = Version { pre: Prerelease::EMPTY, ..node.clone() };
    range.split("||").any(|one| VersionReq::parse(one.trim()).map_or(true, |one| one.matches(&node)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOCK: &str = include_str!("../../../../../plugins/javascript/package-lock.json");

    #[test]
    fn ranges_are_read_as_npm_reads_them() {
        for (range, version, expected) in [
            (">= 10", "18.20.8", true),
            ("*", "0.1.0", true),
            ("^20.19.0 || >=22.12.0", "20.19.0", true),
            ("^20.19.0 || >=22.12.0", "21.7.3", false),
            ("^20.19.0 || >=22.12.0", "22.12.0-rc.1", true),
            ("18 || 20 || >=22", "20.1.0", true),
            ("18 || 20 || >=22", "19.9.0", false),
            // Not read here.
            (">=16 <19", "20.0.0", true),
        ] {
            assert_eq!(holds(range, &version.parse().unwrap()), expected, "{range} {version}");
        }
    }

    /// What the template and the guide say of Node.js is what the compiler's packages ask for.
    #[test]
    fn the_shipped_lock_file_asks_for_what_the_guide_says() {
        for (version, expected) in [
            ("18.20.8", false),
            ("20.18.3", false),
            ("20.19.0", true),
            ("22.11.0", false),
            ("22.12.0", true),
            ("24.0.0", true),
        ] {
            let unmet = unmet(LOCK, &version.parse().unwrap()).unwrap();
            assert_eq!(unmet.is_empty(), expected, "{version}: {unmet:?}");
        }
        for guide in [include_str!("../template/javascript.md"), include_str!("../../../../../docs/partners.md")] {
            assert!(guide.contains("20.19 or later of 20, or 22.12 or later"), "{guide}");
        }
    }

    #[test]
    fn what_is_optional_is_not_asked_of_it() {
        let lock = r#"{"packages": {
            "": {"engines": {"node": ">=21"}},
            "node_modules/a/node_modules/@b/c": {"engines": {"node": ">=22"}},
            "node_modules/d": {"engines": {"node": ">=23"}, "optional": true}
        }}"#;
        let unmet = unmet(lock, &"20.0.0".parse().unwrap()).unwrap();
        let told: Vec<_> = unmet.iter().map(|(range, package)| (range.as_str(), package.as_str())).collect();
        assert_eq!(told, [(">=21", "the part itself"), (">=22", "@b/c")]);
    }
}
