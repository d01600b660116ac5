//! The decision over its whole input space, and what it promises.

use super::*;
use crate::job::verdict::space::{Dimension, dimension, for_all, golden, tree};

/// One point of the space, with limits reduced to what they decide.
#[derive(Debug, Clone, Copy)]
#[expect(clippy::struct_excessive_bools, reason = "each is one dimension of the space")]
struct Point {
    due: bool,
    destination: Destination,
    scope: Scope,
    enabled: bool,
    served: bool,
    state: Condition,
    open: bool,
    below_rate: bool,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Destination {
    Unknown,
    OfAnotherTenant,
    Ours,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Scope {
    Allowed,
    Forbidden,
    NoObject,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Condition {
    Ready,
    NeedsAttention,
    Paused,
    PauseOver,
    Probing,
}

const TENANT: Uuid = Uuid::from_u128(1);
const YES_NO: [bool; 2] = [true, false];

const BEST: Point = Point {
    due: true,
    destination: Destination::Ours,
    scope: Scope::Allowed,
    enabled: true,
    served: true,
    state: Condition::Ready,
    open: true,
    below_rate: true,
};

fn dimensions() -> Vec<Dimension<Point>> {
    use Condition::{NeedsAttention, PauseOver, Paused, Probing, Ready};
    let destinations = [Destination::Unknown, Destination::OfAnotherTenant, Destination::Ours];
    vec![
        dimension("due", &YES_NO, |point: &mut Point, value| point.due = value),
        dimension("destination", &destinations, |point: &mut Point, value| point.destination = value),
        dimension("scope", &[Scope::Forbidden, Scope::NoObject, Scope::Allowed], |point: &mut Point, value| {
            point.scope = value;
        }),
        dimension("enabled", &YES_NO, |point: &mut Point, value| point.enabled = value),
        dimension("served", &YES_NO, |point: &mut Point, value| point.served = value),
        dimension("state", &[NeedsAttention, Paused, Probing, PauseOver, Ready], |point: &mut Point, value| {
            point.state = value;
        }),
        dimension("open", &YES_NO, |point: &mut Point, value| point.open = value),
        dimension("below_rate", &YES_NO, |point: &mut Point, value| point.below_rate = value),
    ]
}

/// Builds the facts of a point and hands them to `see`.
fn with_facts<T>(point: Point, see: impl FnOnce(&Facts<'_>) -> T) -> T {
    let rules: DestinationRules = toml::from_str(
        "scope = ['segment']\nrate = { jobs = 2, seconds = 60 }\n[[window]]\nfrom = '08:00'\nto = '18:00'",
    )
    .unwrap();
    let scope = match point.scope {
        Scope::Allowed => serde_json::json!({ "segment": "new" }),
        Scope::Forbidden => serde_json::json!({ "segment": "new", "everything": true }),
        Scope::NoObject => serde_json::json!("everything"),
    };
    let pause = |since, probing| State::Paused(Pause { failures: 3, since: Duration::from_secs(since), probing });
    let destination = DestinationFacts {
        tenant: if point.destination == Destination::Ours { TENANT } else { Uuid::from_u128(2) },
        name: "acme",
        served: point.served,
        enabled: point.enabled,
        state: match point.state {
            Condition::Ready => State::Ready,
            Condition::NeedsAttention => State::NeedsAttention { why: "the host key is not the configured one" },
            Condition::Paused => pause(59, false),
            Condition::PauseOver => pause(60, false),
            Condition::Probing => pause(60, true),
        },
        rules: &rules,
        load: Load { started: if point.below_rate { 1 } else { 2 }, oldest: Duration::from_secs(50) },
    };
    see(&Facts {
        tenant: TENANT,
        scope: &scope,
        starts_in: Duration::from_secs(if point.due { 0 } else { 90 }),
        destination: (point.destination != Destination::Unknown).then_some(destination),
        clock: Clock { day: Weekday::Tuesday, second: if point.open { 8 * 3600 } else { 7 * 3600 + 1800 } },
        jitter: 0,
    })
}

fn decide(point: Point) -> Decision {
    with_facts(point, evaluate)
}

/// Prints a decision by its code and delay.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Printed {
    Allow,
    Reject(&'static str),
    Later(&'static str, Duration),
}

impl From<Decision> for Printed {
    fn from(decision: Decision) -> Self {
        match decision {
            Decision::Allow => Self::Allow,
            Decision::Reject(rejection) => Self::Reject(rejection.code),
            Decision::Later { after, code, .. } => Self::Later(code, after),
        }
    }
}

impl std::fmt::Display for Printed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Allow => f.write_str("Allow"),
            Self::Reject(code) => write!(f, "Reject({code})"),
            Self::Later(code, after) => write!(f, "Later({code}, {} s)", after.as_secs()),
        }
    }
}

fn everywhere(mut rule: impl FnMut(&Point, Decision)) {
    let mut point = BEST;
    for_all(&dimensions(), &mut point, &mut |point| rule(point, decide(*point)));
}

#[test]
fn clm_05_every_combination_has_the_decision_of_the_golden_table() {
    golden("policy/golden/evaluate.txt", &tree(&dimensions(), BEST, |point| Printed::from(decide(*point))));
}

#[test]
fn clm_05_only_terms_are_rejected_and_only_when_due() {
    everywhere(|point, decision| {
        let wrong = point.destination == Destination::OfAnotherTenant
            || (point.destination == Destination::Ours && point.scope != Scope::Allowed);
        assert_eq!(matches!(decision, Decision::Reject(_)), point.due && wrong, "{point:?}: {decision:?}");
    });
}

#[test]
fn clm_05_evaluated_again_it_says_the_same() {
    everywhere(|point, decision| assert_eq!(decide(*point), decision, "{point:?}"));
}

#[test]
fn clm_05_another_tenants_destination_looks_like_a_missing_one() {
    let Decision::Reject(rejection) = decide(Point { destination: Destination::OfAnotherTenant, ..BEST }) else {
        panic!("it is rejected");
    };
    assert!(!rejection.sentence.contains("acme"), "{}", rejection.sentence);
}

#[test]
fn clm_05_a_rejection_asks_for_no_edit_of_a_job_that_has_ended_by_it() {
    everywhere(|point, decision| {
        if let Decision::Reject(rejection) = decision {
            assert!(!rejection.sentence.contains("edit"), "{point:?}: {}", rejection.sentence);
        }
    });
    let Decision::Reject(rejection) = decide(Point { scope: Scope::Forbidden, ..BEST }) else {
        panic!("it is rejected");
    };
    assert!(rejection.sentence.contains("\"everything\"; its rules allow only \"segment\"."), "{}", rejection.sentence);
}

#[test]
fn clm_06_what_waiting_or_a_person_can_mend_is_later_with_a_delay() {
    everywhere(|point, decision| {
        if let Decision::Later { after, .. } = &decision {
            assert!(*after >= LEAST && *after <= Duration::from_hours(24), "{point:?}: {decision:?}");
        }
        let mended = point.due
            && point.destination == Destination::Ours
            && point.scope == Scope::Allowed
            && point.enabled
            && point.served
            && matches!(point.state, Condition::Ready | Condition::PauseOver)
            && point.open
            && point.below_rate;
        assert_eq!(decision == Decision::Allow, mended, "{point:?}: {decision:?}");
    });
}

#[test]
fn clm_06_a_paused_destination_is_probed_by_one_job_at_a_time() {
    assert!(with_facts(Point { state: Condition::PauseOver, ..BEST }, is_probe));
    for state in [Condition::Ready, Condition::Paused, Condition::Probing, Condition::NeedsAttention] {
        assert!(!with_facts(Point { state, ..BEST }, is_probe), "{state:?}");
    }
}

#[test]
fn clm_06_a_scheduled_job_comes_back_at_its_time_and_not_before() {
    let point = Point { due: false, ..BEST };
    let decision = with_facts(point, |facts| evaluate(&Facts { jitter: 255, ..facts.clone() }));
    assert!(matches!(decision, Decision::Later { after, .. } if after == Duration::from_secs(90)), "{decision:?}");
}
