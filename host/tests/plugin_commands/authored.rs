//! `waybill plugin new` and `build`: what an author begins with builds, passes and delivers as it stands, in each language, and
//! what cannot be made leaves things as they were.

use std::process::Output;

use serde_json::Value;

use super::onboarded::delivers;
use super::stage::{Bench, Tool, fault, wrong};

fn answer(output: &Output) -> anyhow::Result<Value> {
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    serde_json::from_slice(&output.stdout).map_err(|error| anyhow::anyhow!("no answer ({error}): {said}"))
}

/// new → build → test → dropped into the partners directory of a host that runs, without a change in between.
async fn begin(language: &str) -> anyhow::Result<()> {
    let bench = Bench::empty()?;
    let made = bench.author("new", &["--language", language, "--json"])?;
    let document = answer(&made)?;
    assert_eq!((made.status.code(), document.get("outcome")), (Some(0), Some(&"Created".into())), "{document}");

    let manifest = String::from_utf8(bench.read("partner.toml")?)?;
    let pinned = |pin: &str| format!("{manifest}\n[builder]\nfile = 'builder.wasm'\nsha256 = '{pin}' # ours\n");
    bench.write("partner.toml", &pinned(&"0".repeat(64)))?;
    let built = bench.author("build", &["--json"])?;
    let document = answer(&built)?;
    assert_eq!((built.status.code(), document.get("outcome")), (Some(0), Some(&"Built".into())), "{document}");
    let digest = document.pointer("/parts/0/sha256").and_then(Value::as_str).unwrap_or_default();
    assert_eq!(String::from_utf8(bench.read("partner.toml")?)?, pinned(digest), "the pin is not of what was built");
    let parts = document.get("parts").and_then(Value::as_array).into_iter().flatten();
    let parts: Vec<_> = parts.filter_map(|part| part.get("file")).collect();
    assert_eq!(parts, ["builder.wasm", "destination.wasm"]);
    assert!(bench.unfinished()?.is_empty(), "nothing is left beside the components");

    let tested = bench.author("test", &["--json"])?;
    let report = answer(&tested)?;
    assert_eq!((wrong(&report), tested.status.code()), (Vec::new(), Some(0)), "{language}");
    assert_eq!(report.get("passed"), Some(&true.into()));
    delivers(&bench).await
}

#[tokio::test]
async fn plg_07_plg_01_a_new_bundle_in_rust_builds_passes_and_delivers() -> anyhow::Result<()> {
    begin("rust").await
}

#[tokio::test]
async fn plg_07_plg_01_a_new_bundle_in_javascript_builds_passes_and_delivers() -> anyhow::Result<()> {
    begin("javascript").await
}

#[tokio::test]
async fn plg_07_plg_01_a_new_bundle_in_python_builds_passes_and_delivers() -> anyhow::Result<()> {
    begin("python").await
}

#[test]
fn nothing_is_made_over_what_is_there() -> anyhow::Result<()> {
    let bench = Bench::empty()?;
    std::fs::create_dir(bench.bundle())?;
    bench.write("mine.txt", "mine")?;
    let refused = bench.author("new", &["--language", "rust", "--json"])?;
    let document = answer(&refused)?;
    assert_eq!((refused.status.code(), &document["outcome"]), (Some(4), &"Refused".into()));
    assert!(document["why"].as_str().is_some_and(|why| why.contains("not empty")), "{document}");
    assert_eq!(std::fs::read_dir(bench.bundle())?.count(), 1);

    let refused = bench.author("new", &["--language", "rust", "--partner", "Ac me"])?;
    assert_eq!(refused.status.code(), Some(4));
    assert!(String::from_utf8_lossy(&refused.stdout).contains("lower-case letters"));
    Ok(())
}

#[test]
fn a_bundle_in_the_working_directory_has_its_name() -> anyhow::Result<()> {
    let bench = Bench::empty()?;
    std::fs::create_dir(bench.bundle())?;
    let made = bench.bare().current_dir(bench.bundle()).args(["new", ".", "--language", "rust"]).output()?;
    let said = String::from_utf8_lossy(&made.stdout).into_owned();
    assert_eq!(made.status.code(), Some(0), "{said}");
    assert!(String::from_utf8(bench.read("partner.toml")?)?.contains("partner = \"acme\""), "{said}");

    let absolute = bench.bundle().with_file_name("other");
    let made = bench.bare().arg("new").arg(&absolute).args(["--language", "rust"]).output()?;
    assert_eq!(made.status.code(), Some(0), "{}", String::from_utf8_lossy(&made.stdout));
    assert!(std::fs::read_to_string(absolute.join("partner.toml"))?.contains("partner = \"other\""));
    Ok(())
}

#[test]
fn half_a_bundle_says_what_is_missing() -> anyhow::Result<()> {
    let bench = Bench::empty()?;
    let made = bench.author("new", &["--language", "python", "--part", "destination", "--partner", "acme-2"])?;
    let text = String::from_utf8_lossy(&made.stdout).into_owned();
    assert_eq!(made.status.code(), Some(0), "{text}");
    assert!(text.contains("put builder.wasm beside partner.toml, and take `part` out"), "{text}");
    assert!(!bench.bundle().join("builder").exists() && bench.bundle().join("destination/destination.py").exists());
    assert!(String::from_utf8(bench.read("partner.toml")?)?.contains("partner = \"acme-2\""));
    Ok(())
}

/// With components that are built already: what is begun with one part passes as it stands.
#[test]
fn plg_07_a_new_bundle_of_one_part_passes() -> anyhow::Result<()> {
    for (part, component) in [("builder", "csv-builder"), ("destination", "sftp-destination")] {
        let bench = Bench::empty()?;
        bench.author("new", &["--language", "rust", "--part", part])?;
        bench.component(part, component)?;
        let (code, report) = bench.report(&["--fault", "plain"])?;
        assert_eq!((code, wrong(&report)), (Some(0), Vec::new()), "{part}: {report}");
        let delivered = fault(&report, "plain").get("concluded").and_then(Value::as_str);
        assert_eq!(delivered.is_some(), part == "destination", "{part}: {report}");
        let inspected = bench.author("inspect", &[])?;
        let text = String::from_utf8_lossy(&inspected.stdout).into_owned();
        assert_eq!(inspected.status.code(), Some(4), "{text}");
        assert!(text.contains(&format!("it is a {part} alone")) && text.contains("take that line out"), "{text}");
    }
    Ok(())
}

#[test]
fn a_part_that_does_not_build_is_shown_and_leaves_the_old_components() -> anyhow::Result<()> {
    let bench = Bench::empty()?;
    bench.author("new", &["--language", "javascript"])?;
    bench.write("builder.wasm", "of yesterday")?;
    bench.write("builder/builder.js", "export function build(job, output) { return {{ }")?;
    let failed = bench.author("build", &["--json"])?;
    let document = answer(&failed)?;
    assert_eq!((failed.status.code(), &document["part"]), (Some(4), &"builder".into()), "{document}");
    assert_eq!(document["why"], "builder/builder.js does not build");
    assert!(document["said"].as_str().is_some_and(|said| said.contains("failed to parse")), "{document}");
    let reason = document["reason"].as_str().unwrap_or_default();
    assert!(
        reason.contains("builder.js:1") && reason.contains("SyntaxError") && !reason.contains("    at "),
        "{reason}"
    );
    assert_eq!(bench.read("builder.wasm")?, b"of yesterday");
    assert_eq!(document["of_an_earlier_build"], serde_json::json!(["builder.wasm"]));
    let tested = bench.author("test", &[])?;
    let warned = String::from_utf8_lossy(&tested.stderr).into_owned();
    assert!(warned.contains("no destination.wasm: run `waybill plugin build acme`"), "{warned}");
    assert!(bench.unfinished()?.is_empty());
    Ok(())
}

#[test]
fn of_python_the_reason_is_shown_and_the_rest_on_request() -> anyhow::Result<()> {
    let bench = Bench::empty()?;
    bench.author("new", &["--language", "python", "--part", "builder"])?;
    bench.write("builder/builder.py", "import json\nimport no_such_package\n")?;
    let failed = bench.author("build", &[])?;
    let said = String::from_utf8_lossy(&failed.stdout).into_owned();
    assert_eq!(failed.status.code(), Some(4), "{said}");
    for told in ["\"builder.py\", line 2", "No module named 'no_such_package'", "standard library", "--whole"] {
        assert!(said.contains(told), "{told}: {said}");
    }
    assert!(!said.contains("anyhow") && said.lines().count() < 10, "{said}");
    let whole = bench.author("build", &["--whole"])?;
    assert!(String::from_utf8_lossy(&whole.stdout).contains("Stack backtrace"));
    Ok(())
}

/// Beside sources a missing component is one to build, and one that is older than them is not what they say.
#[test]
fn a_component_that_its_sources_would_not_make_is_warned_of() -> anyhow::Result<()> {
    let bench = Bench::empty()?;
    bench.author("new", &["--language", "python"])?;
    let missing = bench.author("test", &[])?;
    let said = String::from_utf8_lossy(&missing.stdout).into_owned();
    assert!(missing.status.code() == Some(4) && said.contains("`waybill plugin build DIR` makes it"), "{said}");
    bench.component("builder", "csv-builder")?;
    bench.component("destination", "sftp-destination")?;
    for (old, warns) in [(false, false), (true, true)] {
        if old {
            let manifest = String::from_utf8(bench.read("partner.toml")?)?;
            bench.write("partner.toml", &manifest.replace("[options]\n", "[options]\ndelimeter = \";\"\n"))?;
            let component = std::fs::File::options().write(true).open(bench.bundle().join("builder.wasm"))?;
            component.set_modified(std::time::SystemTime::UNIX_EPOCH)?;
        }
        for command in [&["test", "--fault", "plain"][..], &["inspect"][..]] {
            let (command, arguments) = command.split_first().unwrap_or((&"", &[]));
            let told = bench.author(command, arguments)?;
            let said = String::from_utf8_lossy(&told.stderr).into_owned();
            let newer = said.contains("builder/ is newer than builder.wasm");
            let misspelt = said.contains("did you mean `delimiter`?");
            assert_eq!((told.status.code(), newer, misspelt), (Some(0), warns, warns), "{command}: {said}");
        }
    }
    Ok(())
}

#[test]
fn what_is_missing_is_told_with_what_to_install() -> anyhow::Result<()> {
    for (language, told) in [("javascript", "npm install --prefix ~/node node@22"), ("python", "python3-venv")] {
        let bench = Bench::empty()?;
        bench.author("new", &["--language", language])?;
        let failed = bench.authors("build", &[]).env("PATH", bench.bundle()).output()?;
        let said = String::from_utf8_lossy(&failed.stderr).into_owned();
        assert_eq!(failed.status.code(), Some(1), "{said}");
        assert!(said.contains(told), "{language}: {said}");
    }
    let bench = Bench::empty()?;
    let missing = bench.author("build", &["--json"])?;
    assert_eq!((missing.status.code(), &answer(&missing)?["outcome"]), (Some(3), &"NotFound".into()));
    std::fs::create_dir(bench.bundle())?;
    let empty = bench.author("build", &[])?;
    assert_eq!(empty.status.code(), Some(3));
    assert!(String::from_utf8_lossy(&empty.stdout).contains("waybill plugin new"));
    Ok(())
}

/// Debian 12's Node.js and a Python of yesterday: the version that is there, the one that is needed and where to get it, in place
/// of a stack trace of the compiler's.
#[test]
fn tools_that_are_too_old_are_told_before_anything_is_installed() -> anyhow::Result<()> {
    let cases: [(&str, &[Tool], &[&str]); 4] = [
        (
            "javascript",
            &[("node", "echo v18.20.4"), ("npm", "echo 9.2.0")],
            &["Node.js 18.20.4 does not run", "oxc-minify asks for ^20.19.0 || >=22.12.0", "node@22", "Debian 12"],
        ),
        (
            "javascript",
            &[("node", "echo v22.12.0")],
            &["npm is needed for JavaScript and was not found", "Debian's package npm"],
        ),
        ("python", &[("python3", "echo 3.8.18")], &["Python 3.8.18", "3.10 or later", "python3-venv"]),
        // Debian's python3 without python3-venv: it answers what its version is, and has no ensurepip.
        (
            "python",
            &[("python3", "case $2 in *version_info*) echo 3.11.2 ;; *) exit 1 ;; esac")],
            &["Python 3.11.2 has no venv with pip", "python3-venv"],
        ),
    ];
    for (language, tools, told) in cases {
        let bench = Bench::empty()?;
        bench.author("new", &["--language", language])?;
        let path = bench.tools(tools)?;
        let kept = tempfile::tempdir()?;
        let failed = bench.authors("build", &["--tools"]).arg(kept.path()).env("PATH", path).output()?;
        let said = String::from_utf8_lossy(&failed.stderr).into_owned();
        assert_eq!(failed.status.code(), Some(1), "{language}: {said}");
        for words in told {
            assert!(said.contains(words), "{language}: {words:?} is not in: {said}");
        }
        assert_eq!(std::fs::read_dir(kept.path())?.count(), 0, "{language}: nothing was begun");
        assert!(bench.unfinished()?.is_empty(), "{language}");
    }
    Ok(())
}

#[test]
fn the_commands_help_shows_an_example() -> anyhow::Result<()> {
    for command in ["new", "build"] {
        let help = Bench::empty()?.author(command, &["--help"])?;
        let text = String::from_utf8_lossy(&help.stdout).into_owned();
        assert!(text.contains(&format!("waybill plugin {command} ")) && text.contains("Exit code"), "{text}");
    }
    Ok(())
}
