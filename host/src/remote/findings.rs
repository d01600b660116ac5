//! What was seen of a server, held against what was agreed: a pure function, so that a record from yesterday can be held
//! against the contract of today.
//!
//! A contradiction is a word of the contract that the server was seen not to keep, or a need of every delivery that it
//! does not meet. What cannot be seen from outside is not shown, and rests on the partner's word.

use serde::{Deserialize, Serialize};

use super::check::Seen;
use super::prove::{Proof, choose_form};
use crate::job::contract::Contract;
use crate::job::evidence::PublishForm;

/// How one point stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    Agrees,
    Contradicts,
    /// It cannot be seen from outside, or was not tried.
    NotShown,
    /// Worth knowing; the contract does not speak of it.
    Noted,
}

/// One point.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// The contract's word, or the need, that it is about.
    pub about: String,
    pub stands: Standing,
    pub sentence: String,
    /// What to do, where something has to be done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// What findings are drawn from.
#[derive(Debug, Clone, Copy)]
pub struct About<'a> {
    /// The server's identification string.
    pub banner: &'a str,
    pub proof: &'a Proof,
    /// `None` where only the publish was tried, as a rehearsal does.
    pub seen: Option<&'a Seen>,
    pub contract: &'a Contract,
    /// Temporary and final names lie in the same folder.
    pub one_folder: bool,
}

/// Every point, in the order in which a delivery meets them.
pub fn findings(about: &About<'_>) -> Vec<Finding> {
    let mut found = publishing(about);
    found.extend(overwriting(about));
    found.extend(temporaries(about));
    found.extend(about.seen.map(|seen| looking(about, seen)).into_iter().flatten());
    found.extend(on_the_partners_word(about.contract));
    found
}

/// What speaks against delivering here under this contract, each with what to do; empty: nothing does.
pub fn contradictions(findings: &[Finding]) -> impl Iterator<Item = &Finding> {
    findings.iter().filter(|finding| finding.stands == Standing::Contradicts)
}

fn agrees(about: &str, sentence: impl Into<String>) -> Finding {
    Finding { about: about.to_owned(), stands: Standing::Agrees, sentence: sentence.into(), next: None }
}

fn contradicts(about: &str, sentence: impl Into<String>, next: impl Into<String>) -> Finding {
    let (sentence, next) = (sentence.into(), Some(next.into()));
    Finding { about: about.to_owned(), stands: Standing::Contradicts, sentence, next }
}

fn not_shown(about: &str, sentence: impl Into<String>) -> Finding {
    Finding { about: about.to_owned(), stands: Standing::NotShown, sentence: sentence.into(), next: None }
}

fn noted(about: &str, sentence: impl Into<String>) -> Finding {
    Finding { about: about.to_owned(), stands: Standing::Noted, sentence: sentence.into(), next: None }
}

fn publishing(about: &About<'_>) -> Vec<Finding> {
    let About { banner, proof, contract, .. } = about;
    let form = choose_form(proof, contract, false);
    let mut found = vec![match form {
        Some(PublishForm::Link) => agrees(
            "publish",
            "a file gets its final name by a hard link, which refused an existing name and left its file alone",
        ),
        Some(PublishForm::Rename) => agrees(
            "publish",
            "a file gets its final name by RENAME, which refused an existing name and left both files alone",
        ),
        Some(PublishForm::ExclusiveCreate) => agrees(
            "publish",
            "the final name is created exclusively, with a trigger file after it, as the contract allows",
        ),
        Some(PublishForm::CreateWhole) => agrees(
            "publish",
            "one request creates the final name with the whole file; it refused an existing name and left its file alone",
        ),
        Some(PublishForm::PosixRename | PublishForm::RenameOver) | None => contradicts(
            "publish",
            format!("nothing here publishes without a risk for an existing file: {}", why_no_form(about)),
            if proof.creates_whole {
                "ask the partner for a store that keeps `If-None-Match: *`; until then every delivery ends before anything is sent"
            } else {
                "ask the partner for a server that refuses existing names, or agree on exclusive create with a trigger file (`exclusive_create`); until then every delivery ends before anything is sent"
            },
        ),
    }];
    if lies_about_links(proof) {
        found.push(noted(
            "publish",
            "the server answers yes to a hard link and makes none; nothing is ever delivered by one here",
        ));
    }
    if proof.rename_replaces.shown && form.is_some() {
        found.push(noted(
            "publish",
            "RENAME replaces an existing file on this server; nothing is published by one here",
        ));
    }
    if contract.publishes_whole {
        match form {
            Some(PublishForm::Link | PublishForm::Rename) => {
                found.push(agrees("publishes_whole", "final names appear by a link or rename of a whole file"));
            }
            Some(PublishForm::CreateWhole) => {
                found.push(agrees("publishes_whole", "an object appears whole or not at all"));
            }
            Some(PublishForm::ExclusiveCreate) => found.push(contradicts(
                "publishes_whole",
                "the only form here is exclusive create of the final name, under which a file is seen to grow",
                "take `publishes_whole` out of the contract, or ask the partner for hard links",
            )),
            Some(PublishForm::PosixRename | PublishForm::RenameOver) | None => {}
        }
    }
    if contract.rename_one_step {
        found.push(match form {
            Some(PublishForm::Rename) if banner.contains("OpenSSH") => contradicts(
                "rename_one_step",
                "OpenSSH's RENAME is a hard link and then a removal, so that for a moment both names are there, and a failed removal takes the final name away again",
                "take `rename_one_step` out of the contract",
            ),
            Some(PublishForm::Rename) => not_shown("rename_one_step", "how many steps a RENAME takes cannot be seen from outside; it rests on the partner's word"),
            _ => not_shown("rename_one_step", "it is not needed: nothing is published by RENAME here"),
        });
    }
    if contract.exclusive_create {
        found.push(if proof.create_refuses.shown {
            agrees("exclusive_create", "creating an existing name was refused, and its file left alone")
        } else {
            contradicts(
                "exclusive_create",
                format!("creating an existing name exclusively was not refused ({})", proof.create_refuses.seen),
                "take `exclusive_create` out of the contract: on this server it would overwrite",
            )
        });
    }
    found
}

fn lies_about_links(proof: &Proof) -> bool {
    !proof.link_creates.shown && proof.link_creates.seen.starts_with("answered yes")
}

fn why_no_form(about: &About<'_>) -> String {
    let proof = about.proof;
    if !proof.size_after_close.shown {
        return "a file that was written and closed is not seen whole".to_owned();
    }
    if proof.creates_whole {
        return format!(
            "an existing object was not kept from a create that must not replace ({})",
            proof.create_refuses.seen
        );
    }
    let link = if lies_about_links(proof) {
        "a hard link is answered yes and not made"
    } else if proof.link_creates.shown {
        "a hard link does not refuse an existing name"
    } else if proof.link_creates.code.is_some() {
        "a hard link is refused"
    } else {
        "hard links are not offered"
    };
    let rename = if proof.rename_replaces.shown {
        "RENAME replaces an existing file"
    } else if proof.rename_moves.shown {
        "RENAME does not leave both files alone"
    } else {
        "RENAME does not give a file a free name"
    };
    format!("{link}, and {rename}")
}

fn overwriting(about: &About<'_>) -> Option<Finding> {
    let reference = about.contract.overwrites_last.as_ref()?;
    Some(match choose_form(about.proof, about.contract, true) {
        Some(PublishForm::PosixRename) => {
            agrees("overwrites_last", "a POSIX rename replaced an existing file in one step")
        }
        Some(_) => agrees("overwrites_last", "RENAME replaced an existing file"),
        None => contradicts(
            "overwrites_last",
            format!(
                "an overwrite is agreed ({reference}), and the server shows no form that replaces a file in one step"
            ),
            if about.proof.creates_whole {
                "take `overwrites_last` out of the contract: this host replaces no object"
            } else {
                "take `overwrites_last` out of the contract, or ask the partner for posix-rename@openssh.com"
            },
        ),
    })
}

fn temporaries(about: &About<'_>) -> Vec<Finding> {
    let About { proof, contract, .. } = about;
    let mut found = Vec::new();
    if contract.one_name_space {
        let moves = proof.link_creates.shown || proof.rename_moves.shown;
        found.push(if about.one_folder && moves {
            agrees("one_name_space", "temporary and final names lie in one folder, and a file got a second name there")
        } else if moves {
            not_shown("one_name_space", "temporary and final names lie in different folders; nothing was tried in the final names' folder, where the partner may act on any file")
        } else {
            not_shown("one_name_space", "no form gave a file a second name")
        });
    }
    let left = &proof.left_behind;
    if left.is_empty() {
        if contract.may_remove_temporaries {
            found.push(agrees("may_remove_temporaries", "our scratch files could be removed"));
        }
    } else if contract.may_remove_temporaries {
        found.push(contradicts(
            "may_remove_temporaries",
            format!("our scratch files could not be removed: {}", left.join(", ")),
            "take `may_remove_temporaries` out of the contract, or ask the partner for the right to remove; and have these files removed",
        ));
    } else {
        let sentence = format!("our scratch files could not be removed and are left: {}", left.join(", "));
        let next = Some("have the partner remove them".to_owned());
        found.push(Finding { next, ..noted("temporaries", sentence) });
    }
    found
}

fn looking(about: &About<'_>, seen: &Seen) -> Vec<Finding> {
    let contract = about.contract;
    let mut found = Vec::new();
    found.push(match (seen.shows.shown, contract.listing_hidden) {
        (true, false) => agrees("looking", "a file that we wrote is shown under its name"),
        (false, true) => agrees("listing_hidden", "a file that we wrote is not shown"),
        (true, true) => {
            noted("listing_hidden", "the server shows our files; the contract need not say `listing_hidden`")
        }
        (false, false) => contradicts(
            "looking",
            format!("a file that we wrote is not shown under its name ({})", seen.shows.seen),
            "ask the partner to let us look, or agree on `listing_hidden`",
        ),
    });
    if let (Some(acknowledgment), Some(lists)) = (&contract.acknowledgment, &seen.lists_answers) {
        let names = acknowledgment.names().map(|(_, name)| name.to_string()).collect::<Vec<_>>().join(" and ");
        found.push(if lists.shown {
            agrees("acknowledgment", format!("the folder of {names} can be listed"))
        } else {
            contradicts(
                "acknowledgment",
                format!("the folder of {names} cannot be listed ({}), so that no answer would be found", lists.seen),
                "ask the partner to let us list it, or create it",
            )
        });
    }
    if about.banner.contains("NFS") && contract.settle.is_none() {
        found.push(noted(
            "settle_seconds",
            "a look at a share on NFS may show what this machine remembers; without `settle_seconds` it is believed at once, unless the share is mounted with lookupcache=none,noac",
        ));
    }
    if contract.name_and_size_identify {
        found.push(if seen.tells_size {
            agrees("name_and_size_identify", "the size of a file is told")
        } else {
            contradicts(
                "name_and_size_identify",
                "the server does not tell the size of a file that we wrote",
                "take `name_and_size_identify` out of the contract",
            )
        });
    }
    if contract.time_proves_overwrite {
        found.push(if seen.tells_time {
            not_shown(
                "time_proves_overwrite",
                "times are told; that an overwrite makes them newer rests on the partner's word",
            )
        } else {
            contradicts(
                "time_proves_overwrite",
                "the server does not tell when a file was changed",
                "take `time_proves_overwrite` out of the contract",
            )
        });
    }
    let other_evidence =
        contract.acknowledgment.is_some() || contract.publishes_whole || contract.name_and_size_identify;
    found.push(match (seen.reads_back.shown, other_evidence) {
        (true, _) => agrees("reading back", "what we wrote can be read back, so that a delivery is proven by its checksum"),
        (false, true) => noted("reading back", format!("what we wrote cannot be read back ({}); a delivery is proven by what the contract says instead", seen.reads_back.seen)),
        (false, false) => contradicts(
            "reading back",
            format!("what we wrote cannot be read back ({}), and the contract names nothing else that proves a delivery", seen.reads_back.seen),
            "ask for the right to read, or agree on an acknowledgment, `publishes_whole` or `name_and_size_identify`; until then every outcome stays unknown",
        ),
    });
    found
}

fn on_the_partners_word(contract: &Contract) -> Vec<Finding> {
    let mut found = Vec::new();
    if let Some(keeps) = contract.keeps {
        found.push(not_shown(
            "keeps_seconds",
            format!("that final names stay for {} s rests on the partner's word", keeps.as_secs()),
        ));
    }
    if contract.collects {
        found.push(not_shown("collects", "that the partner may take files at once rests on its word"));
    }
    if let Some(settle) = contract.settle {
        found.push(not_shown(
            "settle_seconds",
            format!("that the server shows its state within {} s rests on the partner's word", settle.as_secs()),
        ));
    }
    found
}

#[cfg(test)]
mod tests;
