//! Golden files: the bytes that a case expects, kept beside it to be read and reviewed.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::Read as _;
use std::path::Path;

use flate2::read::MultiGzDecoder;

use super::RehearsalError;
use super::report::Check;

/// The first bytes of every gzip file (RFC 1952).
const GZIP: [u8; 2] = [0x1f, 0x8b];
/// The largest file that is unpacked for a comparison.
const MOST_UNPACKED: u64 = 1 << 30;
/// Bytes of a line that are shown where files differ.
const SHOWN: usize = 60;

/// `what` was made, and must be as the golden file is; to bless it is to write that file instead.
pub(super) fn compare(
    check: &'static str,
    what: &str,
    golden: &Path,
    made: &[u8],
    bless: bool,
) -> Result<Check, RehearsalError> {
    let made = match readable(made) {
        Ok(made) => made,
        Err(why) => return Ok(Check::bad(check, format!("{what} {why}"))),
    };
    let shown = golden.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let failed = |source| RehearsalError::File { path: golden.to_owned(), source };
    if bless {
        if let Some(folder) = golden.parent() {
            std::fs::create_dir_all(folder).map_err(failed)?;
        }
        std::fs::write(golden, made).map_err(failed)?;
        return Ok(Check::good(check, format!("{shown} was written anew; look at the change before you commit it")));
    }
    match std::fs::read(golden) {
        Ok(expected) if expected == *made => Ok(Check::good(check, format!("{what} is the same as {shown}"))),
        Ok(expected) => {
            let differ = difference(&expected, &made);
            Ok(Check::bad(
                check,
                format!("{what} differs from {shown} {differ}; if the new bytes are right, --bless writes them there"),
            ))
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            Ok(Check::bad(check, format!("{shown} is not there yet; --bless writes it")))
        }
        Err(error) => Err(failed(error)),
    }
}

/// What of a file is compared. A golden file is there to be read and its changes to be reviewed, so a gzip file's is
/// what lies inside.
fn readable(made: &[u8]) -> Result<Cow<'_, [u8]>, String> {
    if !made.starts_with(&GZIP) {
        return Ok(Cow::Borrowed(made));
    }
    let mut inside = Vec::new();
    let unpacked = MultiGzDecoder::new(made).take(MOST_UNPACKED + 1).read_to_end(&mut inside);
    match unpacked {
        Ok(length) if length as u64 > MOST_UNPACKED => {
            Err(format!("holds more than {MOST_UNPACKED} bytes under gzip; give the case fewer rows"))
        }
        Ok(_) => Ok(Cow::Owned(inside)),
        Err(error) => Err(format!("begins as gzip and cannot be unpacked: {error}")),
    }
}

/// Where two files differ, and what stands there.
pub(super) fn difference(expected: &[u8], found: &[u8]) -> String {
    let same = expected.iter().zip(found).take_while(|(one, other)| one == other).count();
    let before = expected.get(..same).unwrap_or_default();
    let line = before.split(|byte| *byte == b'\n').count();
    let line_start = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    // Of a long line the part in which they differ.
    let start = line_start.max(same.saturating_sub(SHOWN / 2));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plg_06_a_difference_is_told_with_its_place() {
        let told = difference(b"a;b\n1;2\n3;4\n", b"a;b\n1;2\n3;5\n");
        assert_eq!(told, "at byte 10 (line 3): expected \"3;4\", found \"3;5\"");
        assert!(difference(b"a\n", b"a\nb\n").ends_with("expected the end, found \"b\""));
        let long = |end: &str| [&"x".repeat(3 * SHOWN), end].concat();
        let told = difference(long("csv.gz").as_bytes(), long("jsonl.gz").as_bytes());
        let same = "x".repeat(SHOWN / 2);
        assert!(told.ends_with(&format!(": expected \"{same}csv.gz\", found \"{same}jsonl.gz\"")), "{told}");
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
