//! What must hold of builder and names, apart from any delivery, and of the files beside ours in the one without a fault.

use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::RehearsalError;
use super::case::Case;
use super::golden;
use super::report::Check;
use super::stage::{self, Run, Stage};
use crate::job::facts::FileFacts;
use crate::job::model::{ClaimedJob, Replacement};
use crate::plugin::{Built, CallError, Destination, Part};
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
    let file = match build(stage, destination, stage::FIRST_ATTEMPT).await? {
        Ok(Built { file, .. }) if !bundle.manifest.has(Part::Builder) => {
            checks
                .push(Check::good("file", format!("{} bytes, as the case gives it: nothing builds it", file.bytes())));
            Some(file)
        }
        Ok(built) => {
            checks.push(whole(case, &built));
            Some(built.file)
        }
        Err(error) => {
            checks.push(Check::bad("build", error.to_string()));
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
    let name = match name(stage, destination).await {
        Ok(name) => {
            checks.push(named(case, &name));
            Some(name)
        }
        Err(why) => {
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

/// The final name, which must be the same for whatever may claim the same delivery. The error says why there is none.
async fn name(stage: &Stage, destination: &Destination) -> Result<String, String> {
    let stop = CancellationToken::new();
    let named = async |job: &ClaimedJob| {
        stage.bundle.final_name(destination, job, &stop).await.map_err(|error| error.to_string())
    };
    let job = stage::job(&stage.case, stage::FIRST_ATTEMPT);
    let name = named(&job).await?;
    let again = ClaimedJob { attempt: Uuid::new_v4(), attempt_count: 2, ..job.clone() };
    let edited = ClaimedJob { version: 2, ..again.clone() };
    let replacement = Replacement { original: job.id, overwrite_agreed: false, original_expected: None };
    let replacing = ClaimedJob { id: Uuid::new_v4(), replacement: Some(replacement), ..again.clone() };
    for (what, job) in [("another attempt", again), ("an edit", edited), ("a replacement", replacing)] {
        let other = named(&job).await?;
        if other != name {
            return Err(format!(
                "the first attempt of the job got the name {name:?} and {what} of it {other:?}; make the name of delivery key, creation time and settings alone"
            ));
        }
    }
    Ok(name)
}

fn named(case: &Case, name: &str) -> Check {
    const SAME: &str = "the same for another attempt, an edit and a replacement";
    match &case.final_name {
        Some(expected) if expected != name => {
            Check::bad("final name", format!("the plugin named the file {name:?}, and the case expects {expected:?}"))
        }
        Some(_) => Check::good("final name", format!("{name}, as expected, {SAME}")),
        None => Check::good("final name", format!("{name}, {SAME}; the case expects none")),
    }
}

async fn build(
    stage: &Stage,
    destination: &Destination,
    attempt: Uuid,
) -> Result<Result<Built, CallError>, RehearsalError> {
    let draft = stage.spool.create(stage.bundle.manifest.limits.output_bytes())?;
    let job = stage::job(&stage.case, attempt);
    Ok(stage.bundle.build(destination, &job, draft, &CancellationToken::new()).await)
}

/// What was built, of all rows.
fn whole(case: &Case, Built { file, rows, unread, .. }: &Built) -> Check {
    let built = format!("{rows} rows, {} bytes", file.bytes());
    if unread.is_empty() {
        return Check::good("build", built);
    }
    let unread = unread.iter().cloned().collect::<Vec<_>>().join(", ");
    if !case.reads_all {
        return Check::good("build", format!("{built}; rows of {unread} were left unread (reads_all = false)"));
    }
    Check::bad(
        "build",
        format!(
            "{built}, and rows of {unread} were left unread: a batch may be shorter than was asked for, and only an empty one is the end; read on until it comes, or set reads_all = false where rows are left out on purpose"
        ),
    )
}

/// The same rows, built for another attempt.
async fn repeatable(stage: &Stage, destination: &Destination, first: &SpoolFile) -> Result<Check, RehearsalError> {
    if !stage.case.repeatable {
        return Ok(Check::good("repeatable", "not asked for: repeatable = false".to_owned()));
    }
    Ok(match build(stage, destination, Uuid::new_v4()).await? {
        Ok(second) if second.file.sha256() == first.sha256() => {
            Check::good("repeatable", "the builds of two attempts are the same".to_owned())
        }
        Ok(second) => {
            let differ = golden::difference(&bytes(first).await?, &bytes(&second.file).await?);
            Check::bad(
                "repeatable",
                format!(
                    "two attempts built other files of the same rows: they differ {differ}; where that is right (encryption, the attempt's id in the file), set repeatable = false"
                ),
            )
        }
        Err(error) => Check::bad("repeatable", format!("the second build failed: {error}")),
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
