//! From a delivery to its report: what the bundle did wrong, in sentences.

use std::collections::BTreeMap;

use super::case::Expects;
use super::fault::{Fault, Oddity};
use super::record::{Concluded, Kept};
use super::report::{CallReport, FaultReport, LaterReport};
use super::stage::Run;
use super::truth::Judged;
use crate::job::evidence::Evidence;
use crate::job::verdict::{Conclusion, differences};
use crate::plugin::{CallError, Limits, Measured};
use crate::remote::RemoteError;

/// One delivery's report.
pub(super) fn report(run: &Run, expects: &Expects) -> FaultReport {
    let judged = run.truth.judge(&run.concluded);
    let later = run.later.as_ref().map(|later| LaterReport {
        concluded: later.conclusion.to_string(),
        because: later.conclusion.sentence().to_owned(),
        judged: run.truth.judge_conclusion(later.conclusion),
        removed_temporary: later.removed,
    });
    let because = match &run.kept.attention {
        Some(why) => format!("{} {why}.", run.concluded.because()),
        None => run.concluded.because(),
    };
    FaultReport {
        fault: run.fault.id(),
        words: run.fault.words(),
        excluded: None,
        occurred: run.occurred,
        milliseconds: milliseconds(run.took),
        plugin_did: run.calls.iter().flat_map(did).collect(),
        concluded: run.concluded.name(),
        because,
        truth: run.truth.sentence().to_owned(),
        judged,
        wrong: wrong(run, judged, later.as_ref(), expects),
        later,
    }
}

/// A fault that the contract excludes.
pub(super) fn excluded(fault: Fault, why: &'static str) -> FaultReport {
    FaultReport {
        fault: fault.id(),
        words: fault.words(),
        excluded: Some(why),
        occurred: false,
        milliseconds: 0,
        plugin_did: Vec::new(),
        concluded: String::new(),
        because: String::new(),
        truth: String::new(),
        judged: Judged::Open,
        later: None,
        wrong: Vec::new(),
    }
}

fn wrong(run: &Run, judged: Judged, later: Option<&LaterReport>, expects: &Expects) -> Vec<String> {
    let (truth, plain) = (&run.truth, run.fault == Fault::Odd(Oddity::Plain));
    let mut wrong: Vec<String> = run.calls.iter().filter_map(|call| broke(call, plain)).collect();
    wrong.extend(run.calls.iter().flat_map(forbidden));
    if judged == Judged::False {
        wrong.push(format!("the host concluded {}, and that is false: {}", run.concluded.name(), truth.sentence()));
    }
    if let Some(later) = later.filter(|later| later.judged == Judged::False) {
        wrong.push(format!("a later look concluded {}, and that is false: {}", later.concluded, truth.sentence()));
    }
    if truth.created > 1 {
        wrong.push("the final name was created more than once".to_owned());
    }
    if truth.removed {
        wrong.push("the final name was removed".to_owned());
    }
    wrong.extend(truth.harmed.iter().map(|name| format!("somebody else's file {name} is no longer as it was")));
    wrong.extend(truth.too_early.iter().map(|what| format!("before the delivery was authorized, {what}")));
    if plain {
        wrong.extend(differing(&run.kept));
        wrong.extend(unread(&run.kept));
        let at_once = Some((run.concluded.name(), run.concluded.because()));
        wrong.extend(unexpected("at once", expects.at_once.as_ref(), at_once));
        let later = later.map(|later| (later.concluded.clone(), later.because.clone()));
        wrong.extend(unexpected("by a later look", expects.later.as_ref(), later));
        let delivered = match &run.concluded {
            Concluded::By(Conclusion::Completed(_)) => true,
            // Its evidence comes later, or a person has to ask.
            Concluded::By(Conclusion::Unknown(_)) => truth.whole,
            _ => false,
        };
        let missing = truth.beside.iter().filter(|(_, bytes)| bytes.is_none());
        wrong.extend(missing.map(|(name, _)| {
            format!(
                "the contract declares {name} beside the file, and it was never put there; have it written, or take it out of [[contract.auxiliary]]"
            )
        }));
        if !delivered {
            wrong.push(format!("nothing went wrong, and yet it was not delivered: {}", run.concluded.because()));
        }
    }
    wrong
}

/// What the case expects, where something else was concluded.
fn unexpected(when: &str, expected: Option<&String>, concluded: Option<(String, String)>) -> Option<String> {
    let (name, because) = concluded.unwrap_or_default();
    let differs = |expected: &&String| name != **expected && name.split('(').next() != Some(expected.as_str());
    let expected = expected.filter(differs)?;
    Some(format!("the case expects {expected} {when}, and the host concluded {name}: {because}"))
}

/// A call that must not end so, whatever the server does. A failure that the plugin itself returns is its right, where
/// something went wrong.
pub(super) fn broke(call: &Measured, plain: bool) -> Option<String> {
    match call.failed.as_ref()? {
        CallError::Stopped => None,
        CallError::Failed { .. } if !plain => None,
        error @ (CallError::Failed { .. }
        | CallError::Trapped { .. }
        | CallError::TimedOut { .. }
        | CallError::Limit { .. }
        | CallError::Broke { .. }
        | CallError::Host { .. }) => Some(format!("{}: {error}", call.call)),
    }
}

pub(super) fn forbidden(call: &Measured) -> Vec<String> {
    let asked = call.requests.iter().filter_map(|asked| match &asked.refused {
        Some(RemoteError::Forbidden { why }) => {
            Some(format!("{} asked for what it may not: {}: {why}", call.call, request(asked.call, &asked.on)))
        }
        Some(_) | None => None,
    });
    asked.collect()
}

/// Where the plugin's reports and the host's looks differ.
pub(super) fn differing(kept: &Kept) -> Vec<String> {
    let told = kept.evidence.iter().flat_map(|evidence| match evidence {
        Evidence::Baseline { look, reported: Some(reported), .. } => differences::of_listing(look, reported),
        Evidence::Receipt(receipt) | Evidence::Observation(receipt) => receipt.differences.clone(),
        Evidence::Baseline { .. }
        | Evidence::Publish { .. }
        | Evidence::RemovalIntended { .. }
        | Evidence::RemovalAnswered { .. } => Vec::new(),
    });
    told.map(|difference| format!("the plugin's report differs from what the host saw: {difference}")).collect()
}

/// The partner's answers, where the host could not read them as the contract has them.
pub(super) fn unread(kept: &Kept) -> Option<String> {
    let why = kept.evidence.iter().filter_map(Evidence::look).find_map(|look| look.unread.as_ref())?;
    Some(format!("what the partner says is not known: {why}; correct [contract.acknowledgment], or the case"))
}

/// What a call asked of the server, with the answers.
pub(super) fn did(call: &Measured) -> Vec<String> {
    let asked = call.requests.iter().map(|asked| {
        let answer = match &asked.refused {
            None => "ok",
            Some(RemoteError::Stopped) => "stopped",
            Some(RemoteError::Forbidden { .. }) => "forbidden",
            Some(RemoteError::Invalid { .. }) => "invalid",
            Some(RemoteError::NotSent { .. }) => "not sent",
            Some(RemoteError::Refused { .. }) => "refused",
            Some(RemoteError::Unknown { .. }) => "unknown",
        };
        format!("{}: {}: {answer}", call.call, request(asked.call, &asked.on))
    });
    let end = call.failed.as_ref().map(|error| format!("{}: {error}", call.call));
    asked.chain(end).collect()
}

fn request(call: &str, on: &str) -> String {
    if on.is_empty() { call.to_owned() } else { format!("{call} {on}") }
}

/// The most that each kind of call took.
pub(super) fn calls(measured: &[Measured], limits: &Limits) -> Vec<CallReport> {
    let mut by_call: BTreeMap<&'static str, CallReport> = BTreeMap::new();
    for call in measured {
        let limit = match call.call {
            "build" => limits.build(),
            "deliver" => limits.deliver(),
            _ => limits.call(),
        };
        let report = by_call.entry(call.call).or_insert_with(|| CallReport {
            call: call.call,
            times: 0,
            milliseconds: 0,
            limit_milliseconds: milliseconds(limit),
            memory_bytes: 0,
            limit_memory_bytes: limits.memory_bytes() as u64,
            host_calls: BTreeMap::new(),
        });
        report.times += 1;
        report.milliseconds = report.milliseconds.max(milliseconds(call.took));
        report.memory_bytes = report.memory_bytes.max(call.memory_bytes);
        let most: u64 = report.host_calls.values().sum();
        if call.host_calls.values().sum::<u64>() > most {
            report.host_calls.clone_from(&call.host_calls);
        }
    }
    // In the order of an attempt.
    ["build", "final-name", "baseline", "deliver", "observe"].iter().filter_map(|call| by_call.remove(call)).collect()
}

pub(super) fn milliseconds(duration: std::time::Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::job::contract::Contract;
    use crate::job::facts::{FileFacts, Sha256};
    use crate::job::verdict::{NotDeliveredProof, WhyUnknown};
    use crate::rehearsal::later::Later;
    use crate::rehearsal::truth::Truth;
    use crate::remote::Names;

    const UNKNOWN: Conclusion = Conclusion::Unknown(WhyUnknown::LookFailed);

    /// What is wrong with a delivery in which the fault did not matter.
    fn weighed(concluded: Conclusion, later: Option<Conclusion>, truth: Truth) -> Vec<String> {
        let names = Names::mint(&Contract::default(), None, "in/a.csv", "k", "a").unwrap();
        let run = Run {
            names,
            expected: FileFacts { name: "in/a.csv".to_owned(), bytes: 0, sha256: Sha256([0; 32]) },
            fault: Fault::Odd(Oddity::NeverAnswers),
            occurred: true,
            concluded: Concluded::By(concluded),
            later: later.map(|conclusion| Later { conclusion, removed: false }),
            truth,
            kept: Kept::default(),
            calls: Vec::new(),
            took: Duration::ZERO,
        };
        report(&run, &Expects::default()).wrong
    }

    #[test]
    fn plg_06_what_must_never_happen_is_wrong_whatever_was_concluded() {
        let sound = || Truth { created: 1, whole: true, ..Truth::default() };
        assert_eq!(weighed(UNKNOWN, Some(UNKNOWN), sound()), Vec::<String>::new());
        for (truth, told) in [
            (Truth { created: 2, ..sound() }, "the final name was created more than once"),
            (Truth { removed: true, ..sound() }, "the final name was removed"),
            (
                Truth { harmed: vec!["in/a.csv".to_owned()], ..sound() },
                "somebody else's file in/a.csv is no longer as it was",
            ),
            (
                Truth { too_early: vec!["/in/a was removed".to_owned()], ..sound() },
                "before the delivery was authorized, /in/a was removed",
            ),
        ] {
            assert_eq!(weighed(UNKNOWN, None, truth), [told]);
        }
    }

    #[test]
    fn plg_06_a_false_conclusion_is_wrong_at_once_and_by_a_later_look() {
        let whole = Truth { created: 1, whole: true, ..Truth::default() };
        let never = Conclusion::NotDelivered(NotDeliveredProof::NeverSent);
        let told = "NotDelivered(never_sent), and that is false: the file was there, whole";
        assert_eq!(weighed(never, None, whole.clone()), [format!("the host concluded {told}")]);
        assert_eq!(weighed(UNKNOWN, Some(never), whole), [format!("a later look concluded {told}")]);
    }
}
