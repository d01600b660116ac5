//! `waybill plugin test`: broken bundles are told what is wrong, and the report is read by people and by build servers.

use serde_json::Value;
use waybill::rehearsal::{Options, rehearse};

use super::stage::{Bench, fault, list, part, wrong};

const MANIFEST: &str = "[names]\nfinal = 'contacts-{key}.csv'\n[contract]\npublishes_whole = true\none_name_space = true\nmay_remove_temporaries = true\n";
const CASE: &str = "key = 'K-1'\nfinal_name = 'contacts-K-1.csv'\n[settings]\nname = 'contacts-{key}.csv'\nquery = 'two'\n[rows]\ntwo = 'rows/two.jsonl'\n";

/// A misbehaving destination under a setting.
fn misbehaving(settings: &str) -> anyhow::Result<Bench> {
    let case = CASE.replace("[settings]\n", &format!("[settings]\n{settings}\n"));
    Bench::made(MANIFEST, &case, "misbehaving-destination")
}

/// The sentences about the plain run, or about checks.
fn sentences(settings: &str) -> anyhow::Result<String> {
    let (code, report) = misbehaving(settings)?.report(&["--fault", "plain"])?;
    assert_eq!(code, Some(4), "{settings}: {:?}", wrong(&report));
    assert_eq!(part(&report, "passed"), false);
    Ok(wrong(&report).join("\n"))
}

/// The same as a library, for authors' own tests.
#[tokio::test]
async fn plg_06_the_same_is_a_library() -> anyhow::Result<()> {
    let bench = Bench::made(MANIFEST, CASE, "sftp-destination")?;
    let options = Options { fault: Some("plain".to_owned()), ..Default::default() };
    let report = rehearse(bench.bundle(), &options).await?;
    assert!(report.passed, "{:#?}", report.wrong());
    bench.write("tests/one.toml", &CASE.replace("contacts-K-1.csv", "contacts-K-2.csv"))?;
    let report = rehearse(bench.bundle(), &options).await?;
    let wrong = report.wrong().join("\n");
    assert!(
        wrong.contains("named the file \"contacts-K-1.csv\", and the case expects \"contacts-K-2.csv\""),
        "{wrong}"
    );
    Ok(())
}

/// The partner's word, as the case has it, counts as it does in operation.
#[test]
fn plg_06_an_acknowledgment_of_the_case_settles_an_outcome() -> anyhow::Result<()> {
    let contract =
        "[contract.acknowledgment]\nname = 'ack/{key}.txt'\naccept = 'accepted (?P<key>\\S+)'\nperiod_seconds = 60\n";
    let manifest =
        format!("[names]\nfinal = 'contacts-{{key}}.csv'\n[contract]\n{contract}[limits]\nread_back_mib = 0\n");
    for (when, at_once) in [("published", "Completed(acknowledged_key)"), ("later", "Unknown(not_promised_whole)")] {
        let case =
            format!("{CASE}[[acknowledgment]]\nwhen = '{when}'\nname = 'ack/{{key}}.txt'\ntext = 'accepted {{key}}'\n");
        let bench = Bench::made(&manifest, &case, "sftp-destination")?;
        let (code, report) = bench.report(&["--fault", "plain"])?;
        assert_eq!((code, wrong(&report)), (Some(0), vec![]), "{when}");
        let plain = fault(&report, "plain");
        assert_eq!(plain["concluded"], at_once, "{plain}");
        assert_eq!(plain["later"]["concluded"], "Completed(acknowledged_key)", "{plain}");
    }
    Ok(())
}

#[test]
fn plg_06_a_misbehaving_destination_fails_with_the_sentence_that_says_why() -> anyhow::Result<()> {
    for (settings, told) in [
        ("behaviour = 'panic'", "deliver: the plugin trapped"),
        ("behaviour = 'put-undeclared'", "deliver asked for what it may not: put undeclared.txt"),
        ("behaviour = 'publish-twice'", "deliver asked for what it may not: publish"),
        ("behaviour = 'never-send'", "nothing went wrong, and yet it was not delivered"),
        ("behaviour = 'lie-receipt'", "the plugin's report differs from what the host saw"),
        ("behaviour = 'read-outside'", "baseline asked for what it may not: "),
        ("behaviour = 'name-escapes'", "final name"),
    ] {
        let said = sentences(settings)?;
        assert!(said.contains(told), "{settings}: {said}");
    }
    Ok(())
}

/// The contract says that files stay, and the case's server takes them at once: what the host proves by it is not so.
#[test]
fn plg_06_a_contract_that_its_server_does_not_keep_fails_with_the_false_conclusions() -> anyhow::Result<()> {
    let manifest = format!("{MANIFEST}keeps_seconds = 604800\n");
    let bench = Bench::made(&manifest, &format!("{CASE}[server]\ncollects = true\n"), "sftp-destination")?;
    let faults = ["--fault", "refuses-what-it-did,cut-after-link"];
    let (code, report) = bench.report(&faults)?;
    assert_eq!((code, part(&report, "passed")), (Some(4), &Value::Bool(false)));
    let (refused, cut) = (fault(&report, "refuses-what-it-did"), fault(&report, "cut-after-link"));
    let refusal = "NotDelivered(refused_and_unchanged)";
    assert_eq!((&refused["concluded"], &refused["judged"]), (&refusal.into(), &"false".into()), "{refused}");
    let removal = "NotDelivered(temporary_removed)";
    assert_eq!((&cut["judged"], &cut["later"]["judged"]), (&"open".into(), &"false".into()), "{cut}");
    let truth = "and that is false: the file was there, whole";
    assert_eq!(
        wrong(&report),
        [
            format!("refuses-what-it-did: the host concluded {refusal}, {truth}"),
            format!("cut-after-link: a later look concluded {removal}, {truth}"),
        ]
    );
    let said = String::from_utf8(bench.test(&faults)?.stdout)?;
    for part in ["FAIL", "FALSE: the file was there", "made, revision 1: FAILED, 1 case"] {
        assert!(said.contains(part), "{part:?} is not in:\n{said}");
    }
    Ok(())
}

/// A contract with a done-file, and a destination that is set so.
fn with_a_done_file(settings: &str, more: &str) -> anyhow::Result<Bench> {
    let manifest = format!("{MANIFEST}[[contract.auxiliary]]\nname = '{{final}}.done'\ntrigger = true\n");
    let case = CASE.replace("[settings]\n", &format!("[settings]\n{settings}\n"));
    Bench::made(&manifest, &format!("{case}{more}"), "sftp-destination")
}

/// Without the trigger the outcome is unknown, which is never false: the bundle fails because nothing wrote the file.
#[test]
fn plg_06_a_declared_file_that_is_never_written_fails_the_bundle_by_its_name() -> anyhow::Result<()> {
    let told = "the contract declares contacts-K-1.csv.done beside the file, and it was never put there";
    let (code, report) = with_a_done_file("donefile = '{final}.done'", "")?.report(&["--fault", "plain"])?;
    assert_eq!((code, &fault(&report, "plain")["concluded"]), (Some(4), &"Unknown(trigger_not_confirmed)".into()));
    assert!(wrong(&report).join("\n").contains(told), "{report}");

    // One that starts nothing is missed by no conclusion.
    let manifest = format!("{MANIFEST}[[contract.auxiliary]]\nname = '{{final.stem}}.sha256'\n");
    let (code, report) = Bench::made(&manifest, CASE, "sftp-destination")?.report(&["--fault", "plain"])?;
    assert_eq!((code, &fault(&report, "plain")["concluded"]), (Some(4), &"Completed(checksum)".into()));
    assert!(
        wrong(&report).join("\n").contains("the contract declares contacts-K-1.sha256 beside the file"),
        "{report}"
    );
    Ok(())
}

#[test]
fn plg_06_the_bytes_of_a_file_beside_are_compared_and_written_anew() -> anyhow::Result<()> {
    let beside = "[[beside]]\nname = '{final.name}.done'\ngolden = 'golden/two.done'\n";
    let bench = with_a_done_file("done_file = '{final}.done'\ndone_content = 'sha256'", beside)?;
    let said = |arguments: &[&str]| -> anyhow::Result<(Option<i32>, String)> {
        let (code, report) = bench.report(&[&["--fault", "plain"], arguments].concat())?;
        Ok((code, wrong(&report).join("\n")))
    };
    let (code, told) = said(&[])?;
    assert_eq!((code, told.contains("two.done is not there yet; --bless")), (Some(4), true), "{told}");
    assert_eq!(said(&["--bless"])?, (Some(0), String::new()));
    let written = String::from_utf8(bench.read("tests/golden/two.done")?)?;
    assert!(written.ends_with("  contacts-K-1.csv\n"), "{written}");
    assert_eq!(said(&[])?, (Some(0), String::new()));
    bench.write("tests/golden/two.done", &written.to_uppercase())?;
    let (code, told) = said(&[])?;
    assert_eq!((code, told.contains("contacts-K-1.csv.done differs from two.done at byte")), (Some(4), true), "{told}");

    let case = String::from_utf8(bench.read("tests/one.toml")?)?;
    bench.write("tests/one.toml", &case.replace("{final.name}.done", "other"))?;
    let (code, told) = said(&[])?;
    let undeclared = "the contract declares no other beside the file; it declares: contacts-K-1.csv.done";
    assert_eq!((code, told.contains(undeclared)), (Some(4), true), "{told}");
    Ok(())
}

#[test]
fn plg_06_a_final_name_that_differs_for_the_same_delivery_is_found() -> anyhow::Result<()> {
    let manifest = MANIFEST.replace("contacts-{key}.csv", "contacts-{key}*.csv");
    for (behaviour, what) in
        [("name-unstable", "another attempt"), ("name-of-version", "an edit"), ("name-of-job", "a replacement")]
    {
        let case = CASE.replace("[settings]\n", &format!("[settings]\nbehaviour = '{behaviour}'\n"));
        let (code, report) = Bench::made(&manifest, &case, "misbehaving-destination")?.report(&[])?;
        let said = wrong(&report).join("\n");
        assert_eq!(code, Some(4), "{behaviour}");
        assert!(said.contains(&format!(" and {what} of it \"contacts-K-1-")), "{behaviour}: {said}");
    }
    Ok(())
}

/// A pass would say that it was tried.
#[test]
fn plg_06_what_is_named_and_selects_nothing_is_no_pass() -> anyhow::Result<()> {
    let bench = Bench::made(&format!("{MANIFEST}rename_one_step = true\n"), CASE, "sftp-destination")?;
    for (faults, told) in [
        ("sessions", "no session is recorded for one, so there is none to deliver over; record one with"),
        ("plain,sessions", "no session is recorded for one"),
        (
            "two-step-rename,dies-between",
            "every fault that was named is excluded: the contract says that a rename is one step",
        ),
    ] {
        let output = bench.test(&["--fault", faults])?;
        let said = String::from_utf8([output.stdout, output.stderr].concat())?;
        assert_eq!((output.status.code(), said.contains(told)), (Some(1), true), "{faults}: {said}");
    }
    let (code, report) = bench.report(&["--fault", "plain,two-step-rename"])?;
    assert_eq!((code, wrong(&report)), (Some(0), vec![]));
    Ok(())
}

/// A simulated server shows at once what it did.
#[test]
fn plg_06_the_contracts_settle_time_is_not_waited_for() -> anyhow::Result<()> {
    let manifest = format!("{MANIFEST}settle_seconds = 20\n");
    let (code, report) = Bench::made(&manifest, CASE, "sftp-destination")?.report(&["--fault", "plain"])?;
    assert_eq!((code, wrong(&report)), (Some(0), vec![]));
    let plain = fault(&report, "plain");
    assert_eq!(plain["concluded"], "Completed(checksum)", "{plain}");
    assert!(plain["milliseconds"].as_u64().is_some_and(|took| took < 20_000), "{plain}");
    Ok(())
}

#[test]
fn plg_06_a_call_without_an_end_is_ended_by_the_manifests_limit() -> anyhow::Result<()> {
    let manifest = format!("{MANIFEST}[limits]\ncall_seconds = 1\n");
    let case = CASE.replace("[settings]\n", "[settings]\nbehaviour = 'loop'\nin = 'final-name'\n");
    let (code, report) = Bench::made(&manifest, &case, "misbehaving-destination")?.report(&[])?;
    let said = wrong(&report).join("\n");
    assert_eq!(code, Some(4));
    assert!(said.contains("the plugin did not return within 1 s"), "{said}");
    Ok(())
}

#[test]
fn plg_06_golden_files_are_compared_and_written_anew() -> anyhow::Result<()> {
    let case = format!("golden = 'golden/two.csv'\n{CASE}");
    let bench = Bench::made(MANIFEST, &case, "sftp-destination")?;
    let (code, report) = bench.report(&["--fault", "plain"])?;
    assert_eq!(code, Some(4));
    assert!(wrong(&report).join("\n").contains("two.csv is not there yet; --bless"), "{report}");

    let (code, report) = bench.report(&["--bless", "--fault", "plain"])?;
    assert_eq!((code, wrong(&report)), (Some(0), vec![]));
    assert_eq!(bench.read("tests/golden/two.csv")?, b"n\r\n1\r\n2\r\n");

    bench.write("tests/golden/two.csv", "n\r\n1\r\n3\r\n")?;
    let (code, report) = bench.report(&["--fault", "plain"])?;
    assert_eq!(code, Some(4));
    let said = wrong(&report).join("\n");
    assert!(said.contains("at byte 6 (line 3)") && said.contains("--bless"), "{said}");
    Ok(())
}

#[test]
fn plg_06_the_report_is_read_by_people_and_by_build_servers() -> anyhow::Result<()> {
    let bench = Bench::made(MANIFEST, CASE, "sftp-destination")?;
    let output = bench.test(&["--junit", "junit.xml", "--only", "one"])?;
    let said = String::from_utf8(output.stdout)?;
    assert_eq!(output.status.code(), Some(0), "{said}");
    for part in
        ["made, revision 1: passed, 1 case", "nothing goes wrong", "Completed(", "deliver", "MiB", "Left unknown"]
    {
        assert!(said.contains(part), "{part:?} is not in:\n{said}");
    }
    let junit = std::fs::read_to_string(bench.bundle().with_file_name("junit.xml"))?;
    for part in ["<testsuite name=\"one\"", "name=\"plain\"", "name=\"cut-during-link\"", "failures=\"0\""] {
        assert!(junit.contains(part), "{part:?} is not in:\n{junit}");
    }
    let (_, report) = bench.report(&["--fault", "plain"])?;
    let calls = report["cases"][0]["calls"].as_array().cloned().unwrap_or_default();
    let deliver = calls.iter().find(|call| call["call"] == "deliver").cloned().unwrap_or_default();
    assert!(deliver["memory_bytes"].as_u64().is_some_and(|bytes| bytes > 0), "{deliver}");
    assert_eq!(
        (&deliver["host_calls"]["send"], &deliver["host_calls"]["publish"]),
        (&1.into(), &1.into()),
        "{deliver}"
    );
    assert_eq!(deliver["limit_milliseconds"], 3_600_000);
    Ok(())
}

#[test]
fn plg_06_what_cannot_be_tested_says_why_and_ends_with_its_code() -> anyhow::Result<()> {
    let bench = Bench::made(MANIFEST, CASE, "sftp-destination")?;
    let said = |arguments: &[&str]| -> anyhow::Result<(Option<i32>, String)> {
        let output = bench.test(arguments)?;
        let text = [output.stdout, output.stderr].concat();
        Ok((output.status.code(), String::from_utf8(text)?))
    };
    let (code, text) = said(&["--only", "two"])?;
    assert_eq!((code, text.contains("there is no case \"two\"; there are: one")), (Some(1), true), "{text}");
    let (code, text) = said(&["--fault", "flood"])?;
    assert_eq!((code, text.contains("there is no fault \"flood\"")), (Some(1), true), "{text}");
    bench.write("tests/one.toml", "key = 'K'\nfinalname = 'x'\n")?;
    let (code, text) = said(&[])?;
    assert_eq!(
        (
            code,
            text.contains("tests/one.toml line 2: the key `finalname` is not known here; did you mean `final_name`?")
        ),
        (Some(1), true),
        "{text}"
    );
    std::fs::remove_file(bench.bundle().join("tests/one.toml"))?;
    let (code, text) = said(&[])?;
    assert_eq!((code, text.contains("has no cases; add tests/first.toml")), (Some(1), true), "{text}");
    bench.write("tests/one.toml", CASE)?;
    bench.write("partner.toml", "partner = 'made'\nrevisoin = 1\n")?;
    let (code, text) = said(&[])?;
    assert_eq!((code, text.contains("partner.toml line 2")), (Some(4), true), "{text}");
    std::fs::remove_dir_all(bench.bundle())?;
    let (code, text) = said(&[])?;
    assert_eq!((code, text.contains("NotFound")), (Some(3), true), "{text}");
    Ok(())
}

#[test]
fn plg_06_a_bundle_of_one_part_is_tested_as_far_as_it_goes() -> anyhow::Result<()> {
    let checks = |report: &Value| -> Vec<String> {
        let checks = list(report, "cases").iter().flat_map(|case| list(case, "checks"));
        checks.filter_map(|check| part(check, "name").as_str().map(str::to_owned)).collect()
    };
    let builder = Bench::made(&format!("part = 'builder'\n{MANIFEST}"), CASE, "sftp-destination")?;
    std::fs::remove_file(builder.bundle().join("destination.wasm"))?;
    let (code, report) = builder.report(&[])?;
    assert_eq!((code, wrong(&report)), (Some(0), vec![]), "{report}");
    assert_eq!(checks(&report), ["build", "repeatable", "deliveries"]);
    assert_eq!(list(&report["cases"][0], "faults").len(), 0);

    let case = "key = 'K-1'\nfile = 'rows/two.jsonl'\n[settings]\nname = 'contacts-{key}.csv'\n";
    let destination = Bench::made(&format!("part = 'destination'\n{MANIFEST}"), case, "sftp-destination")?;
    std::fs::remove_file(destination.bundle().join("builder.wasm"))?;
    let (code, report) = destination.report(&["--fault", "plain,cut-after-link,disk-full"])?;
    assert_eq!((code, wrong(&report)), (Some(0), vec![]), "{report}");
    assert_eq!(checks(&report), ["file", "final name"]);
    assert_eq!(fault(&report, "plain")["concluded"], "Completed(checksum)", "{report}");

    for (bench, case, told) in [
        (&destination, CASE, "tests/one.toml: the bundle is a destination alone"),
        (&builder, case, "tests/one.toml: the bundle has a builder, which makes the file"),
    ] {
        bench.write("tests/one.toml", case)?;
        let said = String::from_utf8(bench.test(&[])?.stderr)?;
        assert!(said.contains(told), "{said}");
    }
    // Without the word for it a missing component is a fault, not a bundle of one part.
    builder.write("partner.toml", &format!("partner = 'made'\nrevision = 1\n{MANIFEST}"))?;
    let refused = builder.test(&[])?;
    assert_eq!(refused.status.code(), Some(4));
    assert!(String::from_utf8(refused.stdout)?.contains("destination.wasm cannot be read"));
    Ok(())
}
