//! The format: quoting and encoding.

use std::cell::RefCell;
use std::io::{self, Write};
use std::rc::Rc;

use csv::WriterBuilder;
use waybill_guest::table::{Encoder, Format, Picked, Unencodable, Words};
use waybill_guest::{Failure, Row};

use crate::options::Options;

/// A CSV file under construction.
pub struct Csv {
    columns: Vec<Picked>,
    header: bool,
    bom: bool,
    words: Words,
    lines: Lines,
}

impl Csv {
    pub fn new(options: &Options, columns: Vec<Picked>) -> Self {
        let lines = Lines::new(options);
        Self { columns, header: options.header, bom: options.bom, words: options.words.clone(), lines }
    }
}

impl Format for Csv {
    fn begin(&mut self, bytes: &mut Vec<u8>) -> Result<(), Failure> {
        if self.bom {
            self.lines.byte_order_mark(bytes)?;
        }
        if self.header {
            let headers: Vec<&str> = self.columns.iter().map(|picked| picked.header.as_str()).collect();
            self.lines.line(&headers, bytes, |Unencodable(character)| {
                Failure::Invalid(format!(
                    "the headers in the setting \"columns\" have the character {character:?}, which the encoding does not have"
                ))
            })?;
        }
        Ok(())
    }

    fn row(&mut self, number: u64, row: &Row, bytes: &mut Vec<u8>) -> Result<(), Failure> {
        let mut fields = Vec::with_capacity(self.columns.len());
        for picked in &self.columns {
            fields.push(self.words.text(picked.value(number, row)?));
        }
        self.lines.line(&fields, bytes, |missing| unencodable(number, &self.columns, &fields, missing))
    }

    fn end(&mut self, _: u64, bytes: &mut Vec<u8>) -> Result<(), Failure> {
        self.lines.end(bytes);
        Ok(())
    }
}

/// Quotes and encodes one line after the other.
struct Lines {
    csv: csv::Writer<Line>,
    line: Line,
    encoder: Encoder,
}

impl Lines {
    fn new(options: &Options) -> Self {
        let line = Line::default();
        let csv = WriterBuilder::new()
            .has_headers(false)
            .delimiter(options.delimiter)
            .quote_style(options.quote)
            .terminator(options.line_ending)
            .from_writer(line.clone());
        Self { csv, line, encoder: options.charset.encoder() }
    }

    /// Appends one line. What cannot be encoded becomes the failure that the function makes of it.
    fn line(
        &mut self,
        fields: &[impl AsRef<str>],
        bytes: &mut Vec<u8>,
        unencodable: impl FnOnce(Unencodable) -> Failure,
    ) -> Result<(), Failure> {
        self.csv.write_record(fields.iter().map(AsRef::as_ref)).map_err(|error| error.to_string())?;
        self.csv.flush()?;
        let line = self.line.take();
        let text = std::str::from_utf8(&line).map_err(|error| error.to_string())?;
        self.encoder.encode(text, bytes).map_err(unencodable)?;
        self.line.give_back(line);
        Ok(())
    }

    /// Appends a byte order mark. Every encoding that is allowed one has the character.
    fn byte_order_mark(&mut self, bytes: &mut Vec<u8>) -> Result<(), Failure> {
        match self.encoder.encode("\u{feff}", bytes) {
            Ok(()) => Ok(()),
            Err(Unencodable(_)) => Err(Failure::Invalid("this encoding has no byte order mark".to_owned())),
        }
    }

    /// Appends what the encoding needs after the last line.
    fn end(&mut self, bytes: &mut Vec<u8>) {
        self.encoder.finish(bytes);
    }
}

/// The line under construction, shared with the CSV writer, which gives its own writer away only at its end.
#[derive(Clone, Default)]
struct Line(Rc<RefCell<Vec<u8>>>);

impl Line {
    fn take(&self) -> Vec<u8> {
        self.0.take()
    }

    /// Keeps the memory for the next line.
    fn give_back(&self, mut line: Vec<u8>) {
        line.clear();
        self.0.replace(line);
    }
}

impl Write for Line {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.borrow_mut().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Which column has the character. The text between the fields is ASCII, which every encoding here has.
fn unencodable(row: u64, columns: &[Picked], fields: &[impl AsRef<str>], missing: Unencodable) -> Failure {
    let column = columns.iter().zip(fields).find(|(_, field)| field.as_ref().contains(missing.0));
    let place = column.map_or_else(|| format!("row {row}"), |(picked, _)| picked.place(row));
    Failure::Other(missing.told(&place))
}

#[cfg(test)]
mod tests {
    use waybill_guest::table::{pick, write};
    use waybill_guest::testing::job;
    use waybill_guest::{Column, Value};

    use super::*;

    fn text(text: &str) -> Value {
        Value::Text(text.into())
    }

    /// Writes the rows of a query with the columns `id` and `name`.
    fn file(settings: &[(&str, &str)], rows: Vec<Row>) -> Result<(Vec<u8>, u64), Failure> {
        let options = Options::read(&job(settings))?;
        let present = ["id", "name"].map(|name| Column { name: name.into(), of: "text".into() });
        let columns = pick(&options.columns, &present, &options.query.name)?;
        let mut bytes = Vec::new();
        let csv = Csv::new(&options, columns);
        let count = write(csv, rows.into_iter().map(Ok), options.compression, &mut bytes)?;
        Ok((bytes, count))
    }

    fn utf8(settings: &[(&str, &str)], rows: Vec<Row>) -> String {
        String::from_utf8(file(settings, rows).unwrap().0).unwrap()
    }

    #[test]
    fn fields_are_quoted_as_rfc_4180_says() {
        let rows = vec![
            vec![Value::Integer(1), text("Müller, \"Ute\"")],
            vec![Value::Integer(2), text("two\r\nlines")],
            vec![Value::Integer(3), text(" blanks stay ")],
        ];
        let expected = "id,name\r\n1,\"Müller, \"\"Ute\"\"\"\r\n2,\"two\r\nlines\"\r\n3, blanks stay \r\n";
        assert_eq!(utf8(&[], rows), expected);
    }

    #[test]
    fn settings_shape_the_file() {
        let settings = [
            ("columns", "name=Full name, id=No"),
            ("delimiter", ";"),
            ("line_ending", "lf"),
            ("quote", "always"),
            ("null", "NULL"),
        ];
        let rows = vec![vec![Value::Integer(1), Value::Null], vec![Value::Integer(2), text("b;c")]];
        assert_eq!(utf8(&settings, rows), "\"Full name\";\"No\"\n\"NULL\";\"1\"\n\"b;c\";\"2\"\n");
        assert_eq!(
            utf8(&[("header", "no"), ("delimiter", "tab")], vec![vec![text("a\tb"), text("c")]]),
            "\"a\tb\"\tc\r\n"
        );
    }

    #[test]
    fn a_lone_empty_field_is_not_an_empty_line() {
        assert_eq!(utf8(&[("columns", "name")], vec![vec![Value::Integer(1), Value::Null]]), "name\r\n\"\"\r\n");
    }

    #[test]
    fn no_rows_leave_the_header() {
        assert_eq!(file(&[], vec![]).unwrap(), (b"id,name\r\n".to_vec(), 0));
    }

    #[test]
    fn a_byte_order_mark_comes_first() {
        let rows = || vec![vec![Value::Integer(1), text("é")]];
        assert_eq!(utf8(&[("bom", "yes")], rows()), "\u{feff}id,name\r\n1,é\r\n");
        let (bytes, _) = file(&[("encoding", "utf-16le"), ("bom", "yes"), ("header", "no")], rows()).unwrap();
        assert_eq!(bytes, [0xff, 0xfe, b'1', 0, b',', 0, 0xe9, 0, b'\r', 0, b'\n', 0]);
    }

    #[test]
    fn a_field_longer_than_the_writers_buffer_is_encoded_whole() {
        let long = "é".repeat(20_000);
        let (bytes, _) =
            file(&[("encoding", "windows-1252"), ("header", "no")], vec![vec![Value::Null, text(&long)]]).unwrap();
        assert_eq!(bytes.len(), 1 + 20_000 + 2);
        assert!(bytes[1..20_001].iter().all(|byte| *byte == 0xe9));
    }

    #[test]
    fn what_cannot_be_encoded_is_named_by_row_and_column_without_the_value() {
        let rows = vec![vec![Value::Integer(1), text("Ana")], vec![Value::Integer(2), text("Ana ✓ Secret")]];
        let failure = file(&[("encoding", "windows-1252")], rows).unwrap_err();
        assert!(failure.reason().starts_with("row 2, column \"name\""), "{failure:?}");
        assert!(failure.reason().contains("'✓' (U+2713)") && !failure.reason().contains("Secret"), "{failure:?}");
    }

    #[test]
    fn a_header_that_cannot_be_encoded_is_the_settings_fault() {
        let failure = file(&[("encoding", "us-ascii"), ("columns", "name=Prénom")], vec![]).unwrap_err();
        assert!(matches!(failure, Failure::Invalid(text) if text.contains("headers") && text.contains('é')));
    }
}
