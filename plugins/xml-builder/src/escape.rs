//! What may stand in a document, and how: names and characters of XML 1.0 (fifth edition, 2.2 and 2.3).

use std::fmt::Write as _;

use waybill_guest::Failure;
use waybill_guest::table::Encoder;

/// Refuses what is no name without a colon, or one that XML keeps for itself.
pub fn check_name(name: &str, place: &str) -> Result<(), Failure> {
    let mut characters = name.chars();
    let wellformed = characters.next().is_some_and(begins_name) && characters.all(in_name);
    let reserved = name.get(..3).is_some_and(|start| start.eq_ignore_ascii_case("xml"));
    if wellformed && !reserved {
        return Ok(());
    }
    Err(Failure::Invalid(format!(
        "{place}: {name:?} is no name for an element or attribute: write one of letters, digits, _, - and ., that begins with a letter \
         or _ and not with xml"
    )))
}

fn begins_name(character: char) -> bool {
    matches!(character,
        'A'..='Z' | '_' | 'a'..='z' | '\u{c0}'..='\u{d6}' | '\u{d8}'..='\u{f6}' | '\u{f8}'..='\u{2ff}' | '\u{370}'..='\u{37d}'
        | '\u{37f}'..='\u{1fff}' | '\u{200c}'..='\u{200d}' | '\u{2070}'..='\u{218f}' | '\u{2c00}'..='\u{2fef}'
        | '\u{3001}'..='\u{d7ff}' | '\u{f900}'..='\u{fdcf}' | '\u{fdf0}'..='\u{fffd}' | '\u{10000}'..='\u{effff}')
}

fn in_name(character: char) -> bool {
    begins_name(character)
        || matches!(character, '-' | '.' | '0'..='9' | '\u{b7}' | '\u{300}'..='\u{36f}' | '\u{203f}'..='\u{2040}')
}

/// A character that no document can carry, not even as a reference.
fn is_illegal(character: char) -> bool {
    matches!(character, '\0'..='\u{8}' | '\u{b}' | '\u{c}' | '\u{e}'..='\u{1f}' | '\u{fffe}' | '\u{ffff}')
}

/// A text as content of an element or as an attribute's value.
///
/// Line ends and tabs that a parser would make something else of are references, and so is what the encoding does not have.
pub fn escaped(
    text: &str,
    attribute: bool,
    encoder: &mut Encoder,
    place: impl Fn() -> String,
) -> Result<String, Failure> {
    let mut escaped = String::with_capacity(text.len());
    let mut scratch = Vec::new();
    for (at, character) in text.chars().enumerate() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' if attribute => escaped.push_str("&quot;"),
            '\r' => escaped.push_str("&#13;"),
            '\n' if attribute => escaped.push_str("&#10;"),
            '\t' if attribute => escaped.push_str("&#9;"),
            _ if is_illegal(character) => {
                return Err(Failure::Other(format!(
                    "{}: character {} is U+{:04X}, which XML 1.0 cannot carry: take it out in the query",
                    place(),
                    at + 1,
                    u32::from(character)
                )));
            }
            _ => {
                scratch.clear();
                if encoder.encode(character.encode_utf8(&mut [0; 4]), &mut scratch).is_ok() {
                    escaped.push(character);
                } else {
                    // Writing to a String has no way to fail.
                    let _ = write!(escaped, "&#{};", u32::from(character));
                }
            }
        }
    }
    Ok(escaped)
}

#[cfg(test)]
mod tests {
    use waybill_guest::table::Charset;

    use super::*;

    fn escape(text: &str, attribute: bool, encoding: &str) -> Result<String, Failure> {
        escaped(text, attribute, &mut Charset::named(encoding).unwrap().encoder(), || "row 1".to_owned())
    }

    #[test]
    fn a_parser_reads_back_the_same_text() {
        assert_eq!(escape("a<b>&c\"'\r\n\t", false, "utf-8").unwrap(), "a&lt;b&gt;&amp;c\"'&#13;\n\t");
        assert_eq!(escape("a\"'\r\n\t", true, "utf-8").unwrap(), "a&quot;'&#13;&#10;&#9;");
        assert_eq!(escape("é€\u{1f600}", false, "iso-8859-1").unwrap(), "é&#8364;&#128512;");
        assert_eq!(escape("é€", false, "windows-1252").unwrap(), "é€");
    }

    #[test]
    fn a_character_that_no_document_can_carry_is_told_by_its_position() {
        for (text, told) in [
            ("ab\u{1}", "row 1: character 3 is U+0001"),
            ("\0", "row 1: character 1 is U+0000"),
            ("é\u{b}", "row 1: character 2 is U+000B"),
            ("\u{ffff}", "row 1: character 1 is U+FFFF"),
        ] {
            let failure = escape(text, false, "utf-8").unwrap_err();
            assert!(failure.reason().starts_with(told), "{failure:?}");
        }
        // The delete character and those of C1 are discouraged, and legal.
        assert_eq!(escape("\u{7f}\u{85}\u{fffd}", false, "utf-8").unwrap(), "\u{7f}\u{85}\u{fffd}");
    }

    #[test]
    fn names_are_those_of_xml_without_a_colon() {
        for name in ["a", "_1", "Straße", "first-name.2", "ключ"] {
            assert_eq!(check_name(name, "x"), Ok(()), "{name}");
        }
        for name in ["", "1a", "a b", "a:b", "-a", "xml", "XMLdata", "a<", "a\u{d7}"] {
            assert!(check_name(name, "x").is_err(), "{name}");
        }
    }
}
