//! The host's own look at a name. What a plugin lists is kept beside it, and proves nothing.

use tracing::debug;

use super::session::Session;
use crate::job::facts::{Entry, Found, Listing};

/// Looks at a name, and hashes its content by reading it back if it is at most `read_back_up_to` bytes long. Absent
/// only if the server said that there is no such file; a look that fails is unknown.
pub async fn look(session: &Session, name: &str, read_back_up_to: u64) -> Listing {
    let found = match session.stat(name).await {
        Ok(found) => found,
        Err(error) => Found::Unknown { why: error.to_string() },
    };
    let sha256 = match &found {
        Found::Present(Entry { kind, bytes: Some(bytes), .. })
            if matches!(kind.as_str(), "file" | "unknown") && *bytes <= read_back_up_to =>
        {
            match session.read_digest(name, *bytes).await {
                Ok((sha256, read)) if read == *bytes => Some(sha256),
                Ok((_, read)) => {
                    debug!(shown = bytes, read, "the file has another length than the server shows; it is not hashed");
                    None
                }
                Err(error) => {
                    debug!(%error, "the file could not be read back");
                    None
                }
            }
        }
        Found::Present(_) | Found::Absent | Found::NotVisible { .. } | Found::Unknown { .. } => None,
    };
    let hashed_by = sha256.map(|_| "read_back".to_owned());
    Listing { at: name.to_owned(), found, sha256, hashed_by }
}
