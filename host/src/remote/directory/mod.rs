//! A directory of the machine that the worker runs on: a local disk, or a share that is mounted there.
//!
//! From the disk up: [`place`] finds a name's folder without ever leaving the directory; [`errno`] says what is known of the
//! effect of a call that failed; [`lane`] bounds how many are under way; [`session`] makes single requests, [`content`] moves bytes.
//!
//! What is promised where the file system keeps POSIX (ext4, XFS, Btrfs, ZFS, tmpfs):
//! - A hard link and an exclusive create refuse an existing name, whoever else writes there; a rename that refuses does so in one
//!   step where the file system knows it. `waybill partner check` shows it, as for a server.
//! - Nothing is answered yes before it is on the disk: a file's bytes are flushed before its name is, and its folder after it. A
//!   publish that is recorded as acknowledged outlives a power cut, as far as the disk keeps its word.
//! - No symbolic link is followed below the directory, neither in a folder nor at a file's own name.
//! - Absent is answered only while the path still leads to the directory that was opened: one that was moved away, removed or
//!   unmounted under a session ends it, and proves nothing.
//!
//! On NFS: links and exclusive creates refuse at the server, and a flush waits for it, so that a yes holds. Not promised is a no:
//! before version 4.1 a reply that was lost can make a request that took effect look refused, which is why a refusal is no proof
//! by itself, here as anywhere. Nor that a look is fresh: a client answers from its cache for as long as its mount options say,
//! so the contract's `settle_seconds` must cover that, or the share be mounted with `lookupcache=none,noac`. A rename that
//! refuses is not known there; the check finds that out. A share that hangs keeps a thread of this process for each request
//! that was given up, until the share answers, up to a bound; from there on it counts as unreachable.
//!
//! Bytes are read back as any reader on this machine gets them, mostly from memory: that shows what is under a name, not what
//! the disk would return after a power cut.

mod content;
mod errno;
mod lane;
mod place;
mod session;

pub use session::Session;
