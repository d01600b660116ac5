//! The report as a person reads it: what is wrong at the end, where the eye is.

use std::fmt::Write as _;

use comfy_table::presets::UTF8_HORIZONTAL_ONLY;
use comfy_table::{ContentArrangement, LineStyle, Table};

use crate::rehearsal::{CaseReport, FaultReport, Judged, Report, SessionReport};

/// Characters of a line where nobody says how many there are.
const WIDTH: u16 = 160;

pub(super) fn report(report: &Report) -> String {
    let mut text = String::new();
    for case in &report.cases {
        one_case(&mut text, case);
    }
    let wrong = report.wrong();
    let deliveries: usize = report.cases.iter().map(|case| placed(case).count() + case.sessions.len()).sum();
    let cases = report.cases.len();
    let end = if report.passed { "passed" } else { "FAILED" };
    let plural = |count: usize, one: &'static str, more: &'static str| if count == 1 { one } else { more };
    let (of_cases, of_deliveries) = (plural(cases, "case", "cases"), plural(deliveries, "delivery", "deliveries"));
    let _ = writeln!(
        text,
        "{}, revision {}: {end}, {cases} {of_cases}, {deliveries} {of_deliveries} in {:.1} s",
        report.partner, report.revision, report.seconds
    );
    for sentence in wrong {
        let _ = writeln!(text, "  - {sentence}");
    }
    text
}

fn one_case(text: &mut String, case: &CaseReport) {
    let _ = writeln!(text, "{}", case.name);
    for check in &case.checks {
        let mark = if check.passed { "ok  " } else { "FAIL" };
        let _ = writeln!(text, "  {mark} {}: {}", check.name, check.says);
    }
    for session in &case.sessions {
        one_session(text, session);
    }
    if case.faults.is_empty() {
        let end = if case.sessions.is_empty() { "  nothing was delivered\n" } else { "" };
        let _ = writeln!(text, "{end}");
        return;
    }
    let mut table = table();
    table.set_header([
        "",
        "what went wrong",
        "the plugin, delivering",
        "the host concluded",
        "and that is",
        "a later look",
    ]);
    for fault in placed(case).filter(|fault| fault.occurred) {
        table.add_row(row(fault, case.final_name.as_deref().unwrap_or_default()));
    }
    let _ = writeln!(text, "{table}");
    let never: Vec<&str> = placed(case).filter(|fault| !fault.occurred).map(|fault| fault.fault.as_str()).collect();
    if !never.is_empty() {
        let _ = writeln!(text, "Never came to pass, since no such request was made: {}", never.join(", "));
    }
    for fault in &case.faults {
        if let Some(why) = fault.excluded {
            let _ = writeln!(text, "Not tried: {}; {why}", fault.fault);
        }
    }
    let left: Vec<&str> = case.left_unknown().map(|fault| fault.fault.as_str()).collect();
    let some_false = case.faults.iter().any(|fault| fault.judged == Judged::False);
    if left.is_empty() && !some_false {
        let _ = writeln!(text, "Every outcome is settled by evidence.");
    } else if !left.is_empty() {
        let _ = writeln!(
            text,
            "Left unknown by all that this case's partner shows and answers, for a person to settle ({} of {}): {}",
            left.len(),
            placed(case).count(),
            left.join(", ")
        );
    }
    let _ = writeln!(text, "{}\n", calls(case));
}

/// Recorded just now, or replayed.
fn one_session(text: &mut String, session: &SessionReport) {
    let mark = if session.wrong.is_empty() { "ok  " } else { "FAIL" };
    let SessionReport { session: name, server, requests, concluded, later, .. } = session;
    let concluded = if concluded.is_empty() { "nothing" } else { concluded };
    let later = later.as_ref().map_or_else(String::new, |later| format!(", and by a later look {later}"));
    let _ = writeln!(text, "  {mark} session {name}: {server}, {requests} requests, concluded {concluded}{later}");
    if let Some(file) = &session.written {
        let _ = writeln!(text, "       {file} was written; look at it before you commit it");
    }
    if !session.left.is_empty() {
        let _ = writeln!(text, "       left at the server: {}", session.left.join(", "));
    }
}

fn row(fault: &FaultReport, final_name: &str) -> [String; 6] {
    let judged = |judged: Judged| match judged {
        Judged::True => "true",
        Judged::False => "FALSE",
        Judged::Open => "open",
    };
    let later = fault.later.as_ref().map_or_else(String::new, |later| {
        let removed = if later.removed_temporary { ", the temporary file removed" } else { "" };
        // A look at an outcome that is settled changes no state.
        let is =
            if fault.judged != Judged::Open && later.judged == Judged::Open { "alerts" } else { judged(later.judged) };
        format!("{}: {is}{removed}", later.concluded)
    });
    [
        if fault.wrong.is_empty() { "ok" } else { "FAIL" }.to_owned(),
        fault.words.clone(),
        delivering(fault, final_name),
        fault.concluded.clone(),
        format!("{}: {}", judged(fault.judged), fault.truth),
        later,
    ]
}

/// The writer's requests, which is what matters of a delivery.
fn delivering(fault: &FaultReport, final_name: &str) -> String {
    let words = ["send:", "publish:", "publish-over:", "put ", "make-directory "];
    let asked = fault.plugin_did.iter().filter_map(|did| did.strip_prefix("deliver: "));
    let asked = asked.filter(|did| words.iter().any(|word| did.starts_with(word)));
    let asked = asked.collect::<Vec<_>>().join(", ");
    if final_name.is_empty() {
        return asked;
    }
    let stem = final_name.rsplit_once('.').map_or(final_name, |(stem, _)| stem);
    asked.replace(final_name, "{final}").replace(stem, "{final.stem}")
}

fn placed(case: &CaseReport) -> impl Iterator<Item = &FaultReport> {
    case.faults.iter().filter(|fault| fault.excluded.is_none())
}

fn calls(case: &CaseReport) -> String {
    let mut table = table();
    table.set_header(["call", "times", "at most", "of", "memory", "of", "calls of the host"]);
    for call in &case.calls {
        let host_calls: Vec<String> = call.host_calls.iter().map(|(name, count)| format!("{name} {count}")).collect();
        table.add_row([
            call.call.to_owned(),
            call.times.to_string(),
            format!("{} ms", call.milliseconds),
            format!("{} s", call.limit_milliseconds / 1000),
            mebibytes(call.memory_bytes),
            mebibytes(call.limit_memory_bytes),
            host_calls.join(", "),
        ]);
    }
    table.to_string()
}

fn mebibytes(bytes: u64) -> String {
    const TENTHS: u64 = (1 << 20) / 10;
    let tenths = bytes / TENTHS;
    format!("{}.{} MiB", tenths / 10, tenths % 10)
}

fn table() -> Table {
    let mut table = Table::new();
    let lines = UTF8_HORIZONTAL_ONLY.row_separator(LineStyle::none());
    table.load_style(lines).set_content_arrangement(ContentArrangement::Dynamic);
    if table.width().is_none() {
        table.set_width(WIDTH);
    }
    table
}
