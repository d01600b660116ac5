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

use csv::{QuoteStyle, Terminator};
use waybill_guest::{Failure, Job, Setting};

use crate::charset::Charset;
use crate::columns::{self, Wanted};
use crate::text::Words;

#[derive(Debug)]
pub struct Options {
    pub query: String,
    pub parameters: Vec<Setting>,
    /// Empty: all columns, as they come.
    pub columns: Vec<Wanted>,
    pub header: bool,
    pub delimiter: u8,
    pub quote: QuoteStyle,
    pub line_ending: Terminator,
    pub charset: Charset,
    pub bom: bool,
    pub words: Words,
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
            query: job.setting_or("query", "rows").to_owned(),
            parameters: parameters(job)?,
            columns: columns::parse(job.setting_or("columns", ""))?,
            header: job.yes_or_no("header", true)?,
            delimiter: delimiter(job.setting_or("delimiter", ","))?,
            quote: job.one_of("quote", &[("necessary", QuoteStyle::Necessary), ("always", QuoteStyle::Always)])?,
            line_ending: job.one_of("line_ending", &[("crlf", Terminator::CRLF), ("lf", Terminator::Any(b'\n'))])?,
            charset,
            bom,
            words: Words {
                null: job.setting_or("null", "").to_owned(),
                yes: job.setting_or("true", "true").to_owned(),
                no: job.setting_or("false", "false").to_owned(),
            },
        })
    }
}

fn parameters(job: &Job) -> Result<Vec<Setting>, Failure> {
    let Some(names) = job.setting("parameters") else {
        return Ok(job.scope.clone());
    };
    let names = names.split(',').map(str::trim).filter(|name| !name.is_empty());
    names
        .map(|name| match job.scope(name) {
            Some(value) => Ok(Setting { name: name.to_owned(), value: value.to_owned() }),
            None => Err(Failure::Invalid(format!(
                "the setting \"parameters\" names {name:?}, which the job's scope does not have: create the job with it"
            ))),
        })
        .collect()
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
pub mod tests {
    use waybill_guest::Moment;

    use super::*;

    pub fn job(settings: &[(&str, &str)]) -> Job {
        let list = |entries: &[(&str, &str)]| {
            entries.iter().map(|(name, value)| Setting { name: (*name).into(), value: (*value).into() }).collect()
        };
        Job {
            id: String::new(),
            tenant: String::new(),
            attempt: String::new(),
            destination: String::new(),
            delivery_key: "k-1".into(),
            created_at: "2026-03-02T08:15:00Z".into(),
            created: Moment { year: 2026, month: 3, day: 2, hour: 8, minute: 15, second: 0 },
            version: 1,
            replacement: None,
            scope: list(&[("list", "7"), ("note", "x")]),
            settings: list(settings),
            extra: vec![],
        }
    }

    fn refusal(settings: &[(&str, &str)]) -> String {
        match Options::read(&job(settings)) {
            Err(Failure::Invalid(text)) => text,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn without_settings_it_is_rfc_4180_in_utf_8() {
        let options = Options::read(&job(&[])).unwrap();
        assert_eq!((options.query.as_str(), options.delimiter, options.header), ("rows", b',', true));
        assert!(matches!(options.line_ending, Terminator::CRLF) && options.columns.is_empty() && !options.bom);
        assert_eq!(options.parameters.len(), 2);
    }

    #[test]
    fn only_the_named_parameters_go_to_the_query() {
        let options = Options::read(&job(&[("parameters", "list")])).unwrap();
        assert_eq!(options.parameters, [Setting { name: "list".into(), value: "7".into() }]);
        assert!(refusal(&[("parameters", "list, since")]).contains("names \"since\""));
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
