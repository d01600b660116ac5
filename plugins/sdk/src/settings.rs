//! Settings of a job's destination, with errors that an operator can act on.

use std::fmt::Display;
use std::str::FromStr;

use crate::{Failure, Job, Moment, Setting};

impl Job {
    /// The setting's value, if it is set.
    pub fn setting(&self, name: &str) -> Option<&str> {
        value_of(&self.settings, name)
    }

    /// The setting's value, or the word that stands for it where it is not set.
    pub fn setting_or<'a>(&'a self, name: &str, default: &'a str) -> &'a str {
        self.setting(name).unwrap_or(default)
    }

    /// The setting's value, which must be set and not empty.
    pub fn required(&self, name: &str) -> Result<&str, Failure> {
        self.setting(name).filter(|value| !value.is_empty()).ok_or_else(|| {
            Failure::Invalid(format!(
                "the setting {name:?} is missing: set it in the manifest's [options] or in the destination's settings"
            ))
        })
    }

    /// The setting's value as another type, if it is set.
    pub fn parsed<T: FromStr<Err: Display>>(&self, name: &str) -> Result<Option<T>, Failure> {
        self.setting(name).map(|value| value.trim().parse().map_err(|error| wrong(name, value, error))).transpose()
    }

    /// A setting that is one of some words, and what each means. The first is what an absent setting means.
    pub fn one_of<T: Copy>(&self, name: &str, words: &[(&str, T)]) -> Result<T, Failure> {
        let value = self.setting(name).map(str::trim);
        words
            .iter()
            .find(|(word, _)| value.is_none_or(|value| value.eq_ignore_ascii_case(word)))
            .map(|(_, meaning)| *meaning)
            .ok_or_else(|| {
                let known: Vec<_> = words.iter().map(|(word, _)| *word).collect();
                wrong(name, value.unwrap_or_default(), format_args!("use one of: {}", known.join(", ")))
            })
    }

    /// A setting that says yes or no.
    pub fn yes_or_no(&self, name: &str, default: bool) -> Result<bool, Failure> {
        let words = [("yes", true), ("no", false), ("true", true), ("false", false)];
        if self.setting(name).is_none() { Ok(default) } else { self.one_of(name, &words) }
    }

    /// The day on which the original was created, in UTC: `20260302`. The same for every attempt and for a replacement.
    pub fn day(&self) -> String {
        let Moment { year, month, day, .. } = self.created;
        format!("{year:04}{month:02}{day:02}")
    }

    /// An entry of the export's scope, if it is there.
    pub fn scope(&self, name: &str) -> Option<&str> {
        value_of(&self.scope, name)
    }
}

fn value_of<'a>(settings: &'a [Setting], name: &str) -> Option<&'a str> {
    settings.iter().find(|setting| setting.name == name).map(|setting| setting.value.as_str())
}

fn wrong(name: &str, value: &str, why: impl Display) -> Failure {
    Failure::Invalid(format!("the setting {name:?} is {value:?}: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::job;

    #[test]
    fn what_is_missing_or_wrong_is_named_with_the_fix() {
        let job = job(&[("most", "many"), ("empty", ""), ("header", "perhaps")]);
        for (failure, part) in [
            (job.required("query").unwrap_err(), "\"query\" is missing: set it in"),
            (job.required("empty").unwrap_err(), "\"empty\" is missing"),
            (job.parsed::<u32>("most").unwrap_err(), "\"most\" is \"many\": invalid digit"),
            (job.yes_or_no("header", true).unwrap_err(), "\"header\" is \"perhaps\": use one of: yes, no"),
        ] {
            assert!(matches!(&failure, Failure::Invalid(text) if text.contains(part)), "{failure:?}");
        }
    }

    #[test]
    fn what_is_set_is_read_and_what_is_not_has_its_default() {
        let mut job = job(&[("most", " 12 "), ("header", "No"), ("line_ending", "lf")]);
        job.scope = vec![Setting { name: "list".into(), value: "7".into() }];
        assert_eq!(job.parsed::<u32>("most"), Ok(Some(12)));
        assert_eq!(job.parsed::<u32>("least"), Ok(None));
        assert_eq!(job.yes_or_no("header", true), Ok(false));
        assert_eq!(job.yes_or_no("bom", false), Ok(false));
        assert_eq!(job.one_of("line_ending", &[("crlf", 2), ("lf", 1)]), Ok(1));
        assert_eq!(job.one_of("ending", &[("crlf", 2), ("lf", 1)]), Ok(2));
        assert_eq!((job.setting_or("query", "rows"), job.scope("list")), ("rows", Some("7")));
    }

    #[test]
    fn the_day_is_the_creations() {
        let created = Moment { year: 987, month: 1, day: 9, hour: 23, minute: 59, second: 59 };
        assert_eq!(job(&[]).day(), "20260302");
        assert_eq!(Job { created, ..job(&[]) }.day(), "09870109");
    }
}
