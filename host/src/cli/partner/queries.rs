//! What the databases say of a destination's queries, as findings. A query that is wrong ends its jobs; where its database could
//! not be asked nothing is known of it, and its jobs go back to the queue.

use crate::remote::{Finding, Standing};
use crate::source::{Described, SourceError};

/// One finding a query.
pub(super) fn findings(described: Vec<Described>) -> Vec<Finding> {
    described.into_iter().map(finding).collect()
}

fn finding(described: Described) -> Finding {
    let about = format!("query {}", described.query);
    match described.columns {
        Ok(columns) => {
            let columns: Vec<String> = columns.iter().map(|column| format!("{} {}", column.name, column.of)).collect();
            let sentence = format!("its database takes it, and would answer with {}", columns.join(", "));
            Finding { about, stands: Standing::Agrees, sentence, next: None }
        }
        Err(error) => Finding {
            about,
            stands: if error.remedy().is_some() { Standing::NotShown } else { Standing::Contradicts },
            next: Some(next(&error).to_owned()),
            sentence: error.to_string(),
        },
    }
}

/// What to do about it.
fn next(error: &SourceError) -> &'static str {
    match error {
        SourceError::Address { .. } => {
            "set it where this command and the host run, or correct `url_env`, `url_file` or `url` of the query in destinations.toml"
        }
        SourceError::BrokenOff { .. } | SourceError::NotDescribed { .. } => "try the check again",
        SourceError::Unreachable { .. } | SourceError::Lost { .. } | SourceError::Login { .. } => {
            "see that the database runs there and admits the login, or correct the query's address in destinations.toml"
        }
        SourceError::UnsupportedType { .. } => "cast the column to text in the query's `sql` in destinations.toml",
        SourceError::Refused { .. } => {
            "correct the query's `sql` in destinations.toml, or have its login granted what it reads"
        }
        SourceError::UnknownQuery { .. }
        | SourceError::NoTenant
        | SourceError::ManyStatements
        | SourceError::MissingParameter { .. }
        | SourceError::TenantIsBound { .. }
        | SourceError::Unreadable { .. } => "correct the query's `sql` in destinations.toml",
    }
}
