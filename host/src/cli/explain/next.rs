//! What a person can do with a job as it stands, and what each step would mean. Only steps that the state allows, as
//! whole commands; what is in capital letters is the person's to fill in.

mod commands;
mod unsent;

use serde::Serialize;

use self::commands::{cancel, correct, create, edit, explain, held_up, look_at_original, reconcile, watch};
use self::unsent::{create_anew, with_another_scope};
use super::family::Family;
use super::theirs::{Lies, Says, Theirs, What, Word};
use super::trigger::Unconfirmed;
use super::waits::Waits;
use super::words::at;
use crate::job::model::Job;
use crate::job::status::{EventKind, FailureReason, Status};

/// One step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(in crate::cli) struct Step {
    /// What it is, and what it would mean.
    pub means: String,
    /// How it is done here; none if it is done elsewhere.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
}

impl Step {
    fn elsewhere(means: &str) -> Self {
        Self { means: means.to_owned(), command: None }
    }

    fn command(means: &str, command: String) -> Self {
        Self { means: means.to_owned(), command: Some(command) }
    }
}

/// The steps that the state allows, the likeliest first.
pub(super) fn steps(job: &Job, family: &Family, theirs: &Theirs, waits: &Waits<'_>) -> Vec<Step> {
    let mut events = family.events(job.id).iter();
    let corrected = events.any(|event| event.kind == EventKind::Corrected && Some(event.attempt) == job.attempt);
    match job.status {
        Status::Queued => queued(job, waits),
        Status::Running if job.stop_request.is_some() => {
            vec![watch(job, "Wait. It ends Stopped once its worker, or recovery, has seen the request.")]
        }
        Status::Running => {
            vec![cancel(
                job,
                "Ask it to stop. It ends Stopped unless delivery is authorized first; the answer says which.",
            )]
        }
        Status::Delivering => {
            vec![watch(job, "Wait. Nothing can be changed while it is being delivered; its end will be recorded.")]
        }
        Status::OutcomeUnknown => unknown(job, family, theirs),
        Status::Completed => completed(job, family, theirs, corrected),
        Status::Failed => failed(job, family, theirs, corrected),
        Status::Rejected => unsent::rejected(job, family),
        Status::Canceled | Status::Stopped => unsent::ended(job, family),
    }
}

fn queued(job: &Job, waits: &Waits<'_>) -> Vec<Step> {
    let at_once = waits.scheduled.map(|_| {
        edit(job, "--no-not-before", "Let it start as soon as policy allows. The version of its terms rises.")
    });
    at_once
        .into_iter()
        .chain(held_up(job, waits.destination))
        .chain([
            cancel(job, "Cancel it. It ends Canceled unless a worker claims it first; the answer says which."),
            edit(
                job,
                "--scope NAME=VALUE",
                "Edit its terms. The version rises, policy looks again, and a worker that saw the old terms cannot claim it.",
            ),
        ])
        .collect()
}

/// What the partner said against a delivery.
fn against(theirs: &Theirs) -> Option<&Word> {
    theirs.answer.as_ref().filter(|word| word.says != Says::Accepted)
}

/// What can be done with a refused file: the step that is possible at once, and then those that deliver the key once more,
/// of which `mend` makes the record say that they do not have it.
fn refused(job: &Job, family: &Family, theirs: &Theirs, mend: Step) -> Vec<Step> {
    let lies = theirs.lies.map(|lies| format!(" {}", lies.sentence())).unwrap_or_default();
    let gone = theirs.lies.is_some_and(|lies| lies.what == What::Nothing);
    let mut steps = vec![create(
        job,
        "",
        &format!(
            "The partner refused it.{lies} Correct the data, and create a new job: a delivery of its own, with its own key, under another name."
        ),
    )];
    let original = family.original(job);
    if family.holder(original.id).is_some_and(|holder| holder.id != job.id) {
        steps.push(mend);
        steps.extend(replace(job, family));
        return steps;
    }
    if !gone {
        steps.push(Step::elsewhere(
            "Or deliver the same key once more: have them remove the file first, and only then take the next steps, in this order.",
        ));
    }
    steps.push(mend);
    match replace(job, family) {
        Some(replace) => steps.push(replace),
        // The record has to be mended first.
        None if original.id == job.id || replaceable(original) => steps.push(once_more(
            original,
            "After that, deliver the same key once more, by a job of its own. It overwrites nothing without the partner's agreement.",
        )),
        None => {}
    }
    steps
}

fn unknown(job: &Job, family: &Family, theirs: &Theirs) -> Vec<Step> {
    let mut steps = match against(theirs) {
        Some(Word { says: Says::Refused, .. }) => {
            let mend = reconcile(
                job,
                "not-delivered",
                "Record that they refused it and do not have it any more, and that this attempt can no longer bring it. It ends Failed/NotDelivered, in your name, once and for good.",
            );
            let mut steps = refused(job, family, theirs, mend);
            // Without the fence the store takes no completion from a person: a file found then is somebody else's.
            if job.publish_intended_at.is_some() {
                steps.push(reconcile(
                    job,
                    "completed",
                    "Only if they took it after all: record that the partner has the file. It ends Completed, in your name, once and for good.",
                ));
            }
            return steps;
        }
        Some(word) => vec![Step::elsewhere(&format!(
            "The partner answered that it {}: ask what they have under the name. Do not send it by other means meanwhile: that could deliver it twice.",
            word.says.verb()
        ))],
        None => match &theirs.triggers {
            Some(triggers) => without_trigger(job, family, theirs.answer.as_ref(), triggers),
            None => vec![Step::elsewhere(
                "Ask the partner whether the file is there. Do not send it by other means meanwhile: that could deliver it twice.",
            )],
        },
    };
    // Without the fence the store takes no completion from a person: a file found then is somebody else's.
    let offered = |step: &Step| step.command.as_deref().is_some_and(|command| command.contains("--outcome completed"));
    if job.publish_intended_at.is_some() && !steps.iter().any(offered) {
        steps.push(reconcile(
            job,
            "completed",
            "Record that the partner has the file. It ends Completed, in your name, once and for good.",
        ));
    }
    steps.push(reconcile(
        job,
        "not-delivered",
        "Record that the partner does not have the file and that this attempt can no longer bring it. It ends Failed/NotDelivered, in your name, once and for good.",
    ));
    steps.extend(replace(job, family));
    steps
}

/// What can be done first where only the trigger keeps the outcome open. The partner's word counts for this job where no other one of
/// its key can have been meant.
fn without_trigger(job: &Job, family: &Family, answer: Option<&Word>, triggers: &Unconfirmed) -> Vec<Step> {
    let called = triggers.called();
    let by_hand = "have them take the file without it, or put that one there yourself, by your own means and as agreed with \
                   them; no host puts it later. Then record what they have.";
    match answer.filter(|_| family.key(job).publishes <= 1) {
        Some(word) => vec![
            reconcile(
                job,
                "completed",
                &format!(
                    "The partner accepted it {}: record on that word that it has the file. It ends Completed, in your name, once and for good.",
                    word.source()
                ),
            ),
            Step::elsewhere(&format!("Only if they still wait for the {called}: {by_hand}")),
        ],
        None => vec![
            Step::elsewhere(&format!(
                "Ask the partner whether the file is there, and the {called}, on which they act. Do not send the file by other means \
                 meanwhile: that could deliver it twice."
            )),
            Step::elsewhere(&format!("If they have the file without the {called}: {by_hand}")),
        ],
    }
}

fn completed(job: &Job, family: &Family, theirs: &Theirs, corrected: bool) -> Vec<Step> {
    if let Some(Word { says: Says::Refused, .. }) = against(theirs) {
        let mend = correct(
            job,
            "--from completed --to failed",
            "Correct the record: they refused it and do not have it any more. It ends Failed/NotDelivered, in your name and once; it moves no file.",
        );
        let steps = refused(job, family, theirs, mend);
        return if corrected { steps.into_iter().take(1).chain([settled_outside()]).collect() } else { steps };
    }
    if corrected {
        return vec![settled_outside()];
    }
    let first = match (against(theirs), theirs.awaited) {
        (Some(word), _) => {
            format!("The partner answered that it {}: ask what they have under the name.", word.says.verb())
        }
        (None, Some(awaited)) if awaited.over => {
            "Ask the partner for the answer that was agreed and did not come.".to_owned()
        }
        (None, Some(awaited)) => format!(
            "Nothing is left to do, unless their answer says otherwise: a host looks for it until {}.",
            at(awaited.until)
        ),
        (None, None) => "Nothing is left to do.".to_owned(),
    };
    vec![
        Step::elsewhere(&first),
        correct(
            job,
            "--from completed --to failed",
            "Only if the partner shows that it does not have the file: correct the record, in your name and once. It moves no file and starts no work.",
        ),
    ]
}

fn failed(job: &Job, family: &Family, theirs: &Theirs, corrected: bool) -> Vec<Step> {
    let contradiction = theirs.answer.as_ref().filter(|word| word.contradicts_the_record);
    let mut steps: Vec<Step> = contradiction.map(contradicted).into_iter().collect();
    steps.extend(match job.failure_reason {
        Some(FailureReason::BuildFailed | FailureReason::AttemptsExhausted) | None => {
            vec![Step::elsewhere("Mend the cause that the story names; until then any further job fails the same way.")]
        }
        Some(FailureReason::NotDelivered) => {
            vec![Step::elsewhere("Mend the cause that the story names, with the partner if it is theirs.")]
        }
        Some(FailureReason::FinalNameOccupied) => {
            vec![Step::elsewhere(
                "Find out with the partner whose file has the name. Delete nothing: it may be the delivery.",
            )]
        }
        Some(FailureReason::OriginalDelivered) => vec![look_at_original(job), create_anew(job)],
    });
    steps.extend(replace(job, family));
    let may_be_ours = match job.failure_reason {
        Some(FailureReason::FinalNameOccupied | FailureReason::OriginalDelivered) => true,
        Some(FailureReason::BuildFailed | FailureReason::AttemptsExhausted | FailureReason::NotDelivered) | None => {
            false
        }
    };
    if job.replaces.is_none() && !may_be_ours {
        steps.push(match job.failure_reason {
            Some(FailureReason::BuildFailed) => with_another_scope(job),
            Some(_) | None => create_anew(job),
        });
    }
    let another_counts =
        job.replaces.and_then(|original| family.holder(original)).is_some_and(|holder| holder.id != job.id);
    // The store refuses it of what was never authorized, and while another replacement counts as the key's delivery.
    if job.delivery_authorized_at.is_some() && !another_counts {
        steps.push(if corrected {
            settled_outside()
        } else {
            correct(
                job,
                "--from failed --to completed",
                "Only if the partner shows that it has this job's file: correct the record, in your name and once. It moves no file and starts no work.",
            )
        });
    }
    steps
}

fn contradicted(word: &Word) -> Step {
    Step::elsewhere(&format!(
        "The partner answered that it {}, against the record. Clear that with them before anything is sent again.",
        word.says.verb()
    ))
}

/// A replacement, where the original and the slot allow one. It is the original that is replaced.
fn replace(job: &Job, family: &Family) -> Option<Step> {
    let original = family.original(job);
    if let Some(holder) = family.holder(original.id) {
        if holder.id == job.id {
            return None;
        }
        return Some(Step::command(
            &format!("Look at its replacement, {}, which is {}.", holder.id, holder.status),
            explain(holder.id, holder.tenant),
        ));
    }
    if !replaceable(original) {
        return None;
    }
    if let Some(lies) = family.lies(original).filter(|lies| lies.may_be_ours()) {
        return Some(once_more(
            original,
            &format!("Deliver the same key once more, by a job of its own.{} {}", same_scope(job), in_the_way(lies)),
        ));
    }
    let command = format!("waybill job replace {} --tenant {} --reason WHY --as YOU", original.id, original.tenant);
    Some(Step::command(&format!("{}{}", replacing(original), same_scope(job)), command))
}

/// What a replacement of a job comes to whose build failed.
const fn same_scope(job: &Job) -> &'static str {
    match job.failure_reason {
        Some(FailureReason::BuildFailed) => {
            " A replacement has the same scope: where that is what the build failed for, it fails again."
        }
        Some(
            FailureReason::AttemptsExhausted
            | FailureReason::NotDelivered
            | FailureReason::FinalNameOccupied
            | FailureReason::OriginalDelivered,
        )
        | None => "",
    }
}

/// What a replacement comes to while a file that may be the original's has the name.
pub(in crate::cli) fn in_the_way(lies: Lies) -> String {
    let ends = match lies.what {
        What::OfOurSize => "Failed/FinalNameOccupied, or as Failed/OriginalDelivered, which holds",
        What::Ours | What::Another | What::Nothing => "Failed/OriginalDelivered, and holds",
    };
    format!(
        "Only once the partner has removed the file. {} While it lies there, a replacement sends nothing, ends as {ends} the place of \
         every later one: the key cannot be delivered any more.",
        lies.sentence()
    )
}

fn once_more(original: &Job, means: &str) -> Step {
    Step::command(
        means,
        format!(
            "waybill job replace {} --tenant {} --file-removed --reason WHY --as YOU",
            original.id, original.tenant
        ),
    )
}

/// True of an original that the store lets be replaced.
pub(in crate::cli) const fn replaceable(original: &Job) -> bool {
    match original.status {
        Status::OutcomeUnknown => true,
        Status::Failed => match original.failure_reason {
            Some(FailureReason::BuildFailed | FailureReason::AttemptsExhausted | FailureReason::NotDelivered) => true,
            Some(FailureReason::FinalNameOccupied | FailureReason::OriginalDelivered) | None => false,
        },
        Status::Queued
        | Status::Running
        | Status::Delivering
        | Status::Canceled
        | Status::Rejected
        | Status::Stopped
        | Status::Completed => false,
    }
}

const fn replacing(original: &Job) -> &'static str {
    match (original.delivery_authorized_at.is_some(), matches!(original.status, Status::OutcomeUnknown)) {
        (_, true) => {
            "Deliver the same key once more, by a job of its own. Only if a second arrival does no harm at the partner: if the file did arrive, or \
             still does, they have it twice. It overwrites nothing without the partner's agreement."
        }
        (true, false) => {
            "Deliver the same key once more, by a job of its own. The record says that the file was not delivered; if that is wrong, the partner \
             has it twice. It overwrites nothing without the partner's agreement."
        }
        (false, false) => {
            "Deliver the same key once more, by a job of its own. Nothing of the original was sent. It overwrites nothing without the partner's \
             agreement."
        }
    }
}

fn settled_outside() -> Step {
    Step::elsewhere(
        "The record was corrected once, and only once can it be: what contradicts it now is settled outside the job.",
    )
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::cli::explain::said::tests::job;

    fn replacement(id: u128, status: Status, reason: Option<FailureReason>) -> Job {
        Job { id: Uuid::from_u128(id), replaces: Some(Uuid::from_u128(1)), ..job(status, reason, true, true) }
    }

    fn commands(job: &Job, family: &[&Job]) -> Vec<String> {
        let family = Family::of(family.iter().map(|job| (*job).clone()).collect());
        steps(job, &family, &Theirs::default(), &Waits::default()).into_iter().filter_map(|step| step.command).collect()
    }

    #[test]
    fn rpl_01_what_is_offered_of_a_failed_replacement_is_to_replace_its_original() {
        let original = job(Status::Failed, Some(FailureReason::NotDelivered), true, true);
        let failed = replacement(7, Status::Failed, Some(FailureReason::NotDelivered));
        let offered = commands(&failed, &[&failed, &original]);
        let replace = format!("waybill job replace {} ", original.id);
        assert!(offered.iter().any(|command| command.starts_with(&replace)), "{offered:?}");
        assert!(offered.iter().any(|command| command.starts_with("waybill job correct ")), "{offered:?}");
    }

    #[test]
    fn rpl_02_while_another_holds_the_slot_only_a_look_at_it_is_offered() {
        let original = job(Status::OutcomeUnknown, None, true, true);
        let failed = replacement(7, Status::Failed, Some(FailureReason::NotDelivered));
        let holder = replacement(8, Status::Queued, None);
        let explain = format!("waybill job explain {} ", holder.id);
        for job in [&failed, &original] {
            let offered = commands(job, &[&holder, &failed, &original]);
            assert!(offered.iter().any(|command| command.starts_with(&explain)), "{offered:?}");
            for refused in ["waybill job replace", "waybill job correct"] {
                assert!(!offered.iter().any(|command| command.starts_with(refused)), "{offered:?}");
            }
        }
        let delivered = job(Status::Completed, None, true, true);
        let offered = commands(&failed, &[&failed, &delivered]);
        assert!(!offered.iter().any(|command| command.contains("job replace")), "{offered:?}");
    }
}
