//! The file under construction as a writer.

use std::io;

use crate::Failure;
use crate::bindings::builder::waybill::partner::output::File;

/// Bytes that go to the host in one call: larger calls are no faster.
const CHUNK: usize = 64 * 1024;

/// Where [`Output`] takes its bytes. The host's file, or a test's.
trait Sink {
    fn take(&self, bytes: &[u8]) -> Result<(), Failure>;
}

impl Sink for File {
    fn take(&self, bytes: &[u8]) -> Result<(), Failure> {
        self.write(bytes)
    }
}

/// Writes the partner's file, in chunks of 64 KiB.
///
/// It implements [`io::Write`] for crates that write to one. An error that it returns there carries the host's failure, and
/// `?` turns it back; should another crate drop it on the way, the build still ends with the first failure that the host
/// answered here.
pub struct Output<'a> {
    sink: &'a dyn Sink,
    waiting: Vec<u8>,
    failed: Option<Failure>,
}

impl<'a> Output<'a> {
    pub(crate) fn new(file: &'a File) -> Self {
        Self::over(file)
    }

    fn over(sink: &'a dyn Sink) -> Self {
        Self { sink, waiting: Vec::with_capacity(CHUNK), failed: None }
    }

    /// Appends the bytes.
    pub fn append(&mut self, mut bytes: &[u8]) -> Result<(), Failure> {
        while !bytes.is_empty() {
            let room = CHUNK.saturating_sub(self.waiting.len()).min(bytes.len());
            let (now, later) = bytes.split_at(room);
            self.waiting.extend_from_slice(now);
            bytes = later;
            if self.waiting.len() >= CHUNK {
                self.hand_over()?;
            }
        }
        Ok(())
    }

    /// Appends the bytes in one call to the host, however many they are, for those who make their own chunks.
    pub fn append_at_once(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        self.hand_over()?;
        self.call(bytes)
    }

    /// Hands what is left to the host.
    pub(crate) fn finish(mut self) -> Result<(), Failure> {
        self.hand_over()
    }

    /// The first failure that the host answered, if there was one.
    pub(crate) fn into_failure(self) -> Option<Failure> {
        self.failed
    }

    fn hand_over(&mut self) -> Result<(), Failure> {
        if self.waiting.is_empty() && self.failed.is_none() {
            return Ok(());
        }
        let waiting = std::mem::take(&mut self.waiting);
        let result = self.call(&waiting);
        self.waiting = waiting;
        self.waiting.clear();
        result
    }

    /// One call. After a failure every further one is the same failure, without a call.
    fn call(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        if self.failed.is_none() {
            self.failed = self.sink.take(bytes).err();
        }
        self.failed.clone().map_or(Ok(()), Err)
    }
}

impl io::Write for Output<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.append(bytes)?;
        Ok(bytes.len())
    }

    /// Hands nothing to the host before a chunk is full: a flush has no reader to serve.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::io::Write as _;

    use super::*;

    /// Remembers the chunks, and refuses all after the first `accepts`.
    struct Memory {
        chunks: RefCell<Vec<Vec<u8>>>,
        accepts: usize,
    }

    impl Sink for Memory {
        fn take(&self, bytes: &[u8]) -> Result<(), Failure> {
            if self.chunks.borrow().len() == self.accepts {
                return Err(Failure::Forbidden("the file would exceed its limit".into()));
            }
            self.chunks.borrow_mut().push(bytes.to_vec());
            Ok(())
        }
    }

    #[test]
    fn bytes_arrive_in_order_and_in_full_chunks() {
        let memory = Memory { chunks: RefCell::default(), accepts: usize::MAX };
        let mut output = Output::over(&memory);
        let bytes: Vec<u8> = (0..=255).cycle().take(3 * CHUNK + 17).collect();
        for part in bytes.chunks(1000) {
            output.write_all(part).unwrap();
            output.flush().unwrap();
        }
        output.finish().unwrap();
        let chunks = memory.chunks.into_inner();
        assert_eq!(chunks.iter().map(Vec::len).collect::<Vec<_>>(), [CHUNK, CHUNK, CHUNK, 17]);
        assert_eq!(chunks.concat(), bytes);
    }

    #[test]
    fn bytes_at_once_come_after_those_that_wait() {
        let memory = Memory { chunks: RefCell::default(), accepts: usize::MAX };
        let mut output = Output::over(&memory);
        output.append(b"first").unwrap();
        output.append_at_once(&vec![b'x'; CHUNK + 1]).unwrap();
        output.finish().unwrap();
        assert_eq!(memory.chunks.borrow().iter().map(Vec::len).collect::<Vec<_>>(), [5, CHUNK + 1]);
    }

    #[test]
    fn the_hosts_failure_survives_a_writer_that_drops_it() {
        let memory = Memory { chunks: RefCell::default(), accepts: 1 };
        let mut output = Output::over(&memory);
        let too_much = vec![b'x'; 2 * CHUNK];
        let error = output.write_all(&too_much).unwrap_err();
        let limit = Failure::Forbidden("the file would exceed its limit".into());
        assert_eq!(Failure::from(error), limit);
        assert!(output.append(&too_much).is_err(), "nothing is sent after a failure");
        assert_eq!(output.into_failure(), Some(limit));
        assert_eq!(memory.chunks.borrow().len(), 1);
    }
}
