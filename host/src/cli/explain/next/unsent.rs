//! What can be done with a job that ended before anything was sent: its delivery key is used up, so that an original is followed by
//! a job of another key.

use super::commands::{create, look_at_original};
use super::{Step, replace};
use crate::cli::explain::family::Family;
use crate::cli::explain::words::bounded;
use crate::job::model::Job;

/// Most letters of a delivery key.
const KEY: usize = 200;

/// The steps for what is Canceled or Stopped.
pub(super) fn ended(job: &Job, family: &Family) -> Vec<Step> {
    match job.replaces {
        None => vec![create_anew(job)],
        Some(_) => vec![look_at_original(job)].into_iter().chain(replace(job, family)).collect(),
    }
}

/// The steps for what policy rejected. It ends so for good: no edit and no replacement brings it back.
pub(super) fn rejected(job: &Job, family: &Family) -> Vec<Step> {
    if job.replaces.is_some() {
        let mend = Step::elsewhere(
            "Mend what policy names. A further replacement begins with the original's scope and destination, so where the destination's \
             rules reject those, they have to be changed first.",
        );
        return [mend, look_at_original(job)].into_iter().chain(replace(job, family)).collect();
    }
    let used_up = format!(
        "Nothing was built or sent, but its delivery key, {}, is used up: a rejected job can be neither edited nor replaced.",
        bounded(&job.delivery_key, KEY)
    );
    let code = job.rejection.as_ref().and_then(|rejection| rejection.get("code")).and_then(|code| code.as_str());
    if code == Some("destination_not_found") {
        return vec![Step::command(
            &format!("{used_up} Create a new job with another key, for a destination that the tenant has."),
            format!(
                "waybill job create --tenant {} --destination DESTINATION --scope NAME=VALUE --key ANOTHER_KEY --as YOU",
                job.tenant
            ),
        )];
    }
    let mend = match code {
        Some("scope_forbidden") => {
            "Leave the word out of the scope, or have it allowed (`scope` below [destination.rules] in destinations.toml). Then create"
        }
        Some(_) | None => "Mend what policy names. Then create",
    };
    vec![create(job, " --key ANOTHER_KEY", &format!("{used_up} {mend} a new job with another key."))]
}

/// A new delivery of the same export.
pub(super) fn create_anew(job: &Job) -> Step {
    create(
        job,
        "",
        "If the export is still wanted, create a new job: a delivery of its own, with another key (made, or named with --key).",
    )
}

/// The same after a build that failed.
pub(super) fn with_another_scope(job: &Job) -> Step {
    create(
        job,
        "",
        "With another scope, create a new job: a delivery of its own, with another key (made, or named with --key).",
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use uuid::Uuid;

    use super::*;
    use crate::cli::explain::said::tests::job;
    use crate::job::status::{FailureReason, Status};

    fn rejected_for(code: &str) -> Job {
        let rejection = json!({ "code": code, "sentence": "Because." });
        Job { rejection: Some(rejection), ..job(Status::Rejected, None, false, false) }
    }

    #[test]
    fn cli_01_a_rejected_original_is_followed_by_a_job_of_another_key() {
        for (code, says, command) in [
            ("scope_forbidden", "[destination.rules]", "--scope NAME=VALUE --key ANOTHER_KEY"),
            ("scope_not_an_object", "Mend what policy names.", "--key ANOTHER_KEY"),
            ("destination_not_found", "for a destination that the tenant has", "--destination DESTINATION"),
            ("of a later version", "Mend what policy names.", "--key ANOTHER_KEY"),
        ] {
            let steps = rejected(&rejected_for(code), &Family::default());
            let [step] = steps.as_slice() else { panic!("{steps:?}") };
            assert!(step.means.contains("key, spring, is used up") && step.means.contains(says), "{step:?}");
            assert!(step.command.as_deref().is_some_and(|said| said.contains(command)), "{step:?}");
        }
    }

    #[test]
    fn rpl_01_a_rejected_replacement_is_followed_by_another_one_once_the_rules_allow_it() {
        let original = job(Status::Failed, Some(FailureReason::NotDelivered), true, true);
        let replacement =
            Job { id: Uuid::from_u128(7), replaces: Some(original.id), ..rejected_for("scope_forbidden") };
        let steps = rejected(&replacement, &Family::of(vec![replacement.clone(), original]));
        assert!(steps.iter().any(|step| step.means.contains("begins with the original's scope")), "{steps:?}");
        let commands: Vec<&str> = steps.iter().filter_map(|step| step.command.as_deref()).collect();
        assert!(commands.iter().any(|command| command.starts_with("waybill job replace ")), "{commands:?}");
        assert!(!commands.iter().any(|command| command.starts_with("waybill job create ")), "{commands:?}");
    }
}
