//! Bundles as their authors have them, and the program run on them.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use anyhow::Context as _;
use serde_json::Value;

/// A program's name, and the shell script that stands for it.
pub type Tool<'a> = (&'a str, &'a str);

/// A bundle in a directory of its own.
pub struct Bench {
    directory: tempfile::TempDir,
    name: String,
}

impl Bench {
    /// A shipped bundle with its cases, and the components that it works with.
    pub fn shipped(name: &str, builder: &str) -> anyhow::Result<Self> {
        let bench = Self { directory: tempfile::tempdir()?, name: name.to_owned() };
        copy(&repository().join("plugins/bundles").join(name), &bench.bundle())?;
        bench.components(builder, "sftp-destination")?;
        Ok(bench)
    }

    /// A bundle of one case, whose builder writes two rows.
    pub fn made(manifest: &str, case: &str, destination: &str) -> anyhow::Result<Self> {
        let bench = Self { directory: tempfile::tempdir()?, name: "made".to_owned() };
        std::fs::create_dir_all(bench.bundle().join("tests/rows"))?;
        bench.write("partner.toml", &format!("partner = 'made'\nrevision = 1\n{manifest}"))?;
        bench.write("tests/one.toml", case)?;
        bench.write("tests/rows/two.jsonl", "[{\"name\":\"n\",\"of\":\"integer\"}]\n[1]\n[2]\n")?;
        bench.components("csv-builder", destination)?;
        Ok(bench)
    }

    /// Nothing yet: a name for a bundle.
    pub fn empty() -> anyhow::Result<Self> {
        Ok(Self { directory: tempfile::tempdir()?, name: "acme".to_owned() })
    }

    /// `waybill plugin COMMAND acme …`, as an author of plugins runs it: with compilers, and with the caches of our set-up.
    pub fn author(&self, command: &str, arguments: &[&str]) -> anyhow::Result<Output> {
        Ok(self.authors(command, arguments).output()?)
    }

    /// The same, to be changed before it runs.
    pub fn authors(&self, command: &str, arguments: &[&str]) -> Command {
        let target = repository().join("target");
        let mut program = Command::new(env!("CARGO_BIN_EXE_waybill"));
        program
            .current_dir(self.directory.path())
            .env_remove("WAYBILL_TOOLS")
            .env("XDG_CACHE_HOME", target.join("cache"))
            .env("WAYBILL_PLUGIN_CACHE", target.join("cache/waybill/compiled"))
            // The standard library may have to be compiled too; once is enough.
            .env("CARGO_TARGET_DIR", target.join("bundles"))
            .args(["plugin", command, &self.name])
            .args(arguments);
        program
    }

    pub fn bundle(&self) -> PathBuf {
        self.directory.path().join(&self.name)
    }

    /// A directory with these tools and no other, for the PATH.
    pub fn tools(&self, tools: &[Tool]) -> anyhow::Result<PathBuf> {
        let directory = self.directory.path().join("bin");
        std::fs::create_dir(&directory)?;
        for (name, script) in tools {
            let program = directory.join(name);
            std::fs::write(&program, format!("#!/bin/sh\n{script}\n"))?;
            std::fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755))?;
        }
        Ok(directory)
    }

    /// Files that a build made and did not finish.
    pub fn unfinished(&self) -> anyhow::Result<Vec<PathBuf>> {
        let mut unfinished = Vec::new();
        for entry in std::fs::read_dir(self.bundle())? {
            let path = entry?.path();
            if path.extension().is_some_and(|extension| extension == "unfinished") {
                unfinished.push(path);
            }
        }
        Ok(unfinished)
    }

    pub fn write(&self, file: &str, text: &str) -> anyhow::Result<()> {
        Ok(std::fs::write(self.bundle().join(file), text)?)
    }

    pub fn read(&self, file: &str) -> anyhow::Result<Vec<u8>> {
        Ok(std::fs::read(self.bundle().join(file))?)
    }

    fn components(&self, builder: &str, destination: &str) -> anyhow::Result<()> {
        self.component("builder", builder)?;
        self.component("destination", destination)
    }

    /// A component that our set-up built, as this part of the bundle.
    pub fn component(&self, part: &str, guest: &str) -> anyhow::Result<()> {
        let built = repository().join("target/plugins").join(format!("{guest}.wasm"));
        std::fs::copy(&built, self.bundle().join(format!("{part}.wasm")))
            .with_context(|| format!("{} is not built; run tests/setup.sh plugins", built.display()))?;
        Ok(())
    }

    /// `waybill plugin test` on it, without any setting of the environment that runs the tests.
    pub fn test(&self, arguments: &[&str]) -> anyhow::Result<Output> {
        let cache = repository().join("target/cache/waybill/compiled");
        let mut command = self.bare();
        command.env("WAYBILL_PLUGIN_CACHE", cache).args(["test", &self.name]);
        Ok(command.args(arguments).output()?)
    }

    /// `waybill plugin …` in an empty environment.
    pub fn bare(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_waybill"));
        command.current_dir(self.directory.path()).env_clear().arg("plugin");
        command
    }

    /// The same with `--json`: the exit code and the report.
    pub fn report(&self, arguments: &[&str]) -> anyhow::Result<(Option<i32>, Value)> {
        let output = self.test(&[arguments, &["--json"]].concat())?;
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let report = serde_json::from_slice(&output.stdout).with_context(|| format!("no report: {said}"))?;
        Ok((output.status.code(), report))
    }
}

/// A part of a document; null where there is none.
pub fn part<'a>(document: &'a Value, key: &str) -> &'a Value {
    document.get(key).unwrap_or(&Value::Null)
}

/// The entries of a list in it.
pub fn list<'a>(document: &'a Value, key: &str) -> &'a [Value] {
    part(document, key).as_array().map_or(&[], Vec::as_slice)
}

/// Everything that a report says is wrong.
pub fn wrong(report: &Value) -> Vec<String> {
    let mut wrong = Vec::new();
    for case in list(report, "cases") {
        let failed = list(case, "checks").iter().filter(|check| part(check, "passed") == false);
        wrong.extend(failed.map(|check| format!("{}: {}", text(check, "name"), text(check, "says"))));
        for fault in list(case, "faults") {
            let sentences = list(fault, "wrong").iter().filter_map(Value::as_str);
            wrong.extend(sentences.map(|sentence| format!("{}: {sentence}", text(fault, "fault"))));
        }
        for session in list(case, "sessions") {
            let sentences = list(session, "wrong").iter().filter_map(Value::as_str);
            wrong.extend(sentences.map(|sentence| format!("session {}: {sentence}", text(session, "session"))));
        }
    }
    wrong
}

fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    part(value, name).as_str().unwrap_or_default()
}

/// One fault of the first case.
pub fn fault<'a>(report: &'a Value, id: &str) -> &'a Value {
    let faults = list(report, "cases").first().map_or(&[][..], |case| list(case, "faults"));
    faults.iter().find(|fault| part(fault, "fault") == id).unwrap_or(&Value::Null)
}

pub fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// A directory with all that is in it.
pub fn copy(from: &Path, to: &Path) -> anyhow::Result<()> {
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy(&entry.path(), &target)?;
        } else {
            std::fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}
