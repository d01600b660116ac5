//! The settings that this builder knows.
//!
//! | setting | meaning | default |
//! | --- | --- | --- |
//! | `query` | name of the query | `rows` |
//! | `parameters` | names of the scope's entries that are the query's parameters, separated by commas | all of the scope |
//! | `columns` | the fields of a record, one a line or separated by commas: `column=WIDTH`, and of the words `left` or `right` (the side of the text), `zero` (filled with zeros, a sign first; needs `right`), `truncate` (what is too long is cut instead of refused): `number=10 right zero` | must be set |
//! | `header`, `trailer` | fields of a first and a last record, written in the same way with a text in the column's place: `T=1, {rows}=9 right zero, {date}=8`. The text may have `{key}` and `{date}` (the day of the job's creation, `20260302`), and in the trailer `{rows}` and `{records}` (the rows, and all records with header and trailer). Between quotes a comma is text. A record that is shorter than those of the rows is filled with spaces | no such record |
//! | `count` | what a width counts: `characters` (of Unicode, whatever is seen of them) or `bytes` of the encoding | `characters` |
//! | `line_ending` | `crlf`, `lf` or `none`, after each record | `crlf` |
//! | `encoding` | `utf-8`, `utf-16le`, `utf-16be`, `us-ascii`, `iso-8859-1`, `windows-1252`, or another name that browsers know, but none with shift states | `utf-8` |
//! | `null` | the text of a missing value; its field is filled with spaces, never with zeros | empty |
//! | `true`, `false` | the texts of booleans | `true`, `false` |
//! | `compress` | `none` or `gzip` | `none` |

use waybill_guest::table::{Charset, Compression, Query, Wanted, Words, columns};
use waybill_guest::{Failure, Job, Template};

use crate::layout::{FORM, Field};

#[derive(Debug)]
pub struct Options {
    pub query: Query,
    /// Their headers are the words of their fields.
    pub columns: Vec<Wanted>,
    pub header: Vec<(Template, Field)>,
    pub trailer: Vec<(Template, Field)>,
    pub in_bytes: bool,
    pub line_ending: &'static str,
    pub charset: Charset,
    pub words: Words,
    pub compression: Compression,
    pub key: String,
    pub day: String,
}

impl Options {
    pub fn read(job: &Job) -> Result<Self, Failure> {
        let encoding = job.setting_or("encoding", "utf-8");
        let charset = Charset::named(encoding)?;
        let in_bytes = job.one_of("count", &[("characters", false), ("bytes", true)])?;
        if charset.has_states() {
            return Err(Failure::Invalid(format!(
                "the setting \"encoding\" is {encoding:?}: its escape sequences have no place in a field of fixed width"
            )));
        }
        if in_bytes && matches!(charset, Charset::Utf16 { .. }) {
            return Err(Failure::Invalid(format!(
                "the setting \"count\" is \"bytes\", but a character of {encoding} has two or four: count characters"
            )));
        }
        let columns = columns("columns", job.required("columns")?, FORM)?;
        if columns.is_empty() {
            return Err(Failure::Invalid(format!("the setting \"columns\" has no column: write {FORM}")));
        }
        Ok(Self {
            query: Query::read(job)?,
            columns,
            header: record(job, "header", &["key", "date"])?,
            trailer: record(job, "trailer", &["key", "date", "rows", "records"])?,
            in_bytes,
            line_ending: job.one_of("line_ending", &[("crlf", "\r\n"), ("lf", "\n"), ("none", "")])?,
            charset,
            words: Words::read(job),
            compression: Compression::read(job)?,
            key: job.delivery_key.clone(),
            day: job.day(),
        })
    }
}

/// The fields of a record that is not a row's.
fn record(job: &Job, setting: &str, known: &[&str]) -> Result<Vec<(Template, Field)>, Failure> {
    columns(setting, job.setting_or(setting, ""), "text=WIDTH")?
        .iter()
        .map(|Wanted { column: text, header: words }| {
            Ok((Template::parse(setting, text, known)?, Field::parse(setting, text, words)?))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use waybill_guest::testing::{self, job};

    use super::*;

    fn refusal(settings: &[(&str, &str)]) -> String {
        testing::refusal(Options::read(&job(settings)))
    }

    #[test]
    fn settings_that_make_no_sense_are_refused_by_name() {
        let with = |setting, value| refusal(&[("columns", "id=5"), (setting, value)]);
        assert!(refusal(&[]).contains("\"columns\" is missing"));
        assert!(refusal(&[("columns", ",")]).contains("\"columns\" has no column"));
        assert!(with("count", "glyphs").contains("use one of: characters, bytes"));
        assert!(with("encoding", "iso-2022-jp").contains("escape sequences"));
        assert!(with("line_ending", "cr").contains("use one of: crlf, lf, none"));
        assert!(with("header", "{rows}=9").contains("\"header\" is \"{rows}\": there is no placeholder {rows}"));
        assert!(with("trailer", "T").contains("\"trailer\" says \"T\" for \"T\""));
        let both = [("columns", "id=5"), ("count", "bytes"), ("encoding", "utf-16le")];
        assert!(refusal(&both).contains("count characters"));
    }
}
