//! The report in `JUnit`'s form, which build servers read: a suite a case, a test a check and a fault. What could not be tested
//! is a test that failed, so that no build server takes the report of last time for this one.

use std::time::Duration;

use quick_junit::{NonSuccessKind, TestCase, TestCaseStatus, TestSuite};

use super::report::{CaseReport, Report};

/// The report cannot be written in this form.
#[derive(Debug, thiserror::Error)]
#[error("the report cannot be written as JUnit XML: {why}")]
pub struct JunitError {
    why: String,
}

impl Report {
    /// The XML document.
    pub fn to_junit(&self) -> Result<String, JunitError> {
        let mut report = named(&self.bundle);
        report.set_time(seconds(self.seconds));
        for case in &self.cases {
            report.add_test_suite(suite(case));
        }
        text(&report)
    }
}

/// The XML document of a bundle that could not be tested: one test, which failed for this reason.
pub fn untested_junit(bundle: &str, why: &str) -> Result<String, JunitError> {
    let mut report = named(bundle);
    let mut suite = TestSuite::new("bundle");
    suite.add_test_case(test("can be tested", &[why.to_owned()]));
    report.add_test_suite(suite);
    text(&report)
}

fn named(bundle: &str) -> quick_junit::Report {
    quick_junit::Report::new(format!("waybill plugin test {bundle}"))
}

fn text(report: &quick_junit::Report) -> Result<String, JunitError> {
    report.to_string().map_err(|error| JunitError { why: error.to_string() })
}

fn suite(case: &CaseReport) -> TestSuite {
    let mut suite = TestSuite::new(case.name.clone());
    suite.set_time(seconds(case.seconds));
    for check in &case.checks {
        let wrong = if check.passed { Vec::new() } else { vec![check.says.clone()] };
        suite.add_test_case(test(check.name, &wrong));
    }
    for fault in &case.faults {
        let mut test = match fault.excluded {
            Some(why) => {
                let mut status = TestCaseStatus::skipped();
                status.set_message(why);
                TestCase::new(fault.fault.clone(), status)
            }
            None => test(&fault.fault, &fault.wrong),
        };
        test.set_system_out(format!(
            "{}\nthe plugin: {}\nthe host concluded: {} ({})\nthe truth: {}",
            fault.words,
            fault.plugin_did.join("; "),
            fault.concluded,
            fault.because,
            fault.truth
        ));
        suite.add_test_case(test);
    }
    for session in &case.sessions {
        let mut test = test(&format!("session {}", session.session), &session.wrong);
        test.set_system_out(format!(
            "{} requests as at {}\nthe plugin: {}\nthe host concluded: {} ({})",
            session.requests,
            session.server,
            session.plugin_did.join("; "),
            session.concluded,
            session.because
        ));
        suite.add_test_case(test);
    }
    suite
}

fn test(name: &str, wrong: &[String]) -> TestCase {
    if wrong.is_empty() {
        return TestCase::new(name, TestCaseStatus::success());
    }
    let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
    status.set_message(wrong.join("\n"));
    TestCase::new(name, status)
}

fn seconds(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds).unwrap_or_default()
}
