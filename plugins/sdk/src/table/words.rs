//! One value as the text of a field.

use std::borrow::Cow;
use std::fmt::Write as _;

use crate::{Job, Value};

/// The texts that a partner wants for values that have none of their own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Words {
    pub null: String,
    pub yes: String,
    pub no: String,
}

impl Words {
    /// Reads the settings `null`, `true` and `false`.
    pub fn read(job: &Job) -> Self {
        Self {
            null: job.setting_or("null", "").to_owned(),
            yes: job.setting_or("true", "true").to_owned(),
            no: job.setting_or("false", "false").to_owned(),
        }
    }

    /// Numbers with a decimal point and without an exponent, bytes in lower-case hex, text as it is.
    pub fn text<'a>(&'a self, value: &'a Value) -> Cow<'a, str> {
        match value {
            Value::Null => Cow::Borrowed(&self.null),
            Value::Boolean(true) => Cow::Borrowed(&self.yes),
            Value::Boolean(false) => Cow::Borrowed(&self.no),
            Value::Integer(number) => Cow::Owned(number.to_string()),
            Value::Float(number) => Cow::Owned(float(*number)),
            Value::Text(text) => Cow::Borrowed(text),
            Value::Bytes(bytes) => Cow::Owned(hex(bytes)),
        }
    }
}

/// The shortest text that reads back as the same number. What is no number has PostgreSQL's words.
fn float(number: f64) -> String {
    if number == f64::INFINITY {
        "Infinity".to_owned()
    } else if number == f64::NEG_INFINITY {
        "-Infinity".to_owned()
    } else {
        number.to_string()
    }
}

fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        // Writing to a String has no way to fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_value_has_its_text() {
        let words = Words::read(&crate::testing::job(&[("null", "NULL"), ("true", "J"), ("false", "N")]));
        for (value, text) in [
            (Value::Null, "NULL"),
            (Value::Boolean(true), "J"),
            (Value::Boolean(false), "N"),
            (Value::Integer(i64::MIN), "-9223372036854775808"),
            (Value::Float(0.1), "0.1"),
            (Value::Float(1e21), "1000000000000000000000"),
            (Value::Float(f64::NAN), "NaN"),
            (Value::Float(f64::NEG_INFINITY), "-Infinity"),
            (Value::Text("a,\"b".into()), "a,\"b"),
            (Value::Bytes(vec![0, 171, 255]), "00abff"),
        ] {
            assert_eq!(words.text(&value), text);
        }
    }
}
