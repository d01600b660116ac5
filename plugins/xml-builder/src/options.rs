//! The settings that this builder knows.
//!
//! | setting | meaning | default |
//! | --- | --- | --- |
//! | `query` | name of the query | `rows` |
//! | `parameters` | names of the scope's entries that are the query's parameters, separated by commas | all of the scope |
//! | `columns` | `column=name` or `column`, one a line or separated by commas: the name of its element or attribute | all columns, under their own names |
//! | `root`, `row` | names of the root element and of a row's | `rows`, `row` |
//! | `namespace` | the namespace of all elements | none |
//! | `values` | `elements` in the row's, or `attributes` of it | `elements` |
//! | `null` | a missing value: `omit` (nothing), `empty` (an element or attribute without content), `nil` (an element with `xsi:nil`) | `omit` |
//! | `true`, `false` | the texts of booleans | `true`, `false` |
//! | `encoding` | `utf-8`, `us-ascii`, `iso-8859-1` or `windows-1252`; a character that it lacks is a character reference | `utf-8` |
//! | `compress` | `none` or `gzip` | `none` |
//!
//! Numbers have a decimal point and no exponent, bytes are lower-case hex (`xs:hexBinary`). One row stands on one line.

use waybill_guest::table::{Charset, Compression, Query, Wanted, Words, columns};
use waybill_guest::{Failure, Job};

use crate::escape::check_name;

#[derive(Debug)]
pub struct Options {
    pub query: Query,
    /// Empty: all columns, as they come.
    pub columns: Vec<Wanted>,
    pub root: String,
    pub row: String,
    pub namespace: Option<String>,
    pub attributes: bool,
    pub null: Missing,
    pub words: Words,
    /// As the declaration names it.
    pub encoding: &'static str,
    pub charset: Charset,
    pub compression: Compression,
}

/// What stands for a missing value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Missing {
    Omit,
    Empty,
    Nil,
}

impl Options {
    pub fn read(job: &Job) -> Result<Self, Failure> {
        let encodings = ["utf-8", "us-ascii", "iso-8859-1", "windows-1252"].map(|name| (name, name));
        let encoding = job.one_of("encoding", &encodings)?;
        let named = |setting: &str, default: &'static str| {
            let name = job.setting_or(setting, default).trim();
            check_name(name, &format!("the setting {setting:?}"))?;
            Ok::<_, Failure>(name.to_owned())
        };
        let options = Self {
            query: Query::read(job)?,
            columns: columns("columns", job.setting_or("columns", ""), "column=name")?,
            root: named("root", "rows")?,
            row: named("row", "row")?,
            namespace: job.setting("namespace").filter(|name| !name.is_empty()).map(str::to_owned),
            attributes: job.one_of("values", &[("elements", false), ("attributes", true)])?,
            null: job.one_of("null", &[("omit", Missing::Omit), ("empty", Missing::Empty), ("nil", Missing::Nil)])?,
            words: Words::read(job),
            encoding,
            charset: Charset::named(encoding)?,
            compression: Compression::read(job)?,
        };
        if options.attributes && options.null == Missing::Nil {
            return Err(Failure::Invalid(
                "the setting \"null\" is \"nil\", which only an element can be: use omit or empty, or write values as elements"
                    .to_owned(),
            ));
        }
        Ok(options)
    }
}

#[cfg(test)]
mod tests {
    use waybill_guest::testing::job;

    use super::*;

    #[test]
    fn settings_that_make_no_sense_are_refused_by_name() {
        for (settings, told) in [
            (vec![("encoding", "utf-16le")], "use one of: utf-8, us-ascii"),
            (vec![("root", "a b")], "the setting \"root\": \"a b\" is no name"),
            (vec![("row", "")], "the setting \"row\": \"\" is no name"),
            (vec![("values", "text")], "use one of: elements, attributes"),
            (vec![("values", "attributes"), ("null", "nil")], "only an element can be"),
            (vec![("columns", "=name")], "write column=name"),
        ] {
            let failure = Options::read(&job(&settings)).unwrap_err();
            assert!(matches!(&failure, Failure::Invalid(text) if text.contains(told)), "{failure:?}");
        }
    }
}
