//! What a recorded session knows of its own course.

use std::collections::BTreeSet;

use super::step::{Request, Seen, Size, Step};
use crate::job::facts::Entry;
use crate::spool::SpoolFile;

/// Why a record has no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// Counted from 1.
    pub number: usize,
    /// `None`: the record ends before it.
    pub recorded: Option<Request>,
    /// `None`: the session ended before it.
    pub asked: Option<Request>,
}

#[derive(Default)]
pub(super) struct State {
    pub steps: Vec<Step>,
    /// Requests that were made.
    pub asked: usize,
    /// One of them is not answered yet.
    pub asking: bool,
    /// The file that the attempt built, once it is sent.
    pub built: Option<SpoolFile>,
    /// Names of small files that we made: one of them may be as long as the built file and is another.
    pub small: BTreeSet<String>,
    pub difference: Option<Difference>,
    /// Why no record can be made of this session.
    pub spoiled: Option<String>,
}

impl State {
    /// A file keeps being a small one under its new name.
    pub fn moved(&mut self, request: &Request) {
        if let Request::Rename { from, to } | Request::Hardlink { from, to } | Request::PosixRename { from, to } =
            request
        {
            if self.small.contains(from) {
                self.small.insert(to.clone());
            } else {
                self.small.remove(to);
            }
        }
    }

    pub fn size(&self, name: &str, bytes: u64) -> Size {
        let built = self.built.as_ref().is_some_and(|file| file.bytes() == bytes);
        if built && !self.small.contains(name) { Size::Built } else { Size::Bytes(bytes) }
    }

    pub fn seen(&self, entry: Entry) -> Seen {
        Seen::of(entry, |name, bytes| self.size(name, bytes))
    }
}
