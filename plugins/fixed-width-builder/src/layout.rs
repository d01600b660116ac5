//! How wide a field is, and what becomes of a text that is shorter or longer.

use waybill_guest::Failure;

/// What an error tells to write.
pub const FORM: &str = "column=WIDTH, with the words right, zero and truncate where they are meant";

/// One field of a record: `10`, `10 right`, `10 right zero`, `40 truncate`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Field {
    pub width: usize,
    /// The text stands at the end of the field.
    pub right: bool,
    /// The field is filled with zeros, after the sign of a number.
    pub zeros: bool,
    /// What is too long is cut at its end.
    pub truncate: bool,
}

impl Field {
    /// Parses an entry's words.
    pub fn parse(setting: &str, entry: &str, words: &str) -> Result<Self, Failure> {
        let wrong = |why: &str| {
            Failure::Invalid(format!("the setting {setting:?} says {words:?} for {entry:?}: {why}; write {FORM}"))
        };
        let mut words = words.split_whitespace();
        let width = words.next().and_then(|word| word.parse().ok()).filter(|width| *width > 0);
        let width = width.ok_or_else(|| wrong("it does not begin with a width"))?;
        let mut field = Self { width, right: false, zeros: false, truncate: false };
        for word in words {
            match word {
                "left" => field.right = false,
                "right" => field.right = true,
                "zero" => field.zeros = true,
                "truncate" => field.truncate = true,
                _ => return Err(wrong(&format!("{word:?} is no word of a field"))),
            }
        }
        if field.zeros && !field.right {
            return Err(wrong("zeros at the end of a number would change it, so zero needs right"));
        }
        if field.zeros && field.truncate {
            return Err(wrong("a number that is cut is another number"));
        }
        Ok(field)
    }

    /// The text with so many fillers before or after it. What is missing is never filled with zeros: it would be a number.
    pub fn filled(self, text: &str, fillers: usize, missing: bool) -> String {
        if self.zeros && !missing {
            let digits = text.trim_start_matches(['+', '-']);
            let sign = text.strip_suffix(digits).unwrap_or_default();
            format!("{sign}{}{digits}", "0".repeat(fillers))
        } else if self.right {
            format!("{}{text}", " ".repeat(fillers))
        } else {
            format!("{text}{}", " ".repeat(fillers))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(words: &str) -> Result<Field, Failure> {
        Field::parse("columns", "number", words)
    }

    #[test]
    fn words_say_side_filling_and_cutting() {
        let plain = Field { width: 10, right: false, zeros: false, truncate: false };
        assert_eq!(field("10"), Ok(plain));
        assert_eq!(field(" 10  left "), Ok(plain));
        assert_eq!(field("10 right zero"), Ok(Field { right: true, zeros: true, ..plain }));
        assert_eq!(field("10 truncate right"), Ok(Field { right: true, truncate: true, ..plain }));
    }

    #[test]
    fn words_that_make_no_sense_are_refused_with_the_column() {
        for (words, why) in [
            ("number", "does not begin with a width"),
            ("0", "does not begin with a width"),
            ("-1", "does not begin with a width"),
            ("10 centre", "\"centre\" is no word"),
            ("10 zero", "zero needs right"),
            ("10 right zero truncate", "is another number"),
        ] {
            let failure = field(words).unwrap_err();
            assert!(failure.reason().contains(why) && failure.reason().contains("\"number\""), "{failure:?}");
        }
    }

    #[test]
    fn fillers_stand_where_the_field_says() {
        let filled = |words: &str, text: &str, missing| field(words).unwrap().filled(text, 3, missing);
        assert_eq!(filled("9", "abc", false), "abc   ");
        assert_eq!(filled("9 right", "abc", false), "   abc");
        assert_eq!(filled("9 right zero", "12", false), "00012");
        assert_eq!(filled("9 right zero", "-1.5", false), "-0001.5");
        assert_eq!(filled("9 right zero", "", true), "   ");
        assert_eq!(filled("9 right zero", "NULL", true), "   NULL");
    }
}
