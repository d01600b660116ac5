//! The requirement matrix: what `tests/README.md` claims has its test, and no test carries an id that does not exist.

use std::collections::BTreeSet;

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

#[test]
fn tidy_every_test_with_an_id_carries_a_known_one() -> anyhow::Result<()> {
    let known = known()?;
    let unknown: Vec<String> =
        test_names()?.into_iter().filter(|name| ids_in(name, &known).iter().any(|id| !known.contains(id))).collect();
    assert!(unknown.is_empty(), "tests with ids that no requirement has: {unknown:?}");
    Ok(())
}

#[test]
fn tidy_requirements_are_read_as_they_are_written() {
    let known = BTreeSet::from(["CAN-04".to_owned(), "FEN-01".to_owned()]);
    assert_eq!(ids_in("can_04_lock_wait_is_busy", &known), BTreeSet::from(["CAN-04".to_owned()]));
    assert_eq!(ids_in("a_fen_01_and_can_99", &known), BTreeSet::from(["FEN-01".to_owned(), "CAN-99".to_owned()]));
    assert!(ids_in("a_row_of_all_32_bytes", &known).is_empty());
    assert_eq!(claimed("| CAN-04 | Busy |\ntext CAN-05\n| --- | --- |\n"), BTreeSet::from(["CAN-04".to_owned()]));
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

/// The first cells of the table's rows that are ids.
fn claimed(readme: &str) -> BTreeSet<String> {
    readme
        .lines()
        .filter_map(|line| line.trim().strip_prefix('|')?.split('|').next())
        .map(str::trim)
        .filter(|cell| is_id(cell))
        .map(str::to_owned)
        .collect()
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
    let mut names = Vec::new();
    for below in ["tests", "host"] {
        for source in sources::files(below, "rs")? {
            let tokens: TokenStream =
                source.text.parse().map_err(|error| anyhow::anyhow!("{}: {error}", source.path.display()))?;
            names.extend(tests_in(tokens));
        }
    }
    Ok(names)
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
