//! Encodings: what the file's bytes are.
//!
//! `encoding_rs` knows the encodings of the web, where a name such as iso-8859-1 stands for the larger windows-1252. A partner
//! who asks for ISO-8859-1 means it, so the names that the web stretches are either strict here or refused.

use crate::Failure;
use encoding_rs::{EncoderResult, Encoding, REPLACEMENT};

/// An encoding by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Charset {
    Utf8,
    Utf16 {
        big_endian: bool,
    },
    /// Each character is one byte, up to this one: US-ASCII and ISO-8859-1.
    Unicode {
        last: u8,
    },
    Table(&'static Encoding),
}

/// Names whose encoding on the web has more characters than the standard of that name, and the name of what the web means.
const STRETCHED: [(&str, &str); 2] = [("iso-8859-9", "windows-1254"), ("iso-8859-11", "windows-874")];

impl Charset {
    /// The encoding that the setting `encoding` names.
    pub fn named(name: &str) -> Result<Self, Failure> {
        let wrong = |why: &str| Failure::Invalid(format!("the setting \"encoding\" is {name:?}: {why}"));
        let lower = name.trim().to_ascii_lowercase();
        match lower.as_str() {
            "us-ascii" | "ascii" => return Ok(Self::Unicode { last: 0x7f }),
            "iso-8859-1" | "iso8859-1" | "iso_8859-1" | "latin1" | "latin-1" => {
                return Ok(Self::Unicode { last: 0xff });
            }
            "utf-16le" => return Ok(Self::Utf16 { big_endian: false }),
            "utf-16be" => return Ok(Self::Utf16 { big_endian: true }),
            "utf-16" => return Err(wrong("say utf-16le or utf-16be")),
            _ => {}
        }
        if let Some((_, instead)) = STRETCHED.iter().find(|(strict, _)| *strict == lower) {
            return Err(wrong(&format!("it is not offered; if the partner reads {instead}, say so")));
        }
        match Encoding::for_label(lower.as_bytes()) {
            None => Err(wrong("it is not known; utf-8, iso-8859-1 and windows-1252 are common ones")),
            Some(encoding) if encoding == encoding_rs::UTF_8 => Ok(Self::Utf8),
            Some(encoding) if encoding == REPLACEMENT || encoding.output_encoding() != encoding => {
                Err(wrong("files cannot be written in it"))
            }
            Some(encoding) => Ok(Self::Table(encoding)),
        }
    }

    /// True if its bytes mean something else after an escape sequence: such text has no fixed width.
    pub fn has_states(self) -> bool {
        matches!(self, Self::Table(encoding) if encoding == encoding_rs::ISO_2022_JP)
    }

    pub fn has_byte_order_mark(self) -> bool {
        matches!(self, Self::Utf8 | Self::Utf16 { .. })
    }

    pub fn encoder(self) -> Encoder {
        match self {
            Self::Utf8 => Encoder::Utf8,
            Self::Utf16 { big_endian } => Encoder::Utf16 { big_endian },
            Self::Unicode { last } => Encoder::Unicode { last },
            Self::Table(encoding) => Encoder::Table(Box::new(encoding.new_encoder())),
        }
    }
}

/// Encodes one file from its first text to its last: some encodings switch between states on the way.
pub enum Encoder {
    Utf8,
    Utf16 { big_endian: bool },
    Unicode { last: u8 },
    Table(Box<encoding_rs::Encoder>),
}

/// A character that the encoding does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unencodable(pub char);

impl Unencodable {
    /// What an operator reads of it. The place is the row and the column, or the setting that has the character.
    pub fn told(self, place: &str) -> String {
        let Self(character) = self;
        format!(
            "{place}: the setting \"encoding\" names an encoding without the character {character:?} \
             (U+{:04X}): choose another encoding with the partner, or correct the data",
            u32::from(character)
        )
    }
}

impl Encoder {
    /// Appends the text's bytes.
    pub fn encode(&mut self, text: &str, bytes: &mut Vec<u8>) -> Result<(), Unencodable> {
        match self {
            Self::Utf8 => bytes.extend_from_slice(text.as_bytes()),
            Self::Utf16 { big_endian: false } => bytes.extend(text.encode_utf16().flat_map(u16::to_le_bytes)),
            Self::Utf16 { big_endian: true } => bytes.extend(text.encode_utf16().flat_map(u16::to_be_bytes)),
            Self::Unicode { last } => {
                for character in text.chars() {
                    match u8::try_from(character) {
                        Ok(byte) if byte <= *last => bytes.push(byte),
                        _ => return Err(Unencodable(character)),
                    }
                }
            }
            Self::Table(encoder) => return table(encoder, text, bytes, false),
        }
        Ok(())
    }

    /// Appends what the encoding needs after the last text. Nothing is encoded after it.
    pub fn finish(&mut self, bytes: &mut Vec<u8>) {
        if let Self::Table(encoder) = self {
            // There is no character left that could be missing.
            let _ = table(encoder, "", bytes, true);
        }
    }
}

fn table(
    encoder: &mut encoding_rs::Encoder,
    mut text: &str,
    bytes: &mut Vec<u8>,
    last: bool,
) -> Result<(), Unencodable> {
    loop {
        let room = encoder.max_buffer_length_from_utf8_without_replacement(text.len());
        bytes.reserve(room.unwrap_or(text.len()).max(16));
        match encoder.encode_from_utf8_to_vec_without_replacement(text, bytes, last) {
            (EncoderResult::InputEmpty, _) => return Ok(()),
            (EncoderResult::OutputFull, read) => text = text.get(read..).unwrap_or_default(),
            (EncoderResult::Unmappable(character), _) => return Err(Unencodable(character)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encode(name: &str, text: &str) -> Result<Vec<u8>, Unencodable> {
        let mut encoder = Charset::named(name).unwrap().encoder();
        let mut bytes = Vec::new();
        encoder.encode(text, &mut bytes)?;
        encoder.finish(&mut bytes);
        Ok(bytes)
    }

    #[test]
    fn texts_have_the_bytes_of_their_encoding() {
        assert_eq!(encode("UTF-8", "é€").unwrap(), "é€".as_bytes());
        assert_eq!(encode("windows-1252", "é€").unwrap(), [0xe9, 0x80]);
        assert_eq!(encode("iso-8859-1", "é").unwrap(), [0xe9]);
        assert_eq!(encode("iso-8859-15", "é€").unwrap(), [0xe9, 0xa4]);
        assert_eq!(encode("utf-16le", "é\u{1f600}").unwrap(), [0xe9, 0, 0x3d, 0xd8, 0, 0xde]);
        assert_eq!(encode("utf-16be", "é").unwrap(), [0, 0xe9]);
        assert_eq!(encode("shift_jis", "ア").unwrap(), [0x83, 0x41]);
    }

    #[test]
    fn an_encoding_with_states_is_closed_at_the_end() {
        assert_eq!(encode("iso-2022-jp", "ア").unwrap(), [0x1b, b'$', b'B', 0x25, 0x22, 0x1b, b'(', b'B']);
    }

    #[test]
    fn a_character_that_is_not_there_is_told() {
        assert_eq!(encode("windows-1252", "až✓"), Err(Unencodable('✓')));
        assert_eq!(encode("iso-8859-1", "€"), Err(Unencodable('€')), "the web's iso-8859-1 is windows-1252");
        assert_eq!(encode("us-ascii", "é"), Err(Unencodable('é')));
    }

    #[test]
    fn names_that_would_mean_something_else_are_refused() {
        for name in ["utf-16", "utf-7", "iso-8859-9", "iso-2022-kr", "klingon"] {
            assert!(matches!(Charset::named(name), Err(Failure::Invalid(text)) if text.contains(name)), "{name}");
        }
        assert_eq!(Charset::named(" Latin1 "), Ok(Charset::Unicode { last: 0xff }));
        assert!(Charset::named("iso-2022-jp").unwrap().has_states() && !Charset::Utf8.has_states());
    }
}
