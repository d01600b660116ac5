//! Which statements a client runs: texts are remembered by the names under which it prepares and binds them.

use std::collections::HashMap;
use std::io;

use super::Rewrite;
use super::wire::{self, Message};

/// The names of one connection.
#[derive(Default)]
pub struct Statements {
    prepared: HashMap<String, String>,
    portals: HashMap<String, String>,
}

impl Statements {
    /// Takes a message of the client's in, rewrites its text if it has one, and names the statement that it executes.
    pub fn take(&mut self, message: &mut Message, rewrite: Option<&Rewrite>) -> io::Result<Option<String>> {
        match message.tag {
            b'P' => {
                let (name, rest) = wire::text(message.body())?;
                let (sql, types) = wire::text(rest)?;
                let rewritten = rewrite.and_then(|rewrite| rewrite(sql));
                self.prepared.insert(name.to_owned(), label(sql));
                if let Some(sql) = rewritten {
                    let body = [name.as_bytes(), b"\0", sql.as_bytes(), b"\0", types].concat();
                    *message = Message::new(b'P', &body)?;
                }
                Ok(None)
            }
            b'B' => {
                let (portal, rest) = wire::text(message.body())?;
                let (name, _) = wire::text(rest)?;
                let label = self.prepared.get(name).cloned().unwrap_or_default();
                self.portals.insert(portal.to_owned(), label);
                Ok(None)
            }
            b'E' => {
                let (portal, _) = wire::text(message.body())?;
                Ok(self.portals.get(portal).cloned())
            }
            b'Q' => {
                let (sql, _) = wire::text(message.body())?;
                let label = label(sql);
                if let Some(sql) = rewrite.and_then(|rewrite| rewrite(sql)) {
                    *message = Message::new(b'Q', &[sql.as_bytes(), b"\0"].concat())?;
                }
                Ok(Some(label))
            }
            _ => Ok(None),
        }
    }
}

/// `-- store::NAME` is NAME; any other text is its first word, such as COMMIT.
pub fn label(sql: &str) -> String {
    let first = sql.trim_start().lines().next().unwrap_or_default();
    match first.strip_prefix("-- store::") {
        Some(name) => name.trim().to_owned(),
        None => first.split_whitespace().next().unwrap_or_default().trim_end_matches(';').to_uppercase(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prepared_statement_is_known_by_its_text() {
        let mut statements = Statements::default();
        let mut take = |tag, body: &[u8]| statements.take(&mut Message::new(tag, body).unwrap(), None).unwrap();
        assert_eq!(take(b'P', b"s1\0-- store::claim\nUPDATE\0\0\0"), None);
        assert_eq!(take(b'P', b"s2\0-- store::claim, after a lost answer\nSELECT\0\0\0"), None);
        assert_eq!(take(b'B', b"\0s1\0\0\0"), None);
        assert_eq!(take(b'E', b"\0\0\0\0\0").as_deref(), Some("claim"));
        assert_eq!(take(b'B', b"\0s2\0\0\0"), None);
        assert_eq!(take(b'E', b"\0\0\0\0\0").as_deref(), Some("claim, after a lost answer"));
        assert_eq!(take(b'Q', b"commit;\0").as_deref(), Some("COMMIT"));
    }

    #[test]
    fn a_rewritten_text_keeps_its_name_and_its_types() {
        let mut message = Message::new(b'P', b"s1\0SELECT 1\0\0\x01\0\0\0\x17").unwrap();
        let rewrite: Rewrite = std::sync::Arc::new(|sql| Some(sql.replace('1', "22")));
        Statements::default().take(&mut message, Some(&rewrite)).unwrap();
        assert_eq!(message.body(), b"s1\0SELECT 22\0\0\x01\0\0\0\x17");
        assert_eq!(message.bytes.len(), 1 + 4 + message.body().len());
    }
}
