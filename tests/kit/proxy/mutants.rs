//! What `make mutants-sql` asks of the kit, by two environment variables: that a statement is run in another text, and
//! that the statements of each test are written down.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context;
use serde::Deserialize;
use waybill::embedded::postgres::Address;

use super::{Proxy, Rewrite};

/// Names a file with the text of a statement and another one in its place.
const MUTANT: &str = "WAYBILL_SQL_MUTANT";
/// Names a folder.
const COVERAGE: &str = "WAYBILL_SQL_COVERAGE";

#[derive(Deserialize)]
struct Mutant {
    original: String,
    mutated: String,
}

/// The line before a test's database, where one was asked for.
pub fn line(server: &Address) -> anyhow::Result<Option<Proxy>> {
    if let Some(file) = asked(MUTANT) {
        let text = std::fs::read_to_string(&file).with_context(|| format!("reading {}", file.display()))?;
        let Mutant { original, mutated } = serde_json::from_str(&text)?;
        let rewrite: Rewrite = Arc::new(move |sql| (sql == original).then(|| mutated.clone()));
        return Proxy::start(server, Some(rewrite)).map(Some);
    }
    asked(COVERAGE).map(|_| Proxy::start(server, None)).transpose()
}

/// Writes down what passed the line, under the name that nextest gives the test.
#[expect(clippy::disallowed_methods, reason = "only nextest knows the name of the test")]
pub fn record(line: &Proxy) -> anyhow::Result<()> {
    let Some(folder) = asked(COVERAGE) else { return Ok(()) };
    let test = std::env::var("NEXTEST_TEST_NAME").context("the coverage of statements is recorded under nextest")?;
    let statements: BTreeSet<String> = line.executed().into_iter().collect();
    let file = Path::new(&folder).join(format!("{}-{:08x}.json", std::process::id(), rand::random::<u32>()));
    Ok(std::fs::write(file, serde_json::to_vec(&serde_json::json!({ "test": test, "statements": statements }))?)?)
}

#[expect(clippy::disallowed_methods, reason = "the runner speaks to test processes that nextest starts")]
fn asked(variable: &str) -> Option<PathBuf> {
    std::env::var_os(variable).filter(|value| !value.is_empty()).map(PathBuf::from)
}
