//! The digests by which a manifest pins its components, kept true when they are built anew.

use std::cmp::Reverse;

use super::document::{Document, DocumentError};
use super::manifest;
use crate::job::facts::Sha256;

/// The manifest's text with these components' digests in the place of those that it pins, and all else as it was written. A
/// component is named by its table, and one that is not pinned stays so.
pub fn repinned(text: &str, components: &[(&str, Sha256)]) -> Result<String, DocumentError> {
    let document = Document::parse(manifest::FILE, text, true)?;
    let mut pins: Vec<_> =
        components.iter().filter_map(|(table, sha256)| Some((document.span(&[table, "sha256"])?, *sha256))).collect();
    // From the end, so that what is before keeps its place.
    pins.sort_by_key(|(span, _)| Reverse(span.start));
    let mut text = text.to_owned();
    for (span, sha256) in pins {
        text.replace_range(span, &format!("'{sha256}'"));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plg_02_a_pin_is_renewed_where_it_is_and_nothing_else_is_touched() {
        let text = "# Ours.\npartner = 'acme' # é\n[destination]\nsha256 = \"\"\"old\"\"\" # pinned\nfile = 'd.wasm'\n[names]\nfinal = '{key}'\n[builder]\nfile = 'b.wasm'\nsha256 = 'old'";
        let (builder, destination) = (Sha256([1; 32]), Sha256([2; 32]));
        let both = [("builder", builder), ("destination", destination)];
        let expected =
            text.replace("\"\"\"old\"\"\"", &format!("'{destination}'")).replace("'old'", &format!("'{builder}'"));
        assert_eq!(repinned(text, &both).unwrap(), expected);
        assert_eq!(repinned(text, &[]).unwrap(), text);
        assert_eq!(repinned("[builder]\nfile = 'b.wasm'\n", &both).unwrap(), "[builder]\nfile = 'b.wasm'\n");
        assert!(repinned("[builder", &both).is_err());
    }
}
