//! The files beside the data file: one that is written before the publish, and one after it, for partners who wait for one, who
//! want a checksum, or who read a manifest.
//!
//! | setting | meaning | default |
//! | --- | --- | --- |
//! | `done_file` | the name of the file that is written after the publish, over `{final}`, `{final.stem}`, `{final.extension}`, `{final.name}` and `{key}`: the text that the manifest declares | no such file |
//! | `done_content` | `empty`; `sha256`: one line as `sha256sum` writes and checks it; or `text` | `empty` |
//! | `done_text` | that text, over the same placeholders, `{bytes}` and `{sha256}`; a brace that stands for itself is doubled | |
//! | `before_file`, `before_content`, `before_text` | the same for a file that is written before the publish, which the manifest declares `before_publish` | no such file |

use std::fmt::Write as _;

use waybill_guest::{Failure, FileFacts, Job, Reader, Template, Writer, base_name, split_extension};

/// When a file is written, by what its settings are called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    Before,
    Done,
}

#[derive(Debug, PartialEq, Eq)]
pub struct Beside {
    pub name: String,
    pub bytes: Vec<u8>,
    setting: &'static str,
}

#[derive(Clone, Copy)]
enum Content {
    Empty,
    Sha256,
    Text,
}

const NAME: [&str; 5] = ["final", "final.stem", "final.extension", "final.name", "key"];
const TEXT: [&str; 7] = ["final", "final.stem", "final.extension", "final.name", "key", "bytes", "sha256"];

impl Beside {
    /// The file of a delivery that is written then, where the settings want one.
    pub fn of(job: &Job, expected: &FileFacts, when: When) -> Result<Option<Self>, Failure> {
        let (file, content, text) = match when {
            When::Before => ("before_file", "before_content", "before_text"),
            When::Done => ("done_file", "done_content", "done_text"),
        };
        let words = [("empty", Content::Empty), ("sha256", Content::Sha256), ("text", Content::Text)];
        let content = job.one_of(content, &words)?;
        let Some(pattern) = job.setting(file).filter(|pattern| !pattern.is_empty()) else {
            return Ok(None);
        };
        let parts = Parts::of(job, expected);
        let name = parts.fill(&Template::parse(file, pattern, &NAME)?);
        if name == expected.name {
            return Err(Failure::Invalid(format!("the setting {file:?} is {pattern:?}: that is the file itself")));
        }
        let bytes = match content {
            Content::Empty => vec![],
            // The digest, two blanks, and the name without its directory.
            Content::Sha256 => format!("{}  {}\n", parts.sha256, base_name(&expected.name)).into_bytes(),
            Content::Text => parts.fill(&Template::parse(text, job.required(text)?, &TEXT)?).into_bytes(),
        };
        Ok(Some(Self { name, bytes, setting: file }))
    }

    /// Writes it.
    pub fn put(&self, send: &Writer) -> Result<(), Failure> {
        send.put(&self.name, &self.bytes).map_err(|failure| failure.about(&self.name))
    }

    /// Writes it, unless the very same is there already: an earlier attempt may have left it. True if it was written.
    pub fn put_or_find(&self, look: &Reader, send: &Writer) -> Result<bool, Failure> {
        match self.put(send) {
            Err(Failure::Refused(_)) if self.is_there(look) => Ok(false),
            answered => answered.map(|()| true),
        }
    }

    fn is_there(&self, look: &Reader) -> bool {
        // One byte more than it has, so that a longer file is not taken for it.
        u32::try_from(self.bytes.len() + 1)
            .is_ok_and(|most| look.read(&self.name, 0, most).is_ok_and(|read| read == self.bytes))
    }

    /// The setting that asked for it.
    pub fn setting(&self) -> &'static str {
        self.setting
    }
}

/// What the placeholders stand for.
struct Parts<'a> {
    job: &'a Job,
    expected: &'a FileFacts,
    bytes: String,
    sha256: String,
}

impl<'a> Parts<'a> {
    fn of(job: &'a Job, expected: &'a FileFacts) -> Self {
        let mut sha256 = String::new();
        for byte in &expected.sha256 {
            // Writing to a String has no way to fail.
            let _ = write!(sha256, "{byte:02x}");
        }
        Self { job, expected, bytes: expected.bytes.to_string(), sha256 }
    }

    fn fill(&self, template: &Template) -> String {
        let name = &self.expected.name;
        let (stem, extension) = split_extension(name);
        template.fill(|placeholder| match placeholder {
            "final" => name,
            "final.stem" => stem,
            "final.extension" => extension,
            "final.name" => base_name(name),
            "bytes" => &self.bytes,
            "sha256" => &self.sha256,
            _ => &self.job.delivery_key,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use waybill_guest::testing::job;

    const HEX: &str = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";

    fn expected() -> FileFacts {
        FileFacts { name: "out/contacts-k-1.csv".into(), bytes: 3, sha256: (0..32).collect() }
    }

    fn done(settings: &[(&str, &str)]) -> Result<Option<Beside>, Failure> {
        Beside::of(&job(settings), &expected(), When::Done)
    }

    fn text(settings: &[(&str, &str)]) -> String {
        String::from_utf8(done(settings).unwrap().unwrap().bytes).unwrap()
    }

    #[test]
    fn without_the_setting_there_is_none() {
        assert_eq!(done(&[]), Ok(None));
        assert_eq!(done(&[("done_file", ""), ("done_content", "sha256")]), Ok(None));
        assert_eq!(done(&[("before_file", "{final}.sha256")]), Ok(None));
    }

    #[test]
    fn its_name_follows_the_final_name() {
        let name = |text| done(&[("done_file", text)]).unwrap().unwrap().name;
        assert_eq!(name("{final}.done"), "out/contacts-k-1.csv.done");
        assert_eq!(name("{final.stem}.ok"), "out/contacts-k-1.ok");
        assert_eq!(name("done/{key}.{final.extension}"), "done/k-1.csv");
        assert_eq!(name("done/{final.name}"), "done/contacts-k-1.csv");
    }

    #[test]
    fn it_is_empty_or_a_line_that_sha256sum_checks_or_a_text_about_the_file() {
        assert!(text(&[("done_file", "{final}.done")]).is_empty());
        let line = text(&[("done_file", "{final}.sha256"), ("done_content", "sha256")]);
        assert_eq!(line, format!("{HEX}  contacts-k-1.csv\n"));
        let manifest =
            "{{\"file\": \"{final.name}\", \"bytes\": {bytes}, \"sha256\": \"{sha256}\", \"of\": \"{key}\"}}";
        let manifest = text(&[("done_file", "{key}.json"), ("done_content", "text"), ("done_text", manifest)]);
        assert_eq!(
            manifest,
            format!("{{\"file\": \"contacts-k-1.csv\", \"bytes\": 3, \"sha256\": \"{HEX}\", \"of\": \"k-1\"}}")
        );
    }

    #[test]
    fn the_file_before_has_settings_of_its_own() {
        let settings =
            [("before_file", "{final.stem}.sha256"), ("before_content", "sha256"), ("done_file", "{final}.done")];
        let before = Beside::of(&job(&settings), &expected(), When::Before).unwrap().unwrap();
        assert_eq!((before.name.as_str(), before.setting()), ("out/contacts-k-1.sha256", "before_file"));
        assert!(before.bytes.starts_with(HEX.as_bytes()) && text(&settings).is_empty());
    }

    #[test]
    fn settings_that_make_no_sense_are_refused_by_name() {
        for (settings, part) in [
            (vec![("done_file", "{final}")], "that is the file itself"),
            (vec![("done_file", "{attempt}.done")], "no placeholder {attempt}"),
            (vec![("done_file", "{sha256}.done")], "no placeholder {sha256}"),
            (vec![("done_file", "{final}.done"), ("done_content", "md5")], "use one of: empty, sha256, text"),
            (vec![("done_file", "{final}.done"), ("done_content", "text")], "\"done_text\" is missing"),
            (
                vec![("done_file", "{final}.done"), ("done_content", "text"), ("done_text", "{rows}")],
                "no placeholder {rows}",
            ),
        ] {
            let failure = done(&settings).unwrap_err();
            assert!(matches!(&failure, Failure::Invalid(text) if text.contains(part)), "{failure:?}");
        }
    }
}
