//! `waybill plugin test`: what a rehearsal holds against a bundle beside the faults, and the report of one that fails.

use quick_junit::{Report, TestCaseStatus, XmlString};

use super::stage::{Bench, list, part, wrong};

const MANIFEST: &str = "[names]\nfinal = 'contacts-{key}.csv'\n[contract]\npublishes_whole = true\none_name_space = true\nmay_remove_temporaries = true\n";
const CASE: &str = "key = 'K-1'\nfinal_name = 'contacts-K-1.csv'\n[settings]\nname = 'contacts-{key}.csv'\nquery = 'two'\n[rows]\ntwo = 'rows/two.jsonl'\n";

/// A file of the bundle with these words in the place of others.
fn edit(bench: &Bench, file: &str, from: &str, to: &str) -> anyhow::Result<()> {
    let text = String::from_utf8(bench.read(file)?)?;
    anyhow::ensure!(text.contains(from), "{from:?} is not in {text}");
    bench.write(file, &text.replace(from, to))
}

fn text(text: Option<&XmlString>) -> String {
    text.map(|text| text.as_str().to_owned()).unwrap_or_default()
}

/// An encrypted file is another one with every build, which its case says; without that word it is a fault.
#[test]
fn plg_06_a_builder_whose_second_file_differs_fails_unless_the_case_says_so() -> anyhow::Result<()> {
    let bench = Bench::shipped("dunmore", "openpgp-builder")?;
    let repeatable = |report: &serde_json::Value| {
        let checks = list(report, "cases").iter().flat_map(|case| list(case, "checks"));
        let check = checks.into_iter().find(|check| part(check, "name") == "repeatable").cloned().unwrap_or_default();
        (part(&check, "passed").clone(), part(&check, "says").as_str().unwrap_or_default().to_owned())
    };
    let (code, report) = bench.report(&["--fault", "plain"])?;
    assert_eq!(code, Some(0), "{:?}", wrong(&report));
    assert_eq!(repeatable(&report), (true.into(), "not asked for: repeatable = false".to_owned()));

    edit(&bench, "tests/contacts.toml", "repeatable = false\n", "")?;
    let (code, report) = bench.report(&["--fault", "plain"])?;
    let (passed, says) = repeatable(&report);
    assert_eq!((code, passed, part(&report, "passed")), (Some(4), false.into(), &false.into()), "{says}");
    assert!(
        says.contains("two attempts built other files of the same rows: they differ at byte")
            && says.contains("repeatable = false"),
        "{says}"
    );
    assert_eq!(wrong(&report).len(), 1, "{report}");

    let same = Bench::made(MANIFEST, CASE, "sftp-destination")?;
    let (code, report) = same.report(&["--fault", "plain"])?;
    assert_eq!(
        (code, repeatable(&report)),
        (Some(0), (true.into(), "the builds of two attempts are the same".to_owned()))
    );
    Ok(())
}

#[test]
fn plg_06_a_case_that_expects_another_later_conclusion_fails_with_the_reason() -> anyhow::Result<()> {
    let bench = Bench::shipped("kestrel", "csv-builder")?;
    let right = "later = \"Completed(acknowledged_key)\"";
    for (expected, told) in [
        ("Completed", None),
        ("Completed(acknowledged_attempt)", Some("the case expects Completed(acknowledged_attempt) by a later look")),
        ("Unknown", Some("the case expects Unknown by a later look")),
    ] {
        edit(&bench, "tests/late.toml", right, &format!("later = \"{expected}\""))?;
        let (code, report) = bench.report(&["--only", "late", "--fault", "plain"])?;
        let said = wrong(&report);
        match told {
            None => assert_eq!((code, said), (Some(0), Vec::new())),
            Some(told) => {
                let [one] = &said[..] else { panic!("{said:?}") };
                assert_eq!(code, Some(4));
                assert!(one.contains(told), "{one}");
                assert!(one.contains("and the host concluded Completed(acknowledged_key): "), "{one}");
            }
        }
        edit(&bench, "tests/late.toml", &format!("later = \"{expected}\""), right)?;
    }
    Ok(())
}

/// What is expected later, of a delivery that nobody has to look at again.
#[test]
fn plg_06_a_later_conclusion_that_is_expected_and_never_drawn_fails_the_case() -> anyhow::Result<()> {
    let case = format!("{CASE}[expects]\nat_once = 'Completed(checksum)'\nlater = 'Completed(acknowledged_key)'\n");
    let (code, report) = Bench::made(MANIFEST, &case, "sftp-destination")?.report(&["--fault", "plain"])?;
    let said = wrong(&report);
    assert_eq!((code, said.len()), (Some(4), 1), "{said:?}");
    assert!(said[0].contains("the case expects Completed(acknowledged_key) by a later look"), "{said:?}");
    Ok(())
}

/// Everything that XML has a meaning for, or no place for, in the words of a plugin that fails.
#[test]
fn plg_06_the_report_of_a_bundle_that_fails_is_read_by_build_servers_too() -> anyhow::Result<()> {
    let words = "<b>&amp; ]]> \\\"quoted\\\" 'so' \\u0007 \\u001B[31m ü";
    let settings = format!("[settings]\nbehaviour = \"rows-then-fail\"\nmessage = \"{words}\"\n");
    let case = CASE.replace("[settings]\n", &settings);
    let bench = Bench::made(MANIFEST, &case, "sftp-destination")?;
    bench.component("builder", "misbehaving-builder")?;
    // A second case, whose builder is well, and of which two things are wrong.
    let wrongly = CASE.replace("contacts-K-1.csv'\n", "contacts-K-2.csv'\ngolden = 'golden/none.csv'\n");
    bench.write("tests/two.toml", &wrongly)?;

    let faults = "plain,cut-after-link,refuses-what-it-did";
    let output = bench.test(&["--fault", faults, "--junit", "junit.xml"])?;
    assert_eq!(output.status.code(), Some(4), "{}", String::from_utf8_lossy(&output.stdout));
    let xml = std::fs::read_to_string(bench.bundle().with_file_name("junit.xml"))?;
    let unfit = |one: char| one.is_control() && !matches!(one, '\n' | '\t' | '\r');
    assert!(!xml.contains(unfit), "a character that no XML document has: {xml:?}");
    let read = Report::deserialize_from_str(&xml)?;

    let failed = |suite: &quick_junit::TestSuite| {
        let cases = suite.test_cases.iter().filter_map(|case| match &case.status {
            TestCaseStatus::NonSuccess { message, .. } => Some((text(Some(&case.name)), text(message.as_ref()))),
            TestCaseStatus::Success { .. } | TestCaseStatus::Skipped { .. } => None,
        });
        cases.collect::<Vec<(String, String)>>()
    };
    let names: Vec<String> = read.test_suites.iter().map(|suite| text(Some(&suite.name))).collect();
    assert_eq!(names, ["one", "two"]);
    let [one, two] = &read.test_suites[..] else { panic!("{xml}") };
    let [(name, message)] = &failed(one)[..] else { panic!("{xml}") };
    assert_eq!(name, "build");
    assert!(message.contains(r#"<b>&amp; ]]> \"quoted\" 'so'"#), "{message:?}");
    let names: Vec<String> = failed(two).into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["golden file", "final name"]);
    assert!(failed(two)[1].1.contains("named the file \"contacts-K-1.csv\""), "{xml}");

    // What a build server shows first are the numbers, and they are those of the program's own report.
    let (_, report) = bench.report(&["--fault", faults])?;
    assert_eq!((read.failures, read.errors, wrong(&report).len()), (3, 0, 3), "{xml}");
    for (suite, failures) in [(one, 1), (two, 2)] {
        assert_eq!((suite.failures, suite.tests), (failures, suite.test_cases.len()), "{xml}");
    }
    assert_eq!(read.tests, one.tests + two.tests);
    Ok(())
}

/// A fault that comes out wrong is a test that failed, by its name and with the sentence that says why.
#[test]
fn plg_06_a_delivery_that_comes_out_wrong_is_a_failed_test_with_its_sentence() -> anyhow::Result<()> {
    let manifest = format!("{MANIFEST}keeps_seconds = 604800\n");
    let bench = Bench::made(&manifest, &format!("{CASE}[server]\ncollects = true\n"), "sftp-destination")?;
    let faults = "refuses-what-it-did,cut-after-link,stop-requested";
    let output = bench.test(&["--fault", faults, "--junit", "junit.xml"])?;
    assert_eq!(output.status.code(), Some(4), "{}", String::from_utf8_lossy(&output.stdout));
    let xml = std::fs::read_to_string(bench.bundle().with_file_name("junit.xml"))?;
    let read = Report::deserialize_from_str(&xml)?;
    let [suite] = &read.test_suites[..] else { panic!("{xml}") };
    assert_eq!(
        (read.failures, suite.failures, text(read.name.as_ref()).as_str()),
        (2, 2, "waybill plugin test made"),
        "{xml}"
    );
    let mut told = Vec::new();
    for case in &suite.test_cases {
        if let TestCaseStatus::NonSuccess { message, .. } = &case.status {
            told.push((text(Some(&case.name)), text(message.as_ref())));
            let out = text(case.system_out.as_ref());
            assert!(out.contains("the truth: the file was there, whole"), "{out}");
        }
    }
    let [(refused, why), (cut, later)] = &told[..] else { panic!("{xml}") };
    assert_eq!((refused.as_str(), cut.as_str()), ("refuses-what-it-did", "cut-after-link"), "{xml}");
    assert!(why.contains("the host concluded NotDelivered(refused_and_unchanged), and that is false"), "{why}");
    assert!(later.contains("a later look concluded NotDelivered(temporary_removed), and that is false"), "{later}");
    Ok(())
}
