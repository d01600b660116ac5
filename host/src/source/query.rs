//! Named parameters: `:name` becomes `$n`, outside of strings, quoted names, comments and casts.
//!
//! A scanner over the lexical rules of PostgreSQL (chapter "Lexical Structure" of its manual): string constants with
//! and without escapes, dollar quoting, quoted identifiers, both kinds of comments (block comments nest).

use uuid::Uuid;

use super::SourceError;

/// The parameter that the host binds itself.
pub(super) const TENANT: &str = "tenant";

/// A query ready to be sent: numbered placeholders and their values, in order.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Bound {
    pub sql: String,
    pub values: Vec<String>,
}

/// Refuses a query that names no tenant, or that has several statements.
pub fn check_query(sql: &str) -> Result<(), SourceError> {
    let pieces = scan(sql);
    if pieces.iter().any(|piece| matches!(piece, Piece::EndOfStatement { more: true })) {
        return Err(SourceError::ManyStatements);
    }
    if pieces.iter().any(|piece| matches!(piece, Piece::Parameter(name) if *name == TENANT)) {
        Ok(())
    } else {
        Err(SourceError::NoTenant)
    }
}

/// The parameters that a query needs besides the tenant.
pub fn parameters(sql: &str) -> impl Iterator<Item = &str> {
    scan(sql).into_iter().filter_map(|piece| match piece {
        Piece::Parameter(name) if name != TENANT => Some(name),
        Piece::Parameter(_) | Piece::Text(_) | Piece::EndOfStatement { .. } => None,
    })
}

/// Binds the tenant and the parameters.
pub(super) fn bind(
    query: &str,
    sql: &str,
    tenant: Uuid,
    parameters: &[(String, String)],
) -> Result<Bound, SourceError> {
    check_query(sql)?;
    let mut bound = Bound { sql: String::with_capacity(sql.len()), values: Vec::new() };
    let mut numbered: Vec<&str> = Vec::new();
    for piece in scan(sql) {
        match piece {
            Piece::Text(text) => bound.sql.push_str(text),
            Piece::EndOfStatement { .. } => {}
            Piece::Parameter(name) => {
                let at = if let Some(at) = numbered.iter().position(|known| *known == name) {
                    at
                } else {
                    let value = if name == TENANT {
                        tenant.to_string()
                    } else {
                        let given = parameters.iter().find(|(parameter, _)| parameter == name);
                        let missing =
                            || SourceError::MissingParameter { query: query.to_owned(), parameter: name.to_owned() };
                        given.map(|(_, value)| value.clone()).ok_or_else(missing)?
                    };
                    numbered.push(name);
                    bound.values.push(value);
                    numbered.len() - 1
                };
                bound.sql.push('$');
                bound.sql.push_str(&(at + 1).to_string());
            }
        }
    }
    Ok(bound)
}

/// Binds the tenant, and nothing to the other parameters: for a query that is described and not run.
pub(super) fn bind_nothing(query: &str, sql: &str, tenant: Uuid) -> Result<Bound, SourceError> {
    let parameters: Vec<_> = parameters(sql).map(|name| (name.to_owned(), String::new())).collect();
    bind(query, sql, tenant, &parameters)
}

/// A run of a query's text.
#[derive(Debug, PartialEq, Eq)]
enum Piece<'a> {
    Text(&'a str),
    Parameter(&'a str),
    /// A semicolon; `more` if anything but white space and comments follows.
    EndOfStatement {
        more: bool,
    },
}

fn scan(sql: &str) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    let mut start = 0;
    let mut at = 0;
    while let Some(rest) = sql.get(at..).filter(|rest| !rest.is_empty()) {
        if let Some(skipped) = skip_opaque(sql, at) {
            at += skipped;
        } else if rest.starts_with("::") {
            at += 2;
        } else if let Some(name) = parameter(rest) {
            pieces.push(Piece::Text(sql.get(start..at).unwrap_or_default()));
            pieces.push(Piece::Parameter(name));
            at += 1 + name.len();
            start = at;
        } else if rest.starts_with(';') {
            pieces.push(Piece::Text(sql.get(start..at).unwrap_or_default()));
            pieces.push(Piece::EndOfStatement { more: !only_space(rest.get(1..).unwrap_or_default()) });
            at += 1;
            start = at;
        } else {
            at += rest.chars().next().map_or(1, char::len_utf8);
        }
    }
    pieces.push(Piece::Text(sql.get(start..).unwrap_or_default()));
    pieces
}

/// Length of a string, a quoted name or a comment that begins at `at`.
fn skip_opaque(sql: &str, at: usize) -> Option<usize> {
    let rest = sql.get(at..)?;
    let before = sql.get(..at)?.chars().next_back();
    if rest.starts_with('\'') {
        let mut prefix = sql.get(..at)?.chars().rev();
        let escapes = matches!(prefix.next(), Some('e' | 'E')) && !prefix.next().is_some_and(is_name);
        return Some(quoted(rest, '\'', escapes));
    }
    if rest.starts_with('"') {
        return Some(quoted(rest, '"', false));
    }
    if rest.starts_with("--") {
        return Some(rest.find('\n').map_or(rest.len(), |end| end + 1));
    }
    if rest.starts_with("/*") {
        return Some(block_comment(rest));
    }
    if rest.starts_with('$') && !before.is_some_and(is_name) {
        let tag_end = rest.get(1..)?.find('$')? + 2;
        let tag = rest.get(..tag_end)?;
        let inside = tag.trim_matches('$');
        let is_tag = inside.chars().all(is_name) && !inside.starts_with(|c: char| c.is_ascii_digit());
        return is_tag.then(|| {
            let body = rest.get(tag_end..).unwrap_or_default();
            body.find(tag).map_or(rest.len(), |end| tag_end + end + tag.len())
        });
    }
    None
}

fn quoted(rest: &str, quote: char, escapes: bool) -> usize {
    let mut characters = rest.char_indices().skip(1).peekable();
    while let Some((at, character)) = characters.next() {
        if escapes && character == '\\' {
            characters.next();
        } else if character == quote {
            if characters.peek().is_some_and(|(_, next)| *next == quote) {
                characters.next();
            } else {
                return at + quote.len_utf8();
            }
        }
    }
    rest.len()
}

fn block_comment(rest: &str) -> usize {
    let mut depth = 0_usize;
    let mut at = 0;
    while let Some(tail) = rest.get(at..).filter(|tail| !tail.is_empty()) {
        if tail.starts_with("/*") {
            depth += 1;
            at += 2;
        } else if tail.starts_with("*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += tail.chars().next().map_or(1, char::len_utf8);
        }
    }
    rest.len()
}

/// The name in `:name` at the beginning of `rest`. An array slice such as `a[1:2]` has no letter after the colon.
fn parameter(rest: &str) -> Option<&str> {
    let name = rest.strip_prefix(':')?;
    if !name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
        return None;
    }
    let end = name.find(|c: char| !is_name(c)).unwrap_or(name.len());
    name.get(..end)
}

fn is_name(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}

fn only_space(text: &str) -> bool {
    let mut at = 0;
    while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
        if rest.starts_with("--") || rest.starts_with("/*") {
            at += skip_opaque(text, at).unwrap_or(rest.len());
        } else if rest.starts_with(char::is_whitespace) {
            at += rest.chars().next().map_or(1, char::len_utf8);
        } else {
            return false;
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bind_one(sql: &str, parameters: &[(&str, &str)]) -> Result<Bound, SourceError> {
        let parameters: Vec<_> = parameters.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect();
        bind("q", sql, Uuid::nil(), &parameters)
    }

    #[test]
    fn parameters_are_numbered_once_each_and_casts_are_left_alone() {
        let bound =
            bind_one("select a::text from t where x = :tenant::uuid and y = :since and z > :since", &[("since", "1")]);
        let bound = bound.unwrap();
        assert_eq!(bound.sql, "select a::text from t where x = $1::uuid and y = $2 and z > $2");
        assert_eq!(bound.values, [Uuid::nil().to_string(), "1".to_owned()]);
    }

    #[test]
    fn a_tenant_that_is_only_mentioned_does_not_count() {
        for sql in [
            "select 1",
            "select ':tenant'",
            "select e'\\':tenant'",
            "select \":tenant\" from t",
            "select 1 -- :tenant",
            "select 1 /* /* :tenant */ :tenant */",
            "select $x$ :tenant $x$",
            "select 'it''s :tenant'",
            "select a::tenant from t",
            "select :tenants",
        ] {
            assert!(matches!(check_query(sql), Err(SourceError::NoTenant)), "{sql}");
        }
    }

    #[test]
    fn what_looks_like_a_quote_is_read_as_postgresql_reads_it() {
        for sql in [
            "select 'a\\' , :tenant",
            "select $1a, :tenant",
            "select a[1:2] from t where x = :tenant",
            "select 'ü', :tenant;  -- end",
        ] {
            assert!(check_query(sql).is_ok(), "{sql}");
        }
    }

    #[test]
    fn one_statement_only() {
        assert!(matches!(check_query("select :tenant; drop table t"), Err(SourceError::ManyStatements)));
    }

    #[test]
    fn a_missing_parameter_is_named() {
        let error = bind_one("select :tenant, :region", &[]).unwrap_err();
        assert!(error.to_string().contains(":region"), "{error}");
    }
}
