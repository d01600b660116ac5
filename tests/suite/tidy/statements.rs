//! Every SQL statement of the host: `.sql` files, and string literals that begin like one.

use proc_macro2::TokenStream;

use super::sources::{self, string_literals};

pub struct Statement {
    pub place: String,
    /// Lower case, without comments, white space collapsed.
    pub text: String,
}

pub fn all() -> anyhow::Result<Vec<Statement>> {
    let mut found: Vec<Statement> = sources::files("host/src", "sql")?
        .into_iter()
        .map(|source| Statement { place: source.path.display().to_string(), text: normal(&source.text) })
        .collect();
    for source in sources::files("host/src", "rs")? {
        let tokens: TokenStream =
            source.text.parse().map_err(|error| anyhow::anyhow!("{}: {error}", source.path.display()))?;
        for literal in string_literals(tokens) {
            let text = normal(&literal);
            if ["select ", "insert ", "update ", "delete ", "with ", "merge "].iter().any(|verb| text.starts_with(verb))
            {
                found.push(Statement { place: source.path.display().to_string(), text });
            }
        }
    }
    Ok(found)
}

pub fn normal(text: &str) -> String {
    let without_comments: Vec<&str> = text.lines().map(|line| line.split("--").next().unwrap_or_default()).collect();
    without_comments.join(" ").split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase()
}
