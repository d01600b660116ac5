//! Compression of the whole file, the last thing that is done to it before it is encrypted or written.
//!
//! gzip's header carries neither a name nor a time, and the backend of the crate is chosen in one place, so that the same rows are
//! the same bytes whenever and wherever the file is built.

use std::io::{self, Read};

#[cfg(feature = "gzip")]
use flate2::{Compression as Level, GzBuilder, read::GzEncoder};

use crate::{Failure, Job};

/// What the setting `compress` says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compression {
    None,
    #[cfg(feature = "gzip")]
    Gzip,
}

/// A reader, or what gzip makes of it.
pub enum Compressed<R> {
    Plain(R),
    #[cfg(feature = "gzip")]
    Gzip(GzEncoder<R>),
}

impl Compression {
    /// Reads the setting `compress`.
    pub fn read(job: &Job) -> Result<Self, Failure> {
        let words = [
            ("none", Self::None),
            #[cfg(feature = "gzip")]
            ("gzip", Self::Gzip),
        ];
        job.one_of("compress", &words)
    }

    pub fn over<R: Read>(self, plain: R) -> Compressed<R> {
        match self {
            Self::None => Compressed::Plain(plain),
            // 255 stands for an unknown system, 0 for no time.
            #[cfg(feature = "gzip")]
            Self::Gzip => {
                Compressed::Gzip(GzBuilder::new().mtime(0).operating_system(255).read(plain, Level::default()))
            }
        }
    }
}

impl<R: Read> Read for Compressed<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(plain) => plain.read(buffer),
            #[cfg(feature = "gzip")]
            Self::Gzip(gzip) => gzip.read(buffer),
        }
    }
}

#[cfg(feature = "gzip")]
#[cfg(test)]
mod tests {
    use flate2::read::GzDecoder;

    use super::*;
    use crate::testing::job;

    fn compressed(plain: impl Read) -> Vec<u8> {
        let mut bytes = Vec::new();
        let compression = Compression::read(&job(&[("compress", "gzip")])).unwrap();
        compression.over(plain).read_to_end(&mut bytes).unwrap();
        bytes
    }

    #[test]
    fn gzip_reads_back_and_its_header_tells_nothing() {
        let plain = b"the same line again\n".repeat(10_000);
        let bytes = compressed(plain.as_slice());
        assert!(bytes.len() < plain.len() / 50, "{} bytes", bytes.len());
        assert_eq!(bytes[..10], [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255]);
        let mut back = Vec::new();
        GzDecoder::new(bytes.as_slice()).read_to_end(&mut back).unwrap();
        assert!(back == plain);
        assert_eq!(compressed(plain.as_slice()), bytes);
    }

    #[test]
    fn an_empty_file_is_an_empty_member() {
        let mut back = Vec::new();
        GzDecoder::new(compressed(io::empty()).as_slice()).read_to_end(&mut back).unwrap();
        assert!(back.is_empty());
    }

    #[test]
    fn a_failure_below_comes_through_with_its_kind() {
        struct Stops;
        impl Read for Stops {
            fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
                Err(Failure::Stopped.into())
            }
        }
        // The header comes first; it needs nothing from below.
        let error = Compression::Gzip.over(Stops).read_to_end(&mut Vec::new()).unwrap_err();
        assert_eq!(Failure::from(error), Failure::Stopped);
    }

    #[test]
    fn another_word_is_refused_with_those_that_are_known() {
        let failure = Compression::read(&job(&[("compress", "zip")])).unwrap_err();
        assert!(failure.reason().ends_with("\"compress\" is \"zip\": use one of: none, gzip"), "{failure:?}");
        assert_eq!(Compression::read(&job(&[])), Ok(Compression::None));
    }
}
