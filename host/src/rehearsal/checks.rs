//! What must hold of builder and names, apart from any delivery.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::Read as _;
use std::path::Path;

use flate2::read::MultiGzDecoder;
use tokio_util::sync::CancellationToken;

use super::RehearsalError;
use super::case::Case;
use super::report::Check;
use super::stage::{self, Stage};
use crate::job::facts::FileFacts;
use crate::plugin::{Destination, Part};
use crate::remote::Names;
use crate::spool::SpoolFile;

/// The first bytes of every gzip file (RFC 1952).
const GZIP: [u8; 2] = [0x1f, 0x8b];
/// The largest file that is unpacked for a comparison.
const MOST_UNPACKED: u64 = 1 << 30;
/// Bytes of a line that are shown where files differ.
const SHOWN: usize = 60;

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
            checks.push(good("file", format!("{} bytes, as the case gives it: nothing builds it", file.bytes())));
            Some(file)
        }
        Ok((file, rows)) => {
            checks.push(good("build", format!("{rows} rows, {} bytes", file.bytes())));
            Some(file)
        }
        Err(why) => {
            checks.push(bad("build", why));
            None
        }
    };
    if let Some(file) = file.as_ref().filter(|_| bundle.manifest.has(Part::Builder)) {
        checks.push(repeatable(stage, destination, file).await?);
        if let Some(golden) = &case.golden {
            checks.push(compare(golden, file, bless).await?);
        }
    }
    if !bundle.manifest.has(Part::Destination) {
        let says =
            "none: the bundle is a builder alone (`part` in partner.toml), so the file is not named and not delivered";
        checks.push(good("deliveries", says.to_owned()));
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
            checks.push(bad("final name", says));
            None
        }
        other => {
            let why = other.iter().find_map(|name| name.as_ref().err()).cloned().unwrap_or_default();
            checks.push(bad("final name", why));
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
            checks.push(bad("names", error.to_string()));
            None
        }
    };
    Ok(Checked { checks, expected })
}

fn named(case: &Case, name: &str) -> Check {
    match &case.final_name {
        Some(expected) if expected != name => {
            bad("final name", format!("the plugin named the file {name:?}, and the case expects {expected:?}"))
        }
        Some(_) => good("final name", format!("{name}, as expected, for two attempts")),
        None => good("final name", format!("{name}, for two attempts; the case expects none")),
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
        return Ok(good("repeatable", "not asked for: repeatable = false".to_owned()));
    }
    Ok(match build(stage, destination).await? {
        Ok((second, _)) if second.sha256() == first.sha256() => {
            good("repeatable", "two builds are the same".to_owned())
        }
        Ok((second, _)) => {
            let differ = difference(&bytes(first).await?, &bytes(&second).await?);
            bad(
                "repeatable",
                format!(
                    "two builds of the same rows differ {differ}; where that is right (encryption), set repeatable = false"
                ),
            )
        }
        Err(why) => bad("repeatable", format!("the second build failed: {why}")),
    })
}

async fn compare(golden: &Path, file: &SpoolFile, bless: bool) -> Result<Check, RehearsalError> {
    let built = bytes(file).await?;
    let built = match readable(&built) {
        Ok(built) => built,
        Err(why) => return Ok(bad("golden file", why)),
    };
    let shown = golden.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let failed = |source| RehearsalError::File { path: golden.to_owned(), source };
    if bless {
        if let Some(folder) = golden.parent() {
            std::fs::create_dir_all(folder).map_err(failed)?;
        }
        std::fs::write(golden, built).map_err(failed)?;
        return Ok(good("golden file", format!("{shown} was written anew; look at the change before you commit it")));
    }
    match std::fs::read(golden) {
        Ok(expected) if expected == *built => Ok(good("golden file", format!("the same as {shown}"))),
        Ok(expected) => {
            let differ = difference(&expected, &built);
            Ok(bad(
                "golden file",
                format!(
                    "the built file differs from {shown} {differ}; if the new bytes are right, --bless writes them there"
                ),
            ))
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            Ok(bad("golden file", format!("{shown} is not there yet; --bless writes the built file there")))
        }
        Err(error) => Err(failed(error)),
    }
}

/// What of a built file is compared. A golden file is there to be read and its changes to be reviewed, so a gzip file's is
/// what lies inside.
fn readable(built: &[u8]) -> Result<Cow<'_, [u8]>, String> {
    if !built.starts_with(&GZIP) {
        return Ok(Cow::Borrowed(built));
    }
    let mut inside = Vec::new();
    let unpacked = MultiGzDecoder::new(built).take(MOST_UNPACKED + 1).read_to_end(&mut inside);
    match unpacked {
        Ok(length) if length as u64 > MOST_UNPACKED => {
            Err(format!("the built gzip file holds more than {MOST_UNPACKED} bytes; give the case fewer rows"))
        }
        Ok(_) => Ok(Cow::Owned(inside)),
        Err(error) => Err(format!("the built file begins as gzip and cannot be unpacked: {error}")),
    }
}

/// Where two files differ, and what stands there.
fn difference(expected: &[u8], found: &[u8]) -> String {
    let same = expected.iter().zip(found).take_while(|(one, other)| one == other).count();
    let before = expected.get(..same).unwrap_or_default();
    let line = before.split(|byte| *byte == b'\n').count();
    let start = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    let mut text = format!("at byte {same} (line {line})");
    let _ = write!(text, ": expected {}, found {}", shown(expected, start), shown(found, start));
    text
}

fn shown(bytes: &[u8], start: usize) -> String {
    let rest = bytes.get(start..).unwrap_or_default();
    let line = rest.split(|byte| *byte == b'\n').next().unwrap_or_default();
    if rest.is_empty() {
        return "the end".to_owned();
    }
    format!("{:?}", String::from_utf8_lossy(line.get(..SHOWN).unwrap_or(line)))
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

fn good(name: &'static str, says: String) -> Check {
    Check { name, passed: true, says }
}

fn bad(name: &'static str, says: String) -> Check {
    Check { name, passed: false, says }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plg_06_a_difference_is_told_with_its_place() {
        let told = difference(b"a;b\n1;2\n3;4\n", b"a;b\n1;2\n3;5\n");
        assert_eq!(told, "at byte 10 (line 3): expected \"3;4\", found \"3;5\"");
        assert!(difference(b"a\n", b"a\nb\n").ends_with("expected the end, found \"b\""));
    }

    #[test]
    fn plg_06_a_gzip_file_is_compared_by_what_is_inside() {
        let mut packed = Vec::new();
        flate2::read::GzEncoder::new(b"a;b\n".as_slice(), flate2::Compression::fast())
            .read_to_end(&mut packed)
            .unwrap();
        assert_eq!(readable(&packed).as_deref(), Ok(b"a;b\n".as_slice()));
        let two = [packed.as_slice(), &packed].concat();
        assert_eq!(readable(&two).as_deref(), Ok(b"a;b\na;b\n".as_slice()), "every member of it");
        assert_eq!(readable(b"a;b\n").as_deref(), Ok(b"a;b\n".as_slice()));
        let cut = packed.get(..packed.len() - 4).unwrap();
        assert!(readable(cut).unwrap_err().contains("cannot be unpacked"));
    }
}
