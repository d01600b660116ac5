//! The requirement matrix: what `tests/README.md` claims has its test, and no test carries an id that does not exist.
//! What it says of the references names tests that are there.

use std::collections::{BTreeMap, BTreeSet};

use proc_macro2::{TokenStream, TokenTree};

use super::sources;

#[test]
fn tidy_every_claimed_requirement_has_its_test() -> anyhow::Result<()> {
    let known = known()?;
    let tests = test_names()?;
    let readme = std::fs::read_to_string(sources::repository().join("tests/README.md"))?;
    let mut wrong = Vec::new();
    for id in claimed(&readme) {
        if !known.contains(&id) {
            wrong.push(format!("{id} is claimed in tests/README.md and unknown to tests/requirements.txt"));
        } else if !tests.iter().any(|name| ids_in(name, &known).contains(&id)) {
            wrong.push(format!("{id} is claimed in tests/README.md and no test's name carries it"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(())
}

/// `WAYBILL_BLESS=1` writes the last cells anew.
#[test]
fn tidy_every_row_of_a_requirement_names_all_files_with_a_test_of_it() -> anyhow::Result<()> {
    let (known, by_file) = (known()?, tests_by_file()?);
    let path = sources::repository().join("tests/README.md");
    let readme = std::fs::read_to_string(&path)?;
    let named = |line: &str| match &line.split('|').map(str::trim).collect::<Vec<_>>()[..] {
        ["", id, shown, _, ""] if is_id(id) => {
            let files = by_file.iter().filter(|(_, names)| names.iter().any(|name| ids_in(name, &known).contains(*id)));
            let files: BTreeSet<String> = files.map(|(file, _)| format!("`{file}`")).collect();
            format!("| {id} | {shown} | {} |", Vec::from_iter(files).join(", "))
        }
        _ => line.to_owned(),
    };
    let right: String = readme.lines().flat_map(|line| [named(line), "\n".to_owned()]).collect();
    #[expect(clippy::disallowed_methods, reason = "a switch for whoever runs the tests; the host never reads it")]
    let bless = std::env::var_os("WAYBILL_BLESS").is_some_and(|value| !value.is_empty());
    if bless {
        std::fs::write(path, right)?;
        return Ok(());
    }
    let wrong: Vec<&str> =
        right.lines().zip(readme.lines()).filter(|(right, is)| right != is).map(|both| both.0).collect();
    assert!(wrong.is_empty(), "WAYBILL_BLESS=1 writes these rows of tests/README.md:\n{}", wrong.join("\n"));
    Ok(())
}

#[test]
fn tidy_every_test_with_an_id_carries_a_known_one() -> anyhow::Result<()> {
    let known = known()?;
    let unknown: Vec<String> =
        test_names()?.into_iter().filter(|name| ids_in(name, &known).iter().any(|id| !known.contains(id))).collect();
    assert!(unknown.is_empty(), "tests with ids that no requirement has: {unknown:?}");
    Ok(())
}

#[test]
fn tidy_no_row_of_the_tests_readme_stands_twice() -> anyhow::Result<()> {
    let readme = std::fs::read_to_string(sources::repository().join("tests/README.md"))?;
    assert_eq!(repeated(&readme), Vec::<String>::new(), "rows that stand twice; merge them");
    Ok(())
}

#[test]
fn tidy_every_row_about_the_references_names_tests_that_exist() -> anyhow::Result<()> {
    let readme = std::fs::read_to_string(sources::repository().join("tests/README.md"))?;
    let (_, references) = readme
        .split_once("\n## The references\n")
        .ok_or_else(|| anyhow::anyhow!("tests/README.md has no section \"The references\""))?;
    let (known, claimed) = (known()?, claimed(&readme));
    let open: BTreeSet<&str> = known.iter().filter(|id| !claimed.contains(*id)).map(String::as_str).collect();
    let tests: BTreeMap<String, Vec<String>> = tests_by_file()?.into_iter().collect();
    let wrong: Vec<String> = rows(references)
        .filter(|row| row.first() != Some(&"asked"))
        .flat_map(|row| unanswered(&row, &tests, &open))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(())
}

#[test]
fn tidy_requirements_are_read_as_they_are_written() {
    let known = BTreeSet::from(["CAN-04".to_owned(), "FEN-01".to_owned()]);
    assert_eq!(ids_in("can_04_lock_wait_is_busy", &known), BTreeSet::from(["CAN-04".to_owned()]));
    assert_eq!(ids_in("a_fen_01_and_can_99", &known), BTreeSet::from(["FEN-01".to_owned(), "CAN-99".to_owned()]));
    assert!(ids_in("a_row_of_all_32_bytes", &known).is_empty());
    assert_eq!(claimed("| CAN-04 | Busy |\ntext CAN-05\n| --- | --- |\n"), BTreeSet::from(["CAN-04".to_owned()]));
    assert_eq!(repeated("| A | x |\n| --- | --- |\n| B | y |\n| --- | --- |\n| A | z |\n"), ["A"]);
    let tests = BTreeMap::from([("a.rs".to_owned(), vec!["can_04_it".to_owned()])]);
    let open = BTreeSet::from(["FEN-01"]);
    let wrong = |answer: &str| unanswered(&["asked for", answer], &tests, &open).len();
    assert_eq!(
        (wrong("`a.rs`: `can_04_it`"), wrong("later FEN-01"), wrong("`a.rs`: `can_04_it`; later FEN-01")),
        (0, 0, 0)
    );
    // No test, one that is not there, in another file, without a file, and what is shown already put off.
    for answer in ["", "later", "`a.rs`", "`a.rs`: `can_05_it`", "`b.rs`: `can_04_it`", "`can_04_it`", "later CAN-04"] {
        assert_eq!(wrong(answer), 1, "{answer}");
    }
    let source = "#[tokio::test] async fn one() {} fn none() {} proptest! { #[test] fn two(x in 0..1) {} }";
    assert_eq!(tests_in(source.parse().unwrap()), ["one", "two"]);
}

fn known() -> anyhow::Result<BTreeSet<String>> {
    let text = std::fs::read_to_string(sources::repository().join("tests/requirements.txt"))?;
    Ok(text
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .map(str::to_owned)
        .collect())
}

/// The first cells of the tables' rows that are ids.
fn claimed(readme: &str) -> BTreeSet<String> {
    rows(readme).filter_map(|row| row.first().copied()).filter(|cell| is_id(cell)).map(str::to_owned).collect()
}

/// The rows of all tables, cell by cell, without the lines below their heads.
fn rows(text: &str) -> impl Iterator<Item = Vec<&str>> {
    text.lines()
        .filter_map(|line| line.trim().strip_prefix('|')?.strip_suffix('|'))
        .map(|row| row.split('|').map(str::trim).collect::<Vec<_>>())
        .filter(|row| row.first().is_some_and(|cell| !cell.starts_with("---")))
}

/// First cells that stand in more than one row; a cell that names several things is several.
fn repeated(readme: &str) -> Vec<String> {
    let mut seen = BTreeSet::new();
    let cells = rows(readme).filter_map(|row| row.first().copied()).filter(|cell| *cell != "asked");
    let things = cells.flat_map(|cell| {
        let several = cell.starts_with('`');
        if several { cell.split(", ").collect() } else { vec![cell] }
    });
    things.filter(|thing| !seen.insert((*thing).to_owned())).map(str::to_owned).collect()
}

/// What is wrong with the answer of a row: `file`: `test`, `test`; `file`: `test`; later ID, ID.
fn unanswered(row: &[&str], tests: &BTreeMap<String, Vec<String>>, open: &BTreeSet<&str>) -> Vec<String> {
    let [asked, answer] = row else { return vec![format!("not two cells: {row:?}")] };
    let mut wrong = Vec::new();
    for part in answer.split("; ") {
        if let Some(ids) = part.strip_prefix("later ") {
            for id in ids.split(", ").filter(|id| !open.contains(id)) {
                wrong.push(format!("{asked}: {id} is no requirement that is still to be shown; name its test"));
            }
            continue;
        }
        let Some((file, named)) = part.split_once(": ") else {
            wrong.push(format!("{asked}: {part:?} names no file with its tests"));
            continue;
        };
        let there = tests.get(file.trim_matches('`'));
        for name in named.split(", ").map(|name| name.trim_matches('`')) {
            if !there.is_some_and(|there| there.iter().any(|test| test == name)) {
                wrong.push(format!("{asked}: there is no test {name} in {file}"));
            }
        }
    }
    wrong
}

fn is_id(text: &str) -> bool {
    text.split_once('-').is_some_and(|(area, number)| {
        area.len() == 3
            && area.bytes().all(|byte| byte.is_ascii_uppercase())
            && number.len() == 2
            && number.bytes().all(|byte| byte.is_ascii_digit())
    })
}

/// What looks like an id and starts with an area that exists.
fn ids_in(name: &str, known: &BTreeSet<String>) -> BTreeSet<String> {
    let areas: BTreeSet<&str> = known.iter().filter_map(|id| id.split('-').next()).collect();
    let words: Vec<&str> = name.split('_').collect();
    words
        .windows(2)
        .filter_map(|pair| match pair {
            [area, number] => Some(format!("{}-{number}", area.to_uppercase())),
            _ => None,
        })
        .filter(|id| is_id(id) && id.split('-').next().is_some_and(|area| areas.contains(area)))
        .collect()
}

fn test_names() -> anyhow::Result<Vec<String>> {
    Ok(tests_by_file()?.into_iter().flat_map(|(_, names)| names).collect())
}

fn tests_by_file() -> anyhow::Result<Vec<(String, Vec<String>)>> {
    let mut found = Vec::new();
    for below in ["tests", "host"] {
        for source in sources::files(below, "rs")? {
            let tokens: TokenStream =
                source.text.parse().map_err(|error| anyhow::anyhow!("{}: {error}", source.path.display()))?;
            found.push((source.path.display().to_string(), tests_in(tokens)));
        }
    }
    Ok(found)
}

/// Functions that come after an attribute whose last word is `test`, also inside macros such as `proptest!`.
fn tests_in(tokens: TokenStream) -> Vec<String> {
    let mut names = Vec::new();
    let mut marked = false;
    let mut after_fn = false;
    let mut after_hash = false;
    for token in tokens {
        let hash = matches!(&token, TokenTree::Punct(punct) if punct.as_char() == '#');
        match token {
            TokenTree::Group(group) => {
                if after_hash {
                    marked |= names_test(group.stream());
                } else {
                    names.extend(tests_in(group.stream()));
                }
            }
            TokenTree::Ident(name) if name == "fn" => after_fn = true,
            TokenTree::Ident(name) if after_fn => {
                if marked {
                    names.push(name.to_string());
                }
                (marked, after_fn) = (false, false);
            }
            TokenTree::Ident(_) | TokenTree::Punct(_) | TokenTree::Literal(_) => {}
        }
        after_hash = hash;
    }
    names
}

/// `test`, `tokio::test`, `tokio::test(…)`; not `cfg(test)`.
fn names_test(attribute: TokenStream) -> bool {
    let words: Vec<String> = attribute
        .into_iter()
        .take_while(|token| !matches!(token, TokenTree::Group(_)))
        .filter_map(|token| match token {
            TokenTree::Ident(name) => Some(name.to_string()),
            _ => None,
        })
        .collect();
    words.last().is_some_and(|last| last == "test")
}
