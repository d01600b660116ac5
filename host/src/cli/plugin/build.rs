//! `waybill plugin build`: from a bundle's sources to its components.
//!
//! Each part is built into a file beside, checked to be what its world demands, and only when every part is there are they
//! given their names: a bundle is never left with one part of today and one that could not be built.

mod javascript;
mod node;
mod python;
mod reason;
mod rust;
mod steps;
mod tools;

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use sha2::Digest as _;

use self::steps::{Fault, Steps};
use super::sources::{built_before, language_of};
use super::template::{Language, Part};
use crate::cli::Ended;
use crate::cli::output::Output;
use crate::job::facts::Sha256;
use crate::plugin::{World, check_component, repinned};

const MANIFEST: &str = "partner.toml";

pub(super) const HELP: &str = "\
Examples:
  waybill plugin build partners/acme
  waybill plugin build partners/acme --whole

A part is a directory `builder` or `destination` with a Cargo.toml (Rust), a package.json (JavaScript) or a requirements.txt
(Python). The compilers for JavaScript and Python are installed once for each lock file into the directory of tools; delete it
whenever you like. Where partner.toml has `sha256` for a component, its new digest is written there.

Exit code 0: the components are there; 1: a tool is missing or failed to install; 3: there is no such bundle; 4: a part does not
build, or is no plugin.";

#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Build {
    /// The bundle: a directory with the sources in builder/ and destination/.
    #[arg(value_name = "DIR")]
    directory: PathBuf,
    /// Where the compilers for JavaScript and Python are kept [default: waybill/tools in the user's cache directory].
    #[arg(long, env = "WAYBILL_TOOLS", value_name = "DIR")]
    tools: Option<PathBuf>,
    /// Where a part does not build, show all that its compiler said, and not only the reason.
    #[arg(long)]
    whole: bool,
}

/// One part as it was built.
#[derive(Debug, serde::Serialize)]
struct Built {
    part: Part,
    language: Language,
    file: PathBuf,
    bytes: usize,
    sha256: Sha256,
    seconds: f64,
}

impl Build {
    pub async fn run(self, output: &Output) -> anyhow::Result<Ended> {
        let directory = match std::path::absolute(&self.directory) {
            Ok(directory) if directory.is_dir() => directory,
            _ => return not_found(*output, &self.directory, "it is no directory"),
        };
        let mut parts = Vec::new();
        for part in Part::ALL {
            if let Some(language) = language_of(&directory.join(part.name())) {
                parts.push((part, language));
            }
        }
        if parts.is_empty() {
            let why = "it has no sources: neither builder/ nor destination/ has a Cargo.toml, a package.json or a requirements.txt; begin with `waybill plugin new`";
            return not_found(*output, &self.directory, why);
        }
        let tools = match self.tools {
            Some(tools) => std::path::absolute(tools).context("the directory of tools cannot be told")?,
            None => tools::default_directory()?,
        };
        let steps = Steps::new(*output);
        let mut built = Vec::new();
        let mut files = Vec::new();
        for (part, language) in parts {
            match build(&steps, &directory, part, language, &tools).await {
                Ok((file, one)) => {
                    built.push(one);
                    files.push((part, file));
                }
                Err(Fault::Sources { what, said }) => {
                    steps.end();
                    let reason = reason::reason(language, &said);
                    let before = built_before(&directory);
                    let document = serde_json::json!({
                        "bundle": self.directory, "outcome": "Refused", "part": part, "why": what, "said": said,
                        "reason": reason, "of_an_earlier_build": before,
                    });
                    let (reason, more) = if self.whole || reason.len() == said.len() {
                        (&said, "")
                    } else {
                        (&reason, " (--whole shows all that the compiler said)")
                    };
                    output.answer(&document, || format!("{reason}\nRefused: {what}{more}{}", left(&before)))?;
                    return Ok(Ended::Refused);
                }
                Err(Fault::Tools(error)) => return Err(error),
            }
        }
        steps.end();
        for (part, file) in files {
            let to = directory.join(part.component());
            file.persist(&to).with_context(|| format!("{} cannot be written", to.display()))?;
        }
        // Last: until then what is pinned refuses what was built.
        repin(&directory.join(MANIFEST), &built)?;
        let document = serde_json::json!({ "bundle": self.directory, "outcome": "Built", "parts": built });
        output.answer(&document, || told(&self.directory, &built))?;
        Ok(Ended::Done)
    }
}

/// Where the manifest pins what was built, it pins it anew.
fn repin(manifest: &Path, built: &[Built]) -> anyhow::Result<()> {
    let text = match std::fs::read_to_string(manifest) {
        Ok(text) => text,
        // Whoever tests or serves the bundle is told.
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error).with_context(|| format!("{} cannot be read", manifest.display())),
    };
    let components: Vec<_> = built.iter().map(|one| (one.part.name(), one.sha256)).collect();
    let renewed =
        repinned(&text, &components).context("the components are built, and their digests are not written")?;
    if renewed != text {
        std::fs::write(manifest, renewed).with_context(|| format!("{} cannot be written", manifest.display()))?;
    }
    Ok(())
}

fn not_found(output: Output, directory: &Path, why: &str) -> anyhow::Result<Ended> {
    let document = serde_json::json!({ "bundle": directory, "outcome": "NotFound", "why": why });
    output.answer(&document, || format!("NotFound: {}: {why}", directory.display()))?;
    Ok(Ended::NotFound)
}

/// What a failed build leaves is what was there before.
fn left(before: &[&str]) -> String {
    if before.is_empty() {
        return String::new();
    }
    format!(
        "\nStill there, from an earlier build: {}. Tests run with that until the build succeeds.",
        before.join(", ")
    )
}

fn told(directory: &Path, built: &[Built]) -> String {
    let mut text = String::new();
    for Built { language, file, bytes, seconds, .. } in built {
        let language = match language {
            Language::Rust => "Rust",
            Language::Javascript => "JavaScript",
            Language::Python => "Python",
        };
        text += &format!("Built: {}, {bytes} bytes, from {language} in {seconds:.1} s\n", file.display());
    }
    text + &format!("Next:\n  waybill plugin test {}", directory.display())
}

/// Builds one part into a file of no lasting name beside the others.
async fn build(
    steps: &Steps,
    directory: &Path,
    part: Part,
    language: Language,
    tools: &Path,
) -> Result<(tempfile::NamedTempFile, Built), Fault> {
    let began = tokio::time::Instant::now();
    let file = tempfile::Builder::new()
        .prefix(&format!(".{}-", part.name()))
        .suffix(".unfinished")
        .permissions(std::os::unix::fs::PermissionsExt::from_mode(0o644))
        .tempfile_in(directory)
        .with_context(|| format!("nothing can be written into {}", directory.display()))?;
    match language {
        Language::Rust => rust::build(steps, directory, part, file.path()).await?,
        Language::Javascript => javascript::build(steps, directory, part, tools, file.path()).await?,
        Language::Python => python::build(steps, directory, part, tools, file.path()).await?,
    }
    let bytes = std::fs::read(file.path()).with_context(|| format!("{} cannot be read", file.path().display()))?;
    let world = match part {
        Part::Builder => World::Builder,
        Part::Destination => World::Destination,
    };
    let (length, sha256) = (bytes.len(), Sha256(sha2::Sha256::digest(&bytes).into()));
    check_component(bytes, world)
        .map_err(|why| Fault::Sources { what: format!("the built {} {why}", part.name()), said: String::new() })?;
    let built = Built {
        part,
        language,
        file: PathBuf::from(part.component()),
        bytes: length,
        sha256,
        seconds: began.elapsed().as_secs_f64(),
    };
    Ok((file, built))
}
