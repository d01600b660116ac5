//! Rust: cargo for wasm32-unknown-unknown, with rustup's target, or with Debian's compiler where that cannot be had.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use tokio::process::Command;

use super::steps::{Fault, Steps, answers};
use crate::cli::plugin::template::Part;

const TARGET: &str = "wasm32-unknown-unknown";
/// Debian's, which rustup's would hide.
const DEBIAN_CARGO: &str = "/usr/bin/cargo";
const DEBIAN_RUSTC: &str = "/usr/bin/rustc";

pub(super) async fn build(steps: &Steps, bundle: &Path, part: Part, into: &Path) -> Result<(), Fault> {
    let sources = bundle.join(part.name());
    let library = library(&sources)?;
    // One call for each part: cargo unites the features of one call, and a plugin must not carry the other world.
    let mut cargo = compiler(steps).await?.command();
    cargo
        .current_dir(&sources)
        .args(["--release", "--target", TARGET, "--message-format", "json-render-diagnostics"])
        .kill_on_drop(true);
    steps.begin(&format!("building the {} from Rust", part.name()));
    let done = cargo.stdin(std::process::Stdio::null()).output().await.context("cargo cannot be run")?;
    if !done.status.success() {
        return Err(Fault::Sources {
            what: format!("{}/ does not build", part.name()),
            said: String::from_utf8_lossy(&done.stderr).into_owned(),
        });
    }
    let Some(module) = artefact(&done.stdout, &library) else {
        return Err(Fault::Sources {
            what: format!("{}/Cargo.toml makes no module: set crate-type = [\"cdylib\"] under [lib]", part.name()),
            said: String::new(),
        });
    };
    std::fs::copy(&module, into).with_context(|| format!("{} cannot be copied", module.display()))?;
    Ok(())
}

/// The library's name, by which cargo reports what it made.
fn library(sources: &Path) -> Result<String, Fault> {
    let path = sources.join("Cargo.toml");
    let text = std::fs::read_to_string(&path).with_context(|| format!("{} cannot be read", path.display()))?;
    let wrong = |what: String| Fault::Sources { what: format!("{}: {what}", path.display()), said: String::new() };
    let manifest: toml::Table = text.parse().map_err(|error: toml::de::Error| wrong(error.message().to_owned()))?;
    let name_in = |table: &str| manifest.get(table)?.get("name")?.as_str();
    let name = name_in("lib").or_else(|| name_in("package")).ok_or_else(|| wrong("it names no package".to_owned()))?;
    Ok(name.replace('-', "_"))
}

/// The module among cargo's messages, which are one JSON document a line.
fn artefact(messages: &[u8], library: &str) -> Option<PathBuf> {
    let messages = messages.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok());
    messages
        .filter(|message: &serde_json::Value| {
            message
                .pointer("/target/name")
                .and_then(|name| name.as_str())
                .is_some_and(|name| name.replace('-', "_") == library)
        })
        .filter_map(|message| message.get("filenames")?.as_array().cloned())
        .flatten()
        .filter_map(|file| Some(PathBuf::from(file.as_str()?)))
        .find(|file| file.extension().is_some_and(|extension| extension == "wasm"))
}

enum Compiler {
    Rustup,
    Debian,
}

impl Compiler {
    fn command(&self) -> Command {
        match self {
            Self::Rustup => {
                let mut cargo = Command::new("cargo");
                cargo.arg("build");
                cargo
            }
            Self::Debian => {
                let mut cargo = Command::new(DEBIAN_CARGO);
                // A stable compiler builds its standard library only so; Debian's package has its sources.
                cargo
                    .args(["build", "-Zbuild-std=std,panic_abort"])
                    .env("RUSTC", DEBIAN_RUSTC)
                    .env("RUSTC_BOOTSTRAP", "1")
                    .env("CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER", "wasm-ld")
                    .env_remove("RUSTUP_TOOLCHAIN");
                cargo
            }
        }
    }
}

async fn compiler(steps: &Steps) -> Result<Compiler, Fault> {
    if has_target().await {
        return Ok(Compiler::Rustup);
    }
    if answers(DEBIAN_CARGO, &["--version"]).await
        && answers("wasm-ld", &["--version"]).await
        && debian_sources().await.is_some_and(|sources| sources.is_dir())
    {
        return Ok(Compiler::Debian);
    }
    let mut rustup = Command::new("rustup");
    rustup.args(["target", "add", TARGET]);
    let why = match steps.run(&format!("asking rustup for {TARGET}"), &mut rustup).await {
        Ok(None) => return Ok(Compiler::Rustup),
        Ok(Some(said)) => said,
        Err(_) => "rustup was not found".to_owned(),
    };
    Err(anyhow::anyhow!(
        "there is no compiler for {TARGET}: install Rust with rustup and run `rustup target add {TARGET}`, or install Debian's packages rustc-web, cargo-web, rust-web-src and lld ({why})"
    )
    .into())
}

async fn has_target() -> bool {
    let listed = Command::new("rustup").args(["target", "list", "--installed"]).kill_on_drop(true).output().await;
    listed.is_ok_and(|listed| String::from_utf8_lossy(&listed.stdout).lines().any(|line| line == TARGET))
}

async fn debian_sources() -> Option<PathBuf> {
    let printed = Command::new(DEBIAN_RUSTC).args(["--print", "sysroot"]).output().await.ok()?;
    let root = String::from_utf8(printed.stdout).ok()?;
    Some(Path::new(root.trim()).join("lib/rustlib/src/rust/library/std"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_module_is_found_among_cargos_messages() {
        let messages = concat!(
            "{\"reason\":\"compiler-artifact\",\"target\":{\"name\":\"csv\"},\"filenames\":[\"/t/libcsv.rlib\"]}\n",
            "not json\n",
            "{\"reason\":\"compiler-artifact\",\"target\":{\"name\":\"acme-builder\"},\"filenames\":[\"/t/acme_builder.d\",\"/t/acme_builder.wasm\"]}\n",
        );
        assert_eq!(artefact(messages.as_bytes(), "acme_builder"), Some(PathBuf::from("/t/acme_builder.wasm")));
        assert_eq!(artefact(messages.as_bytes(), "csv"), None);
    }
}
