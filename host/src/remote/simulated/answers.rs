//! What the server answers: attributes, and the file system's refusals as statuses.

use std::sync::Mutex;

use russh_sftp::protocol::{FileAttributes, Status, StatusCode};
use russh_sftp::server::StatusReply;

use super::behaviour::Listing;
use super::files::{File, No, locked};

const REGULAR_FILE: u32 = 0o100_644;
pub const DIRECTORY: u32 = 0o040_755;

/// A refusal on its way to the client.
pub type Refusal = StatusReply;

pub fn file_attributes(listing: Listing, file: &Mutex<File>) -> FileAttributes {
    let inside = locked(file);
    let hidden = listing == Listing::SizeAfterClose && inside.writers > 0;
    let size = if hidden { 0 } else { inside.bytes.len() as u64 };
    attributes(size, Some(inside.modified), REGULAR_FILE)
}

pub fn attributes(size: u64, modified: Option<u32>, permissions: u32) -> FileAttributes {
    FileAttributes {
        size: Some(size),
        permissions: Some(permissions),
        atime: modified,
        mtime: modified,
        ..FileAttributes::empty()
    }
}

pub fn refused(no: No) -> Refusal {
    match no {
        No::Missing => StatusCode::NoSuchFile.into(),
        No::Exists => StatusCode::Failure.with_message("File already exists"),
        No::IsDirectory => StatusCode::Failure.with_message("Is a directory"),
        No::NotEmpty => StatusCode::Failure.with_message("Directory not empty"),
        No::Full => StatusCode::Failure.with_message("No space left on device"),
    }
}

pub fn status_code(code: u8) -> StatusCode {
    match code {
        0 => StatusCode::Ok,
        1 => StatusCode::Eof,
        2 => StatusCode::NoSuchFile,
        3 => StatusCode::PermissionDenied,
        5 => StatusCode::BadMessage,
        6 => StatusCode::NoConnection,
        7 => StatusCode::ConnectionLost,
        8 => StatusCode::OpUnsupported,
        _ => StatusCode::Failure,
    }
}

pub fn ok(id: u32) -> Status {
    Status { id, status_code: StatusCode::Ok, error_message: "Success".to_owned(), language_tag: "en-US".to_owned() }
}
