//! The decision, over facts that were read together.

use std::time::Duration;

use uuid::Uuid;

use super::delay::{growing_delay, with_jitter};
use super::rules::{DestinationRules, Weekday};

/// What policy says of a queued job.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub enum Decision {
    Allow,
    /// Never on these terms.
    Reject(Rejection),
    /// Not now. The wake-up is handed back with this delay; no attempt is spent.
    Later {
        after: Duration,
        code: &'static str,
        sentence: String,
    },
}

/// Why terms were rejected: a stable code, and a sentence that says what is wrong with them. It is read once the job has ended, so it
/// asks for no edit.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Rejection {
    pub code: &'static str,
    pub sentence: String,
}

/// Everything that the decision rests on.
#[derive(Debug, Clone)]
pub struct Facts<'a> {
    pub tenant: Uuid,
    pub scope: &'a serde_json::Value,
    /// What is left until the job's `not_before` by the database's clock; zero if it has none or is due.
    pub starts_in: Duration,
    /// What is known of the job's destination; `None` where the database has no row of it.
    pub destination: Option<DestinationFacts<'a>>,
    /// The database's clock, in UTC.
    pub clock: Clock,
    /// Drawn by the caller; spreads what is deferred for the same reason.
    pub jitter: u8,
}

#[derive(Debug, Clone)]
pub struct DestinationFacts<'a> {
    pub tenant: Uuid,
    /// As operators call it.
    pub name: &'a str,
    /// This host has the bundle that serves it.
    pub served: bool,
    /// The operator's own switch.
    pub enabled: bool,
    pub state: State<'a>,
    pub rules: &'a DestinationRules,
    pub load: Load,
}

/// What deliveries found of the destination lately.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State<'a> {
    Ready,
    /// Somebody has to mend it (a refused key, an unknown host key); why, in the words of the error.
    NeedsAttention {
        why: &'a str,
    },
    /// Its partner, or a database of its queries, could not be reached.
    Paused(Pause),
}

/// One job at a time probes a paused destination, once its delay is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pause {
    /// Such failures in a row.
    pub failures: u32,
    /// Since the latest of them.
    pub since: Duration,
    /// A job is probing it now.
    pub probing: bool,
}

/// Starts at this destination in the last period of its rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Load {
    pub started: u32,
    /// Of the oldest of them: how long ago.
    pub oldest: Duration,
}

/// The time of the week by the database's clock, in UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Clock {
    pub day: Weekday,
    /// Second of the day.
    pub second: u32,
}

/// How often a person's repair is looked for.
const MENDED: Duration = Duration::from_mins(5);
/// The first delay of a pause, doubled with every failure.
const PAUSE_FIRST: Duration = Duration::from_secs(15);
const PAUSE_CAP: Duration = Duration::from_mins(15);
/// How often a job looks whether another one's probe has ended.
const PROBE: Duration = Duration::from_secs(15);
/// The least delay, so that a limit at its edge does not make a worker spin.
const LEAST: Duration = Duration::from_secs(1);

/// Decides. What comes first in this order is what is said: nothing is judged before its time, terms are judged before
/// circumstances, and what a person has to mend before what passes by itself.
pub fn evaluate(facts: &Facts<'_>) -> Decision {
    if !facts.starts_in.is_zero() {
        return Decision::Later {
            after: facts.starts_in.max(LEAST),
            code: "not_before",
            sentence: "The job is scheduled for later.".to_owned(),
        };
    }
    let later = |after: Duration, code, sentence| Decision::Later {
        after: with_jitter(after.max(LEAST), facts.jitter),
        code,
        sentence,
    };
    let Some(destination) = &facts.destination else {
        return later(MENDED, "destination_unknown", "No bundle has brought this destination yet.".to_owned());
    };
    if destination.tenant != facts.tenant {
        return Decision::Reject(Rejection {
            code: "destination_not_found",
            sentence: "The tenant has no such destination.".to_owned(),
        });
    }
    if let Some(rejection) = forbidden_scope(facts.scope, destination) {
        return Decision::Reject(rejection);
    }
    let name = destination.name;
    if !destination.enabled {
        return later(MENDED, "destination_disabled", format!("The destination {name} is disabled by its operator."));
    }
    if !destination.served {
        return later(MENDED, "destination_not_served", format!("This host does not serve the destination {name}."));
    }
    match destination.state {
        State::Ready => {}
        State::NeedsAttention { why } => {
            return later(MENDED, "needs_attention", format!("The destination {name} needs attention: {why}"));
        }
        State::Paused(pause) => {
            let left = growing_delay(pause.failures, PAUSE_FIRST, PAUSE_CAP).saturating_sub(pause.since);
            if !left.is_zero() {
                return later(
                    left,
                    "paused",
                    format!("The partner or a query's database of the destination {name} was not reached lately."),
                );
            }
            if pause.probing {
                return later(
                    PROBE,
                    "probing",
                    format!("Another job is trying whether the destination {name} can be delivered to again."),
                );
            }
        }
    }
    let opens_in = destination.rules.opens_in(facts.clock.day, facts.clock.second);
    if !opens_in.is_zero() {
        return later(opens_in, "window_closed", format!("The delivery window of the destination {name} is closed."));
    }
    match destination.rules.rate {
        Some(rate) if destination.load.started >= rate.jobs => {
            let left = Duration::from_secs(u64::from(rate.seconds)).saturating_sub(destination.load.oldest);
            let limit = format!("{} jobs in {} seconds", rate.jobs, rate.seconds);
            later(left, "rate_limited", format!("The destination {name} takes at most {limit}."))
        }
        Some(_) | None => Decision::Allow,
    }
}

/// True where an allowed job is the one that probes a paused destination: the caller takes the probe's place first.
pub fn is_probe(facts: &Facts<'_>) -> bool {
    facts.destination.as_ref().is_some_and(|destination| matches!(destination.state, State::Paused(_)))
        && evaluate(facts) == Decision::Allow
}

fn forbidden_scope(scope: &serde_json::Value, destination: &DestinationFacts<'_>) -> Option<Rejection> {
    let keys = match scope {
        serde_json::Value::Object(keys) => keys,
        serde_json::Value::Null => return None,
        serde_json::Value::Bool(_)
        | serde_json::Value::Number(_)
        | serde_json::Value::String(_)
        | serde_json::Value::Array(_) => {
            return Some(Rejection {
                code: "scope_not_an_object",
                sentence: "The scope is not an object of names and values.".to_owned(),
            });
        }
    };
    let allowed = destination.rules.scope.as_ref()?;
    let key = keys.keys().find(|key| !allowed.contains(*key))?;
    Some(Rejection {
        code: "scope_forbidden",
        sentence: format!(
            "The destination {} does not allow the scope key {key:?}; its rules allow {}.",
            destination.name,
            if allowed.is_empty() {
                "none".to_owned()
            } else {
                let allowed: Vec<String> = allowed.iter().map(|key| format!("{key:?}")).collect();
                format!("only {}", allowed.join(", "))
            }
        ),
    })
}

#[cfg(test)]
mod tests;
