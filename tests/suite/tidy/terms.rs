//! A claim checks the terms by their version, so whatever writes a term raises it.

use regex::Regex;

use super::statements::{self, normal};

#[test]
fn edt_02_every_statement_that_writes_a_term_raises_the_version() -> anyhow::Result<()> {
    let wrong: Vec<String> = statements::all()?
        .into_iter()
        .filter(|statement| writes_a_term_silently(&statement.text))
        .map(|statement| format!("{}: {}", statement.place, statement.text))
        .collect();
    assert!(wrong.is_empty(), "terms are written without raising version:\n{}", wrong.join("\n"));
    Ok(())
}

#[test]
fn edt_02_a_silent_edit_is_found() {
    for silent in [
        "UPDATE export_jobs SET scope = $2 WHERE id = $1",
        "UPDATE export_jobs AS j\n SET status = 'Queued', not_before = NULL WHERE id = $1 AND version = $2",
        "WITH x AS (SELECT 1) UPDATE export_jobs j SET woken_at = (SELECT t FROM x WHERE a = b), destination_id = $1",
        "UPDATE public.export_jobs SET (scope, priority) = ($1, $2)",
        "INSERT INTO export_jobs (id) VALUES ($1) ON CONFLICT (id) DO UPDATE SET scope = excluded.scope",
    ] {
        assert!(writes_a_term_silently(&normal(silent)), "{silent}");
    }
    for honest in [
        "UPDATE export_jobs SET scope = $2, version = version + 1 WHERE id = $1",
        "UPDATE export_jobs AS j SET (scope, not_before) = ($1, $2), version = j.version + 1 WHERE id = $3",
        "UPDATE export_jobs SET status = 'Running' WHERE not_before = $1 AND scope = $2",
        "UPDATE looks SET scope = 1",
        "INSERT INTO export_jobs (id, scope, version) VALUES ($1, $2, 1)",
        "UPDATE export_jobs SET status = 'Queued' WHERE id = $1 RETURNING scope",
    ] {
        assert!(!writes_a_term_silently(&normal(honest)), "{honest}");
    }
}

/// Looks at each SET list of an update of `export_jobs`, with the insides of parentheses removed.
fn writes_a_term_silently(statement: &str) -> bool {
    const TARGET: &str = r"(?:only )?(?:public\.)?export_jobs\b";
    let expressions = regex(r"\((?:[^()])*\)");
    let tuple = regex(r"(?:\bset|,) ?\(([^()]*)\) ?=");
    // `(a, b) = (…)` is an assignment to each of its columns; other parentheses hold expressions.
    let mut flat = tuple
        .replace_all(statement, |found: &regex::Captures<'_>| {
            let columns: Vec<String> = found[1].split(',').map(|column| format!("{} = ", column.trim())).collect();
            let start = if found[0].starts_with(',') { ", " } else { "set " };
            format!("{start}{} ", columns.join("v, "))
        })
        .into_owned();
    let unparenthesised = loop {
        let next = expressions.replace_all(&flat, " ").into_owned();
        if next == flat {
            break flat;
        }
        // An update may stand inside a WITH's parentheses: look at what is taken out, too.
        for inner in expressions.find_iter(&flat) {
            if silently(inner.as_str().trim_matches(['(', ')']), TARGET) {
                return true;
            }
        }
        flat = next;
    };
    silently(&unparenthesised, TARGET)
}

fn silently(statement: &str, target: &str) -> bool {
    let list = regex(&format!(
        r"(?:update {target}|insert into {target}.*?do update)(?: as)?(?: \w+)? set (.*?)(?: where | from | returning |;|$)"
    ));
    let term = regex(r"(?:^|, ?)(?:destination_id|scope|not_before) ?=");
    let raised = regex(r"(?:^|, ?)version ?= ?(?:\w+\.)?version ?\+ ?1\b");
    list.captures_iter(statement).any(|found| term.is_match(&found[1]) && !raised.is_match(&found[1]))
}

fn regex(pattern: &str) -> Regex {
    Regex::new(pattern).expect("the pattern is a constant of this file")
}
