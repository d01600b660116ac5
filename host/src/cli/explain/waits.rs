//! What a queued job waits for, as far as it is on record.
//!
//! Pure. Its own time comes first, as for policy, then what holds its destination up. Of a pause the cause is not recorded: the
//! words for it are neutral, and what is known of this job's own last try stands beside them.

use time::OffsetDateTime;

use super::words::{at, bounded, paused, stopped};
use crate::cli::words::resume;
use crate::job::model::Job;
use crate::job::status::EventKind;
use crate::store::{AttemptEvent, DestinationState};

/// Most letters of others' words.
const WORDS: usize = 400;

/// What may hold a queued job up.
#[derive(Debug, Clone, Default)]
pub(super) struct Waits<'a> {
    pub destination: Option<&'a DestinationState>,
    /// The job's `not_before`, while that is to come.
    pub scheduled: Option<OffsetDateTime>,
    pub handed_back: Option<HandedBack>,
}

/// How the job's last try ended, where it was handed back with nothing sent.
#[derive(Debug, Clone)]
pub(super) struct HandedBack {
    at: OffsetDateTime,
    why: String,
}

impl HandedBack {
    pub fn of(events: &[AttemptEvent]) -> Option<Self> {
        let last = events.iter().rev().find(|event| event.kind == EventKind::ReleasedByWorker)?;
        let why = last.detail.as_ref()?.get("why")?.as_str()?;
        Some(Self { at: last.recorded_at, why: bounded(why, WORDS) })
    }
}

impl Waits<'_> {
    /// After "Where it stands: ".
    pub fn sentence(&self, job: &Job) -> String {
        match (self.scheduled, self.held_up(job)) {
            (Some(time), Some(held_up)) => format!("it does not start before {}. Besides, {held_up}", at(time)),
            (Some(time), None) => {
                format!("it does not start before {}. After that it waits {}", at(time), self.claim())
            }
            (None, Some(held_up)) => format!("it waits: {held_up}"),
            (None, None) => format!("it waits {}", self.claim()),
        }
    }

    /// What holds its destination up.
    fn held_up(&self, job: &Job) -> Option<String> {
        let state = self.destination?;
        let name = &state.name;
        if !state.enabled {
            return Some(format!("the destination {name} is disabled."));
        }
        if let Some(attention) = &state.attention {
            return Some(format!(
                "the destination {name} needs attention since {}: {} Once that is mended: {}",
                at(attention.since),
                stopped(&bounded(&attention.why, WORDS)),
                resume(job.destination, job.tenant)
            ));
        }
        let pause = state.pause.as_ref()?;
        let own = self.handed_back.as_ref().map_or_else(String::new, |own| {
            format!(" This job's own last try was handed back at {}: {}", at(own.at), stopped(&own.why))
        });
        Some(format!("the destination {name} is paused: {}.{own}", paused(pause)))
    }

    /// After "it waits ".
    fn claim(&self) -> String {
        self.destination.map_or_else(
            || "for a host that serves its destination.".to_owned(),
            |state| {
                format!(
                    "to be claimed by a host that has the bundle of {}; `waybill partner list` beside a host shows what is there.",
                    state.partner
                )
            },
        )
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use uuid::Uuid;

    use super::*;
    use crate::cli::explain::said::tests::job;
    use crate::job::status::Status;
    use crate::store::DestinationPause;

    fn state(enabled: bool, paused: bool) -> DestinationState {
        let pause =
            DestinationPause { failures: 2, since: Duration::ZERO, left: Duration::from_secs(30), probing: None };
        DestinationState {
            id: Uuid::from_u128(4),
            tenant: Uuid::from_u128(2),
            name: "acme".to_owned(),
            partner: "northwind".to_owned(),
            revision: 1,
            digests: serde_json::json!({}),
            enabled,
            attention: None,
            pause: paused.then_some(pause),
        }
    }

    #[test]
    fn cre_04_its_own_time_is_said_first_and_then_what_else_holds_it_up() {
        let job = job(Status::Queued, None, false, false);
        let said = |scheduled: bool, state: Option<&DestinationState>| {
            let scheduled = scheduled.then_some(OffsetDateTime::UNIX_EPOCH);
            Waits { destination: state, scheduled, handed_back: None }.sentence(&job)
        };
        let first = "it does not start before 1970-01-01 00:00:00Z. ";
        let ready = "to be claimed by a host that has the bundle of northwind; ";
        for (says, after) in [
            (said(true, Some(&state(true, false))), format!("{first}After that it waits {ready}")),
            (said(true, Some(&state(false, false))), format!("{first}Besides, the destination acme is disabled.")),
            (said(true, Some(&state(true, true))), format!("{first}Besides, the destination acme is paused: ")),
            (said(false, Some(&state(true, false))), format!("it waits {ready}")),
            (said(false, Some(&state(false, true))), "it waits: the destination acme is disabled.".to_owned()),
            (said(false, None), "it waits for a host that serves its destination.".to_owned()),
        ] {
            assert!(says.starts_with(&after), "{after:?} does not begin: {says}");
        }
    }
}
