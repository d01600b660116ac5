//! A session that is written down while it is held, and one that answers from what was written down.
//!
//! It sits where [`super::Session`] makes single requests, not at SFTP's packets: there an attempt asks one thing at a time and
//! gets one answer, so a record is a list in order, which a person can read and whose differences mean something. Below, writes
//! and reads of one request overlap, and how they are cut depends on chance. What a record cannot show is therefore how packets
//! are read: tests of [`super::sftp`] do that, with servers that answer oddly.
//!
//! What is kept of content is its length and digest, and of the file that an attempt built only that it was that file: an answer
//! that showed its length, its digest or its bytes shows those of the file of now. Small files that were read are kept as they
//! are, because an acknowledgment is its text.
//!
//! The rule: an answer is given only to the very request that it answered. The first other request ends the session, and
//! [`Session::difference`] tells both.
//!
//! Not promised: that a server would answer the same again.

mod session;
mod state;
mod step;
#[cfg(test)]
mod tests;

pub use session::{Lack, Server, Session};
pub use state::Difference;
pub use step::{Answer, Content, Kept, Request, Seen, Size, Step, unfounded};
