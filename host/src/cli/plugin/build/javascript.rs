//! JavaScript: `ComponentizeJS`, in the version of the part's lock file, with every feature off that would import WASI.

use std::path::Path;

use anyhow::Context as _;
use semver::Version;
use tokio::process::Command;

use super::steps::{Fault, Steps, answers, end_of, says};
use super::{node, tools};
use crate::cli::plugin::template::Part;

/// Debian 12's npm does the second; its package of Node.js is too old for what `plugin new` writes.
const INSTALL: &str = "install it from nodejs.org, or, with npm alone, run `npm install --prefix ~/node node@22` and put ~/node/node_modules/node/bin first into the PATH (Debian 12's own package is 18)";

pub(super) async fn build(steps: &Steps, bundle: &Path, part: Part, tools: &Path, into: &Path) -> Result<(), Fault> {
    let Some(version) = says("node", &["--version"]).await else {
        return Err(anyhow::anyhow!("Node.js is needed for JavaScript and was not found: {INSTALL}").into());
    };
    let sources = bundle.join(part.name());
    let lock = sources.join("package-lock.json");
    if !lock.is_file() {
        return Err(Fault::Sources {
            what: format!("{} is missing: run `npm install --package-lock-only` there", lock.display()),
            said: String::new(),
        });
    }
    is_usable(&version, &lock)?;
    if !answers("npm", &["--version"]).await {
        return Err(anyhow::anyhow!(
            "npm is needed for JavaScript and was not found: install it (with Node.js from nodejs.org it comes along; Debian's package npm)"
        )
        .into());
    }
    let directory = tools::ready(tools, "javascript", &lock, async |directory| {
        for file in ["package.json", "package-lock.json"] {
            let from = sources.join(file);
            std::fs::copy(&from, directory.join(file))
                .with_context(|| format!("{} cannot be copied", from.display()))?;
        }
        let mut npm = Command::new("npm");
        npm.args(["ci", "--no-audit", "--no-fund", "--ignore-scripts"]).current_dir(&directory);
        match steps.run("installing the compiler for JavaScript, once", &mut npm).await? {
            None => Ok(()),
            Some(said) => Err(anyhow::anyhow!("npm could not install {}:\n{}", lock.display(), end_of(&said)).into()),
        }
    })
    .await?;
    let program = directory.join("node_modules/.bin/componentize-js");
    if !program.exists() {
        return Err(Fault::Sources {
            what: format!("{} does not name @bytecodealliance/componentize-js", lock.display()),
            said: String::new(),
        });
    }
    let mut componentize = Command::new(program);
    componentize
        .current_dir(&sources)
        .arg(format!("{}.js", part.name()))
        .arg("--wit")
        .arg(bundle.join("wit"))
        .args(["--world-name", part.name()])
        .args(["--disable", "http", "fetch-event", "stdio", "random", "clocks"])
        .arg("--out")
        .arg(into);
    let Some(mut said) = steps.run(&format!("building the {} from JavaScript", part.name()), &mut componentize).await?
    else {
        return Ok(());
    };
    // The compiler counts errors of syntax; Node.js says where they are.
    let mut check = Command::new("node");
    check.current_dir(&sources).args(["--check", &format!("{}.js", part.name())]);
    if let Some(checked) = steps.run("looking where it is wrong", &mut check).await? {
        said = format!("{checked}\n{said}");
    }
    Err(Fault::Sources { what: format!("{}/{0}.js does not build", part.name()), said })
}

/// Refuses a Node.js with which the compiler of the lock file does not run.
fn is_usable(version: &str, lock: &Path) -> Result<(), Fault> {
    let text = std::fs::read_to_string(lock).with_context(|| format!("{} cannot be read", lock.display()))?;
    let version = version.trim_start_matches('v');
    // A version that is not written as Node.js writes its own is left to npm.
    let Ok(parsed) = version.parse::<Version>() else { return Ok(()) };
    let unmet = node::unmet(&text, &parsed).map_err(|error| Fault::Sources {
        what: format!("{} is no lock file of npm's: run `npm install --package-lock-only` there", lock.display()),
        said: error.to_string(),
    })?;
    if unmet.is_empty() {
        return Ok(());
    }
    let asked: Vec<_> = unmet.iter().map(|(range, package)| format!("{package} asks for {range}")).collect();
    Err(anyhow::anyhow!(
        "Node.js {version} does not run the compiler that {} names ({}): {INSTALL}",
        lock.display(),
        asked.join("; "),
    )
    .into())
}
