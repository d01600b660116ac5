//! The final name, from the setting `name`.
//!
//! | placeholder | stands for |
//! | --- | --- |
//! | `{key}` | the delivery key |
//! | `{date}` | the day on which the original job was created, in UTC, as `20260302` |
//! | `{tenant}` | the tenant's id |
//!
//! All three stay the same for every attempt and for a replacement, and so does the name. Whether a name may do without `{key}` is
//! agreed in the manifest (`names_reused`), and the host holds it.

use waybill_guest::{Failure, Job, Template};

const PLACEHOLDERS: [&str; 3] = ["key", "date", "tenant"];

pub fn final_name(job: &Job) -> Result<String, Failure> {
    let template = Template::parse("name", job.required("name")?, &PLACEHOLDERS)?;
    let date = job.day();
    Ok(template.fill(|placeholder| match placeholder {
        "key" => &job.delivery_key,
        "date" => &date,
        _ => &job.tenant,
    }))
}

/// The directories that a name lies in, outermost first: `a` and `a/b` of `a/b/c.csv`.
pub fn directories(name: &str) -> impl Iterator<Item = &str> {
    name.match_indices('/').filter_map(|(at, _)| name.get(..at)).filter(|directory| !directory.is_empty())
}

#[cfg(test)]
mod tests {
    use waybill_guest::testing::job;

    use super::*;

    #[test]
    fn the_name_is_made_of_what_never_changes() {
        let name = |attempt: &str| {
            let job = job(&[("name", "{tenant}/contacts-{date}-{key}.csv")]);
            final_name(&Job { id: attempt.into(), attempt: attempt.into(), version: 9, ..job })
        };
        assert_eq!(name("a-1").unwrap(), "t-1/contacts-20260302-k-1.csv");
        assert_eq!(name("a-1"), name("a-2"));
    }

    #[test]
    fn a_wrong_template_is_refused_with_what_is_known() {
        assert!(final_name(&job(&[])).unwrap_err().reason().contains("\"name\" is missing"));
        let failure = final_name(&job(&[("name", "{attempt}.csv")])).unwrap_err();
        assert!(failure.reason().ends_with("known are {key}, {date}, {tenant}"), "{failure:?}");
    }

    #[test]
    fn directories_come_outermost_first() {
        assert_eq!(directories("a/b/c.csv").collect::<Vec<_>>(), ["a", "a/b"]);
        assert_eq!(directories("c.csv").count(), 0);
    }
}
