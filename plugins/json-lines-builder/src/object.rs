//! The format: one object a line.

use serde_json::value::RawValue;
use waybill_guest::table::{Format, Picked, Words};
use waybill_guest::{Failure, Row, Value};

use crate::options::Options;

/// A file of objects under construction.
pub struct Objects {
    columns: Vec<Member>,
    omit_null: bool,
    words: Words,
}

/// A column as a member of the object.
struct Member {
    picked: Picked,
    /// The key with its quotes and the colon.
    key: String,
    text_as: TextAs,
    number_as_text: bool,
}

/// What a text is in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TextAs {
    Text,
    Number,
    Json,
}

impl Objects {
    pub fn new(options: &Options, columns: Vec<Picked>) -> Result<Self, Failure> {
        for (setting, names) in [("numbers", &options.numbers), ("texts", &options.texts)] {
            if let Some(name) = names.iter().find(|name| columns.iter().all(|picked| picked.column != **name)) {
                let known: Vec<&str> = columns.iter().map(|picked| picked.column.as_str()).collect();
                return Err(Failure::Invalid(format!(
                    "the setting {setting:?} names {name:?}, which is not among the columns of the file: {}",
                    known.join(", ")
                )));
            }
        }
        let member = |picked: Picked| {
            let text_as = if options.numbers.contains(&picked.column) {
                TextAs::Number
            } else if picked.of == "json" {
                TextAs::Json
            } else {
                TextAs::Text
            };
            let number_as_text = options.texts.contains(&picked.column);
            Ok(Member { key: format!("{}:", quoted(&picked.header)?), text_as, number_as_text, picked })
        };
        // The words stand for numbers as text, and are the same as in the other builders.
        let words = Words { null: String::new(), yes: "true".to_owned(), no: "false".to_owned() };
        let columns = columns.into_iter().map(member).collect::<Result<_, Failure>>()?;
        Ok(Self { columns, omit_null: options.omit_null, words })
    }

    /// The value, as it stands in the object.
    fn value(&self, number: u64, member: &Member, value: &Value) -> Result<String, Failure> {
        let place = || member.picked.place(number);
        Ok(match value {
            Value::Null => "null".to_owned(),
            Value::Integer(_) | Value::Float(_) if member.number_as_text => quoted(&self.words.text(value))?,
            Value::Float(float) if !float.is_finite() => {
                return Err(Failure::Other(format!(
                    "{}: JSON has no form for a float that is infinite or no number: name the column in the setting \"texts\", or \
                     take such values out in the query",
                    place()
                )));
            }
            Value::Boolean(_) | Value::Integer(_) | Value::Float(_) => self.words.text(value).into_owned(),
            Value::Text(text) if member.text_as == TextAs::Number => exact(text, place)?.to_owned(),
            Value::Text(text) if member.text_as == TextAs::Json => on_one_line(text, place)?,
            Value::Text(text) => quoted(text)?,
            Value::Bytes(_) => quoted(&self.words.text(value))?,
        })
    }
}

impl Format for Objects {
    fn begin(&mut self, _: &mut Vec<u8>) -> Result<(), Failure> {
        Ok(())
    }

    fn row(&mut self, number: u64, row: &Row, bytes: &mut Vec<u8>) -> Result<(), Failure> {
        bytes.push(b'{');
        let mut first = true;
        for member in &self.columns {
            let value = member.picked.value(number, row)?;
            if self.omit_null && matches!(value, Value::Null) {
                continue;
            }
            if !std::mem::take(&mut first) {
                bytes.push(b',');
            }
            bytes.extend_from_slice(member.key.as_bytes());
            bytes.extend_from_slice(self.value(number, member, value)?.as_bytes());
        }
        bytes.extend_from_slice(b"}\n");
        Ok(())
    }

    fn end(&mut self, _: u64, _: &mut Vec<u8>) -> Result<(), Failure> {
        Ok(())
    }
}

fn quoted(text: &str) -> Result<String, Failure> {
    Ok(serde_json::to_string(text).map_err(|error| error.to_string())?)
}

/// A text that is a number of JSON already, with all its digits.
fn exact(text: &str, place: impl Fn() -> String) -> Result<&str, Failure> {
    let begins = text.starts_with(|first: char| first == '-' || first.is_ascii_digit());
    if begins && serde_json::from_str::<&RawValue>(text).is_ok_and(|whole| whole.get() == text) {
        return Ok(text);
    }
    Err(Failure::Other(format!(
        "{}: the setting \"numbers\" names this column, but the value has no form as a number of JSON: take the column out of the \
         setting, or such values out in the query",
        place()
    )))
}

/// JSON without the blanks and line ends between its parts: a line end would end the row.
fn on_one_line(text: &str, place: impl Fn() -> String) -> Result<String, Failure> {
    let raw = serde_json::from_str::<&RawValue>(text).map_err(|error| {
        // The crate's words hold no part of the value, but a position, which is what helps.
        Failure::Other(format!("{}: the column is of json, but its value is not ({error})", place()))
    })?;
    let (mut quoted, mut escaped) = (false, false);
    let outside = |character: &char| {
        let blank = !quoted && matches!(character, ' ' | '\t' | '\r' | '\n');
        if *character == '"' && !escaped {
            quoted = !quoted;
        }
        escaped = quoted && *character == '\\' && !escaped;
        !blank
    };
    Ok(raw.get().chars().filter(outside).collect())
}

#[cfg(test)]
mod tests {
    use waybill_guest::Column;
    use waybill_guest::table::{pick, write};
    use waybill_guest::testing::job;

    use super::*;

    fn text(text: &str) -> Value {
        Value::Text(text.into())
    }

    /// Writes the rows of a query with the columns `id`, `name` and `more`, which is of json.
    fn file(settings: &[(&str, &str)], rows: Vec<Row>) -> Result<String, Failure> {
        let options = Options::read(&job(settings))?;
        let present = [("id", "integer"), ("name", "text"), ("more", "json")]
            .map(|(name, of)| Column { name: name.into(), of: of.into() });
        let objects = Objects::new(&options, pick(&options.columns, &present, "rows")?)?;
        let mut bytes = Vec::new();
        write(objects, rows.into_iter().map(Ok), options.compression, &mut bytes)?;
        Ok(String::from_utf8(bytes).unwrap())
    }

    fn row(id: Value, name: Value, more: Value) -> Row {
        vec![id, name, more]
    }

    #[test]
    fn a_row_is_an_object_on_a_line_in_the_order_of_the_columns() {
        let rows = vec![
            row(Value::Integer(i64::MAX), text("a \"b\" \\ \n\u{1}é\u{2028}"), Value::Null),
            row(Value::Boolean(true), Value::Bytes(vec![0, 255]), text("{\"a\": [1, 2]}")),
        ];
        let expected = "{\"id\":9223372036854775807,\"name\":\"a \\\"b\\\" \\\\ \\n\\u0001é\u{2028}\",\"more\":null}\n\
                        {\"id\":true,\"name\":\"00ff\",\"more\":{\"a\":[1,2]}}\n";
        assert_eq!(file(&[], rows).unwrap(), expected);
        assert_eq!(file(&[], vec![]).unwrap(), "");
    }

    #[test]
    fn columns_are_renamed_and_missing_values_left_out_where_the_settings_say_so() {
        let settings = [("columns", "\"name=Full \"\"name\"\"\", id"), ("null", "omit")];
        let rows = vec![
            row(Value::Integer(1), Value::Null, Value::Null),
            row(Value::Null, text(""), Value::Null),
            row(Value::Null, Value::Null, Value::Null),
        ];
        assert_eq!(file(&settings, rows).unwrap(), "{\"id\":1}\n{\"Full \\\"name\\\"\":\"\"}\n{}\n");
    }

    #[test]
    fn exact_numerics_keep_every_digit_as_text_or_as_number() {
        let digits = "-123456789012345678901234567890.1234567890123456789000";
        let rows = || vec![row(Value::Integer(1), text(digits), Value::Null)];
        assert!(file(&[], rows()).unwrap().contains(&format!("\"name\":\"{digits}\"")));
        assert!(file(&[("numbers", "name")], rows()).unwrap().contains(&format!("\"name\":{digits},")));
        for wrong in ["NaN", "", "1,5", "01", "+1", "1 ", "\"1\"", "true"] {
            let failure = file(&[("numbers", "name")], vec![row(Value::Null, text(wrong), Value::Null)]).unwrap_err();
            assert!(
                failure.reason().starts_with("row 1, column \"name\": the setting \"numbers\""),
                "{wrong:?}: {failure:?}"
            );
        }
    }

    #[test]
    fn floats_are_the_shortest_decimal_and_what_is_no_number_is_refused_or_text() {
        let one = |float: f64| vec![row(Value::Float(float), Value::Null, Value::Null)];
        let settings = [("columns", "id")];
        assert_eq!(file(&settings, one(1e-7)).unwrap(), "{\"id\":0.0000001}\n");
        let failure = file(&settings, one(f64::NAN)).unwrap_err();
        assert!(failure.reason().starts_with("row 1, column \"id\": JSON has no form"), "{failure:?}");
        let texts = [("columns", "id"), ("texts", "id")];
        assert_eq!(file(&texts, one(f64::INFINITY)).unwrap(), "{\"id\":\"Infinity\"}\n");
        assert_eq!(file(&texts, vec![row(Value::Integer(5), Value::Null, Value::Null)]).unwrap(), "{\"id\":\"5\"}\n");
    }

    #[test]
    fn json_stays_one_line_and_what_is_none_is_told_without_the_value() {
        let one = |value: &str| vec![row(Value::Null, Value::Null, text(value))];
        let pretty = "{\n  \"a b\": \"x \\\" y\\\\\",\r\n\t\"c\": [ 1.50, null ]\n}";
        assert_eq!(
            file(&[("columns", "more")], one(pretty)).unwrap(),
            "{\"more\":{\"a b\":\"x \\\" y\\\\\",\"c\":[1.50,null]}}\n"
        );
        let failure = file(&[], one("{\"secret\": Secret}")).unwrap_err();
        assert!(failure.reason().starts_with("row 1, column \"more\": the column is of json"), "{failure:?}");
        assert!(failure.reason().contains("column 12") && !failure.reason().contains("ecret"), "{failure:?}");
    }

    #[test]
    fn a_setting_that_names_a_column_the_file_does_not_have_is_refused() {
        let failure = file(&[("columns", "id"), ("numbers", "name")], vec![]).unwrap_err();
        let told = "\"numbers\" names \"name\", which is not among the columns of the file: id";
        assert!(failure.reason().ends_with(told), "{failure:?}");
    }
}
