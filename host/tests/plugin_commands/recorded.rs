//! `waybill plugin test --record`: a session with a real server, written down and held again without it.

use serde_json::Value;
use waybill_tests::{Reach, Sshd};

use super::stage::{Bench, list, wrong};

const MANIFEST: &str = "[names]\nfinal = 'contacts-{key}.csv'\n[contract]\npublishes_whole = true\none_name_space = true\nmay_remove_temporaries = true\n";
const CASE: &str =
    "key = 'K-1'\n[settings]\nname = 'contacts-{key}.csv'\nquery = 'two'\n[rows]\ntwo = 'rows/two.jsonl'\n";
const RECORD: [&str; 5] = ["--record", "theirs", "--against", "Acme test", "--yes"];
const FILE: &str = "tests/sessions/theirs.jsonl";

/// A destination of this name at the server.
fn destinations(server: &Sshd) -> anyhow::Result<String> {
    let Reach { port, user, host_key, directory, secret } = Reach::openssh(server)?;
    Ok(format!(
        "[[destination]]\nid = '018f0000-0000-7000-8000-000000000001'\nname = 'Acme test'\n\
         tenant = '018f0000-0000-7000-8000-0000000000aa'\nhost = '127.0.0.1'\nport = {port}\nuser = '{user}'\n\
         directory = '{directory}'\nhost_keys = ['{host_key}']\n{secret}\n"
    ))
}

/// A bundle with a session that was recorded against OpenSSH, which is gone.
async fn recorded(settings: &str, destination: &str) -> anyhow::Result<Bench> {
    let case = CASE.replace("[settings]\n", &format!("[settings]\n{settings}\n"));
    let bench = Bench::made(MANIFEST, &case, destination)?;
    let server = Sshd::start().await?;
    bench.write("destinations.toml", &destinations(&server)?)?;
    let (code, report) = bench.report(&RECORD)?;
    assert_eq!((code, wrong(&report)), (Some(0), vec![]), "{report}");
    std::fs::remove_file(bench.bundle().join("destinations.toml"))?;
    Ok(bench)
}

/// The one session of a report.
fn session(report: &Value) -> &Value {
    let sessions = list(report, "cases").first().map_or(&[][..], |case| list(case, "sessions"));
    sessions.first().unwrap_or(&Value::Null)
}

/// What a replay says is wrong.
fn replayed(bench: &Bench) -> anyhow::Result<(Option<i32>, String)> {
    let (code, report) = bench.report(&["--fault", "sessions"])?;
    Ok((code, wrong(&report).join("\n")))
}

fn said(output: std::process::Output) -> anyhow::Result<(Option<i32>, String)> {
    Ok((output.status.code(), String::from_utf8([output.stdout, output.stderr].concat())?))
}

#[tokio::test]
async fn plg_06_a_session_with_openssh_is_recorded_and_held_again_without_it() -> anyhow::Result<()> {
    let bench = Bench::made(MANIFEST, CASE, "sftp-destination")?;
    let server = Sshd::start().await?;
    bench.write("theirs.toml", &destinations(&server)?)?;
    let record = [&RECORD[..], &["--destinations", "made/theirs.toml"]].concat();

    // Unconfirmed, it says what would be written, and writes nothing.
    let (code, text) =
        said(bench.test(record.iter().filter(|word| **word != "--yes").copied().collect::<Vec<_>>().as_slice())?)?;
    assert_eq!(code, Some(4), "{text}");
    for told in [
        "NotConfirmed: nothing was written; repeat the command with --yes",
        "contacts-K-1.csv, which is not there now",
        "@127.0.0.1:",
    ] {
        assert!(text.contains(told), "{told:?} is not in {text}");
    }
    assert_eq!(std::fs::read_dir(server.files())?.count(), 0);
    assert!(!bench.bundle().join(FILE).exists());

    let (code, text) = said(bench.test(&record)?)?;
    assert_eq!(code, Some(0), "{text}");
    for told in [
        "which is not there now, and stays",
        "tests/sessions/theirs.jsonl was written; look at it",
        "left at the server: contacts-K-1.csv\n",
    ] {
        assert!(text.contains(told), "{told:?} is not in {text}");
    }
    assert_eq!(server.fetch("contacts-K-1.csv").await?, b"n\r\n1\r\n2\r\n");
    assert_eq!(std::fs::read_dir(server.files())?.count(), 1, "scratch and temporary files are gone");

    // The file can be shown to anybody.
    let kept = String::from_utf8(bench.read(FILE)?)?;
    let key = std::fs::read_to_string(server.client_key())?;
    let hidden = ["127.0.0.1", server.user(), "Acme", &server.port().to_string(), "1\\r\\n2"];
    for secret in hidden.into_iter().chain(key.lines().filter(|line| line.len() > 20)) {
        assert!(!kept.contains(secret), "{secret} is in {kept}");
    }
    for told in
        ["SSH-2.0-OpenSSH", "hardlink@openssh.com", "Completed(checksum)", "{scratch-1}", "{attempt}", "\"built\""]
    {
        assert!(kept.contains(told), "{told:?} is not in {kept}");
    }

    // What is there is nobody's to replace.
    let (code, text) = said(bench.test(&record)?)?;
    assert_eq!(
        (code, text.contains("is not seen to be free at the server (a file has it)")),
        (Some(4), true),
        "{text}"
    );
    assert_eq!(server.times_created("contacts-K-1.csv")?, 1);

    drop(server);
    std::fs::remove_file(bench.bundle().join("theirs.toml"))?;
    let junit = bench.bundle().with_file_name("junit.xml");
    let (code, report) = bench.report(&["--fault", "plain,sessions", "--junit", "junit.xml"])?;
    assert_eq!((code, wrong(&report)), (Some(0), vec![]), "{report}");
    let one = session(&report);
    assert_eq!((&one["session"], &one["concluded"]), (&"theirs".into(), &"Completed(checksum)".into()), "{one}");
    assert_eq!(one["requests"].as_u64(), Some(kept.lines().count() as u64 - 1));
    assert!(std::fs::read_to_string(junit)?.contains("name=\"session theirs\""));
    let (_, text) = said(bench.test(&["--fault", "plain"])?)?;
    assert!(!text.contains("session theirs"), "a quick look has only what it names: {text}");
    Ok(())
}

#[tokio::test]
async fn plg_06_a_plugin_that_asks_for_something_else_fails_the_replay() -> anyhow::Result<()> {
    let bench =
        recorded("behaviour = 'script'\nscript = 'send,publish,stat:{final}'", "misbehaving-destination").await?;
    let kept = String::from_utf8(bench.read(FILE)?)?;
    // The request after the publish and the look that confirms it.
    let number =
        kept.lines().position(|line| line.contains("\"hardlink\":{\"from\":\".") && line.contains("contacts-K-1.csv"));
    let case = String::from_utf8(bench.read("tests/one.toml")?)?;
    for (script, told) in [
        (
            "send,publish,list:.",
            "is another one than was recorded: then it was a look at \"contacts-K-1.csv\", now it is a listing of \".\"",
        ),
        ("send,stat:{final},publish", "now it is a look at \"contacts-K-1.csv\""),
        ("send,publish", "is another one than was recorded"),
    ] {
        bench.write("tests/one.toml", &case.replace("send,publish,stat:{final}", script))?;
        let (code, wrong) = replayed(&bench)?;
        assert_eq!(code, Some(4), "{script}: {wrong}");
        assert!(wrong.contains(told) && wrong.contains("record the session again"), "{script}: {wrong}");
    }
    bench.write("tests/one.toml", &case.replace("send,publish,stat:{final}", "send,stat:{final},publish"))?;
    let (_, wrong) = replayed(&bench)?;
    assert!(
        number.is_some_and(|number| wrong.contains(&format!("request {number} is another one"))),
        "{number:?}: {wrong}"
    );

    // Another content of the same file is no other session: golden files are for that.
    bench.write("tests/one.toml", &case)?;
    bench.write("tests/rows/two.jsonl", "[{\"name\":\"n\",\"of\":\"integer\"}]\n[1]\n[2]\n[3]\n")?;
    assert_eq!(replayed(&bench)?, (Some(0), String::new()));

    // And what a shorter record no longer answers is one request more.
    let shorter: Vec<&str> = kept.lines().collect();
    let shorter = shorter.split_last().map(|(_, before)| before.join("\n")).unwrap_or_default();
    bench.write(FILE, &shorter)?;
    let (code, wrong) = replayed(&bench)?;
    assert_eq!((code, wrong.contains("is one more than was recorded")), (Some(4), true), "{wrong}");
    bench.write(FILE, &format!("{kept}{{\"request\":\"free_bytes\",\"answer\":{{\"free_bytes\":1}}}}\n"))?;
    let (code, wrong) = replayed(&bench)?;
    assert_eq!(
        (code, wrong.contains("of the record was not made: asking for the free space")),
        (Some(4), true),
        "{wrong}"
    );
    Ok(())
}

#[tokio::test]
async fn plg_06_a_session_whose_outcome_was_another_or_that_is_broken_is_told() -> anyhow::Result<()> {
    let bench = recorded("", "sftp-destination").await?;
    let kept = String::from_utf8(bench.read(FILE)?)?;
    bench.write(FILE, &kept.replacen("Completed(checksum)", "Completed(listing)", 1))?;
    let (code, wrong) = replayed(&bench)?;
    assert_eq!(
        (code, wrong.contains("the host concluded Completed(checksum) at once, where it was Completed(listing)")),
        (Some(4), true),
        "{wrong}"
    );

    for (text, told) in [
        (kept.replacen("\"stat\"", "\"stare\"", 1), "tests/sessions/theirs.jsonl line "),
        (
            kept.replacen("\"case\":\"one\"", "\"case\":\"two\"", 1),
            "line 1: it was recorded for the case \"two\", which is no longer there",
        ),
    ] {
        bench.write(FILE, &text)?;
        let (code, text) = said(bench.test(&[])?)?;
        assert_eq!((code, text.contains(told)), (Some(1), true), "{text}");
    }
    Ok(())
}

#[tokio::test]
async fn plg_06_what_cannot_be_recorded_says_why_and_keeps_nothing() -> anyhow::Result<()> {
    let bench = Bench::made(MANIFEST, CASE, "sftp-destination")?;
    let mut server = Sshd::start().await?;
    let (code, text) = said(bench.test(&RECORD)?)?;
    assert_eq!((code, text.contains("destinations.toml cannot be read")), (Some(4), true), "{text}");
    bench.write("destinations.toml", &destinations(&server)?)?;
    for (arguments, told) in [
        (["--record", "a/b", "--against", "Acme test", "--yes"], "a session cannot be called \"a/b\""),
        (["--record", "theirs", "--against", "Acme", "--yes"], "has no destination \"Acme\"; it has: Acme test"),
    ] {
        let (code, text) = said(bench.test(&arguments)?)?;
        assert_eq!((code, text.contains(told)), (Some(1), true), "{text}");
    }
    // A plugin that does not deliver leaves no record of it.
    bench.write(
        "tests/one.toml",
        &CASE.replace("[settings]\n", "[settings]\ndone = '../x'\nmake_directories = 'perhaps'\n"),
    )?;
    let (code, report) = bench.report(&RECORD)?;
    assert_eq!(code, Some(4), "{report}");
    assert!(wrong(&report).join("\n").contains("it was not delivered"), "{report}");
    assert!(!bench.bundle().join(FILE).exists());

    bench.write("tests/two.toml", CASE)?;
    let (code, text) = said(bench.test(&RECORD)?)?;
    assert_eq!((code, text.contains("name it with --only: one, two")), (Some(1), true), "{text}");
    server.stop().await?;
    let (code, text) = said(bench.test(&[&RECORD[..], &["--only", "two"]].concat())?)?;
    assert_eq!((code, text.contains("cannot be reached")), (Some(1), true), "{text}");
    Ok(())
}
