//! Where what a plugin reported and what the host itself saw differ, in words. Each difference alerts and changes nothing else.
//!
//! The sentences hold no text of the guest's but names and digests: they go into logs too. A plugin that reports less than
//! the host saw differs in nothing.

use serde::Deserialize;

use crate::job::evidence::{A_VALUE, Acknowledged, Answer, Receipt};
use crate::job::facts::{Found, Listing};

/// A plugin's report, as receipts and observations keep it.
#[derive(Deserialize)]
struct Report {
    listing: Option<Listing>,
    acknowledgment: Option<ReportedAcknowledgment>,
    #[serde(default)]
    auxiliary: Vec<String>,
}

#[derive(Deserialize)]
struct ReportedAcknowledgment {
    name: String,
    says: String,
}

/// The report that stands in a receipt, against what the host saw, read and did.
pub fn of_report(receipt: &Receipt) -> Vec<String> {
    let report = receipt.reported.as_ref().and_then(|reported| Report::deserialize(reported).ok());
    let Some(Report { listing, acknowledgment, auxiliary }) = report else { return Vec::new() };
    let mut found = match (&receipt.look, &listing) {
        (Some(look), Some(reported)) => of_listing(look, reported),
        (Some(_) | None, _) => Vec::new(),
    };
    match (receipt.acknowledgments.as_slice(), acknowledgment) {
        ([], Some(_)) => found
            .push("the plugin reported an acknowledgment, the host read none that counts for this delivery".to_owned()),
        (read @ [first, ..], Some(told)) if !read.iter().any(|read| is_told_of(read, &told)) => {
            found.push(format!(
                "the host read an acknowledgment that says {}, the plugin reported another one",
                first.says
            ));
        }
        (_, Some(_) | None) => {}
    }
    let put = |name: &String| {
        receipt.auxiliary.iter().any(|put| put.name == *name && !matches!(put.answer, Answer::Refused { .. }))
    };
    match auxiliary.iter().filter(|name| !put(name)).count() {
        0 => {}
        count => found.push(format!("the plugin reported files beside the data file that it did not put ({count})")),
    }
    found
}

/// A name with data in it was kept without, and says as little as a name that was not told.
fn is_told_of(read: &Acknowledged, told: &ReportedAcknowledgment) -> bool {
    read.says == told.says && (read.name == told.name || told.name.contains(A_VALUE))
}

/// A plugin's listing against the host's own look.
pub fn of_listing(look: &Listing, reported: &Listing) -> Vec<String> {
    let mut found = Vec::new();
    if look.at != reported.at {
        found.push(format!("the host looked at {:?}, the plugin reported {:?}", look.at, reported.at));
    }
    match (&look.found, &reported.found) {
        (Found::Present(seen), Found::Present(told)) => {
            if let (Some(seen), Some(told)) = (seen.bytes, told.bytes)
                && seen != told
            {
                found.push(format!("the host saw {seen} bytes, the plugin reported {told}"));
            }
        }
        (seen, told) if std::mem::discriminant(seen) != std::mem::discriminant(told) => {
            found.push(format!("the host saw {}, the plugin reported {}", in_words(seen), in_words(told)));
        }
        (Found::Absent | Found::Present(_) | Found::NotVisible { .. } | Found::Unknown { .. }, _) => {}
    }
    if let (Some(seen), Some(told)) = (look.sha256, reported.sha256)
        && seen != told
    {
        found.push(format!("the host read the checksum {seen}, the plugin reported {told}"));
    }
    found
}

const fn in_words(found: &Found) -> &'static str {
    match found {
        Found::Absent => "no file",
        Found::Present(_) => "a file",
        Found::NotVisible { .. } => "that the name is not visible",
        Found::Unknown { .. } => "nothing for certain",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::job::evidence::{Acknowledged, AuxiliaryPut};

    fn look(found: Found) -> Listing {
        Listing { at: "contacts.csv".to_owned(), found, sha256: None, hashed_by: None }
    }

    fn receipt(reported: serde_json::Value) -> Receipt {
        let put = |name: &str, answer| AuxiliaryPut { name: name.to_owned(), trigger: false, answer };
        Receipt {
            look: Some(look(Found::Absent)),
            auxiliary: vec![
                put("a.done", Answer::Acknowledged),
                put("b.done", Answer::Unanswered { why: String::new() }),
                put("c.done", Answer::Refused { code: Some(4), text: String::new() }),
            ],
            reported: Some(reported),
            ..Receipt::default()
        }
    }

    #[test]
    fn plg_05_each_part_of_a_report_is_held_against_what_the_host_saw() {
        let absent = serde_json::to_value(look(Found::Absent)).unwrap();
        for honest in [
            json!({}),
            json!({ "listing": absent }),
            json!({ "listing": absent, "auxiliary": ["a.done", "b.done"] }),
            json!("no report at all"),
        ] {
            assert_eq!(of_report(&receipt(honest.clone())), Vec::<String>::new(), "{honest}");
        }
        let elsewhere = Listing { at: "other.csv".to_owned(), ..look(Found::Absent) };
        for (lie, part) in [
            (json!({ "listing": elsewhere }), "the plugin reported \"other.csv\""),
            (json!({ "auxiliary": ["a.done", "c.done", "d.done"] }), "did not put (2)"),
            (json!({ "acknowledgment": { "name": "k.ack", "says": "accepted" } }), "the host read none"),
        ] {
            let named = of_report(&receipt(lie.clone()));
            assert!(matches!(named.as_slice(), [one] if one.contains(part)), "{lie}: {named:?}");
        }
    }

    #[test]
    fn plg_05_an_acknowledgment_that_was_read_otherwise_is_named_without_the_guests_words() {
        let told = |name: &str, says: &str| {
            let read = |name: &str, says: &str| Acknowledged {
                name: name.to_owned(),
                says: says.to_owned(),
                key: None,
                attempt: None,
                sha256: None,
            };
            let reported = json!({ "acknowledgment": { "name": name, "says": says } });
            of_report(&Receipt {
                acknowledgments: vec![read("k.ack", "refused"), read("other.ack", "accepted")],
                ..receipt(reported)
            })
        };
        assert!(told("k.ack", "refused").is_empty() && told("other.ack", "accepted").is_empty(), "one of them");
        assert!(told("(a value).ack", "refused").is_empty(), "its name is kept without data");
        for named in [told("k.ack", "accepted"), told("ada@example.com.ack", "refused")] {
            assert_eq!(named, ["the host read an acknowledgment that says refused, the plugin reported another one"]);
        }
    }
}
