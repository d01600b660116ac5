//! The file as a reader: its rows are fetched and written as they are asked for, so that a file of any length needs little memory,
//! and compression and encryption are readers over it.

use std::io::{self, Read, Write};

use super::Compression;
use crate::{Failure, Row};

/// How a file looks: what stands before its rows, for each of them, and after them.
///
/// Each function appends to the bytes.
pub trait Format {
    fn begin(&mut self, bytes: &mut Vec<u8>) -> Result<(), Failure>;

    /// One row, counted from 1.
    fn row(&mut self, number: u64, row: &Row, bytes: &mut Vec<u8>) -> Result<(), Failure>;

    /// After the last row, when their number is known.
    fn end(&mut self, rows: u64, bytes: &mut Vec<u8>) -> Result<(), Failure>;
}

/// Writes the whole file, compressed or not, and returns the number of its rows.
pub fn write(
    format: impl Format,
    rows: impl Iterator<Item = Result<Row, Failure>>,
    compression: Compression,
    output: &mut impl Write,
) -> Result<u64, Failure> {
    let mut file = File::new(format, rows);
    io::copy(&mut compression.over(&mut file), output)?;
    Ok(file.rows())
}

/// A file under construction.
pub struct File<F, R> {
    format: F,
    source: R,
    rows: u64,
    part: Part,
    bytes: Vec<u8>,
    read: usize,
    failed: Option<Failure>,
}

/// What is to be written next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Begin,
    Rows,
    Nothing,
}

impl<F: Format, R: Iterator<Item = Result<Row, Failure>>> File<F, R> {
    pub const fn new(format: F, rows: R) -> Self {
        Self { format, source: rows, rows: 0, part: Part::Begin, bytes: Vec::new(), read: 0, failed: None }
    }

    /// How many rows were written so far.
    pub const fn rows(&self) -> u64 {
        self.rows
    }

    /// The failure that ended it, if one did: for those who read it through a crate that makes another error of it.
    pub fn into_failure(self) -> Option<Failure> {
        self.failed
    }

    /// Writes parts until there are bytes, or none will come.
    fn fill(&mut self) -> Result<(), Failure> {
        self.bytes.clear();
        self.read = 0;
        while self.bytes.is_empty() && self.part != Part::Nothing {
            if self.part == Part::Begin {
                self.part = Part::Rows;
                self.format.begin(&mut self.bytes)?;
            } else if let Some(row) = self.source.next() {
                let number = self.rows + 1;
                self.format.row(number, &row?, &mut self.bytes)?;
                self.rows = number;
            } else {
                self.part = Part::Nothing;
                self.format.end(self.rows, &mut self.bytes)?;
            }
        }
        Ok(())
    }
}

impl<F: Format, R: Iterator<Item = Result<Row, Failure>>> Read for File<F, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if let Some(failure) = &self.failed {
            return Err(failure.clone().into());
        }
        if self.read >= self.bytes.len() {
            self.fill().inspect_err(|failure| self.failed = Some(failure.clone()))?;
        }
        let mut waiting = self.bytes.get(self.read..).unwrap_or_default();
        let read = waiting.read(buffer)?;
        self.read += read;
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Value;

    /// Writes each row's number between marks, and nothing for the second.
    struct Numbers;

    impl Format for Numbers {
        fn begin(&mut self, bytes: &mut Vec<u8>) -> Result<(), Failure> {
            bytes.push(b'<');
            Ok(())
        }

        fn row(&mut self, number: u64, _: &Row, bytes: &mut Vec<u8>) -> Result<(), Failure> {
            if number == 4 {
                return Err(Failure::Invalid("row 4".into()));
            }
            bytes.extend(if number == 2 { String::new() } else { number.to_string() }.bytes());
            Ok(())
        }

        fn end(&mut self, rows: u64, bytes: &mut Vec<u8>) -> Result<(), Failure> {
            bytes.extend(format!("|{rows}>").bytes());
            Ok(())
        }
    }

    fn rows(count: usize) -> impl Iterator<Item = Result<Row, Failure>> {
        std::iter::repeat_n(vec![Value::Null], count).map(Ok)
    }

    #[test]
    fn parts_come_in_order_and_a_row_without_bytes_does_not_end_the_file() {
        let mut bytes = Vec::new();
        assert_eq!(write(Numbers, rows(3), Compression::None, &mut bytes), Ok(3));
        assert_eq!(bytes, b"<13|3>");
        let mut file = File::new(Numbers, rows(0));
        let mut one_by_one = Vec::new();
        let mut byte = [0];
        while file.read(&mut byte).unwrap() == 1 {
            one_by_one.extend(byte);
        }
        assert_eq!((one_by_one.as_slice(), file.rows()), (b"<|0>".as_slice(), 0));
    }

    #[test]
    fn a_failure_of_the_format_the_rows_or_the_output_is_handed_on_with_its_kind() {
        let written = |rows: Vec<Result<Row, Failure>>| {
            write(Numbers, rows.into_iter(), Compression::None, &mut Vec::new()).unwrap_err()
        };
        assert_eq!(written(rows(5).collect()), Failure::Invalid("row 4".into()));
        assert_eq!(written(vec![Ok(vec![]), Err(Failure::Stopped)]), Failure::Stopped);

        struct Full;
        impl Write for Full {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(Failure::Forbidden("too long".into()).into())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        assert_eq!(write(Numbers, rows(1), Compression::None, &mut Full), Err(Failure::Forbidden("too long".into())));
    }

    #[test]
    fn after_a_failure_there_is_nothing_but_the_failure() {
        let mut file = File::new(Numbers, rows(5));
        for _ in 0..2 {
            let error = io::copy(&mut file, &mut Vec::new()).unwrap_err();
            assert_eq!(Failure::from(error), Failure::Invalid("row 4".into()));
        }
        assert_eq!((file.rows(), file.into_failure()), (3, Some(Failure::Invalid("row 4".into()))));
    }
}
