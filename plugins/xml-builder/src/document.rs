//! The format: elements and attributes.

use std::borrow::Cow;

use quick_xml::Writer;
use quick_xml::events::{BytesDecl, BytesEnd, BytesStart, BytesText, Event};
use waybill_guest::table::{Encoder, Format, Picked, Unencodable, Words};
use waybill_guest::{Failure, Row, Value};

use crate::escape::{check_name, escaped};
use crate::options::{Missing, Options};

const INSTANCE: &str = "http://www.w3.org/2001/XMLSchema-instance";

/// A document under construction.
pub struct Document {
    columns: Vec<Picked>,
    root: String,
    row: String,
    namespace: Option<String>,
    attributes: bool,
    null: Missing,
    words: Words,
    encoding: &'static str,
    encoder: Encoder,
    /// One part of the document, in UTF-8.
    part: Writer<Vec<u8>>,
}

impl Document {
    pub fn new(options: &Options, columns: Vec<Picked>) -> Result<Self, Failure> {
        let mut encoder = options.charset.encoder();
        for picked in &columns {
            check_name(&picked.header, &format!("the column {:?} in the setting \"columns\"", picked.column))?;
        }
        // Names and the namespace are told as they are: no reference can stand in a name.
        let fixed = columns.iter().map(|picked| &picked.header);
        for text in fixed.chain([&options.root, &options.row]) {
            encoder.encode(text, &mut Vec::new()).map_err(|Unencodable(character)| {
                Failure::Invalid(format!(
                    "the name {text:?} has the character {character:?}, which the encoding in the setting \"encoding\" does not \
                     have: choose another name or utf-8"
                ))
            })?;
        }
        let namespace = options
            .namespace
            .as_ref()
            .map(|namespace| escaped(namespace, true, &mut encoder, || "the setting \"namespace\"".to_owned()));
        Ok(Self {
            columns,
            root: options.root.clone(),
            row: options.row.clone(),
            namespace: namespace.transpose()?,
            attributes: options.attributes,
            null: options.null,
            words: options.words.clone(),
            encoding: options.encoding,
            encoder,
            part: Writer::new(Vec::new()),
        })
    }

    /// What the value is as content; nothing for a missing one.
    fn content(&mut self, number: u64, at: usize, value: &Value) -> Result<Option<String>, Failure> {
        let Some(picked) = self.columns.get(at).filter(|_| !matches!(value, Value::Null)) else {
            return Ok(None);
        };
        let text = self.words.text(value);
        escaped(&text, self.attributes, &mut self.encoder, || picked.place(number)).map(Some)
    }

    /// Appends the part in the document's encoding, which has all of it.
    fn encoded(&mut self, bytes: &mut Vec<u8>) -> Result<(), Failure> {
        let part = self.part.get_mut();
        let text = std::str::from_utf8(part).map_err(|error| error.to_string())?;
        self.encoder.encode(text, bytes).map_err(|missing| missing.told("the document"))?;
        part.clear();
        Ok(())
    }

    fn line_end(&mut self) {
        self.part.get_mut().push(b'\n');
    }
}

impl Format for Document {
    fn begin(&mut self, bytes: &mut Vec<u8>) -> Result<(), Failure> {
        self.part.write_event(Event::Decl(BytesDecl::new("1.0", Some(self.encoding), None)))?;
        self.line_end();
        let mut root = BytesStart::new(self.root.as_str());
        if let Some(namespace) = &self.namespace {
            root.push_attribute(("xmlns".as_bytes(), namespace.as_bytes()));
        }
        if self.null == Missing::Nil {
            root.push_attribute(("xmlns:xsi", INSTANCE));
        }
        self.part.write_event(Event::Start(root))?;
        self.line_end();
        self.encoded(bytes)
    }

    fn row(&mut self, number: u64, row: &Row, bytes: &mut Vec<u8>) -> Result<(), Failure> {
        let mut contents = Vec::with_capacity(self.columns.len());
        for at in 0..self.columns.len() {
            let value = self.columns.get(at).map(|picked| picked.value(number, row)).transpose()?;
            contents.push(self.content(number, at, value.unwrap_or(&Value::Null))?);
        }
        let mut element = BytesStart::new(self.row.as_str());
        let named = self.columns.iter().map(|picked| picked.header.as_str()).zip(contents);
        if self.attributes {
            for (name, content) in named {
                match content {
                    Some(content) => element.push_attribute((name.as_bytes(), content.as_bytes())),
                    None if self.null == Missing::Empty => element.push_attribute((name, "")),
                    None => {}
                }
            }
            self.part.write_event(Event::Empty(element))?;
        } else {
            self.part.write_event(Event::Start(element))?;
            for (name, content) in named {
                match (content, self.null) {
                    (Some(content), _) => {
                        self.part.write_event(Event::Start(BytesStart::new(name)))?;
                        self.part.write_event(Event::Text(BytesText::from_escaped(Cow::Owned(content))))?;
                        self.part.write_event(Event::End(BytesEnd::new(name)))?;
                    }
                    (None, Missing::Omit) => {}
                    (None, Missing::Empty) => self.part.write_event(Event::Empty(BytesStart::new(name)))?,
                    (None, Missing::Nil) => {
                        let mut nil = BytesStart::new(name);
                        nil.push_attribute(("xsi:nil", "true"));
                        self.part.write_event(Event::Empty(nil))?;
                    }
                }
            }
            self.part.write_event(Event::End(BytesEnd::new(self.row.as_str())))?;
        }
        self.line_end();
        self.encoded(bytes)
    }

    fn end(&mut self, _: u64, bytes: &mut Vec<u8>) -> Result<(), Failure> {
        self.part.write_event(Event::End(BytesEnd::new(self.root.as_str())))?;
        self.line_end();
        self.encoded(bytes)
    }
}

#[cfg(test)]
mod tests {
    use quick_xml::Reader;
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
        let document = Document::new(&options, pick(&options.columns, &present, "rows")?)?;
        let mut bytes = Vec::new();
        write(document, rows.into_iter().map(Ok), options.compression, &mut bytes)?;
        Ok(bytes)
    }

    fn utf8(settings: &[(&str, &str)], rows: Vec<Row>) -> String {
        String::from_utf8(file(settings, rows).unwrap()).unwrap()
    }

    const DECLARATION: &str = "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n";

    #[test]
    fn a_row_is_an_element_with_elements() {
        let rows = vec![vec![Value::Integer(1), text("Müller & \"Söhne\"")], vec![Value::Null, text("")]];
        let expected =
            "<rows>\n<row><id>1</id><name>Müller &amp; \"Söhne\"</name></row>\n<row><name></name></row>\n</rows>\n";
        assert_eq!(utf8(&[], rows), format!("{DECLARATION}{expected}"));
        assert_eq!(utf8(&[], vec![]), format!("{DECLARATION}<rows>\n</rows>\n"));
    }

    #[test]
    fn settings_shape_the_document() {
        let rows = || vec![vec![Value::Boolean(true), Value::Null], vec![Value::Null, text("a\n\"b\"")]];
        let settings = [
            ("root", "Kontakte"),
            ("row", "Kontakt"),
            ("namespace", "urn:x?a&b"),
            ("columns", "name=Name, id=Straße"),
            ("true", "J"),
            ("null", "nil"),
        ];
        let expected = "<Kontakte xmlns=\"urn:x?a&amp;b\" xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\">\n\
            <Kontakt><Name xsi:nil=\"true\"/><Straße>J</Straße></Kontakt>\n\
            <Kontakt><Name>a\n\"b\"</Name><Straße xsi:nil=\"true\"/></Kontakt>\n</Kontakte>\n";
        assert_eq!(utf8(&settings, rows()), format!("{DECLARATION}{expected}"));
        let attributes = "<rows>\n<row id=\"true\" name=\"\"/>\n<row id=\"\" name=\"a&#10;&quot;b&quot;\"/>\n</rows>\n";
        assert_eq!(utf8(&[("values", "attributes"), ("null", "empty")], rows()), format!("{DECLARATION}{attributes}"));
        let omitted = "<rows>\n<row id=\"true\"/>\n<row name=\"a&#10;&quot;b&quot;\"/>\n</rows>\n";
        assert_eq!(utf8(&[("values", "attributes")], rows()), format!("{DECLARATION}{omitted}"));
    }

    #[test]
    fn the_document_is_in_the_declared_encoding_and_lacks_no_character() {
        let bytes =
            file(&[("encoding", "iso-8859-1"), ("columns", "name")], vec![vec![Value::Null, text("é€")]]).unwrap();
        let expected =
            b"<?xml version=\"1.0\" encoding=\"iso-8859-1\"?>\n<rows>\n<row><name>\xe9&#8364;</name></row>\n</rows>\n";
        assert_eq!(bytes, expected);
    }

    #[test]
    fn a_parser_reads_back_every_text() {
        let nasty = "]]> <!-- &amp; 'x' \"y\" \r\n\t\u{85}\u{2028} é\u{1f600} ";
        let document = utf8(&[("columns", "name")], vec![vec![Value::Null, text(nasty)]]);
        let mut reader = Reader::from_str(&document);
        let (mut inside, mut read) = (false, String::new());
        loop {
            match reader.read_event().unwrap() {
                Event::Start(start) => inside = start.name().as_ref() == b"name",
                Event::End(_) => inside = false,
                Event::Text(part) if inside => read.push_str(&part.decode().unwrap()),
                Event::GeneralRef(reference) => match reference.resolve_char_ref().unwrap() {
                    Some(character) => read.push(character),
                    None => read.push_str(quick_xml::escape::resolve_xml_entity(&reference.decode().unwrap()).unwrap()),
                },
                Event::Eof => break,
                _ => {}
            }
        }
        assert_eq!(read, nasty);
    }

    #[test]
    fn what_xml_cannot_carry_is_refused_by_row_column_and_position() {
        let rows = vec![vec![Value::Integer(1), text("ok")], vec![Value::Integer(2), text("Secret\u{1f}")]];
        let failure = file(&[], rows).unwrap_err();
        assert!(failure.reason().starts_with("row 2, column \"name\": character 7 is U+001F"), "{failure:?}");
        assert!(!failure.reason().contains("Secret"), "{failure:?}");
    }

    #[test]
    fn names_that_cannot_stand_are_refused_with_their_column() {
        let failure = file(&[("columns", "id=Full name")], vec![]).unwrap_err();
        let told = "the column \"id\" in the setting \"columns\": \"Full name\" is no name";
        assert!(failure.reason().starts_with(told), "{failure:?}");
        let failure = file(&[("columns", "id=Straße"), ("encoding", "us-ascii")], vec![]).unwrap_err();
        assert!(failure.reason().contains("\"Straße\" has the character 'ß'"), "{failure:?}");
    }
}
