//! The steps' commands, each whole; what is in capital letters is the person's to fill in.

use uuid::Uuid;

use super::Step;
use crate::cli::words::resume;
use crate::job::model::Job;
use crate::store::DestinationState;

/// What sets a queued job free that a person, or its own time, holds up.
pub(super) fn held_up(job: &Job, destination: Option<&DestinationState>) -> Option<Step> {
    let state = destination?;
    if !state.enabled {
        return Some(Step::command(
            "Enable its destination again, once what it was disabled for is done.",
            format!("waybill partner enable {} --tenant {} --reason WHY --as YOU", job.destination, job.tenant),
        ));
    }
    state.attention.as_ref().map(|_| {
        Step::command(
            "Mend what its destination needs attention for, and say so: its jobs are tried again.",
            resume(job.destination, job.tenant),
        )
    })
}

pub(super) fn edit(job: &Job, change: &str, means: &str) -> Step {
    Step::command(
        means,
        format!("waybill job edit {} --tenant {} --version {} {change} --as YOU", job.id, job.tenant, job.version),
    )
}

/// A new job for the same destination; `more` are further arguments.
pub(super) fn create(job: &Job, more: &str, means: &str) -> Step {
    Step::command(
        means,
        format!(
            "waybill job create --tenant {} --destination {} --scope NAME=VALUE{more} --as YOU",
            job.tenant, job.destination
        ),
    )
}

pub(super) fn cancel(job: &Job, means: &str) -> Step {
    Step::command(means, format!("waybill job cancel {} --tenant {} --reason WHY --as YOU", job.id, job.tenant))
}

pub(super) fn watch(job: &Job, means: &str) -> Step {
    Step::command(means, format!("waybill job watch {} --tenant {}", job.id, job.tenant))
}

pub(super) fn reconcile(job: &Job, outcome: &str, means: &str) -> Step {
    Step::command(
        means,
        format!(
            "waybill job reconcile {} --tenant {} --attempt {} --outcome {outcome} --reason WHY --evidence WHERE --as YOU",
            job.id,
            job.tenant,
            attempt(job)
        ),
    )
}

pub(super) fn correct(job: &Job, edge: &str, means: &str) -> Step {
    Step::command(
        means,
        format!(
            "waybill job correct {} --tenant {} --attempt {} {edge} --reason WHY --evidence WHERE --as YOU",
            job.id,
            job.tenant,
            attempt(job)
        ),
    )
}

fn attempt(job: &Job) -> String {
    job.attempt.map_or_else(|| "ATTEMPT".to_owned(), |attempt| attempt.to_string())
}

pub(super) fn explain(job: Uuid, tenant: Uuid) -> String {
    format!("waybill job explain {job} --tenant {tenant}")
}

pub(super) fn look_at_original(job: &Job) -> Step {
    Step::command(
        "Look at the original, which this job was to replace, and settle its record.",
        explain(job.replaces.unwrap_or(job.id), job.tenant),
    )
}
