//! The format: each value fitted into its field, and encoded.

use waybill_guest::table::{Encoder, Format, Picked, Unencodable, Words};
use waybill_guest::{Failure, Row, Template, Value};

use crate::layout::Field;
use crate::options::Options;

/// A file of records under construction.
pub struct Records {
    columns: Vec<(Picked, Field)>,
    header: Vec<(Template, Field)>,
    trailer: Vec<(Template, Field)>,
    /// Of the records of rows.
    width: usize,
    line_ending: &'static str,
    words: Words,
    key: String,
    day: String,
    fitting: Fitting,
}

impl Records {
    pub fn new(options: &Options, columns: Vec<Picked>) -> Result<Self, Failure> {
        let with_field = |picked: Picked| {
            let field = Field::parse("columns", &picked.column, &picked.header)?;
            Ok((picked, field))
        };
        let columns = columns.into_iter().map(with_field).collect::<Result<Vec<_>, Failure>>()?;
        let width = columns.iter().map(|(_, field)| field.width).sum();
        for (setting, record) in [("header", &options.header), ("trailer", &options.trailer)] {
            let longer: usize = record.iter().map(|(_, field)| field.width).sum();
            if longer > width {
                return Err(Failure::Invalid(format!(
                    "the setting {setting:?} makes a record of {longer}, but those of the rows have {width}: all are to have one width"
                )));
            }
        }
        Ok(Self {
            columns,
            header: options.header.clone(),
            trailer: options.trailer.clone(),
            width,
            line_ending: options.line_ending,
            words: options.words.clone(),
            key: options.key.clone(),
            day: options.day.clone(),
            fitting: Fitting { encoder: options.charset.encoder(), in_bytes: options.in_bytes, scratch: Vec::new() },
        })
    }

    /// A record that is not a row's.
    fn framing(
        &mut self,
        setting: &str,
        record: &[(Template, Field)],
        rows: u64,
        bytes: &mut Vec<u8>,
    ) -> Result<(), Failure> {
        if record.is_empty() {
            return Ok(());
        }
        let (count, records) = (rows.to_string(), (rows + 2 - u64::from(self.header.is_empty())).to_string());
        let mut left = self.width;
        for (at, (template, field)) in record.iter().enumerate() {
            let text = template.fill(|placeholder| match placeholder {
                "rows" => &count,
                "records" => &records,
                "date" => &self.day,
                _ => &self.key,
            });
            let place = || format!("field {} of the setting {setting:?}", at + 1);
            self.fitting.put(&text, *field, false, place, bytes)?;
            left = left.saturating_sub(field.width);
        }
        self.fitting.plain(&" ".repeat(left), bytes)?;
        self.fitting.plain(self.line_ending, bytes)
    }
}

impl Format for Records {
    fn begin(&mut self, bytes: &mut Vec<u8>) -> Result<(), Failure> {
        let header = std::mem::take(&mut self.header);
        let result = self.framing("header", &header, 0, bytes);
        self.header = header;
        result
    }

    fn row(&mut self, number: u64, row: &Row, bytes: &mut Vec<u8>) -> Result<(), Failure> {
        for (picked, field) in &self.columns {
            let value = picked.value(number, row)?;
            let missing = matches!(value, Value::Null);
            self.fitting.put(&self.words.text(value), *field, missing, || picked.place(number), bytes)?;
        }
        self.fitting.plain(self.line_ending, bytes)
    }

    fn end(&mut self, rows: u64, bytes: &mut Vec<u8>) -> Result<(), Failure> {
        let trailer = std::mem::take(&mut self.trailer);
        self.framing("trailer", &trailer, rows, bytes)?;
        self.fitting.encoder.finish(bytes);
        Ok(())
    }
}

/// Measures, fills and encodes.
struct Fitting {
    encoder: Encoder,
    in_bytes: bool,
    scratch: Vec<u8>,
}

impl Fitting {
    /// Appends the text as one field. The place is for an error, which never tells the text.
    fn put(
        &mut self,
        text: &str,
        field: Field,
        missing: bool,
        place: impl Fn() -> String,
        bytes: &mut Vec<u8>,
    ) -> Result<(), Failure> {
        if let Some((at, character)) = text.chars().enumerate().find(|(_, character)| character.is_control()) {
            return Err(Failure::Other(format!(
                "{}: character {} is a control character (U+{:04X}), which has no width: take it out in the query",
                place(),
                at + 1,
                u32::from(character)
            )));
        }
        let (mut used, mut end) = (0, text.len());
        for (at, character) in text.char_indices() {
            let more = self.size(character).map_err(|missing| Failure::Other(missing.told(&place())))?;
            if field.truncate && used + more > field.width {
                end = at;
                break;
            }
            used += more;
        }
        if used > field.width {
            let unit = if self.in_bytes { "bytes" } else { "characters" };
            return Err(Failure::Other(format!(
                "{}: the value has {used} {unit}, but its field {}: agree on a wider one with the partner, shorten the value in the \
                 query, or say truncate for the field",
                place(),
                field.width
            )));
        }
        let fitting = text.get(..end).unwrap_or_default();
        self.plain(&field.filled(fitting, field.width - used, missing), bytes)
    }

    /// What a character adds to the width.
    fn size(&mut self, character: char) -> Result<usize, Unencodable> {
        self.scratch.clear();
        self.encoder.encode(character.encode_utf8(&mut [0; 4]), &mut self.scratch)?;
        Ok(if self.in_bytes { self.scratch.len() } else { 1 })
    }

    /// Appends what is known to be in the encoding.
    fn plain(&mut self, text: &str, bytes: &mut Vec<u8>) -> Result<(), Failure> {
        self.encoder.encode(text, bytes).map_err(|missing| Failure::Other(missing.told("a field")))
    }
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

    /// Writes the rows of a query with the columns `id` and `name`.
    fn file(settings: &[(&str, &str)], rows: Vec<Row>) -> Result<Vec<u8>, Failure> {
        let options = Options::read(&job(settings))?;
        let present = ["id", "name"].map(|name| Column { name: name.into(), of: "text".into() });
        let records = Records::new(&options, pick(&options.columns, &present, "rows")?)?;
        let mut bytes = Vec::new();
        write(records, rows.into_iter().map(Ok), options.compression, &mut bytes)?;
        Ok(bytes)
    }

    fn utf8(settings: &[(&str, &str)], rows: Vec<Row>) -> String {
        String::from_utf8(file(settings, rows).unwrap()).unwrap()
    }

    fn refusal(settings: &[(&str, &str)], row: Row) -> String {
        file(settings, vec![vec![Value::Integer(1), text("ok")], row]).unwrap_err().reason().to_owned()
    }

    const COLUMNS: (&str, &str) = ("columns", "id=5 right zero, name=6");

    #[test]
    fn each_value_fills_its_field() {
        let rows = vec![
            vec![Value::Integer(7), text("Müller")],
            vec![Value::Integer(-42), text("Ünal")],
            vec![Value::Null, Value::Null],
        ];
        assert_eq!(utf8(&[COLUMNS], rows), "00007Müller\r\n-0042Ünal  \r\n           \r\n");
        let right = [("columns", "name=6 right, id=3"), ("line_ending", "none"), ("null", "?")];
        assert_eq!(utf8(&right, vec![vec![Value::Null, text("Ana")]]), "   Ana?  ");
    }

    #[test]
    fn header_and_trailer_carry_the_key_the_day_and_the_counts() {
        let settings = [
            COLUMNS,
            ("line_ending", "lf"),
            ("header", "H=1, {date}=8"),
            ("trailer", "T=1\n{rows}=4 right zero\n{records}=4 right zero"),
        ];
        let rows = vec![vec![Value::Integer(1), text("Ana")], vec![Value::Integer(2), text("Eva")]];
        assert_eq!(utf8(&settings, rows), "H20260302  \n00001Ana   \n00002Eva   \nT00020004  \n");
        assert_eq!(utf8(&settings, vec![]), "H20260302  \nT00000002  \n");
        let trailer_only = [COLUMNS, ("trailer", "{key}=5, {records}=1")];
        assert_eq!(utf8(&trailer_only, vec![]), "k-1  1     \r\n");
    }

    #[test]
    fn what_is_too_long_is_refused_unless_the_column_says_truncate() {
        let said = refusal(&[COLUMNS], vec![Value::Integer(2), text("Secret person")]);
        assert!(said.starts_with("row 2, column \"name\": the value has 13 characters, but its field 6"), "{said}");
        assert!(!said.contains("Secret"), "{said}");
        let cut = [("columns", "name=6 truncate, id=2 right truncate")];
        assert_eq!(utf8(&cut, vec![vec![Value::Integer(123), text("Müllermeister")]]), "Müller12\r\n");
        let trailer = [COLUMNS, ("trailer", "{rows}=1")];
        let rows = vec![vec![Value::Integer(1), text("x")]; 10];
        let failure = file(&trailer, rows).unwrap_err();
        assert!(failure.reason().starts_with("field 1 of the setting \"trailer\": the value has 2"), "{failure:?}");
    }

    #[test]
    fn a_width_in_bytes_counts_the_encodings_bytes_and_cuts_between_characters() {
        let settings = [("columns", "name=6 truncate"), ("count", "bytes"), ("line_ending", "none")];
        let one = |value: &str| vec![vec![Value::Null, text(value)]];
        assert_eq!(utf8(&settings, one("Müller")), "Mülle");
        assert_eq!(utf8(&settings, one("ééé")), "ééé");
        // The euro sign has three bytes: it does not fit, and what comes after it does not slip into its place.
        assert_eq!(utf8(&settings, one("abcd€€f")), "abcd  ");
        let said = refusal(&[("columns", "name=6"), ("count", "bytes")], vec![Value::Null, text("Müller")]);
        assert!(said.contains("the value has 7 bytes, but its field 6"), "{said}");
        let sjis = [("columns", "name=5"), ("count", "bytes"), ("encoding", "shift_jis"), ("line_ending", "none")];
        assert_eq!(file(&sjis, one("ア")).unwrap(), [0x83, 0x41, b' ', b' ', b' ']);
    }

    #[test]
    fn fields_are_encoded_with_their_fillers_and_line_ends() {
        let settings = [("columns", "name=3"), ("encoding", "utf-16le"), ("line_ending", "lf")];
        assert_eq!(file(&settings, vec![vec![Value::Null, text("é")]]).unwrap(), [0xe9, 0, b' ', 0, b' ', 0, b'\n', 0]);
        let said = refusal(&[COLUMNS, ("encoding", "us-ascii")], vec![Value::Integer(2), text("Ünal")]);
        assert!(said.starts_with("row 2, column \"name\"") && said.contains("'Ü' (U+00DC)"), "{said}");
        assert!(!said.contains("nal:") && !said.contains("Ünal"), "{said}");
    }

    #[test]
    fn a_control_character_is_refused_by_its_position() {
        let said = refusal(&[COLUMNS], vec![Value::Integer(2), text("ab\nc")]);
        assert!(said.starts_with("row 2, column \"name\": character 3 is a control character (U+000A)"), "{said}");
    }

    #[test]
    fn a_header_that_is_wider_than_the_rows_is_refused_before_a_byte_is_written() {
        let failure = file(&[COLUMNS, ("header", "H=12")], vec![]).unwrap_err();
        assert!(
            failure.reason().contains("\"header\" makes a record of 12, but those of the rows have 11"),
            "{failure:?}"
        );
    }
}
