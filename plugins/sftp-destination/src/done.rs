//! The done-file: a small file that is written after the publish, for partners who wait for one, or who want a checksum beside
//! the file.
//!
//! | setting | meaning | default |
//! | --- | --- | --- |
//! | `done_file` | its name, over `{final}`, `{final.stem}`, `{final.extension}` and `{key}`: the text that the manifest declares | no done-file |
//! | `done_content` | `empty`, or `sha256`: one line as `sha256sum` writes and checks it | `empty` |

use std::fmt::Write as _;

use waybill_guest::{Failure, FileFacts, Job, Template, Writer, base_name, split_extension};

const PLACEHOLDERS: [&str; 4] = ["final", "final.stem", "final.extension", "key"];

#[derive(Debug, PartialEq, Eq)]
pub struct DoneFile {
    pub name: String,
    pub bytes: Vec<u8>,
}

#[derive(Clone, Copy)]
enum Content {
    Empty,
    Sha256,
}

impl DoneFile {
    /// The done-file of a delivery, where the settings want one.
    pub fn of(job: &Job, expected: &FileFacts) -> Result<Option<Self>, Failure> {
        let content = job.one_of("done_content", &[("empty", Content::Empty), ("sha256", Content::Sha256)])?;
        let Some(text) = job.setting("done_file").filter(|text| !text.is_empty()) else {
            return Ok(None);
        };
        let (stem, extension) = split_extension(&expected.name);
        let name = Template::parse("done_file", text, &PLACEHOLDERS)?.fill(|placeholder| match placeholder {
            "final" => &expected.name,
            "final.stem" => stem,
            "final.extension" => extension,
            _ => &job.delivery_key,
        });
        if name == expected.name {
            return Err(Failure::Invalid(format!("the setting \"done_file\" is {text:?}: that is the file itself")));
        }
        let bytes = match content {
            Content::Empty => vec![],
            Content::Sha256 => checksum_line(expected).into_bytes(),
        };
        Ok(Some(Self { name, bytes }))
    }

    /// Writes it, and returns its name.
    pub fn put(self, send: &Writer) -> Result<String, Failure> {
        send.put(&self.name, &self.bytes).map_err(|failure| failure.about(&self.name))?;
        Ok(self.name)
    }
}

/// The digest in lower-case hex, two blanks, and the name without its directory.
fn checksum_line(expected: &FileFacts) -> String {
    let mut line = String::new();
    for byte in &expected.sha256 {
        // Writing to a String has no way to fail.
        let _ = write!(line, "{byte:02x}");
    }
    line + "  " + base_name(&expected.name) + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use waybill_guest::testing::job;

    fn expected() -> FileFacts {
        FileFacts { name: "out/contacts-k-1.csv".into(), bytes: 3, sha256: (0..32).collect() }
    }

    fn done(settings: &[(&str, &str)]) -> Result<Option<DoneFile>, Failure> {
        DoneFile::of(&job(settings), &expected())
    }

    #[test]
    fn without_the_setting_there_is_none() {
        assert_eq!(done(&[]), Ok(None));
        assert_eq!(done(&[("done_file", ""), ("done_content", "sha256")]), Ok(None));
    }

    #[test]
    fn its_name_follows_the_final_name() {
        let name = |text| done(&[("done_file", text)]).unwrap().unwrap().name;
        assert_eq!(name("{final}.done"), "out/contacts-k-1.csv.done");
        assert_eq!(name("{final.stem}.ok"), "out/contacts-k-1.ok");
        assert_eq!(name("done/{key}.{final.extension}"), "done/k-1.csv");
    }

    #[test]
    fn it_is_empty_or_a_line_that_sha256sum_checks() {
        assert!(done(&[("done_file", "{final}.done")]).unwrap().unwrap().bytes.is_empty());
        let line = done(&[("done_file", "{final}.sha256"), ("done_content", "sha256")]).unwrap().unwrap().bytes;
        let hex = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";
        assert_eq!(String::from_utf8(line).unwrap(), format!("{hex}  contacts-k-1.csv\n"));
    }

    #[test]
    fn settings_that_make_no_sense_are_refused_by_name() {
        for (settings, part) in [
            (vec![("done_file", "{final}")], "that is the file itself"),
            (vec![("done_file", "{attempt}.done")], "no placeholder {attempt}"),
            (vec![("done_file", "{final}.done"), ("done_content", "md5")], "use one of: empty, sha256"),
        ] {
            let failure = done(&settings).unwrap_err();
            assert!(matches!(&failure, Failure::Invalid(text) if text.contains(part)), "{failure:?}");
        }
    }
}
