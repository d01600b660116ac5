//! `waybill plugin test`: what it tells, to whom and where: people, build servers, the guide, and the cache of the next time.

use std::os::unix::fs::PermissionsExt as _;

use super::stage::{Bench, repository};

const MANIFEST: &str = "[names]\nfinal = 'contacts-{key}.csv'\n[contract]\npublishes_whole = true\none_name_space = true\nmay_remove_temporaries = true\n";
const CASE: &str = "key = 'K-1'\ngolden = 'golden/two.csv'\n[settings]\nname = 'contacts-{key}.csv'\nquery = 'two'\n[rows]\ntwo = 'rows/two.jsonl'\n";

/// The exit code, what stands on standard output, and all that was said.
fn said(bench: &Bench, arguments: &[&str]) -> anyhow::Result<(Option<i32>, String, String)> {
    let output = bench.test(arguments)?;
    let answer = String::from_utf8(output.stdout)?;
    let all = format!("{answer}{}", String::from_utf8(output.stderr)?);
    Ok((output.status.code(), answer, all))
}

/// A build server takes the file for the report of this run.
#[test]
fn plg_06_what_cannot_be_tested_is_a_failed_test_for_build_servers() -> anyhow::Result<()> {
    let bench = Bench::made(MANIFEST, CASE, "sftp-destination")?;
    let junit = bench.bundle().with_file_name("junit.xml");
    let untested = |code: i32, why: &str| -> anyhow::Result<()> {
        std::fs::write(&junit, "<testsuites failures=\"0\"/>")?;
        let (ended, _, all) = said(&bench, &["--junit", "junit.xml"])?;
        assert_eq!(ended, Some(code), "{all}");
        let xml = std::fs::read_to_string(&junit)?;
        for part in ["failures=\"1\"", "name=\"can be tested\"", why] {
            assert!(xml.contains(part), "{part:?} is not in:\n{xml}");
        }
        Ok(())
    };
    bench.write("tests/one.toml", "key = 'K'\nfinalname = 'x'\n")?;
    untested(1, "tests/one.toml line 2: the key `")?;
    bench.write("tests/one.toml", CASE)?;
    bench.write("partner.toml", "partner = 'made'\nrevisoin = 1\n")?;
    untested(4, "partner.toml line 2")?;
    std::fs::remove_dir_all(bench.bundle())?;
    untested(3, "is no directory")
}

#[test]
fn plg_06_a_file_for_build_servers_that_cannot_be_written_is_told_first_and_costs_no_report() -> anyhow::Result<()> {
    let bench = Bench::made(MANIFEST, CASE, "sftp-destination")?;
    let (code, answer, all) = said(&bench, &["--bless", "--fault", "plain", "--junit", "none/junit.xml"])?;
    assert_eq!((code, answer.as_str()), (Some(1), ""), "{all}");
    assert!(all.contains("the JUnit report cannot be written to none/junit.xml"), "{all}");
    assert!(!bench.bundle().join("tests/golden/two.csv").exists(), "nothing was tested");

    let (code, answer, all) = said(&bench, &["--bless", "--fault", "plain", "--junit", "/dev/full"])?;
    assert_eq!(code, Some(1), "{all}");
    assert!(answer.contains("made, revision 1: passed, 1 case"), "{all}");
    assert!(all.contains("the JUnit report cannot be written to /dev/full"), "{all}");
    Ok(())
}

#[test]
fn plg_06_the_guide_has_the_words_of_the_report() -> anyhow::Result<()> {
    let guide = std::fs::read_to_string(repository().join("docs/partners.md"))?;
    let bench = Bench::made(
        &format!("{MANIFEST}keeps_seconds = 60\n"),
        &format!("{CASE}[server]\ncollects = true\n"),
        "sftp-destination",
    )?;
    let faults = "stop-requested,refuses-what-it-did,cut-after-rename,auxiliary-taken,refused-put-create";
    let (code, answer, all) = said(&bench, &["--bless", "--fault", faults])?;
    assert_eq!(code, Some(4), "{all}");
    for word in ["ok", "FAIL", "true", "open", "FALSE", "Left unknown", "Never came to pass", "Not tried"] {
        assert!(answer.contains(word), "{word:?} is not in:\n{answer}");
        assert!(guide.contains(&format!("`{word}`")) || guide.contains(&format!("\"{word}\"")), "{word:?}");
    }
    let help = String::from_utf8(bench.test(&["--help"])?.stdout)?;
    for word in ["key", "attempt", "final", "final.stem", "final.extension", "final.name", "sha256"] {
        for text in [&help, &guide] {
            assert!(text.contains(&format!("{{{word}}}")), "{word:?} is not in:\n{text}");
        }
    }
    Ok(())
}

/// With nothing said and nothing set, as an author has it.
#[test]
fn plg_06_compiled_components_are_kept_in_the_users_cache_directory() -> anyhow::Result<()> {
    let bench = Bench::made(MANIFEST, CASE, "sftp-destination")?;
    for arguments in [&["test", "made", "--bless", "--fault", "plain"][..], &["inspect", "made"]] {
        let home = tempfile::tempdir()?;
        let output = bench.bare().args(arguments).env("HOME", home.path()).output()?;
        let all = String::from_utf8([output.stdout, output.stderr].concat())?;
        assert_eq!(output.status.code(), Some(0), "{arguments:?}: {all}");
        let kept = home.path().join(".cache/waybill/compiled");
        let artefacts =
            std::fs::read_dir(&kept)?.filter(|file| file.as_ref().is_ok_and(|file| file.file_name() != "lock"));
        assert_eq!(artefacts.count(), 2, "{arguments:?}");
        assert_eq!(std::fs::metadata(&kept)?.permissions().mode() & 0o777, 0o700, "{arguments:?}");
    }
    // A user who cannot write there is served all the same.
    let without = bench.bare().args(["inspect", "made"]).env("HOME", "/dev/null").output()?;
    assert_eq!(without.status.code(), Some(0), "{}", String::from_utf8_lossy(&without.stderr));
    Ok(())
}

/// A build server's log shows no bar.
#[test]
fn plg_06_where_nothing_moves_a_line_says_what_takes_its_time() -> anyhow::Result<()> {
    let bench = Bench::made(MANIFEST, CASE, "sftp-destination")?;
    for (arguments, told) in [(&["--fault", "plain"][..], true), (&["--fault", "plain", "--json"], false)] {
        let said = String::from_utf8(bench.test(arguments)?.stderr)?;
        let lines = ["reading and compiling the bundle; ", "one is delivered 1 time"];
        assert!(lines.iter().all(|line| said.contains(line) == told), "{arguments:?}: {said}");
    }
    Ok(())
}
