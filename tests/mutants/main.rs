//! `make mutants-sql`: takes the force from each predicate of each statement, one at a time, and expects a test to fail.
//!
//! Nothing is compiled again: the kit's databases stand behind a line that rewrites the statement as it passes. Which
//! tests cover a statement is recorded once, by a run of the suite through the same line. The table goes to
//! `target/mutants/`; what it holds is not tried again, so an interrupted run goes on. `--only NAME` tries the statements
//! whose name begins so, `--again` forgets their earlier results, `--list` only names the mutations, `--near` asks only the tests
//! of single statements. New tests are asked once they are recorded: remove `target/mutants/coverage`, or run them with
//! `WAYBILL_SQL_COVERAGE` set to that directory.

#![expect(clippy::print_stdout, reason = "its output is for people")]

mod predicates;
mod report;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::time::Duration;

use anyhow::Context;
use futures::StreamExt as _;
use report::{Report, Tried};
use serde::Deserialize;

/// Where statements are tested one by one.
const NEAR: [&str; 5] = ["store::", "strangers::", "recovery::", "broker::", "permissions::"];

/// Tests that are asked before all others.
const FIRST: usize = 4;

/// Tests at a time. They wait for PostgreSQL more than they compute.
const AT_ONCE: usize = 4;

/// A test that takes longer has failed.
const PATIENCE: Duration = Duration::from_secs(180);

/// One predicate of one statement.
struct Mutation {
    statement: String,
    predicate: String,
    original: String,
    mutated: String,
}

#[derive(Deserialize)]
struct Prepared {
    query: String,
}

/// What the kit writes down about a test's database.
#[derive(Deserialize)]
struct Covered {
    test: String,
    statements: BTreeSet<String>,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let (mut only, mut again, mut list, mut near) = (None, false, false, false);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--only" => only = Some(arguments.next().context("--only takes the beginning of a statement's name")?),
            "--again" => again = true,
            "--list" => list = true,
            "--near" => near = true,
            other => anyhow::bail!("unknown argument {other}; there are --only NAME, --again, --near and --list"),
        }
    }
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("the tests lie in the repository")?;
    let folder = repository.join("target").join("mutants");
    std::fs::create_dir_all(&folder)?;
    let chosen = |statement: &str| only.as_ref().is_none_or(|only| statement.starts_with(only.as_str()));
    let mutations: Vec<Mutation> =
        mutations(repository)?.into_iter().filter(|mutation| chosen(&mutation.statement)).collect();
    if list {
        for Mutation { statement, predicate, .. } in &mutations {
            println!("{statement}: {predicate}");
        }
        return Ok(());
    }
    let suite = Suite::build(repository)?;
    let coverage = coverage(repository, &folder.join("coverage"))?;
    let mut report = Report::open(folder.join("mutants.json"))?;
    // Of statements that have changed nothing is known; a survivor may have met its test since.
    let current: BTreeSet<&str> = mutations.iter().map(|mutation| mutation.mutated.as_str()).collect();
    report.keep(|tried| {
        !chosen(&tried.statement) || (!again && tried.caught_by.is_some() && current.contains(tried.mutated.as_str()))
    });
    let count = mutations.len();
    for (number, mutation) in mutations.iter().enumerate() {
        if report.holds(&mutation.mutated) {
            continue;
        }
        let caught_by = match coverage.get(&mutation.statement) {
            Some(tests) => attempt(&suite, &folder, mutation, tests, near).await?,
            None => None,
        };
        // For writing tests: the far ones, which take long, have not been asked.
        if near && caught_by.is_none() {
            println!("{} of {count}: {}: {}: not caught nearby", number + 1, mutation.statement, mutation.predicate);
            continue;
        }
        let verdict = caught_by.as_deref().unwrap_or("SURVIVED");
        println!("{} of {count}: {}: {}: {verdict}", number + 1, mutation.statement, mutation.predicate);
        report.add(Tried {
            statement: mutation.statement.clone(),
            predicate: mutation.predicate.clone(),
            mutated: mutation.mutated.clone(),
            caught_by,
        })?;
    }
    let survivors = report.survivors(chosen);
    println!("{count} mutations, {survivors} survived; the table is in {}", folder.join("mutants.md").display());
    anyhow::ensure!(survivors == 0, "no test fails without these predicates");
    Ok(())
}

fn mutations(repository: &Path) -> anyhow::Result<Vec<Mutation>> {
    let mut mutations = Vec::new();
    for entry in std::fs::read_dir(repository.join(".sqlx"))? {
        let Prepared { query } = serde_json::from_str(&std::fs::read_to_string(entry?.path())?)?;
        let Some(statement) = query.lines().next().and_then(|line| line.trim().strip_prefix("-- store::")) else {
            continue;
        };
        for range in predicates::predicates(&query) {
            let mutated = predicates::without(&query, &range).context("a predicate lies in its text")?;
            let words = query.get(range).unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ");
            mutations.push(Mutation {
                statement: statement.trim().to_owned(),
                predicate: words,
                original: query.clone(),
                mutated,
            });
        }
    }
    mutations.sort_by(|one, other| one.statement.cmp(&other.statement));
    Ok(mutations)
}

/// The tests of each statement, the likeliest to miss it first, recorded by one run of the suite where there is no record yet.
fn coverage(repository: &Path, folder: &Path) -> anyhow::Result<BTreeMap<String, Vec<String>>> {
    if !folder.is_dir() {
        println!("recording which tests cover which statements");
        let unfinished = folder.with_extension("unfinished");
        if unfinished.is_dir() {
            std::fs::remove_dir_all(&unfinished)?;
        }
        std::fs::create_dir_all(&unfinished)?;
        let run = Command::new("cargo")
            .args(["nextest", "run", "--workspace", "-E", "binary(suite)", "--no-fail-fast"])
            .env("WAYBILL_SQL_COVERAGE", &unfinished)
            .current_dir(repository)
            .stdin(Stdio::null())
            .status()?;
        anyhow::ensure!(run.success(), "the suite fails without any mutation; mend that first");
        std::fs::rename(&unfinished, folder)?;
    }
    let mut of_tests: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for entry in std::fs::read_dir(folder)? {
        let covered: Covered = serde_json::from_str(&std::fs::read_to_string(entry?.path())?)?;
        of_tests.entry(covered.test).or_default().extend(covered.statements);
    }
    // Statements have tests of their own, which end sooner than whole deliveries do; and the fewer statements a test runs,
    // the more it is about each.
    let mut tests: Vec<_> = of_tests.into_iter().collect();
    tests.sort_by_key(|(test, statements)| (!is_near(test), statements.len()));
    let mut coverage: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (test, statements) in tests {
        for statement in statements {
            coverage.entry(statement).or_default().push(test.clone());
        }
    }
    Ok(coverage)
}

fn is_near(test: &str) -> bool {
    NEAR.iter().any(|module| test.starts_with(module))
}

/// Runs the statement's tests on the mutated text. The first one that fails has caught it.
async fn attempt(
    suite: &Suite,
    folder: &Path,
    mutation: &Mutation,
    tests: &[String],
    only_near: bool,
) -> anyhow::Result<Option<String>> {
    let file: PathBuf = folder.join("mutant.json");
    let texts = serde_json::json!({ "original": mutation.original, "mutated": mutation.mutated });
    std::fs::write(&file, serde_json::to_vec(&texts)?)?;
    let (near, far) = tests.split_at(tests.partition_point(|test| is_near(test)));
    let (first, near) = near.split_at(near.len().min(FIRST));
    for batch in [first, near, if only_near { &[] } else { far }] {
        let mut batch: Vec<&str> = batch.iter().map(String::as_str).collect();
        // A test that fails without the mutation too, as one may on a busy machine, has caught nothing.
        while let Some(caught_by) = suite.first_failure(&batch, &file).await? {
            if suite.passes(caught_by, None).await? {
                return Ok(Some(caught_by.to_owned()));
            }
            println!("{caught_by} fails without any mutation; it is left out");
            batch.retain(|test| *test != caught_by);
        }
    }
    Ok(None)
}

/// The built tests. They are run one a process, as nextest does, without what nextest and cargo do before each run.
struct Suite {
    program: PathBuf,
    directory: PathBuf,
}

impl Suite {
    /// Builds it where it is not built.
    fn build(repository: &Path) -> anyhow::Result<Self> {
        let mut cargo = Command::new("cargo");
        cargo.args(["test", "--workspace", "--test", "suite", "--no-run", "--quiet", "--message-format=json"]);
        let built = cargo.current_dir(repository).stdin(Stdio::null()).stderr(Stdio::inherit()).output()?;
        anyhow::ensure!(built.status.success(), "the suite does not build");
        let program = String::from_utf8(built.stdout)?.lines().find_map(|line| {
            let message: serde_json::Value = serde_json::from_str(line).ok()?;
            let named = message.pointer("/target/name").and_then(serde_json::Value::as_str) == Some("suite");
            message.get("executable").and_then(serde_json::Value::as_str).filter(|_| named).map(PathBuf::from)
        });
        Ok(Self { program: program.context("cargo names no suite")?, directory: repository.join("tests") })
    }

    /// The test of these that fails first. Those that run beside it come to their end; no other is begun.
    async fn first_failure<'a>(&self, tests: &[&'a str], mutant: &Path) -> anyhow::Result<Option<&'a str>> {
        let failed: OnceLock<&'a str> = OnceLock::new();
        let mut runs = futures::stream::iter(tests)
            .map(|test| async {
                if failed.get().is_none() && !self.passes(test, Some(mutant)).await? {
                    failed.get_or_init(|| *test);
                }
                anyhow::Ok(())
            })
            .buffer_unordered(AT_ONCE);
        while let Some(run) = runs.next().await {
            run?;
        }
        drop(runs);
        Ok(failed.get().copied())
    }

    async fn passes(&self, test: &str, mutant: Option<&Path>) -> anyhow::Result<bool> {
        let mut program = tokio::process::Command::new(&self.program);
        program.args(["--exact", test]).current_dir(&self.directory).env("RUST_BACKTRACE", "0");
        program.stdin(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
        if let Some(mutant) = mutant {
            program.env("WAYBILL_SQL_MUTANT", mutant);
        }
        let Ok(run) = tokio::time::timeout(PATIENCE, program.output()).await else { return Ok(false) };
        let run = run?;
        let said = String::from_utf8_lossy(&run.stdout);
        anyhow::ensure!(said.contains("running 1 test"), "there is no test {test}; remove target/mutants/coverage");
        Ok(run.status.success())
    }
}
