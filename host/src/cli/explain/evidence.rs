//! The documents of `DeliveryEvidence` in words: the baseline, the publish's answer, receipts, later looks.
//!
//! A new kind of evidence is one more arm in [`of_evidence`]. A document that this version cannot read is shown as it
//! stands, bounded.

use super::words::{bounded, joined, short};
use crate::job::evidence::{Answer, Evidence, PublishForm, Receipt};
use crate::job::facts::{Found, Listing};

/// Most letters of one text that is not ours.
const WORDS: usize = 200;
/// Most letters of a document that cannot be read.
const RAW: usize = 400;

/// A document of whatever version.
pub(super) fn of_document(document: Option<&serde_json::Value>, observer: &str) -> String {
    let Some(document) = document else { return format!("{observer} appended evidence that says nothing.") };
    match serde_json::from_value::<Evidence>(document.clone()) {
        Ok(evidence) => of_evidence(&evidence, observer),
        Err(_) => format!(
            "{observer} appended evidence of a kind that this version does not know: {}",
            bounded(&document.to_string(), RAW)
        ),
    }
}

fn of_evidence(evidence: &Evidence, observer: &str) -> String {
    match evidence {
        Evidence::Baseline { look, temporary, acknowledgments, reported: _, contract: _ } => {
            let temporary =
                temporary.as_deref().map(|name| format!(" The file is sent as {name} first.")).unwrap_or_default();
            let old = acknowledgments.as_deref().unwrap_or_default();
            let old = if old.is_empty() {
                String::new()
            } else {
                format!(" Acknowledgments that were there already prove nothing: {}.", bounded(&old.join(", "), WORDS))
            };
            format!("Before sending, {}.{temporary}{old}", seen(look))
        }
        Evidence::Publish { form, answer } => format!("The publish ({}) was {}.", form_name(*form), answered(answer)),
        Evidence::Receipt(receipt) => format!("After sending, {}", receipt_in_words(receipt)),
        Evidence::Observation(receipt) => format!("{observer} looked again: {}", receipt_in_words(receipt)),
        Evidence::RemovalIntended { temporary } => {
            format!(
                "{observer} is about to remove the temporary file {temporary}, so that it can no longer be published."
            )
        }
        Evidence::RemovalAnswered { temporary, answer } => {
            format!("The removal of the temporary file {temporary} was {}.", answered(answer))
        }
    }
}

fn receipt_in_words(receipt: &Receipt) -> String {
    let mut said = Vec::new();
    if let Some(look) = &receipt.look {
        said.push(seen(look));
    }
    if let Some(temporary) = &receipt.temporary {
        said.push(format!("under the temporary name {}", seen(temporary)));
    }
    if let Some(bytes) = receipt.bytes_read_back {
        said.push(format!("its size was read back ({bytes} bytes)"));
    }
    for put in &receipt.auxiliary {
        let kind = if put.trigger { "the trigger file" } else { "the file beside it" };
        said.push(format!("{kind} {} was {}", put.name, answered(&put.answer)));
    }
    for acknowledged in &receipt.acknowledgments {
        said.push(format!(
            "the partner's acknowledgment {} says {}",
            bounded(&acknowledged.name, WORDS),
            bounded(&acknowledged.says, WORDS)
        ));
    }
    if let Some(unread) = &receipt.unread {
        said.push(format!("what the partner says is not known ({})", bounded(unread, WORDS)));
    }
    match receipt.temporary_removed {
        Some(true) => said.push("our temporary file was removed, and the server confirmed it".to_owned()),
        Some(false) => said.push("our temporary file was gone already, or its removal was not confirmed".to_owned()),
        None => {}
    }
    if let Some(call) = &receipt.call {
        said.push(format!("the plugin's call ended early ({})", bounded(call, WORDS)));
    }
    // Each of these was also logged as a warning.
    said.extend(receipt.differences.iter().map(|difference| format!("ALERT: {}", bounded(difference, WORDS))));
    if let Some(conclusion) = &receipt.conclusion {
        said.push(format!("concluded then: {}", bounded(conclusion, WORDS)));
    }
    if said.is_empty() { "nothing was looked at.".to_owned() } else { joined(&said) }
}

fn seen(look: &Listing) -> String {
    match &look.found {
        Found::Absent => format!("the host saw no file at {}", look.at),
        Found::Present(entry) => {
            let bytes = entry.bytes.map_or_else(|| "of unknown size".to_owned(), |bytes| format!("of {bytes} bytes"));
            let digest =
                look.sha256.map(|digest| format!(", SHA-256 {}", short(&digest.to_string()))).unwrap_or_default();
            format!("the host saw a file {bytes} at {}{digest}", look.at)
        }
        Found::NotVisible { why } => format!("the server does not let us see {} ({})", look.at, bounded(why, WORDS)),
        Found::Unknown { why } => format!("the host could not look at {} ({})", look.at, bounded(why, WORDS)),
    }
}

/// What became of a request, after "was".
pub(super) fn answered(answer: &Answer) -> String {
    match answer {
        Answer::Acknowledged => "acknowledged by the server".to_owned(),
        Answer::Refused { code: Some(code), text } => {
            format!("refused by the server with status {code} ({})", bounded(text, WORDS))
        }
        Answer::Refused { code: None, text } => format!("refused ({})", bounded(text, WORDS)),
        Answer::Unanswered { why } => format!("not answered ({})", bounded(why, WORDS)),
    }
}

const fn form_name(form: PublishForm) -> &'static str {
    match form {
        PublishForm::Link => "a link to the final name",
        PublishForm::Rename => "a rename that refuses an existing name",
        PublishForm::ExclusiveCreate => "an exclusive create of the final name",
        PublishForm::CreateWhole => "a create of the whole object that refuses an existing name",
        PublishForm::PosixRename | PublishForm::RenameOver => "an agreed overwrite",
    }
}

/// A form by its stored name.
pub(super) fn form_in_words(stored: &str) -> &'static str {
    serde_json::from_value::<PublishForm>(stored.into()).map_or("in a form that this version does not know", form_name)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn evidence_of_a_newer_kind_is_shown_as_it_stands_and_bounded() {
        let newer = json!({ "evidence": "moon_phase", "phase": "full", "more": "x".repeat(5_000) });
        let said = of_document(Some(&newer), "run-7");
        assert!(said.contains("run-7 appended evidence of a kind") && said.contains("moon_phase"), "{said}");
        assert!(said.chars().count() < 600, "{}", said.len());
        for odd in [json!(null), json!([1, 2]), json!({ "evidence": "publish" }), json!({ "evidence": 7 })] {
            assert!(of_document(Some(&odd), "run-7").contains("does not know"), "{odd}");
        }
        assert!(of_document(None, "run-7").contains("says nothing"));
    }

    #[test]
    fn a_receipt_says_all_that_it_holds() {
        let receipt = json!({
            "evidence": "observation",
            "look": { "at": "out/a.csv", "found": "present", "name": "a.csv", "kind": "file", "bytes": 9, "modified": null },
            "temporary": { "at": "tmp/a", "found": "absent" },
            "bytes_read_back": 9,
            "auxiliary": [{ "name": "a.done", "trigger": true, "answer": "unanswered", "why": "cut" }],
            "acknowledgments": [{ "name": "b.ack", "says": "refused" }, { "name": "a.ack", "says": "accepted" }],
            "unread": "cut",
            "temporary_removed": true,
            "call": "timed out",
            "differences": ["the plugin reported 8 bytes\u{7}"],
            "conclusion": "checksum",
        });
        let said = of_document(Some(&receipt), "run-7");
        for part in [
            "run-7 looked again",
            "a file of 9 bytes at out/a.csv",
            "no file at tmp/a",
            "its size was read back (9 bytes)",
            "the trigger file a.done was not answered (cut)",
            "acknowledgment b.ack says refused",
            "acknowledgment a.ack says accepted",
            "what the partner says is not known (cut)",
            "our temporary file was removed",
            "ended early (timed out)",
            "ALERT: the plugin reported 8 bytes;",
            "concluded then: checksum",
        ] {
            assert!(said.contains(part), "{part:?} is not in: {said}");
        }
    }
}
