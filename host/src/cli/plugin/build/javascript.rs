//! JavaScript: `ComponentizeJS`, in the version of the part's lock file, with every feature off that would import WASI.

use std::path::Path;

use anyhow::Context as _;
use tokio::process::Command;

use super::steps::{Fault, Steps, answers, end_of};
use super::tools;
use crate::cli::plugin::template::Part;

pub(super) async fn build(steps: &Steps, bundle: &Path, part: Part, tools: &Path, into: &Path) -> Result<(), Fault> {
    if !answers("node", &["--version"]).await || !answers("npm", &["--version"]).await {
        return Err(anyhow::anyhow!(
            "Node.js and npm are needed for JavaScript and were not found: install them (Debian's packages nodejs and npm, version 20 or newer)"
        )
        .into());
    }
    let sources = bundle.join(part.name());
    let lock = sources.join("package-lock.json");
    if !lock.is_file() {
        return Err(Fault::Sources {
            what: format!("{} is missing: run `npm install --package-lock-only` there", lock.display()),
            said: String::new(),
        });
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
