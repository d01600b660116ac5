//! The settings that this builder knows.
//!
//! | setting | meaning | default |
//! | --- | --- | --- |
//! | `query` | name of the query | `rows` |
//! | `parameters` | names of the scope's entries that are the query's parameters, separated by commas | all of the scope |
//! | `columns` | `column=Header text` or `column`, one a line or separated by commas; quote what contains a comma: `"city=City, country"` | all columns, as they come |
//! | `header` | `yes` or `no`: a first line with the headers | `yes` |
//! | `delimiter` | one ASCII character, or `tab` | `,` |
//! | `quote` | `necessary` or `always` | `necessary` |
//! | `line_ending` | `crlf` or `lf` | `crlf` |
//! | `encoding` | `utf-8`, `utf-16le`, `utf-16be`, `us-ascii`, `iso-8859-1`, `windows-1252`, or another name that browsers know | `utf-8` |
//! | `bom` | `yes` or `no`: a byte order mark first (only for `utf-8` and `utf-16`) | `no` |
//! | `null` | the text of a missing value | empty |
//! | `true`, `false` | the texts of booleans | `true`, `false` |
//! | `compress` | `none` or `gzip` | `none` |

use csv::{QuoteStyle, Terminator};
use waybill_guest::table::{Charset, Compression, Query, Wanted, Words, columns};
use waybill_guest::{Failure, Job};

#[derive(Debug)]
pub struct Options {
    pub query: Query,
    /// Empty: all columns, as they come.
    pub columns: Vec<Wanted>,
    pub header: bool,
    pub delimiter: u8,
    pub quote: QuoteStyle,
    pub line_ending: Terminator,
    pub charset: Charset,
    pub bom: bool,
    pub words: Words,
    pub compression: Compression,
}

impl Options {
    pub fn read(job: &Job) -> Result<Self, Failure> {
        let charset = Charset::named(job.setting_or("encoding", "utf-8"))?;
        let bom = job.yes_or_no("bom", false)?;
        if bom && !charset.has_byte_order_mark() {
            return Err(Failure::Invalid(
                "the setting \"bom\" is \"yes\", but this encoding has no byte order mark: only utf-8 and utf-16 have one"
                    .to_owned(),
            ));
        }
        Ok(Self {
            query: Query::read(job)?,
            columns: columns("columns", job.setting_or("columns", ""), "column=Header text")?,
            header: job.yes_or_no("header", true)?,
            delimiter: delimiter(job.setting_or("delimiter", ","))?,
            quote: job.one_of("quote", &[("necessary", QuoteStyle::Necessary), ("always", QuoteStyle::Always)])?,
            line_ending: job.one_of("line_ending", &[("crlf", Terminator::CRLF), ("lf", Terminator::Any(b'\n'))])?,
            charset,
            bom,
            words: Words::read(job),
            compression: Compression::read(job)?,
        })
    }
}

fn delimiter(text: &str) -> Result<u8, Failure> {
    match text.as_bytes() {
        b"tab" | b"\\t" => Ok(b'\t'),
        [byte] if byte.is_ascii() && !matches!(byte, b'"' | b'\r' | b'\n') => Ok(*byte),
        _ => Err(Failure::Invalid(format!(
            "the setting \"delimiter\" is {text:?}: use one ASCII character (not a quote or a line break), or the word tab"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use waybill_guest::testing::{self, job};

    use super::*;

    fn refusal(settings: &[(&str, &str)]) -> String {
        testing::refusal(Options::read(&job(settings)))
    }

    #[test]
    fn without_settings_it_is_rfc_4180_in_utf_8() {
        let options = Options::read(&job(&[])).unwrap();
        assert_eq!((options.query.name.as_str(), options.delimiter, options.header), ("rows", b',', true));
        assert!(matches!(options.line_ending, Terminator::CRLF) && options.columns.is_empty() && !options.bom);
        assert_eq!(options.compression, Compression::None);
    }

    #[test]
    fn settings_that_make_no_sense_are_refused_by_name() {
        assert!(refusal(&[("delimiter", ";;")]).contains("\"delimiter\" is \";;\""));
        assert!(refusal(&[("delimiter", "\"")]).contains("\"delimiter\""));
        assert!(refusal(&[("encoding", "utf-7")]).contains("\"encoding\" is \"utf-7\""));
        assert!(refusal(&[("encoding", "windows-1252"), ("bom", "yes")]).contains("\"bom\""));
        assert!(refusal(&[("line_ending", "cr")]).contains("use one of: crlf, lf"));
    }
}
