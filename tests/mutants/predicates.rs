//! The predicates of a statement: every conjunct of its WHERE and ON conditions, also inside subqueries, parentheses and
//! the branches of a CASE that is a condition. Read from the tokens; what is no condition is left alone.

use std::ops::Range;

struct Token {
    /// Upper case for words; a single sign otherwise.
    text: String,
    at: Range<usize>,
    /// Parentheses around it. A parenthesis counts as inside of itself.
    depth: usize,
}

/// Where the predicates of the statement stand in its text, in order.
pub fn predicates(sql: &str) -> Vec<Range<usize>> {
    let tokens = tokens(sql);
    let mut found = Vec::new();
    for (index, token) in tokens.iter().enumerate() {
        let next = tokens.get(index + 1).map(|next| next.text.as_str());
        if token.text == "WHERE" || (token.text == "ON" && next != Some("CONFLICT")) {
            let rest = tokens.get(index + 1..).unwrap_or_default();
            let end = rest.iter().position(|other| ends(other, token.depth)).unwrap_or(rest.len());
            condition(rest.get(..end).unwrap_or_default(), &mut found);
        }
    }
    found.sort_by_key(|range| (range.start, range.end));
    found.dedup();
    found
}

/// The statement without the force of this predicate. It stays in the text, so that parameters keep their types.
pub fn without(sql: &str, predicate: &Range<usize>) -> Option<String> {
    let (before, held, after) = (sql.get(..predicate.start)?, sql.get(predicate.clone())?, sql.get(predicate.end..)?);
    Some(format!("{before}(({held}) OR true){after}"))
}

fn ends(token: &Token, depth: usize) -> bool {
    const ENDS: [&str; 19] = [
        "GROUP",
        "ORDER",
        "LIMIT",
        "RETURNING",
        "FOR",
        "HAVING",
        "UNION",
        "JOIN",
        "LEFT",
        "RIGHT",
        "INNER",
        "CROSS",
        "FULL",
        "WHERE",
        "ON",
        "WINDOW",
        "OFFSET",
        "DO",
        ";",
    ];
    token.depth < depth || (token.depth == depth && ENDS.contains(&token.text.as_str()))
        // The parenthesis that closes the one around.
        || (token.text == ")" && token.depth == depth)
}

/// Splits a condition at the ANDs that stand directly in it.
fn condition(tokens: &[Token], found: &mut Vec<Range<usize>>) {
    let Some(depth) = tokens.iter().map(|token| token.depth).min() else { return };
    let (mut cases, mut between, mut start) = (0_usize, false, 0);
    for (index, token) in tokens.iter().enumerate() {
        match token.text.as_str() {
            "CASE" => cases += 1,
            "END" => cases = cases.saturating_sub(1),
            "BETWEEN" if token.depth == depth && cases == 0 => between = true,
            // The AND that belongs to a BETWEEN splits nothing.
            "AND" if token.depth == depth && cases == 0 && !std::mem::take(&mut between) => {
                conjunct(tokens.get(start..index).unwrap_or_default(), found);
                start = index + 1;
            }
            _ => {}
        }
    }
    conjunct(tokens.get(start..).unwrap_or_default(), found);
}

fn conjunct(tokens: &[Token], found: &mut Vec<Range<usize>>) {
    let (Some(first), Some(last)) = (tokens.first(), tokens.last()) else { return };
    if matches!(first.text.as_str(), "TRUE" | "FALSE") && tokens.len() == 1 {
        return;
    }
    found.push(first.at.start..last.at.end);
    let inside = tokens.get(1..tokens.len() - 1).unwrap_or_default();
    let is_parenthesis = first.text == "(" && last.text == ")" && inside.iter().all(|token| token.depth >= first.depth);
    let closes_last = !inside.iter().any(|token| token.text == ")" && token.depth == first.depth);
    if is_parenthesis && closes_last && inside.first().is_some_and(|token| token.text != "SELECT") {
        let alternatives = inside.iter().any(|token| token.text == "OR" && token.depth == first.depth);
        if !alternatives {
            condition(inside, found);
        }
    } else if first.text == "CASE" && last.text == "END" {
        branches(inside, found);
    }
}

/// The conditions after THEN and ELSE of a CASE.
fn branches(tokens: &[Token], found: &mut Vec<Range<usize>>) {
    let (mut cases, mut start) = (0_usize, None);
    for (index, token) in tokens.iter().enumerate() {
        match token.text.as_str() {
            "CASE" => cases += 1,
            "END" => cases = cases.saturating_sub(1),
            "WHEN" | "THEN" | "ELSE" if cases == 0 => {
                if let Some(start) = start.take() {
                    condition(tokens.get(start..index).unwrap_or_default(), found);
                }
                start = (token.text != "WHEN").then_some(index + 1);
            }
            _ => {}
        }
    }
    if let Some(start) = start {
        condition(tokens.get(start..).unwrap_or_default(), found);
    }
}

fn tokens(sql: &str) -> Vec<Token> {
    let (bytes, mut at, mut depth) = (sql.as_bytes(), 0, 0_usize);
    let mut tokens = Vec::new();
    let from = |at: usize, until: &dyn Fn(u8) -> bool| {
        bytes.get(at..).unwrap_or_default().iter().position(|byte| until(*byte)).map_or(bytes.len(), |more| at + more)
    };
    while let Some(byte) = bytes.get(at).copied() {
        let end = match byte {
            _ if byte.is_ascii_whitespace() => {
                at += 1;
                continue;
            }
            b'-' if bytes.get(at + 1) == Some(&b'-') => {
                at = from(at, &|byte| byte == b'\n');
                continue;
            }
            // A doubled quote is read as two texts, which makes no difference here.
            b'\'' | b'"' => from(at + 1, &|other| other == byte) + 1,
            _ if is_word(byte) => from(at, &|byte| !is_word(byte)),
            _ => at + 1,
        };
        let end = end.min(bytes.len());
        if byte == b'(' {
            depth += 1;
        }
        tokens.push(Token { text: sql.get(at..end).unwrap_or_default().to_uppercase(), at: at..end, depth });
        if byte == b')' {
            depth = depth.saturating_sub(1);
        }
        at = end;
    }
    tokens
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'$' || !byte.is_ascii()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(sql: &str) -> Vec<&str> {
        predicates(sql).into_iter().map(|range| sql.get(range).unwrap()).collect()
    }

    #[test]
    fn conjuncts_are_found_wherever_they_stand() {
        assert_eq!(
            texts("UPDATE a SET b = 1 WHERE id = $1 AND c BETWEEN 1 AND 2 AND (d OR e) RETURNING id"),
            ["id = $1", "c BETWEEN 1 AND 2", "(d OR e)"]
        );
        assert_eq!(
            texts(
                "SELECT 1 FROM a JOIN b ON b.x = a.x AND b.y -- AND not this\nWHERE NOT EXISTS (SELECT FROM c WHERE c.z = 'AND')"
            ),
            ["b.x = a.x", "b.y", "NOT EXISTS (SELECT FROM c WHERE c.z = 'AND')", "c.z = 'AND'"]
        );
        assert_eq!(
            texts(
                "INSERT INTO a SELECT 1 FROM b WHERE c ON CONFLICT (d) DO UPDATE SET e = CASE WHEN f AND g THEN 1 ELSE 2 END"
            ),
            ["c"]
        );
    }

    #[test]
    fn branches_of_a_condition_are_conditions() {
        assert_eq!(
            texts("SELECT 1 WHERE CASE $1 WHEN 'x' THEN a AND (b AND c) ELSE false END AND d"),
            ["CASE $1 WHEN 'x' THEN a AND (b AND c) ELSE false END", "a", "(b AND c)", "b", "c", "d"]
        );
    }

    #[test]
    fn a_predicate_without_force_stays_in_the_text() {
        let sql = "SELECT 1 WHERE a = $1 AND b";
        let all = predicates(sql);
        assert_eq!(without(sql, &all[0]).unwrap(), "SELECT 1 WHERE ((a = $1) OR true) AND b");
    }
}
