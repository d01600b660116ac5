//! Python: componentize-py, in the version of the part's requirements, in a virtual environment of its own.

use std::path::Path;

use semver::Version;
use tokio::process::Command;

use super::steps::{Fault, Steps, answers, end_of, says};
use super::tools;
use crate::cli::plugin::template::Part;

/// The compiler without its script, whose first line holds the directory in which it was installed: caches are moved.
const COMPONENTIZE: &str = "import sys; from componentize_py import script; sys.exit(script())";

/// The oldest that the plugins of `plugin new` are written for.
const OLDEST: Version = Version::new(3, 10, 0);
const VERSION: &str = "import sys; print('%d.%d.%d' % sys.version_info[:3])";

pub(super) async fn build(steps: &Steps, bundle: &Path, part: Part, tools: &Path, into: &Path) -> Result<(), Fault> {
    let Some(version) = says("python3", &["-c", VERSION]).await else {
        return Err(anyhow::anyhow!(
            "Python 3 with venv and pip is needed and was not found: install it (Debian's packages python3 and python3-venv)"
        )
        .into());
    };
    if version.parse::<Version>().is_ok_and(|version| version < OLDEST) {
        return Err(anyhow::anyhow!(
            "python3 is Python {version}, and 3.10 or later is needed: install it (Debian 12's packages python3 and python3-venv are 3.11) and put it first into the PATH"
        )
        .into());
    }
    if !answers("python3", &["-c", "import venv, ensurepip"]).await {
        return Err(anyhow::anyhow!(
            "Python {version} has no venv with pip: install them (Debian's package python3-venv)"
        )
        .into());
    }
    let sources = bundle.join(part.name());
    let lock = sources.join("requirements.txt");
    let directory = tools::ready(tools, "python", &lock, async |directory| {
        let what = "installing the compiler for Python, once";
        let environment = directory.join("venv");
        let mut venv = Command::new("python3");
        venv.args(["-m", "venv"]).arg(&environment);
        if let Some(said) = steps.run(what, &mut venv).await? {
            return Err(anyhow::anyhow!("python3 -m venv failed:\n{said}").into());
        }
        let mut pip = Command::new(environment.join("bin/python"));
        pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--require-hashes", "-r"])
            .arg(&lock);
        match steps.run(what, &mut pip).await? {
            None => Ok(()),
            Some(said) => Err(anyhow::anyhow!("pip could not install {}:\n{}", lock.display(), end_of(&said)).into()),
        }
    })
    .await?;
    if !directory.join("venv/bin/componentize-py").exists() {
        return Err(Fault::Sources {
            what: format!("{} does not name componentize-py", lock.display()),
            said: String::new(),
        });
    }
    let mut componentize = Command::new(directory.join("venv/bin/python"));
    componentize
        .current_dir(&sources)
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .args(["-c", COMPONENTIZE, "--quiet", "--wit-path"])
        .arg(bundle.join("wit"))
        .args(["--world", part.name(), "componentize", "--python-path", ".", part.name(), "--output"])
        .arg(into);
    match steps.run(&format!("building the {} from Python", part.name()), &mut componentize).await? {
        None => Ok(()),
        Some(said) => Err(Fault::Sources { what: format!("{}/{0}.py does not build", part.name()), said }),
    }
}
