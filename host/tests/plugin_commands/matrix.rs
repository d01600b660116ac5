//! The shipped bundles, as `waybill plugin test` rehearses them: they pass, and each fault came to pass and ended as
//! `matrix/NAME.txt` has it. A fault that is no longer placed, or is placed elsewhere, changes a line there.
//!
//! Each form of publishing is taken through every fault by a bundle that uses it: a link by `northwind` and `meridian`, a rename by
//! `ferry`, a name that is created in place by `granite`, an overwrite by `almanac`. The others deliver each case without a fault,
//! and under those that their convention is about. All of them under all would cost four minutes.

use std::path::Path;

use anyhow::Context as _;
use serde_json::Value;
use waybill::rehearsal::Fault;

use super::stage::{Bench, fault, list, part, wrong};

/// One case of a bundle under every fault.
pub fn whole(name: &str, case: &str) -> anyhow::Result<Value> {
    let report = passes(name, "csv-builder", &["--only", case])?;
    let faults = list(&report, "cases").first().map_or(&[][..], |case| list(case, "faults"));
    let names: Vec<&str> = faults.iter().filter_map(|fault| part(fault, "fault").as_str()).collect();
    assert_eq!(names, Fault::all().iter().map(|fault| fault.id()).collect::<Vec<_>>());
    as_recorded(name, &told(&report))?;
    Ok(report)
}

/// Every case of a bundle under these faults.
pub fn under(name: &str, builder: &str, faults: &str) -> anyhow::Result<Value> {
    let report = passes(name, builder, &["--fault", faults])?;
    as_recorded(name, &told(&report))?;
    Ok(report)
}

/// The report of a bundle that passes.
pub fn passes(name: &str, builder: &str, arguments: &[&str]) -> anyhow::Result<Value> {
    let (code, report) = Bench::shipped(name, builder)?.report(arguments)?;
    assert_eq!(wrong(&report), Vec::<String>::new(), "{name}");
    assert_eq!((code, part(&report, "passed")), (Some(0), &Value::Bool(true)), "{name}");
    let faults = list(&report, "cases").iter().flat_map(|case| list(case, "faults"));
    for one in faults.filter(|one| part(one, "excluded").is_null()) {
        assert_ne!(part(one, "judged"), "false", "{one}");
        assert!(part(one, "truth").as_str().is_some_and(|truth| !truth.is_empty()), "{one}");
        // Nothing waits out its request's time on a line that was cut.
        assert!(part(one, "milliseconds").as_u64().is_some_and(|took| took < 25_000), "{one}");
    }
    Ok(report)
}

/// What each fault came to, for each case; cases in which all ended alike stand together.
fn told(report: &Value) -> String {
    let mut alike: Vec<(String, Vec<&str>)> = Vec::new();
    for case in list(report, "cases") {
        let ends: String = list(case, "faults").iter().map(end).collect();
        let name = part(case, "name").as_str().unwrap_or_default();
        match alike.iter_mut().find(|(others, _)| *others == ends) {
            Some((_, names)) => names.push(name),
            None => alike.push((ends, vec![name])),
        }
    }
    alike.into_iter().map(|(ends, names)| format!("{}\n{ends}", names.join(", "))).collect()
}

fn end(fault: &Value) -> String {
    let said = |value: &Value| value.as_str().map(str::to_owned);
    let concluded = said(part(fault, "concluded")).unwrap_or_default();
    let end = match (part(fault, "excluded").is_null(), part(fault, "occurred") == true) {
        (false, _) => "excluded".to_owned(),
        (true, false) => "never came to pass".to_owned(),
        (true, true) => match said(part(part(fault, "later"), "concluded")) {
            None => concluded,
            Some(later) => format!("{concluded}, later {later}"),
        },
    };
    format!("  {}: {end}\n", part(fault, "fault").as_str().unwrap_or_default())
}

fn as_recorded(name: &str, told: &str) -> anyhow::Result<()> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/plugin_commands/matrix/{name}.txt"));
    if std::env::var_os("WAYBILL_BLESS").is_some_and(|value| !value.is_empty()) {
        return std::fs::write(&file, told).with_context(|| format!("{} cannot be written", file.display()));
    }
    let expected = std::fs::read_to_string(&file).unwrap_or_default();
    for (is, was) in told.lines().zip(expected.lines().chain(std::iter::repeat(""))) {
        assert_eq!(is, was, "{name}; if that is meant, run again with WAYBILL_BLESS=1 and review matrix/{name}.txt");
    }
    assert_eq!(told.lines().count(), expected.lines().count(), "matrix/{name}.txt; WAYBILL_BLESS=1 writes it anew");
    Ok(())
}

#[test]
fn plg_06_northwind_passes_and_an_unconfirmed_trigger_is_left_unknown() -> anyhow::Result<()> {
    passes("northwind", "csv-builder", &["--only", "consents", "--fault", "plain"])?;
    let report = whole("northwind", "contacts")?;
    let cut = fault(&report, "cut-after-link");
    assert_eq!(
        (&cut["concluded"], &cut["judged"]),
        (&"Unknown(trigger_not_confirmed)".into(), &"open".into()),
        "{cut}"
    );
    assert_eq!(
        (&cut["truth"], &cut["later"]["judged"]),
        (&"the file was there, whole".into(), &"open".into()),
        "{cut}"
    );
    Ok(())
}

#[test]
fn plg_06_meridian_passes_and_a_later_look_settles_what_landed_late() -> anyhow::Result<()> {
    let report = whole("meridian", "contacts")?;
    let cut = fault(&report, "cut-during-link");
    assert_eq!(
        (&cut["later"]["concluded"], &cut["later"]["judged"]),
        (&"Completed(checksum)".into(), &"true".into()),
        "{cut}"
    );
    let late = fault(&report, "lands-after-look");
    assert_eq!(
        (&late["later"]["removed_temporary"], &late["truth"]),
        (&true.into(), &"the final name was never created".into()),
        "{late}"
    );
    Ok(())
}

/// The bundles of the other builders, whose cases compare the bytes of their files.
fn passes_with_golden_files(name: &str, builder: &str) -> anyhow::Result<()> {
    let report = under(name, builder, "plain")?;
    for case in list(&report, "cases") {
        let golden = list(case, "checks").iter().any(|check| part(check, "name") == "golden file");
        // What is encrypted is never the same twice.
        assert_eq!(golden, name != "dunmore", "{name}: {case}");
    }
    Ok(())
}

#[test]
fn plg_06_aldgate_passes() -> anyhow::Result<()> {
    passes_with_golden_files("aldgate", "fixed-width-builder")
}

#[test]
fn plg_06_brightline_passes() -> anyhow::Result<()> {
    passes_with_golden_files("brightline", "json-lines-builder")
}

#[test]
fn plg_06_castell_passes() -> anyhow::Result<()> {
    passes_with_golden_files("castell", "xml-builder")
}

#[test]
fn plg_06_dunmore_passes() -> anyhow::Result<()> {
    passes_with_golden_files("dunmore", "openpgp-builder")
}

/// A bundle of which nothing is recorded would be shipped untested.
#[test]
fn plg_06_every_shipped_bundle_is_rehearsed() -> anyhow::Result<()> {
    let names = |folder: &str| -> anyhow::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join(folder))? {
            let path = entry?.path();
            names.push(path.file_stem().unwrap_or_default().to_string_lossy().into_owned());
        }
        names.sort();
        Ok(names)
    };
    assert_eq!(names("../plugins/bundles")?, names("tests/plugin_commands/matrix")?);
    Ok(())
}
