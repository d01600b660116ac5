//! The worker at its own end: what an interruption takes away, and what it leaves.

use super::*;

#[test]
fn del_03_an_interrupted_delivery_completes_nothing_by_itself_and_nothing_else_changes() {
    everywhere(|facts, conclusion| {
        let unanswered = matches!(facts.publish, Publish::Unanswered(_));
        for interrupted in YES_NO {
            let own = conclude_own(facts, interrupted);
            let taken_away = matches!(conclusion, Conclusion::Completed(_)) && (interrupted || unanswered);
            let expected = if taken_away { Conclusion::Unknown(WhyUnknown::Interrupted) } else { conclusion };
            assert_eq!(own, expected, "{facts:?}");
        }
    });
}
