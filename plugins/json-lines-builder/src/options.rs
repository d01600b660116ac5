//! The settings that this builder knows.
//!
//! | setting | meaning | default |
//! | --- | --- | --- |
//! | `query` | name of the query | `rows` |
//! | `parameters` | names of the scope's entries that are the query's parameters, separated by commas | all of the scope |
//! | `columns` | `column=key` or `column`, one a line or separated by commas | all columns, under their own names |
//! | `null` | `keep` (a key with null) or `omit` (no key) | `keep` |
//! | `numbers` | columns whose text is written as a number, digit by digit: exact numerics arrive as text, and are text without this | none |
//! | `texts` | columns whose numbers are written as text: readers that keep numbers as doubles lose digits past 2^53 | none |
//! | `compress` | `none` or `gzip` | `none` |
//!
//! Integers and floats are numbers, booleans are `true` and `false`, bytes are text in lower-case hex, and a column of the kind `json`
//! is a value in the value. A float that is no number has no form in JSON and fails the build, unless `texts` names its column.

use waybill_guest::table::{Compression, Query, Wanted, columns};
use waybill_guest::{Failure, Job};

#[derive(Debug)]
pub struct Options {
    pub query: Query,
    /// Empty: all columns, as they come.
    pub columns: Vec<Wanted>,
    pub omit_null: bool,
    pub numbers: Vec<String>,
    pub texts: Vec<String>,
    pub compression: Compression,
}

impl Options {
    pub fn read(job: &Job) -> Result<Self, Failure> {
        let options = Self {
            query: Query::read(job)?,
            columns: columns("columns", job.setting_or("columns", ""), "column=key")?,
            omit_null: job.one_of("null", &[("keep", false), ("omit", true)])?,
            numbers: names(job, "numbers"),
            texts: names(job, "texts"),
            compression: Compression::read(job)?,
        };
        match options.numbers.iter().find(|name| options.texts.contains(name)) {
            None => Ok(options),
            Some(name) => Err(Failure::Invalid(format!(
                "the settings \"numbers\" and \"texts\" both name {name:?}: take it out of one of them"
            ))),
        }
    }
}

/// Columns, one a line or separated by commas.
fn names(job: &Job, setting: &str) -> Vec<String> {
    let names = job.setting_or(setting, "").split([',', '\n']).map(str::trim);
    names.filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use waybill_guest::testing::job;

    use super::*;

    #[test]
    fn settings_that_make_no_sense_are_refused_by_name() {
        for (settings, told) in [
            (vec![("null", "drop")], "\"null\" is \"drop\": use one of: keep, omit"),
            (vec![("numbers", "a, b"), ("texts", "b")], "\"numbers\" and \"texts\" both name \"b\""),
            (vec![("columns", "=key")], "write column=key"),
        ] {
            let failure = Options::read(&job(&settings)).unwrap_err();
            assert!(matches!(&failure, Failure::Invalid(text) if text.contains(told)), "{failure:?}");
        }
        assert_eq!(Options::read(&job(&[("numbers", "a,\n b ")])).unwrap().numbers, ["a", "b"]);
    }
}
