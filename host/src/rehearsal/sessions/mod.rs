//! Sessions with a real server: held once, written to `tests/sessions/NAME.jsonl`, and from then on held again without it.
//!
//! [`record()`] delivers one case to a partner's test account by the very sequence that delivers, with every request and answer
//! [written down](crate::remote::recorded). A rehearsal then delivers the case again to what was written down: a request that
//! is another one than then is a failure, and so is another conclusion. What is recorded is replayed at once, so that no file
//! is kept that its own bundle does not pass.
//!
//! Of the destination only its address and credential are used: job, rows and settings are the case's, or the record would hang
//! on a file that the bundle's tests do not have. The attempt's id is kept with the record, because files and names may carry
//! it; ids of scratch names are made anew and stand for each other by their number.

mod file;
mod play;
mod record;

pub(super) use file::{Session, all};
pub(super) use play::replay;
pub use record::{Against, Plan, Recording, record};
