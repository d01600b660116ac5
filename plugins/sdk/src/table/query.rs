//! Where the rows come from.

use crate::{Failure, Job, Rows, Setting, rows};

/// A query by its configured name, with its parameters.
#[derive(Debug, Clone, PartialEq)]
pub struct Query {
    pub name: String,
    pub parameters: Vec<Setting>,
}

impl Query {
    /// Reads the settings `query` and `parameters`.
    pub fn read(job: &Job) -> Result<Self, Failure> {
        Ok(Self { name: job.setting_or("query", "rows").to_owned(), parameters: parameters(job)? })
    }

    pub fn open(&self) -> Result<Rows, Failure> {
        rows(&self.name, &self.parameters)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::job;

    #[test]
    fn only_the_named_parameters_go_to_the_query() {
        let mut job = job(&[("query", "contacts")]);
        let setting = |name: &str, value: &str| Setting { name: name.into(), value: value.into() };
        job.scope = vec![setting("list", "7"), setting("note", "x")];
        assert_eq!(Query::read(&job), Ok(Query { name: "contacts".into(), parameters: job.scope.clone() }));
        job.settings = vec![setting("parameters", "list")];
        assert_eq!(Query::read(&job), Ok(Query { name: "rows".into(), parameters: vec![setting("list", "7")] }));
        job.settings = vec![setting("parameters", "list, since")];
        assert!(Query::read(&job).unwrap_err().reason().contains("names \"since\""));
    }
}
