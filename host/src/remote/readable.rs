//! How names are shown that are in no encoding which can be recorded.

use std::borrow::Cow;

/// The name itself, or an escaped spelling of a name that is not UTF-8.
pub(super) fn readable(name: &[u8]) -> Cow<'_, str> {
    if let Ok(text) = std::str::from_utf8(name) {
        return Cow::Borrowed(text);
    }
    let mut text = String::new();
    for chunk in name.utf8_chunks() {
        text.push_str(&chunk.valid().replace('%', "%25"));
        for byte in chunk.invalid() {
            text.push_str(&format!("%{byte:02X}"));
        }
    }
    Cow::Owned(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_is_not_utf_8_is_escaped_and_no_other() {
        assert_eq!(readable("größe 100%.csv".as_bytes()), "größe 100%.csv");
        assert_eq!(readable(b"100% gr\xf6\xdfe.csv"), "100%25 gr%F6%DFe.csv");
    }
}
