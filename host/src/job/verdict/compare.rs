//! From documents and rows to compared facts.
//!
//! What the host itself saw counts; fields named `reported` are never read here. Where looks differ, the one that says
//! most about a file of ours counts, and a look that came before the contract's `settle` time may show a file but
//! proves neither absence nor sameness.

use std::time::Duration;

use super::before_sending::{BeforeFacts, Intent, Likeness, Standing};
use super::facts::{
    Acceptance, Baseline, Compared, Facts, FinalName, Form, Others, Promises, Publish, Since, Temporary, Trigger,
};
use super::temporary_fence::Removal;
use crate::job::contract::Contract;
use crate::job::evidence::{Acknowledged, Answer, AuxiliaryPut, Evidence, PublishForm, Receipt};
use crate::job::facts::{Entry, FileFacts, Found, Listing, Sha256};
use crate::job::names::Parts;

/// Everything that is on record about one attempt, as the host and the database know it.
#[derive(Debug, Clone, Copy)]
pub struct OnRecord<'a> {
    /// What cutoff 2 recorded.
    pub expected: &'a FileFacts,
    pub key: &'a str,
    /// The attempt's id, in the form that patterns carry.
    pub attempt: &'a str,
    /// The stricter of the contract that the claim recorded and the one of now.
    pub contract: &'a Contract,
    pub publish: Publish,
    /// The attempt's evidence in the order of its recording; the newest look is the last.
    pub evidence: &'a [Evidence],
    /// What every other authorized attempt of the key, or of the reused name, was to deliver; `None` where that is
    /// not known.
    pub others: &'a [Option<FileFacts>],
    /// Attempts of the key with `publish_intended_at` set, this one included.
    pub attempts_past_the_fence: u32,
    /// By the database's clock, from `publish_intended_at` to the end of the newest look.
    pub looked_after: Duration,
    /// By the database's clock, from the record of the publish's answer (or of the takeover, or of our removal of the
    /// temporary file, whichever came last) to the newest look's start.
    pub looked_since_answer: Duration,
}

/// Compares everything that is on record.
pub fn facts(record: &OnRecord<'_>) -> Facts {
    let receipts: Vec<&Receipt> = record.evidence.iter().filter_map(Evidence::look).collect();
    let recorded = record.evidence.iter().find_map(|evidence| match evidence {
        Evidence::Baseline { look, temporary, .. } => Some((look, temporary.as_deref())),
        Evidence::Publish { .. }
        | Evidence::Receipt(_)
        | Evidence::Observation(_)
        | Evidence::RemovalIntended { .. }
        | Evidence::RemovalAnswered { .. } => None,
    });
    let settled = record.contract.settle.is_none_or(|settle| record.looked_since_answer >= settle);
    let looks: Vec<&Listing> = receipts.iter().filter_map(|receipt| receipt.look.as_ref()).collect();
    let (final_name, baseline) = names(record.expected, recorded.map(|(look, _)| look), &looks, settled);
    let acknowledged: Vec<&Acknowledged> = receipts.iter().flat_map(|receipt| &receipt.acknowledgments).collect();
    let contract = record.contract;
    Facts {
        publish: record.publish,
        acceptance: acceptance(record, &acknowledged),
        final_name,
        trigger: trigger(record, &receipts),
        baseline,
        others: others(record.expected, record.others),
        temporary: temporary(record, recorded.and_then(|(_, name)| name), &receipts, settled),
        promises: Promises {
            publishes_whole: contract.publishes_whole,
            name_and_size_identify: contract.name_and_size_identify,
            time_proves_overwrite: contract.time_proves_overwrite,
            collects: contract.collects,
            keeps_covers: !contract.collects && contract.keeps.is_some_and(|keeps| record.looked_after <= keeps),
        },
    }
}

/// The publish of an attempt as its own journal in memory has it: only the attempt itself can say "never sent" once
/// its fence is committed.
pub fn publish_of_the_attempt(publish: Option<(PublishForm, &Answer)>, contract: &Contract) -> Publish {
    match publish {
        None => Publish::NeverSent,
        Some((publish_form, answer)) => answered(form(publish_form, contract), answer),
    }
}

/// The publish of an attempt as the database has it. `intended`: the form that the publish fence recorded; without a
/// fence, [`without_fence`](super::without_fence) concludes, and this answers `None`.
pub fn publish_on_record(intended: Option<PublishForm>, evidence: &[Evidence], contract: &Contract) -> Option<Publish> {
    let intended = form(intended?, contract);
    let mut recorded = evidence.iter().filter_map(|evidence| match evidence {
        Evidence::Publish { form: publish_form, answer } => Some(answered(form(*publish_form, contract), answer)),
        Evidence::Baseline { .. }
        | Evidence::Receipt(_)
        | Evidence::Observation(_)
        | Evidence::RemovalIntended { .. }
        | Evidence::RemovalAnswered { .. } => None,
    });
    // More than one answer to the one request, or one to another form, is no answer that can be trusted.
    match (recorded.next(), recorded.next()) {
        (Some(publish @ (Publish::Acknowledged(form) | Publish::Refused(form))), None) if form == intended => {
            Some(publish)
        }
        _ => Some(Publish::Unanswered(intended)),
    }
}

fn answered(form: Form, answer: &Answer) -> Publish {
    match answer {
        Answer::Acknowledged => Publish::Acknowledged(form),
        Answer::Refused { .. } => Publish::Refused(form),
        Answer::Unanswered { .. } => Publish::Unanswered(form),
    }
}

/// The form by what it means for evidence.
pub fn form(form: PublishForm, contract: &Contract) -> Form {
    match form {
        PublishForm::Link => Form::Link,
        PublishForm::Rename => Form::Rename { one_step: contract.rename_one_step },
        PublishForm::ExclusiveCreate => Form::ExclusiveCreate,
        PublishForm::CreateWhole => Form::CreateWhole,
        PublishForm::PosixRename | PublishForm::RenameOver => Form::Over { one_step: contract.rename_one_step },
    }
}

/// A look before sending. `original`: what the original was to deliver and the acknowledgments read for it, with its
/// record; `last`: what we delivered last under a reused name.
pub fn before(
    look: &Listing,
    intent: Intent,
    original: Option<&FileFacts>,
    original_acknowledged: Acceptance,
    last: Option<&FileFacts>,
    contract: &Contract,
) -> BeforeFacts {
    BeforeFacts {
        standing: match look.found {
            Found::Absent => Standing::Absent,
            Found::Present(_) => Standing::Present,
            Found::NotVisible { .. } => Standing::NotVisible,
            Found::Unknown { .. } => Standing::Unknown,
        },
        intent,
        original_acknowledged: original_acknowledged.is_of_the_delivery(),
        like_original: original.map_or(Likeness::NOTHING, |file| likeness(file, look)),
        like_last: last.map_or(Likeness::NOTHING, |file| likeness(file, look)),
        overwrites_last: contract.names_reused && contract.overwrites_last.is_some(),
        name_and_size_identify: contract.name_and_size_identify,
        listing_hidden: contract.listing_hidden,
    }
}

/// A file that was seen, against one that we know. A file of another name is not compared, and a directory is no file.
pub fn likeness(known: &FileFacts, look: &Listing) -> Likeness {
    match &look.found {
        Found::Present(entry) if look.at == known.name => {
            Likeness { size: size(known.bytes, entry), checksum: checksum(known.sha256, look.sha256) }
        }
        Found::Present(_) | Found::Absent | Found::NotVisible { .. } | Found::Unknown { .. } => Likeness::NOTHING,
    }
}

fn size(expected: u64, entry: &Entry) -> Compared {
    // A server may tell no kinds; what was read back to be hashed is a file.
    if !matches!(entry.kind.as_str(), "file" | "unknown") {
        return Compared::Different;
    }
    entry.bytes.map_or(Compared::NotShown, |bytes| compared(bytes == expected))
}

fn checksum(expected: Sha256, shown: Option<Sha256>) -> Compared {
    shown.map_or(Compared::NotShown, |shown| compared(shown == expected))
}

const fn compared(same: bool) -> Compared {
    if same { Compared::Same } else { Compared::Different }
}

/// The final name now and at the baseline. The newest look that shows a file which is not the baseline's counts, so that
/// a file which the partner has taken since is not forgotten; where there is none, the newest look.
fn names(expected: &FileFacts, baseline: Option<&Listing>, looks: &[&Listing], settled: bool) -> (FinalName, Baseline) {
    let ours = |look: &&&Listing| look.at == expected.name;
    let baseline = baseline.filter(|look| look.at == expected.name);
    let changed = |look: &&&Listing| {
        matches!(look.found, Found::Present(_))
            && baseline.is_none_or(|baseline| since(baseline, look) != Since::Unchanged)
    };
    let newest = looks.iter().rev().find(ours);
    let Some(look) = looks.iter().rev().filter(ours).find(changed).or(newest) else {
        return (FinalName::Unknown, at_baseline(baseline, Since::NotShown));
    };
    let since = baseline.map_or(Since::NotShown, |baseline| since(baseline, look));
    let final_name = match &look.found {
        Found::Absent if settled => FinalName::Absent,
        Found::Present(_) if settled || since != Since::Unchanged => {
            let Likeness { size, checksum } = likeness(expected, look);
            FinalName::Present { size, checksum }
        }
        Found::NotVisible { .. } => FinalName::NotVisible,
        Found::Absent | Found::Present(_) | Found::Unknown { .. } => FinalName::Unknown,
    };
    (final_name, at_baseline(baseline, since))
}

fn at_baseline(baseline: Option<&Listing>, since: Since) -> Baseline {
    match baseline.map(|look| &look.found) {
        Some(Found::Absent) => Baseline::Absent,
        Some(Found::Present(_)) => Baseline::Present(since),
        Some(Found::NotVisible { .. }) => Baseline::NotVisible,
        Some(Found::Unknown { .. }) | None => Baseline::Unknown,
    }
}

/// What became of a file that the baseline showed. Unchanged needs its size and, beside it, its time or its checksum,
/// shown both times; times are the partner's own, and only a strictly greater one is newer.
pub fn since(baseline: &Listing, now: &Listing) -> Since {
    let (Found::Present(then), Found::Present(entry)) = (&baseline.found, &now.found) else {
        return match (&baseline.found, &now.found) {
            (Found::Present(_), Found::Absent) => Since::Changed,
            _ => Since::NotShown,
        };
    };
    let size = then.bytes.zip(entry.bytes).map(|(then, now)| then == now);
    let time = then.modified.zip(entry.modified).map(|(then, now)| now.cmp(&then));
    let checksum = baseline.sha256.zip(now.sha256).map(|(then, now)| then == now);
    match (time, size, checksum) {
        (Some(std::cmp::Ordering::Greater), ..) => Since::Newer,
        (Some(std::cmp::Ordering::Less), ..) | (_, Some(false), _) | (.., Some(false)) => Since::Changed,
        (Some(std::cmp::Ordering::Equal), Some(true), _) | (_, Some(true), Some(true)) => Since::Unchanged,
        (Some(std::cmp::Ordering::Equal) | None, Some(true) | None, Some(true) | None) if then.kind != entry.kind => {
            Since::Changed
        }
        (Some(std::cmp::Ordering::Equal) | None, Some(true) | None, Some(true) | None) => Since::NotShown,
    }
}

/// The temporary name, by the newest look at it.
fn temporary(record: &OnRecord<'_>, name: Option<&str>, receipts: &[&Receipt], settled: bool) -> Temporary {
    let expected = record.expected;
    let Some(name) = name else { return Temporary::NotShown };
    let newest = receipts.iter().rev().filter_map(|receipt| receipt.temporary.as_ref()).find(|look| look.at == name);
    let removed_by_us = removal(record.evidence) != Removal::NotByUs;
    match newest.map(|look| &look.found) {
        Some(Found::Absent) if !removed_by_us => {
            let mut read_back = receipts.iter().filter_map(|receipt| receipt.bytes_read_back).peekable();
            Temporary::Gone { read_back: read_back.peek().is_some() && read_back.all(|bytes| bytes == expected.bytes) }
        }
        Some(Found::Present(entry)) if settled => match size(expected.bytes, entry) {
            Compared::Same => Temporary::Whole,
            Compared::Different | Compared::NotShown => Temporary::There,
        },
        Some(Found::Absent | Found::Present(_) | Found::NotVisible { .. } | Found::Unknown { .. }) | None => {
            Temporary::NotShown
        }
    }
}

/// What is on record about our own removals of the temporary file, by the attempt itself or by a reconciler. A refusal answers
/// an intention that is open then; one without an intention was asked for when nothing could be published any more.
pub fn removal(evidence: &[Evidence]) -> Removal {
    let (mut intended, mut answered) = (0_usize, 0_usize);
    let mut unclear = false;
    for one in evidence {
        match one {
            Evidence::RemovalIntended { .. } => intended += 1,
            Evidence::RemovalAnswered { answer: Answer::Acknowledged, .. } => return Removal::Confirmed,
            Evidence::RemovalAnswered { answer: Answer::Refused { .. }, .. } => answered = intended.min(answered + 1),
            Evidence::RemovalAnswered { answer: Answer::Unanswered { .. }, .. } => unclear = true,
            Evidence::Receipt(receipt) | Evidence::Observation(receipt) => match receipt.temporary_removed {
                Some(true) => return Removal::Confirmed,
                Some(false) => unclear = true,
                None => {}
            },
            Evidence::Baseline { .. } | Evidence::Publish { .. } => {}
        }
    }
    if unclear || intended > answered { Removal::Unclear } else { Removal::NotByUs }
}

/// Every trigger that the contract names must have been put, and its put acknowledged.
fn trigger(record: &OnRecord<'_>, receipts: &[&Receipt]) -> Trigger {
    let parts = Parts { key: record.key, attempt: record.attempt, final_name: &record.expected.name };
    let puts: Vec<&AuxiliaryPut> = receipts.iter().flat_map(|receipt| &receipt.auxiliary).collect();
    let mut triggers = record.contract.auxiliary.iter().filter(|auxiliary| auxiliary.trigger).peekable();
    if triggers.peek().is_none() {
        return Trigger::NoneAgreed;
    }
    let confirmed = triggers.all(|trigger| {
        puts.iter().any(|put| put.answer == Answer::Acknowledged && trigger.name.matches(&put.name, parts))
    });
    if confirmed { Trigger::Confirmed } else { Trigger::NotConfirmed }
}

/// Other authorized attempts, by whether a checksum tells them apart from this one.
pub fn others(expected: &FileFacts, others: &[Option<FileFacts>]) -> Others {
    let same = |other: &Option<FileFacts>| other.as_ref().is_none_or(|other| other.sha256 == expected.sha256);
    if others.is_empty() {
        Others::None
    } else if others.iter().any(same) {
        Others::SameContent
    } else {
        Others::OtherContent
    }
}

/// What the partner said, by the acknowledgments that the host read with a [`Reader`](super::acknowledgment::Reader); also how a
/// replacement asks about its original. What speaks against the delivery weighs more than what speaks for it.
pub fn acceptance(record: &OnRecord<'_>, acknowledged: &[&Acknowledged]) -> Acceptance {
    let mut strongest = Acceptance::None;
    for one in acknowledged {
        let said = said(record, one);
        if weight(said) > weight(strongest) {
            strongest = said;
        }
    }
    strongest
}

fn said(record: &OnRecord<'_>, acknowledged: &Acknowledged) -> Acceptance {
    let for_key = acknowledged.key.as_deref();
    let for_attempt = acknowledged.attempt.as_deref();
    if for_key.is_some_and(|key| key != record.key)
        || for_attempt.is_some_and(|attempt| !attempt.eq_ignore_ascii_case(record.attempt))
    {
        return Acceptance::None;
    }
    let content = acknowledged.sha256.as_deref().map(|digest| Sha256::try_from(digest.to_ascii_lowercase()).ok());
    let ours = content.map(|content| content == Some(record.expected.sha256));
    let anothers = content.flatten().is_some_and(|content| {
        record.others.iter().flatten().any(|other| other.sha256 == content && content != record.expected.sha256)
    });
    if anothers && for_attempt.is_none() {
        return Acceptance::None;
    }
    match acknowledged.says.as_str() {
        "refused" => Acceptance::Refused,
        "duplicate" => Acceptance::Duplicate,
        "accepted" if ours == Some(false) => Acceptance::OtherContent,
        "accepted" if for_attempt.is_some() => Acceptance::Tied,
        "accepted" if ours == Some(true) && others(record.expected, record.others) != Others::SameContent => {
            Acceptance::Tied
        }
        "accepted" if for_key.is_some() => Acceptance::KeyOnly { sole: record.attempts_past_the_fence == 1 },
        _ => Acceptance::None,
    }
}

const fn weight(said: Acceptance) -> u8 {
    match said {
        Acceptance::None => 0,
        Acceptance::KeyOnly { sole: false } => 1,
        Acceptance::KeyOnly { sole: true } => 2,
        Acceptance::Tied => 3,
        Acceptance::OtherContent => 4,
        Acceptance::Duplicate => 5,
        Acceptance::Refused => 6,
    }
}

#[cfg(test)]
mod tests;
