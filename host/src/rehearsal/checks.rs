//! What must hold of builder and names, apart from any delivery, and of the files beside ours in the one without a fault.

use tokio_util::sync::CancellationToken;

use super::RehearsalError;
use super::case::Case;
use super::golden;
use super::report::Check;
use super::stage::{self, Run, Stage};
use crate::job::facts::FileFacts;
use crate::plugin::{Destination, Part};
use crate::remote::Names;
use crate::spool::SpoolFile;

/// The checks, and what to deliver if there is anything.
pub(super) struct Checked {
    pub checks: Vec<Check>,
    pub expected: Option<FileFacts>,
}

/// Builds, names, compares.
pub(super) async fn check(stage: &Stage, destination: &Destination, bless: bool) -> Result<Checked, RehearsalError> {
    let Stage { bundle, case, .. } = stage;
    let mut checks = Vec::new();
    let file = match build(stage, destination).await? {
        Ok((file, _)) if !bundle.manifest.has(Part::Builder) => {
            checks
                .push(Check::good("file", format!("{} bytes, as the case gives it: nothing builds it", file.bytes())));
            Some(file)
        }
        Ok((file, rows)) => {
            checks.push(Check::good("build", format!("{rows} rows, {} bytes", file.bytes())));
            Some(file)
        }
        Err(why) => {
            checks.push(Check::bad("build", why));
            None
        }
    };
    if let Some(file) = file.as_ref().filter(|_| bundle.manifest.has(Part::Builder)) {
        checks.push(repeatable(stage, destination, file).await?);
        if let Some(golden) = &case.golden {
            checks.push(golden::compare("golden file", "the built file", golden, &bytes(file).await?, bless)?);
        }
    }
    if !bundle.manifest.has(Part::Destination) {
        let says =
            "none: the bundle is a builder alone (`part` in partner.toml), so the file is not named and not delivered";
        checks.push(Check::good("deliveries", says.to_owned()));
        return Ok(Checked { checks, expected: None });
    }
    let stop = CancellationToken::new();
    let mut names = Vec::new();
    for job in [stage::job(case, stage::FIRST_ATTEMPT), stage::job(case, uuid::Uuid::new_v4())] {
        names.push(bundle.final_name(destination, &job, &stop).await.map_err(|error| error.to_string()));
    }
    let name = match names.as_slice() {
        [Ok(one), Ok(other)] if one == other => {
            checks.push(named(case, one));
            Some(one.clone())
        }
        [Ok(one), Ok(other)] => {
            let says = format!(
                "two attempts of the same job got the names {one:?} and {other:?}; a final name is a function of delivery key, creation time and settings"
            );
            checks.push(Check::bad("final name", says));
            None
        }
        other => {
            let why = other.iter().find_map(|name| name.as_ref().err()).cloned().unwrap_or_default();
            checks.push(Check::bad("final name", why));
            None
        }
    };
    let (Some(file), Some(name)) = (file, name) else { return Ok(Checked { checks, expected: None }) };
    let manifest = &bundle.manifest;
    let attempt = stage::FIRST_ATTEMPT.to_string();
    let minted = Names::mint(&manifest.contract, Some(&manifest.names.temporary), &name, &case.key, &attempt);
    let expected = match minted {
        Ok(_) => Some(FileFacts { name, bytes: file.bytes(), sha256: file.sha256() }),
        Err(error) => {
            checks.push(Check::bad("names", error.to_string()));
            None
        }
    };
    Ok(Checked { checks, expected })
}

/// The files beside ours, where nothing went wrong: what the case says is in them.
pub(super) fn beside(case: &Case, run: &Run, bless: bool) -> Result<Vec<Check>, RehearsalError> {
    const NAME: &str = "file beside";
    let sha256 = run.expected.sha256.to_string();
    let checked = case.beside.iter().map(|one| {
        let name = one.name.fill(&run.names, &sha256);
        match run.truth.beside.get(&name) {
            Some(Some(bytes)) => golden::compare(NAME, &name, &one.golden, bytes, bless),
            Some(None) => Ok(Check::bad(NAME, format!("{name} was never put there"))),
            None => {
                let declared: Vec<&str> = run.truth.beside.keys().map(String::as_str).collect();
                let declared = if declared.is_empty() { "none".to_owned() } else { declared.join(", ") };
                Ok(Check::bad(
                    NAME,
                    format!("the contract declares no {name} beside the file; it declares: {declared}"),
                ))
            }
        }
    });
    checked.collect()
}

fn named(case: &Case, name: &str) -> Check {
    match &case.final_name {
        Some(expected) if expected != name => {
            Check::bad("final name", format!("the plugin named the file {name:?}, and the case expects {expected:?}"))
        }
        Some(_) => Check::good("final name", format!("{name}, as expected, for two attempts")),
        None => Check::good("final name", format!("{name}, for two attempts; the case expects none")),
    }
}

async fn build(stage: &Stage, destination: &Destination) -> Result<Result<(SpoolFile, u64), String>, RehearsalError> {
    let draft = stage.spool.create(stage.bundle.manifest.limits.output_bytes())?;
    let job = stage::job(&stage.case, stage::FIRST_ATTEMPT);
    let built = stage.bundle.build(destination, &job, draft, &CancellationToken::new()).await;
    Ok(built.map(|built| (built.file, built.rows)).map_err(|error| error.to_string()))
}

/// Another build of the same rows, for the same attempt.
async fn repeatable(stage: &Stage, destination: &Destination, first: &SpoolFile) -> Result<Check, RehearsalError> {
    if !stage.case.repeatable {
        return Ok(Check::good("repeatable", "not asked for: repeatable = false".to_owned()));
    }
    Ok(match build(stage, destination).await? {
        Ok((second, _)) if second.sha256() == first.sha256() => {
            Check::good("repeatable", "two builds are the same".to_owned())
        }
        Ok((second, _)) => {
            let differ = golden::difference(&bytes(first).await?, &bytes(&second).await?);
            Check::bad(
                "repeatable",
                format!(
                    "two builds of the same rows differ {differ}; where that is right (encryption), set repeatable = false"
                ),
            )
        }
        Err(why) => Check::bad("repeatable", format!("the second build failed: {why}")),
    })
}

/// A whole built file.
async fn bytes(file: &SpoolFile) -> Result<Vec<u8>, RehearsalError> {
    const BLOCK: usize = 1 << 20;
    let mut bytes = Vec::new();
    while (bytes.len() as u64) < file.bytes() {
        let block = file.read_at(bytes.len() as u64, BLOCK).await?;
        if block.is_empty() {
            break;
        }
        bytes.extend_from_slice(&block);
    }
    Ok(bytes)
}
